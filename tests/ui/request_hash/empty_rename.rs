use idem_diesel::RequestHash;

#[derive(RequestHash)]
enum Method {
    #[request_hash(rename = "")]
    Cash,
    Card,
}

fn main() {}

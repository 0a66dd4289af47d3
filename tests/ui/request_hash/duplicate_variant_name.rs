use idem_diesel::RequestHash;

#[derive(RequestHash)]
enum Method {
    Cash,
    #[request_hash(rename = "Cash")]
    Coins,
}

fn main() {}

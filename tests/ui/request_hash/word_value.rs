use idem_diesel::RequestHash;

#[derive(RequestHash)]
struct PayOrder {
    #[request_hash(with = "lower_case")]
    email: String,
}

fn main() {}

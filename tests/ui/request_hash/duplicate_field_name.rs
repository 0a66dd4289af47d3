use idem_diesel::RequestHash;

#[derive(RequestHash)]
struct PayOrder {
    #[request_hash(rename = "amount")]
    amount_cents: i64,
    amount: i64,
}

fn main() {}

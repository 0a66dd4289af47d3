use idem_diesel::{RequestDigest, RequestHash};

#[derive(RequestHash)]
struct PayOrder {
    #[request_hash(skip = true)]
    trace_id: String,
    #[request_hash(rename = "")]
    order_id: i64,
}

// No third error: the type still has the trait.
fn main() {
    let pay = PayOrder { trace_id: String::new(), order_id: 1 };
    let _ = RequestDigest::of(&pay);
}

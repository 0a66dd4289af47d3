use idem_diesel::RequestHash;

#[derive(RequestHash)]
struct PayOrder {
    order_id: i64,
    #[request_hash(skipp)]
    trace_id: String,
}

fn main() {}

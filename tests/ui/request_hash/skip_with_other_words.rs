use idem_diesel::RequestHash;

#[derive(RequestHash)]
struct PayOrder {
    order_id: i64,
    #[request_hash(skip, rename = "trace")]
    trace_id: String,
}

fn main() {}

use idem_diesel::RequestHash;

#[derive(RequestHash)]
struct PayOrder {
    #[request_hash(rename = "id")]
    #[request_hash(rename = "order")]
    order_id: i64,
}

fn main() {}

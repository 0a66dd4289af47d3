use idem_diesel::RequestHash;

#[derive(RequestHash)]
struct Range(#[request_hash(rename = "from")] u32, u32);

fn main() {}

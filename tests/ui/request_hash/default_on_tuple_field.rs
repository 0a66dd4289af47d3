use idem_diesel::RequestHash;

#[derive(RequestHash)]
struct Range(u32, #[request_hash(default)] u32);

fn main() {}

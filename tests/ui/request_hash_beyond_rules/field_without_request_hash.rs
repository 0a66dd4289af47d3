use idem_diesel::RequestHash;

struct Address {
    street: String,
}

#[derive(RequestHash)]
struct Ship {
    order_id: i64,
    to: Address,
}

fn main() {}

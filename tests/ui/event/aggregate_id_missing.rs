use idem_diesel::Event;
use serde::Serialize;

#[derive(Serialize, Event)]
#[event(type = "order.placed", aggregate_type = "order")]
struct OrderPlaced {
    order_id: i64,
    amount_cents: i64,
}

fn main() {}

use idem_diesel::Event;
use serde::Serialize;

#[derive(Serialize, Event)]
#[event(type = "order.placed", aggregate_type = "order", type = "order.paid")]
struct OrderPlaced {
    #[event(aggregate_id)]
    order_id: i64,
}

fn main() {}

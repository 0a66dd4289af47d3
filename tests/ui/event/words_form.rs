use idem_diesel::Event;
use serde::Serialize;

#[derive(Serialize, Event)]
#[event(type = "order.placed", aggregate_type = "order")]
struct OrderPlaced {
    #[event]
    order_id: i64,
}

fn main() {}

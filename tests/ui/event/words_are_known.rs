use idem_diesel::Event;
use serde::Serialize;

#[derive(Serialize, Event)]
#[event(type = "order.placed", agregate_type = "order")]
struct OrderPlaced {
    #[event(aggregate_id)]
    order_id: i64,
}

fn main() {}

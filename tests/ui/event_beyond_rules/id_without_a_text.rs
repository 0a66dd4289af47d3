use idem_diesel::Event;
use serde::Serialize;

#[derive(Serialize)]
struct OrderId(i64);

#[derive(Serialize, Event)]
#[event(type = "order.placed", aggregate_type = "order")]
struct OrderPlaced {
    #[event(aggregate_id)]
    order_id: OrderId,
}

fn main() {}

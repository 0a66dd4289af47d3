use idem_diesel::Event;
use serde::Serialize;

#[derive(Serialize, Event)]
#[event(aggregate_type = "order")]
enum OrderEvent {
    #[event(type = "order.placed")]
    Placed(#[event(aggregate_id)] i64),
    #[event(type = "order.placed")]
    Cancelled(#[event(aggregate_id)] i64),
}

fn main() {}

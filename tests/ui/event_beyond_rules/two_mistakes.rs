use idem_diesel::Event;
use serde::Serialize;

#[derive(Serialize, Event)]
enum OrderEvent {
    #[event(type = "order.placed")]
    Placed { order_id: i64 },
}

fn topic(event: &impl Event) -> &'static str {
    event.aggregate_type()
}

fn main() {
    topic(&OrderEvent::Placed { order_id: 7 });
}

use idem_diesel::Event;
use serde::Serialize;

#[derive(Serialize)]
struct OrderPlaced {
    order_id: i64,
}

fn topic(event: &impl Event) -> &'static str {
    event.aggregate_type()
}

fn main() {
    topic(&OrderPlaced { order_id: 7 });
}

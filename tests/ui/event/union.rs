use idem_diesel::Event;

#[derive(Event)]
#[event(type = "order.placed", aggregate_type = "order")]
union OrderPlaced {
    #[event(aggregate_id)]
    order_id: i64,
}

fn main() {}

use idem_diesel::StateMachine;

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum OrderStatus {
    #[state(initial, to(Payed))]
    Pending,
    #[state(terminal)]
    Paid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum Foreign {
    #[state(initial, to(Paid, Archived))]
    Pending,
    #[state(terminal)]
    Paid,
}

fn main() {
    let _ = OrderStatus::Pending.can_become(OrderStatus::Paid);
}

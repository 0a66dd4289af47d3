use idem_diesel::StateMachine;

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
    #[state(to(Refunded))]
    Shipped,
    #[state(terminal)]
    Refunded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum Circle {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
    #[state(to(Returned))]
    Shipped,
    #[state(to(Shipped))]
    Returned,
}

fn main() {}

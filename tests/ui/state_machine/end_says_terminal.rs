use idem_diesel::StateMachine;

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    Paid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum Empty {
    #[state(initial, to())]
    Pending,
    #[state(terminal)]
    Paid,
}

fn main() {}

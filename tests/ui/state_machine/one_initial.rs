use idem_diesel::StateMachine;

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum OrderStatus {
    #[state(to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum Two {
    #[state(initial, to(Paid))]
    Pending,
    #[state(initial, terminal)]
    Paid,
}

fn main() {}

use idem_diesel::StateMachine;

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(rename_all = "lowercase", rename_all = "UPPERCASE")]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum TwoAttributes {
    #[state(initial, to(Paid))]
    #[state(to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

fn main() {}

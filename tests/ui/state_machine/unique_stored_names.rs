use idem_diesel::StateMachine;

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal, rename = "pending")]
    Paid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(rename_all = "lowercase")]
enum Styled {
    #[state(initial, to(PaidOut))]
    Paidout,
    #[state(terminal)]
    PaidOut,
}

fn main() {}

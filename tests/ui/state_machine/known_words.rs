use idem_diesel::StateMachine;

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(tabel = orders, column = status)]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum Misspelt {
    #[state(initial, to(Paid), final)]
    Pending,
    #[state(terminal)]
    Paid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum Bare {
    #[state(initial, Paid)]
    Pending,
    #[state(terminal)]
    Paid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum Quoted {
    #[state("initial")]
    Pending,
    #[state(terminal)]
    Paid,
}

fn main() {}

use idem_diesel::StateMachine;

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum OrderStatus {
    #[state(initial, to(Payed))]
    Pending,
    #[state(terminal, rename = "")]
    Paid,
}

fn main() {}

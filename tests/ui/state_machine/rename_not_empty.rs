use idem_diesel::StateMachine;

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum OrderStatus {
    #[state(initial, to(Paid), rename = "")]
    Pending,
    #[state(terminal)]
    Paid,
}

fn main() {}

use idem_diesel::StateMachine;

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(to(Paid, Shipped))]
    Paid,
    #[state(terminal)]
    Shipped,
}

fn main() {}

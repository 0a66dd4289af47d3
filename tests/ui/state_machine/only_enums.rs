use idem_diesel::StateMachine;

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
struct OrderStatus {
    paid: bool,
}

fn main() {
    let _ = OrderStatus { paid: true }.is_terminal();
}

use idem_diesel::StateMachine;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OrderStatus {
    Pending,
}

fn next<S: StateMachine>(state: S) -> &'static [S] {
    state.successors()
}

fn main() {
    next(OrderStatus::Pending);
}

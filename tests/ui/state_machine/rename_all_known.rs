use idem_diesel::StateMachine;

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(rename_all = "Title Case")]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

fn main() {}

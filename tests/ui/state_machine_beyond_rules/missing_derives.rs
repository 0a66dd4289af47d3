use idem_diesel::StateMachine;

#[derive(StateMachine)]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

fn main() {}

use idem_diesel::StateMachine;

mod schema {
    diesel::table! {
        orders (id) {
            id -> BigInt,
            tenant_id -> Text,
            status -> Text,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(table = schema::orders, column = status, key())]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(table = schema::orders, column = status, key(id, id))]
enum Twice {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(table = schema::orders, column = status, key(id, status))]
enum State {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

fn main() {}

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
#[state_machine(table = schema::orders, column = state)]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(table = schema::orders, column = status, key(tenant))]
enum Key {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

fn main() {}

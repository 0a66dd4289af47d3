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
#[state_machine(table = schema::orders, column = id, key(tenant_id))]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

fn main() {}

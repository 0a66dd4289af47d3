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
#[state_machine(table = schema::orders::table, column = status)]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

fn main() {}

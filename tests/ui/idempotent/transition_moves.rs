use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{Intent, StateMachine, idempotent};

diesel::table! {
    orders (id) {
        id -> BigInt,
        status -> Text,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(table = orders, column = status)]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

#[idempotent(
    scope = "orders.pay",
    ttl = "48h",
    transition(OrderStatus::Paid => OrderStatus::Paid, id = order_id)
)]
fn pay(db: &mut SqliteConnection, intent: &Intent, order_id: i64) -> QueryResult<usize> {
    diesel::sql_query("SELECT 1").execute(db)
}

fn main() {}

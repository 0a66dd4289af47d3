use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{Intent, idempotent};

struct PayOrder {
    order_id: usize,
}

#[idempotent(scope = "orders.pay", ttl = "48h")]
fn pay(db: &mut SqliteConnection, intent: &Intent, cmd: &PayOrder) -> QueryResult<usize> {
    diesel::sql_query("SELECT 1")
        .execute(db)
        .map(|_| cmd.order_id)
}

fn main() {}

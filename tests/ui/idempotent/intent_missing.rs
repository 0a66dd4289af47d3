use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::idempotent;

#[idempotent(scope = "orders.pay", ttl = "48h")]
fn pay(db: &mut SqliteConnection, order_id: i64) -> QueryResult<usize> {
    diesel::sql_query("SELECT 1").execute(db)
}

fn main() {}

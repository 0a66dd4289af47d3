use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{Intent, idempotent};

#[idempotent(scope = "orders.pay", ttl = "48h", pointer = order)]
fn pay(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    diesel::sql_query("SELECT 1").execute(db)
}

fn main() {}

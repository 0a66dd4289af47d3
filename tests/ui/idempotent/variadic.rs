use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{Intent, idempotent};

#[idempotent(scope = "orders.pay", ttl = "48h")]
fn pay(db: &mut SqliteConnection, intent: &Intent, _: ...) -> QueryResult<usize> {
    diesel::sql_query("SELECT 1").execute(db)
}

fn main() {}

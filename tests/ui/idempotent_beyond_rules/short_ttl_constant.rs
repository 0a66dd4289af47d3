use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{Intent, Retention, idempotent};

const QUICK: Retention = Retention::literal("15m");

#[idempotent(scope = "orders.pay", ttl = QUICK)]
fn pay(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    diesel::sql_query("SELECT 1").execute(db)
}

fn main() {}

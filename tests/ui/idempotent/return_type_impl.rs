use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{Intent, idempotent};

#[idempotent(scope = "orders.pay", ttl = "48h")]
fn pay(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<impl ToString> {
    diesel::sql_query("SELECT 1").execute(db)
}

fn main() {}

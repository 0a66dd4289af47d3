use diesel::{QueryResult, SqliteConnection};
use idem_diesel::{Intent, idempotent};

#[idempotent(scope = "orders.pay", ttl = "48h", retries = 0)]
fn pay(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    diesel::RunQueryDsl::execute(diesel::sql_query("SELECT 1"), db)
}

fn main() {}

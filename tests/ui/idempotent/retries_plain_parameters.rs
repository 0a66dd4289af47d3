use diesel::{QueryResult, SqliteConnection};
use idem_diesel::{Intent, idempotent};

#[idempotent(scope = "orders.pay", ttl = "48h", retries = 3)]
fn pay(
    db: &mut SqliteConnection,
    intent: &Intent,
    #[idempotent(skip)] (trace, span): (String, String),
) -> QueryResult<usize> {
    diesel::RunQueryDsl::execute(diesel::sql_query(trace + &span), db)
}

fn main() {}

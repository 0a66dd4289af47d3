use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{Intent, idempotent};

#[idempotent(scope = "orders.pay", ttl = "48h")]
fn pay(
    db: &mut SqliteConnection,
    intent: &Intent,
    order_id: i64,
    (amount, currency): (i64, String),
) -> QueryResult<usize> {
    diesel::sql_query("SELECT 1")
        .execute(db)
        .inspect(|_| println!("{amount} {currency}"))
}

fn main() {}

use diesel::{QueryResult, SqliteConnection};
use idem_diesel::{Intent, idempotent};

#[idempotent(scope = "orders.pay", ttl = "48h")]
const fn pay(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    let _ = (db, intent);
    Ok(1)
}

fn main() {}

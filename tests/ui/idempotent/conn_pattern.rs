use diesel::{QueryResult, SqliteConnection};
use idem_diesel::{Intent, idempotent};

#[idempotent(scope = "orders.pay", ttl = "48h")]
fn pay(_: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    Ok(1)
}

fn main() {}

use diesel::{Connection, QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{Intent, idempotent};

#[idempotent(scope = "orders.pay", ttl = "48h")]
fn pay(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    let other = &mut SqliteConnection::establish("shop.db").map_err(|_| diesel::NotFound)?;
    diesel::sql_query("SELECT 1").execute(other)
}

fn main() {}

use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{Intent, idempotent};

struct Payment;

#[idempotent(scope = "orders.pay", ttl = "48h")]
fn pay(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<Payment> {
    diesel::sql_query("SELECT 1").execute(db).map(|_| Payment)
}

fn main() {}

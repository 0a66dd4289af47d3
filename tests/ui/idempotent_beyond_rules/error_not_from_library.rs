use diesel::{RunQueryDsl, SqliteConnection};
use idem_diesel::{Intent, idempotent};

struct ShopError;

#[idempotent(scope = "orders.pay", ttl = "48h")]
fn pay(db: &mut SqliteConnection, intent: &Intent) -> Result<usize, ShopError> {
    diesel::sql_query("SELECT 1")
        .execute(db)
        .map_err(|_| ShopError)
}

fn main() {}

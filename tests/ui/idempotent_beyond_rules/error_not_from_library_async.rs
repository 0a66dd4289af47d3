use diesel_async::{AsyncPgConnection, RunQueryDsl};
use idem_diesel::{Intent, idempotent};

struct ShopError;

#[idempotent(scope = "orders.pay", ttl = "48h")]
async fn pay(db: &mut AsyncPgConnection, intent: &Intent) -> Result<usize, ShopError> {
    diesel::sql_query("SELECT 1")
        .execute(db)
        .await
        .map_err(|_| ShopError)
}

fn main() {}

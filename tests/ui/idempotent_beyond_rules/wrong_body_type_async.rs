use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use idem_diesel::{Intent, idempotent};

#[idempotent(scope = "orders.pay", ttl = "48h")]
async fn pay(db: &mut AsyncPgConnection, intent: &Intent) -> QueryResult<usize> {
    diesel::sql_query("SELECT 1").execute(db).await?;
}

fn main() {}

use std::pin::Pin;

use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use idem_diesel::{Intent, idempotent};

// What `#[async_trait]` makes of an `async fn`.
#[idempotent(scope = "orders.pay", ttl = "48h")]
fn pay<'a>(
    db: &'a mut AsyncPgConnection,
    intent: &'a Intent,
) -> Pin<Box<dyn Future<Output = QueryResult<usize>> + Send + 'a>> {
    Box::pin(async move { diesel::sql_query("SELECT 1").execute(db).await })
}

fn main() {}

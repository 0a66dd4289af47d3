//! `#[tracing::instrument]` above and below, on async functions and methods.

use diesel::{QueryResult, SqliteConnection, sql_query};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, RunQueryDsl};
use idem_diesel::idempotent;
use idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};

#[tracing::instrument(skip_all)]
#[idempotent(scope = "above", ttl = "48h")]
async fn above(db: &mut Sqlite, intent: &Intent, amount: i64) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db).await?;
    Ok(amount)
}

#[idempotent(scope = "below", ttl = "48h")]
#[tracing::instrument(skip(db), fields(key = intent.key().as_str(), amount), err)]
async fn below(db: &mut Sqlite, intent: &Intent, amount: i64) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db).await?;
    Ok(amount)
}

struct Shop;

impl Shop {
    #[tracing::instrument(skip_all, ret)]
    #[idempotent(scope = "method_above", ttl = "48h")]
    async fn method_above(
        &self,
        db: &mut Sqlite,
        intent: &Intent,
        amount: i64,
    ) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        Ok(amount)
    }

    #[idempotent(scope = "method_below", ttl = "48h")]
    #[tracing::instrument(skip_all, ret)]
    async fn method_below(
        &mut self,
        db: &mut Sqlite,
        intent: &Intent,
        amount: i64,
    ) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        Ok(amount)
    }
}

fn sends<F: Future + Send>(future: F) -> F {
    future
}

type Sqlite = SyncConnectionWrapper<SqliteConnection>;

async fn database() -> Sqlite {
    let mut db = Sqlite::establish(":memory:").await.unwrap();
    ensure_schema(&mut db).await.unwrap();
    db
}

fn intent(key: &str) -> Intent {
    Intent::new(
        Tenant::of("acme", "alice").unwrap(),
        IdempotencyKey::new(key).unwrap(),
    )
}

#[tokio::main]
async fn main() {
    let db = &mut database().await;
    assert_eq!(sends(above(db, &intent("1"), 7)).await.unwrap(), 7);
    assert_eq!(sends(below(db, &intent("2"), 7)).await.unwrap(), 7);
    assert_eq!(
        sends(Shop.method_above(db, &intent("3"), 7)).await.unwrap(),
        7
    );
    assert_eq!(
        sends(Shop.method_below(db, &intent("4"), 7)).await.unwrap(),
        7
    );
}

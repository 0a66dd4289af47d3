//! Free async functions: `return` and `?`, several awaits, inferred types.

use diesel::{QueryResult, SqliteConnection, sql_query};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, RunQueryDsl};
use idem_diesel::idempotent;
use idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};

#[derive(Debug)]
struct ShopError(String);

impl From<diesel::result::Error> for ShopError {
    fn from(error: diesel::result::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<idem_diesel::Error> for ShopError {
    fn from(error: idem_diesel::Error) -> Self {
        Self(error.to_string())
    }
}

impl std::fmt::Display for ShopError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[idempotent(scope = "plain", ttl = "48h")]
async fn plain(db: &mut Sqlite, intent: &Intent, amount: i64) -> QueryResult<usize> {
    sql_query(format!("SELECT {amount}")).execute(db).await
}

#[idempotent(scope = "leaves_early", ttl = "48h")]
async fn leaves_early(db: &mut Sqlite, intent: &Intent, amount: i64) -> Result<String, ShopError> {
    if amount == 0 {
        return Ok("nothing to do".into());
    }
    sql_query("SELECT 1").execute(db).await?;
    sql_query("SELECT 2").execute(db).await?;
    Ok(amount.to_string())
}

#[idempotent(scope = "only_question_marks", ttl = "48h")]
async fn only_question_marks(db: &mut Sqlite, intent: &Intent) -> Result<(), ShopError> {
    sql_query("SELECT 1").execute(db).await?;
    Err(std::fmt::Error).map_err(|error| ShopError(error.to_string()))?
}

#[idempotent(scope = "coerced", ttl = "48h")]
async fn coerced(db: &mut Sqlite, intent: &Intent) -> Result<Box<[i64]>, ShopError> {
    sql_query("SELECT 1").execute(db).await?;
    Ok(Box::new([1, 2, 3]))
}

#[idempotent(scope = "never_ends_by_itself", ttl = "48h")]
async fn never_ends_by_itself(db: &mut Sqlite, intent: &Intent) -> QueryResult<usize> {
    loop {
        if let Ok(rows) = sql_query("SELECT 1").execute(db).await {
            return Ok(rows);
        }
    }
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
    let first = plain(db, &intent("1"), 7).await.unwrap();
    assert_eq!(first, plain(db, &intent("1"), 7).await.unwrap());
    assert_eq!(leaves_early(db, &intent("2"), 7).await.unwrap(), "7");
    assert_eq!(
        leaves_early(db, &intent("3"), 0).await.unwrap(),
        "nothing to do"
    );
    assert!(only_question_marks(db, &intent("4")).await.is_err());
    assert_eq!(*coerced(db, &intent("5")).await.unwrap(), [1, 2, 3]);
    never_ends_by_itself(db, &intent("6")).await.unwrap();
}

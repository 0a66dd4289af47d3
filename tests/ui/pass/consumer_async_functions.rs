//! Free async functions: `return` and `?`, several awaits, inferred types.

use diesel::{QueryResult, SqliteConnection, sql_query};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, RunQueryDsl};
use idem_diesel::consumer;
use idem_diesel::{Consumed, MessageId, ensure_schema};

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

#[consumer(subscriber = "plain", retention = "7d")]
async fn plain(db: &mut Sqlite, id: &MessageId, amount: i64) -> QueryResult<()> {
    sql_query(format!("SELECT {amount}")).execute(db).await?;
    Ok(())
}

#[consumer(subscriber = "leaves_early", retention = "7d")]
async fn leaves_early(
    db: &mut Sqlite,
    id: &MessageId,
    amount: i64,
) -> Result<Consumed<String>, ShopError> {
    if amount == 0 {
        return Ok(Consumed::Processed("nothing to do".into()));
    }
    sql_query("SELECT 1").execute(db).await?;
    sql_query("SELECT 2").execute(db).await?;
    Ok(amount.to_string().into())
}

#[consumer(subscriber = "only_question_marks", retention = "7d")]
async fn only_question_marks(db: &mut Sqlite, id: &MessageId) -> Result<(), ShopError> {
    sql_query("SELECT 1").execute(db).await?;
    Err(std::fmt::Error).map_err(|error| ShopError(error.to_string()))?
}

#[consumer(subscriber = "never_ends_by_itself", retention = "7d")]
async fn never_ends_by_itself(db: &mut Sqlite, id: &MessageId) -> QueryResult<Consumed<usize>> {
    loop {
        if let Ok(rows) = sql_query("SELECT 1").execute(db).await {
            return Ok(rows.into());
        }
    }
}

type Sqlite = SyncConnectionWrapper<SqliteConnection>;

async fn database() -> Sqlite {
    let mut db = Sqlite::establish(":memory:").await.unwrap();
    ensure_schema(&mut db).await.unwrap();
    db
}

fn id(id: &str) -> MessageId {
    MessageId::new(id).unwrap()
}

#[tokio::main]
async fn main() {
    let db = &mut database().await;
    plain(db, &id("1"), 7).await.unwrap();
    plain(db, &id("1"), 7).await.unwrap();
    let seven = leaves_early(db, &id("2"), 7).await.unwrap();
    assert_eq!(seven.processed().unwrap(), "7");
    let nothing = leaves_early(db, &id("3"), 0).await.unwrap();
    assert_eq!(nothing.processed().unwrap(), "nothing to do");
    assert!(only_question_marks(db, &id("4")).await.is_err());
    never_ends_by_itself(db, &id("5")).await.unwrap();
}

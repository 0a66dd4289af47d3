//! The future is `Send` when the body's is, generic or not, and can be spawned with borrowed arguments.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use diesel::{QueryResult, SqliteConnection, sql_query};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, RunQueryDsl};
use idem_diesel::idempotent;
use idem_diesel::{
    Async, IdempotencyKey, IdempotentConnection, Intent, RequestHash, Tenant, ensure_schema,
};

#[derive(RequestHash)]
struct PayOrder {
    order_id: i64,
    lines: Vec<String>,
}

#[idempotent(scope = "concrete", ttl = "48h")]
async fn concrete(db: &mut Sqlite, intent: &Intent, cmd: &PayOrder) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db).await?;
    Ok(cmd.order_id)
}

#[idempotent(scope = "generic", ttl = "48h")]
async fn generic<C>(
    db: &mut C,
    intent: &Intent,
    cmd: &PayOrder,
    lines: &[String],
) -> QueryResult<i64>
where
    C: IdempotentConnection<Flavor = Async> + AsyncConnection<Backend = diesel::sqlite::Sqlite>,
{
    sql_query("SELECT 1").execute(db).await?;
    Ok(cmd.order_id + lines.iter().map(|line| line.len() as i64).sum::<i64>())
}

#[idempotent(scope = "optional", ttl = "48h")]
async fn optional(
    db: &mut Sqlite,
    intent: Option<&Intent>,
    cmd: PayOrder,
    text: &str,
) -> QueryResult<String> {
    sql_query("SELECT 1").execute(db).await?;
    Ok(format!("{} {text}", cmd.order_id))
}

/// A connection type with a lifetime of its own, as the guards of pools have.
struct Guard<'p>(&'p mut Sqlite);

impl Deref for Guard<'_> {
    type Target = Sqlite;

    fn deref(&self) -> &Sqlite {
        self.0
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Sqlite {
        self.0
    }
}

idem_diesel::idempotent_connection!(Guard<'_> => Sqlite);

#[idempotent(scope = "guard", ttl = "48h")]
async fn guard(db: &mut Guard<'_>, intent: &Intent, cmd: &PayOrder) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(&mut **db).await?;
    Ok(cmd.order_id)
}

struct Shop {
    tax: Arc<i64>,
}

impl Shop {
    #[idempotent(scope = "method", ttl = "48h")]
    async fn method(&self, db: &mut Sqlite, intent: &Intent, cmd: &PayOrder) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        Ok(cmd.order_id + *self.tax)
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
    let shop = Shop { tax: Arc::new(1) };
    let task = tokio::spawn(async move {
        let db = &mut database().await;
        let cmd = PayOrder {
            order_id: 7,
            lines: vec!["a".to_owned(), "bc".to_owned()],
        };
        assert_eq!(concrete(db, &intent("1"), &cmd).await.unwrap(), 7);
        assert_eq!(
            generic(db, &intent("2"), &cmd, &cmd.lines).await.unwrap(),
            10
        );
        assert_eq!(shop.method(db, &intent("3"), &cmd).await.unwrap(), 8);
        assert_eq!(guard(&mut Guard(db), &intent("4"), &cmd).await.unwrap(), 7);
        assert_eq!(optional(db, None, cmd, "seven").await.unwrap(), "7 seven");
    });
    task.await.unwrap();
}

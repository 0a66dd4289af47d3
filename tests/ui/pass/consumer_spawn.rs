//! The future is `Send` when the body's is, generic or not, and can be spawned with borrowed arguments.

use std::sync::Arc;

use diesel::{QueryResult, SqliteConnection, sql_query};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, RunQueryDsl};
use idem_diesel::consumer;
use idem_diesel::{
    Async, Consumed, IdempotentConnection, Intent, MessageId, RequestHash, ensure_schema,
};

#[derive(RequestHash)]
struct OrderPaid {
    order_id: i64,
    lines: Vec<String>,
}

#[consumer(subscriber = "concrete", retention = "7d")]
async fn concrete(
    db: &mut Sqlite,
    id: &MessageId,
    event: &OrderPaid,
) -> QueryResult<Consumed<i64>> {
    sql_query("SELECT 1").execute(db).await?;
    Ok(event.order_id.into())
}

#[consumer(subscriber = "generic", retention = "7d")]
async fn generic<C>(
    db: &mut C,
    id: MessageId,
    event: &OrderPaid,
    lines: &[String],
) -> QueryResult<Consumed<usize>>
where
    C: IdempotentConnection<Flavor = Async> + AsyncConnection<Backend = diesel::sqlite::Sqlite>,
{
    sql_query("SELECT 1").execute(db).await?;
    Ok((event.lines.len() + lines.len()).into())
}

#[consumer(subscriber = "optional", retention = "7d")]
async fn optional(
    db: &mut Sqlite,
    id: &MessageId,
    intent: Option<&Intent>,
    event: OrderPaid,
    text: &str,
) -> QueryResult<Consumed<String>> {
    sql_query("SELECT 1").execute(db).await?;
    Ok(format!("{} {text}", event.order_id).into())
}

struct Billing {
    tax: Arc<i64>,
}

impl Billing {
    #[consumer(subscriber = "method", retention = "7d")]
    async fn method(
        &self,
        db: &mut Sqlite,
        id: &MessageId,
        event: &OrderPaid,
    ) -> QueryResult<Consumed<i64>> {
        sql_query("SELECT 1").execute(db).await?;
        Ok((event.order_id + *self.tax).into())
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
    let billing = Billing { tax: Arc::new(1) };
    let task = tokio::spawn(async move {
        let db = &mut database().await;
        let event = OrderPaid {
            order_id: 7,
            lines: vec!["a".to_owned(), "bc".to_owned()],
        };
        let consumed = concrete(db, &id("1"), &event).await.unwrap();
        assert_eq!(consumed.processed(), Some(7));
        let consumed = generic(db, id("2"), &event, &event.lines).await.unwrap();
        assert_eq!(consumed.processed(), Some(4));
        let consumed = billing.method(db, &id("3"), &event).await.unwrap();
        assert_eq!(consumed.processed(), Some(8));
        let consumed = optional(db, &id("4"), None, event, "seven").await.unwrap();
        assert_eq!(consumed.processed().unwrap(), "7 seven");
    });
    task.await.unwrap();
}

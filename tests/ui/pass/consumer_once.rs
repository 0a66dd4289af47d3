//! Needs the attribute: a message has its effects once, and its intent is bound to the subscriber.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{Consumed, Intent, MessageId, StateMachine, Tenant, consumer, ensure_schema};

diesel::table! {
    orders (id) {
        id -> BigInt,
        status -> Text,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(table = orders, column = status)]
enum OrderStatus {
    #[state(initial, to(Billed))]
    Pending,
    #[state(terminal)]
    Billed,
}

#[consumer(
    subscriber = "billing",
    retention = "7d",
    transition(OrderStatus::Pending => OrderStatus::Billed, id = order_id)
)]
fn bill(
    db: &mut SqliteConnection,
    id: &MessageId,
    intent: &Intent,
    order_id: i64,
) -> QueryResult<Consumed<String>> {
    sql_query(format!("INSERT INTO bills VALUES ({order_id})")).execute(db)?;
    Ok(intent.downstream("psp.charge").to_string().into())
}

#[consumer(subscriber = "mail", retention = "7d")]
async fn mail(
    db: &mut diesel_async::sync_connection_wrapper::SyncConnectionWrapper<SqliteConnection>,
    id: &MessageId,
    fails: bool,
) -> QueryResult<()> {
    diesel_async::RunQueryDsl::execute(sql_query("INSERT INTO mails VALUES (1)"), db).await?;
    if fails { Err(diesel::NotFound) } else { Ok(()) }
}

fn blocking() {
    let db = &mut SqliteConnection::establish(":memory:").unwrap();
    ensure_schema(db).unwrap();
    sql_query("CREATE TABLE orders (id BIGINT PRIMARY KEY, status TEXT NOT NULL)")
        .execute(db)
        .unwrap();
    sql_query("CREATE TABLE bills (order_id BIGINT PRIMARY KEY)")
        .execute(db)
        .unwrap();
    sql_query("INSERT INTO orders VALUES (7, 'pending')")
        .execute(db)
        .unwrap();

    let acme = Tenant::shared("acme").unwrap();
    let [first, second] = ["1", "2"].map(|id| MessageId::new(id).unwrap());
    let intent = Intent::of_message(acme.clone(), "billing", &first);
    let key = bill(db, &first, &intent, 7).unwrap().processed().unwrap();
    assert_eq!(
        key,
        intent.bind("billing").downstream("psp.charge").to_string()
    );
    assert_eq!(bill(db, &first, &intent, 7).unwrap(), Consumed::Duplicate);
    // Another message about what has happened already.
    let intent = Intent::of_message(acme, "billing", &second);
    assert_eq!(
        bill(db, &second, &intent, 7).unwrap(),
        Consumed::AlreadyApplied
    );
    assert_eq!(bill(db, &second, &intent, 7).unwrap(), Consumed::Duplicate);
}

async fn asynchronous() {
    use diesel_async::{AsyncConnection, RunQueryDsl};

    let db =
        &mut diesel_async::sync_connection_wrapper::SyncConnectionWrapper::establish(":memory:")
            .await
            .unwrap();
    ensure_schema(db).await.unwrap();
    RunQueryDsl::execute(sql_query("CREATE TABLE mails (n BIGINT PRIMARY KEY)"), db)
        .await
        .unwrap();
    let id = MessageId::new("1").unwrap();
    // What failed left nothing, and is not remembered.
    mail(db, &id, true).await.unwrap_err();
    mail(db, &id, false).await.unwrap();
    // A second execution would violate the primary key.
    mail(db, &id, false).await.unwrap();
}

#[tokio::main]
async fn main() {
    blocking();
    asynchronous().await;
}

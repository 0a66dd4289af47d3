//! The expansion is clean under every lint that is commonly denied.

#![deny(warnings, clippy::all, clippy::pedantic)]
#![deny(
    rust_2018_idioms,
    trivial_casts,
    trivial_numeric_casts,
    unreachable_pub,
    unused_lifetimes,
    unused_qualifications
)]
#![deny(
    let_underscore_drop,
    unused_results,
    variant_size_differences,
    single_use_lifetimes,
    missing_docs
)]
#![forbid(unsafe_code)]

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::consumer;
use idem_diesel::{Consumed, Intent, MessageId, RequestHash, Tenant, ensure_schema};

#[derive(RequestHash)]
pub(crate) struct OrderPaid {
    order_id: i64,
    note: String,
}

/// Bills.
///
/// # Errors
///
/// When it cannot.
#[consumer(subscriber = "bill", retention = "7d", redelivery = "1d")]
pub(crate) fn bill(
    db: &mut SqliteConnection,
    id: &MessageId,
    intent: &Intent,
    event: &OrderPaid,
) -> QueryResult<Consumed<String>> {
    if event.order_id == 0 {
        return Err(diesel::NotFound);
    }
    let rows = sql_query("SELECT 1").execute(db)?;
    Ok(format!("{} {rows} {id} {}", event.note, intent.key()).into())
}

#[consumer(subscriber = "take", retention = "7d")]
fn take(
    db: &mut SqliteConnection,
    id: MessageId,
    OrderPaid { order_id, .. }: OrderPaid,
) -> QueryResult<Consumed<i64>> {
    let rows = sql_query("SELECT 1").execute(db)?;
    drop((rows, id));
    Ok(order_id.into())
}

#[consumer(subscriber = "marked", retention = "7d")]
fn marked(
    _db: &mut SqliteConnection,
    _id: &MessageId,
    _intent: Option<&Intent>,
    _amount: i64,
    _note: &str,
) -> QueryResult<()> {
    Ok(())
}

#[consumer(subscriber = "diverges", retention = "7d")]
fn diverges(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    panic!("{id} {}", sql_query("SELECT 1").execute(db)?);
}

mod asynchronous {
    use diesel::{QueryResult, sql_query};
    use diesel_async::{AsyncPgConnection, RunQueryDsl};
    use idem_diesel::consumer;
    use idem_diesel::{Consumed, MessageId};

    #[consumer(subscriber = "bill_async", retention = "7d")]
    pub(crate) async fn bill(
        db: &mut AsyncPgConnection,
        id: &MessageId,
        order_id: i64,
        note: &str,
    ) -> QueryResult<Consumed<String>> {
        if order_id == 0 {
            return Err(diesel::NotFound);
        }
        let rows = sql_query("SELECT 1").execute(db).await?;
        Ok(format!("{note} {rows} {id}").into())
    }

    #[consumer(subscriber = "diverges_async", retention = "7d")]
    pub(crate) async fn diverges(db: &mut AsyncPgConnection, id: &MessageId) -> QueryResult<()> {
        panic!("{id} {}", sql_query("SELECT 1").execute(db).await?);
    }
}

fn database() -> SqliteConnection {
    let mut db = SqliteConnection::establish(":memory:").unwrap();
    ensure_schema(&mut db).unwrap();
    db
}

fn id(id: &str) -> MessageId {
    MessageId::new(id).unwrap()
}

fn main() {
    let db = &mut database();
    let order = || OrderPaid {
        order_id: 7,
        note: "order".to_owned(),
    };
    let intent = Intent::of_message(Tenant::shared("acme").unwrap(), "bill", &id("1"));
    let billed = bill(db, &id("1"), &intent, &order());
    assert!(billed.is_ok_and(|billed| billed.processed().is_some()));
    assert_eq!(take(db, id("2"), order()), Ok(Consumed::Processed(7)));
    assert_eq!(marked(db, &id("3"), None, 7, ""), Ok(()));
    let _ = (diverges, asynchronous::bill, asynchronous::diverges);
}

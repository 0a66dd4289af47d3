//! Attributes beside ours, above and below it, on the function, its parameters and its body.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::consumer;
use idem_diesel::{Consumed, MessageId, ensure_schema};

/// Documented.
#[consumer(subscriber = "documented", retention = "7d")]
#[must_use]
#[inline]
pub fn documented(
    db: &mut SqliteConnection,
    id: &MessageId,
    amount: i64,
    #[cfg(any())] absent: NoSuchType,
    #[cfg(not(any()))] present: i64,
    #[cfg(any())]
    #[consumer(skip)]
    also_absent: NoSuchType,
    #[allow(unused_variables)] unused: i64,
) -> QueryResult<Consumed<i64>> {
    #![allow(clippy::unused_unit)]
    sql_query("SELECT 1").execute(db)?;
    Ok((amount + present).into())
}

#[cfg(any())]
#[consumer(subscriber = "absent", retention = "7d")]
fn absent(db: &mut NoSuchType, id: &MessageId) -> NoSuchType {
    db
}

#[tracing::instrument(skip_all)]
#[consumer(subscriber = "above", retention = "7d")]
fn above(
    db: &mut SqliteConnection,
    id: &MessageId,
    amount: i64,
    #[consumer(skip)] trace_id: &str,
) -> QueryResult<Consumed<i64>> {
    sql_query("SELECT 1").execute(db)?;
    tracing::info!(trace_id);
    Ok(amount.into())
}

#[consumer(subscriber = "below", retention = "7d")]
#[tracing::instrument(skip(db), fields(id = id.as_str(), amount), err)]
async fn below(
    db: &mut diesel_async::sync_connection_wrapper::SyncConnectionWrapper<SqliteConnection>,
    id: &MessageId,
    amount: i64,
) -> QueryResult<()> {
    diesel_async::RunQueryDsl::execute(sql_query("SELECT 1"), db).await?;
    Ok(())
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
    let consumed = documented(db, &id("1"), 3, 4, 5).unwrap();
    assert_eq!(consumed.processed(), Some(7));
    assert_eq!(above(db, &id("2"), 7, "t").unwrap().processed(), Some(7));
    let _ = below;
}

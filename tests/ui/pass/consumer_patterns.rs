//! Parameters that are patterns: bound for the transition and the body, hashed as a whole.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::consumer;
use idem_diesel::{Consumed, MessageId, RequestHash, ensure_schema};

#[derive(RequestHash)]
struct OrderPaid {
    order_id: i64,
    note: String,
}

#[consumer(subscriber = "by_value", retention = "7d")]
fn by_value(
    db: &mut SqliteConnection,
    id: &MessageId,
    OrderPaid { order_id, mut note }: OrderPaid,
) -> QueryResult<Consumed<String>> {
    sql_query("SELECT 1").execute(db)?;
    note.push_str(&order_id.to_string());
    Ok(note.into())
}

#[consumer(subscriber = "several", retention = "7d")]
fn several(
    db: &mut SqliteConnection,
    id: &MessageId,
    #[consumer(name = "amount")] (amount, _): (i64, i64),
    #[consumer(name = "order")] order @ &OrderPaid { order_id, .. }: &OrderPaid,
    #[consumer(skip)] [x, y]: [i64; 2],
    mut count: i64,
) -> QueryResult<Consumed<i64>> {
    sql_query("SELECT 1").execute(db)?;
    count += 1;
    Ok((amount + order_id + order.order_id + x + y + count).into())
}

#[consumer(subscriber = "ignored", retention = "7d")]
fn ignored(db: &mut SqliteConnection, _: &MessageId, _: i64) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    Ok(())
}

#[consumer(subscriber = "marked", retention = "7d")]
fn marked(_db: &mut SqliteConnection, mut _id: MessageId, _amount: i64) -> QueryResult<()> {
    Ok(())
}

#[consumer(subscriber = "reborrowed", retention = "7d")]
fn reborrowed(mut db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    fn twice(db: &mut &mut SqliteConnection) -> QueryResult<usize> {
        sql_query("SELECT 1").execute(*db)?;
        sql_query("SELECT 1").execute(*db)
    }
    twice(&mut db)?;
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
    let order = || OrderPaid {
        order_id: 7,
        note: "order ".to_owned(),
    };
    let note = by_value(db, &id("1"), order()).unwrap();
    assert_eq!(note.processed().unwrap(), "order 7");
    let sum = several(db, &id("2"), (1, 2), &order(), [3, 4], 5).unwrap();
    assert_eq!(sum.processed(), Some(28));
    ignored(db, &id("3"), 3).unwrap();
    marked(db, id("4"), 3).unwrap();
    reborrowed(db, &id("5")).unwrap();
}

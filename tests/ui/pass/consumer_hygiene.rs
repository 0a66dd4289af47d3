//! What the expansion introduces does not meet what the body names, and functions may come out of `macro_rules!`.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::consumer;
use idem_diesel::{Consumed, MessageId, ensure_schema};

#[consumer(subscriber = "same_names", retention = "7d")]
fn same_names(
    db: &mut SqliteConnection,
    id: &MessageId,
    claim: i64,
    consumption: i64,
    result: i64,
    error: i64,
    bound: i64,
    moved: i64,
    message: i64,
    intent: i64,
) -> QueryResult<Consumed<i64>> {
    sql_query("SELECT 1").execute(db)?;
    Ok((claim + consumption + result + error + bound + moved + message + intent).into())
}

const SUBSCRIPTION: i64 = 7;

#[consumer(subscriber = "items", retention = "7d")]
fn items(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<Consumed<i64>> {
    use helper::seven;
    const INSIDE: i64 = 1;
    mod helper {
        pub fn seven() -> i64 {
            7
        }
    }
    sql_query("SELECT 1").execute(db)?;
    Ok((SUBSCRIPTION + INSIDE + seven()).into())
}

#[consumer(subscriber = "raw_identifiers", retention = "7d")]
fn r#move(
    r#in: &mut SqliteConnection,
    r#ref: &MessageId,
    r#type: &str,
    r#fn: i64,
) -> QueryResult<Consumed<i64>> {
    sql_query(format!("SELECT '{}{}'", r#type, r#ref)).execute(r#in)?;
    Ok(r#fn.into())
}

macro_rules! handler {
    ($name:ident, $subscriber:literal, $retention:expr, $db:ident: $connection:ty, $amount:ident: $type:ty, $body:block) => {
        #[consumer(subscriber = $subscriber, retention = $retention, redelivery = "1d")]
        fn $name($db: &mut $connection, id: &MessageId, $amount: $type) -> QueryResult<Consumed<$type>> $body
    };
}

handler!(generated, "generated", "7d", db: SqliteConnection, amount: i64, {
    sql_query("SELECT 1").execute(db)?;
    Ok(amount.into())
});

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
    let sum = same_names(db, &id("1"), 1, 2, 3, 4, 5, 6, 7, 8).unwrap();
    assert_eq!(sum.processed(), Some(36));
    assert_eq!(items(db, &id("2")).unwrap().processed(), Some(15));
    assert_eq!(r#move(db, &id("3"), "a", 7).unwrap().processed(), Some(7));
    assert_eq!(generated(db, &id("4"), 7).unwrap().processed(), Some(7));
}

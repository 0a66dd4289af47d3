//! Free functions: every kind of return type, `return` and `?`.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::consumer;
use idem_diesel::{Consumed, MessageId, ensure_schema};

#[derive(Debug)]
enum ShopError {
    Database,
    Library,
    Arithmetic,
}

impl From<diesel::result::Error> for ShopError {
    fn from(_: diesel::result::Error) -> Self {
        Self::Database
    }
}

impl From<idem_diesel::Error> for ShopError {
    fn from(_: idem_diesel::Error) -> Self {
        Self::Library
    }
}

type ShopResult<T> = Result<T, ShopError>;

/// The error type of Diesel itself.
#[consumer(subscriber = "query_result", retention = "7d")]
fn query_result(db: &mut SqliteConnection, id: &MessageId, amount: i64) -> QueryResult<()> {
    sql_query(format!("SELECT {amount}")).execute(db).map(drop)
}

/// An own error, an early `return` and a `?`.
#[consumer(subscriber = "own_error", retention = "7d")]
fn own_error(
    db: &mut SqliteConnection,
    id: &MessageId,
    amount: i64,
) -> Result<Consumed<String>, ShopError> {
    if amount == 0 {
        return Ok("nothing to do".to_owned().into());
    }
    sql_query("SELECT 1").execute(db)?;
    let half = amount.checked_div(2).ok_or(ShopError::Arithmetic)?;
    Ok(half.to_string().into())
}

/// An alias, and no message at all.
#[consumer(subscriber = "alias", retention = "7d")]
fn alias(db: &mut SqliteConnection, id: &MessageId) -> ShopResult<Consumed> {
    sql_query("SELECT 1").execute(db)?;
    Ok(Consumed::Processed(()))
}

/// The error of the library.
#[consumer(subscriber = "library", retention = "7d")]
fn library(
    db: &mut SqliteConnection,
    id: &MessageId,
    amount: &i64,
) -> Result<Consumed<i64>, idem_diesel::Error> {
    sql_query("SELECT 1").execute(db)?;
    Ok((*amount).into())
}

/// Ends in `return`.
#[consumer(subscriber = "ends_in_return", retention = "7d")]
fn ends_in_return(db: &mut SqliteConnection, id: &MessageId) -> ShopResult<()> {
    sql_query("SELECT 1").execute(db)?;
    return Err(ShopError::Arithmetic);
}

/// Gives a value that is coerced, and that nobody could store.
#[consumer(subscriber = "coerced", retention = "7d")]
fn coerced(
    db: &mut SqliteConnection,
    id: &MessageId,
) -> ShopResult<Consumed<Box<dyn Fn() -> i64>>> {
    sql_query("SELECT 1").execute(db)?;
    Ok(Consumed::Processed(Box::new(|| 7)))
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
    query_result(db, &id("1"), 7).unwrap();
    query_result(db, &id("1"), 7).unwrap();
    let half = own_error(db, &id("2"), 7).unwrap();
    assert_eq!(half.processed().unwrap(), "3");
    let nothing = own_error(db, &id("3"), 0).unwrap();
    assert_eq!(nothing.processed().unwrap(), "nothing to do");
    assert_eq!(alias(db, &id("4")).unwrap(), Consumed::Processed(()));
    assert_eq!(library(db, &id("5"), &7).unwrap(), Consumed::Processed(7));
    assert!(matches!(
        ends_in_return(db, &id("6")),
        Err(ShopError::Arithmetic)
    ));
    let coerced = coerced(db, &id("7")).unwrap();
    assert_eq!(coerced.processed().unwrap()(), 7);
}

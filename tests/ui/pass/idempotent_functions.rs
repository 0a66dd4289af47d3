//! Free functions: every kind of return type, `return` and `?`.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::idempotent;
use idem_diesel::{IdempotencyKey, Intent, Outcome, Tenant, Verdict, ensure_schema};

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
#[idempotent(scope = "query_result", ttl = "48h")]
fn query_result(db: &mut SqliteConnection, intent: &Intent, amount: i64) -> QueryResult<usize> {
    sql_query(format!("SELECT {amount}")).execute(db)
}

/// An own error, an early `return` and a `?`.
#[idempotent(scope = "own_error", ttl = "48h")]
fn own_error(db: &mut SqliteConnection, intent: &Intent, amount: i64) -> Result<String, ShopError> {
    if amount == 0 {
        return Ok("nothing to do".to_owned());
    }
    sql_query("SELECT 1").execute(db)?;
    let half = amount.checked_div(2).ok_or(ShopError::Arithmetic)?;
    Ok(half.to_string())
}

/// An alias, and no request at all.
#[idempotent(scope = "alias", ttl = "48h")]
fn alias(db: &mut SqliteConnection, intent: &Intent) -> ShopResult<()> {
    sql_query("SELECT 1").execute(db)?;
    Ok(())
}

/// Says whether it was executed or replayed.
#[idempotent(scope = "outcome", ttl = "48h")]
fn outcome(db: &mut SqliteConnection, intent: &Intent, amount: &i64) -> ShopResult<Outcome<i64>> {
    sql_query("SELECT 1").execute(db)?;
    Ok((*amount).into())
}

/// May be refused for good.
#[idempotent(scope = "verdict", ttl = "48h")]
fn verdict(
    db: &mut SqliteConnection,
    intent: &Intent,
    amount: i64,
) -> ShopResult<Verdict<i64, String>> {
    sql_query("SELECT 1").execute(db)?;
    let answer = if amount > 100 {
        Err("too much".to_owned())
    } else {
        Ok(amount)
    };
    Ok(answer.into())
}

/// Ends in `return`.
#[idempotent(scope = "ends_in_return", ttl = "48h")]
fn ends_in_return(db: &mut SqliteConnection, intent: &Intent) -> ShopResult<i64> {
    sql_query("SELECT 1").execute(db)?;
    return Err(ShopError::Arithmetic);
}

/// Returns a value that is coerced.
#[idempotent(scope = "coerced", ttl = "48h")]
fn coerced(db: &mut SqliteConnection, intent: &Intent) -> ShopResult<Box<[i64]>> {
    sql_query("SELECT 1").execute(db)?;
    Ok(Box::new([1, 2, 3]))
}

fn database() -> SqliteConnection {
    let mut db = SqliteConnection::establish(":memory:").unwrap();
    ensure_schema(&mut db).unwrap();
    db
}

fn intent(key: &str) -> Intent {
    Intent::new(
        Tenant::of("acme", "alice").unwrap(),
        IdempotencyKey::new(key).unwrap(),
    )
}

fn main() {
    let db = &mut database();
    assert_eq!(
        query_result(db, &intent("1"), 7).unwrap(),
        query_result(db, &intent("1"), 7).unwrap()
    );
    assert_eq!(own_error(db, &intent("2"), 7).unwrap(), "3");
    assert_eq!(own_error(db, &intent("3"), 0).unwrap(), "nothing to do");
    alias(db, &intent("4")).unwrap();
    assert_eq!(*outcome(db, &intent("5"), &7).unwrap().get(), 7);
    assert_eq!(verdict(db, &intent("6"), 7).unwrap(), Verdict::Completed(7));
    assert!(matches!(
        ends_in_return(db, &intent("8")),
        Err(ShopError::Arithmetic)
    ));
    assert_eq!(*coerced(db, &intent("9")).unwrap(), [1, 2, 3]);
}

//! Attributes beside ours, above and below it, on the function, its parameters and its body.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::idempotent;
use idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};

/// Documented.
#[idempotent(scope = "documented", ttl = "48h")]
#[must_use]
#[inline]
pub fn documented(
    db: &mut SqliteConnection,
    intent: &Intent,
    amount: i64,
    #[cfg(any())] absent: NoSuchType,
    #[cfg(not(any()))] present: i64,
    #[cfg(any())]
    #[idempotent(skip)]
    also_absent: NoSuchType,
    #[allow(unused_variables)] unused: i64,
) -> QueryResult<i64> {
    #![allow(clippy::unused_unit)]
    sql_query("SELECT 1").execute(db)?;
    Ok(amount + present)
}

#[cfg(any())]
#[idempotent(scope = "absent", ttl = "48h")]
fn absent(db: &mut NoSuchType, intent: &Intent) -> NoSuchType {
    db
}

#[tracing::instrument(skip_all)]
#[idempotent(scope = "above", ttl = "48h")]
fn above(
    db: &mut SqliteConnection,
    intent: &Intent,
    amount: i64,
    #[idempotent(skip)] trace_id: &str,
) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db)?;
    tracing::info!(trace_id);
    Ok(amount)
}

#[idempotent(scope = "below", ttl = "48h")]
#[tracing::instrument(skip(db), fields(key = intent.key().as_str(), amount), err)]
fn below(
    db: &mut SqliteConnection,
    intent: &Intent,
    amount: i64,
    #[idempotent(skip)] trace_id: &str,
) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db)?;
    tracing::info!(trace_id);
    Ok(amount)
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
    assert_eq!(documented(db, &intent("1"), 7, 1, 0).unwrap(), 8);
    assert_eq!(above(db, &intent("2"), 7, "t").unwrap(), 7);
    assert_eq!(below(db, &intent("3"), 7, "t").unwrap(), 7);
}

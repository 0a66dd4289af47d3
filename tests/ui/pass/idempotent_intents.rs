//! Every form of an intent.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::idempotent;
use idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};

type Key = Intent;

#[idempotent(scope = "optional", ttl = "48h")]
fn optional(db: &mut SqliteConnection, intent: Option<&Intent>) -> QueryResult<bool> {
    sql_query("SELECT 1").execute(db)?;
    Ok(intent.is_some_and(|intent| intent.key().as_str() == "1"))
}

#[idempotent(scope = "owned", ttl = "48h")]
fn owned(db: &mut SqliteConnection, intent: Intent) -> QueryResult<bool> {
    sql_query("SELECT 1").execute(db)?;
    let moved = move || intent.key().as_str() == "2";
    Ok(moved())
}

#[idempotent(scope = "optional_owned", ttl = "48h")]
fn optional_owned(
    db: &mut SqliteConnection,
    intent: std::option::Option<idem_diesel::Intent>,
) -> QueryResult<bool> {
    sql_query("SELECT 1").execute(db)?;
    Ok(intent.is_some_and(|intent| intent.key().as_str() == "3"))
}

#[idempotent(scope = "path", ttl = "48h")]
fn path(intent: &::idem_diesel::Intent, db: &mut SqliteConnection) -> QueryResult<bool> {
    sql_query("SELECT 1").execute(db)?;
    Ok(intent.key().as_str() == "4")
}

#[idempotent(scope = "named", ttl = "48h", intent = key)]
fn named(db: &mut SqliteConnection, key: &Key, other: &str) -> QueryResult<bool> {
    sql_query("SELECT 1").execute(db)?;
    Ok(key.key().as_str() == other)
}

#[idempotent(scope = "unused", ttl = "48h")]
fn unused(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    sql_query("SELECT 1").execute(db)
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
    assert!(!optional(db, None).unwrap());
    assert!(optional(db, Some(&intent("1"))).unwrap());
    assert!(owned(db, intent("2")).unwrap());
    assert!(optional_owned(db, Some(intent("3"))).unwrap());
    assert!(!optional_owned(db, None).unwrap());
    assert!(path(&intent("4"), db).unwrap());
    assert!(named(db, &intent("5"), "5").unwrap());
    unused(db, &intent("6")).unwrap();
}

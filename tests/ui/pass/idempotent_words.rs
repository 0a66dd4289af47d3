//! Every word of the attribute.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::idempotent;
use idem_diesel::{IdempotencyKey, Intent, Policy, Retention, Tenant, ensure_schema};

use std::time::Duration;

mod retention {
    use idem_diesel::Retention;

    pub const ORDERS: Retention = Retention::literal("30d");
}

const QUICK: Retention = Retention::literal("15m");
const PATIENT: Policy = Policy::new().wait(Some(Duration::from_secs(30)));

struct Terms;

impl Terms {
    const ORDERS: Retention = Retention::literal("2w");
}

#[idempotent(scope = "constant", ttl = retention::ORDERS)]
fn constant(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    sql_query("SELECT 1").execute(db)
}

#[idempotent(scope = "associated", ttl = Terms::ORDERS)]
fn associated(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    sql_query("SELECT 1").execute(db)
}

#[idempotent(
    scope = "short",
    ttl = "15m",
    short_ttl = "the caller gives up after a minute"
)]
fn short(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    sql_query("SELECT 1").execute(db)
}

#[idempotent(scope = "short_constant", ttl = QUICK, short_ttl = "the caller gives up after a minute")]
fn short_constant(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    sql_query("SELECT 1").execute(db)
}

#[idempotent(
    scope = "everything with spaces and \u{e9}",
    ttl = "1w",
    policy = PATIENT,
    conn = db,
    intent = key,
    crate = idem_diesel,
)]
fn everything(
    db: &mut SqliteConnection,
    #[idempotent(skip)] log: &mut Vec<String>,
    key: &Intent,
    amount: i64,
) -> QueryResult<usize> {
    log.push(format!("{} {amount}", key.key()));
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
    constant(db, &intent("1")).unwrap();
    associated(db, &intent("2")).unwrap();
    short(db, &intent("3")).unwrap();
    short_constant(db, &intent("4")).unwrap();
    let mut log = Vec::new();
    everything(db, &mut log, &intent("5"), 7).unwrap();
    assert_eq!(log, ["5 7"]);
}

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
use idem_diesel::idempotent;
use idem_diesel::{IdempotencyKey, Intent, Outcome, RequestHash, Tenant, ensure_schema};

#[derive(RequestHash)]
pub(crate) struct PayOrder {
    order_id: i64,
    note: String,
}

/// Pays.
///
/// # Errors
///
/// When it cannot.
#[idempotent(scope = "pay", ttl = "48h")]
pub(crate) fn pay(
    db: &mut SqliteConnection,
    intent: &Intent,
    cmd: &PayOrder,
) -> QueryResult<Outcome<String>> {
    if cmd.order_id == 0 {
        return Err(diesel::NotFound);
    }
    let rows = sql_query("SELECT 1").execute(db)?;
    Ok(format!("{} {rows} {}", cmd.note, intent.key()).into())
}

#[idempotent(scope = "take", ttl = "48h")]
fn take(
    db: &mut SqliteConnection,
    intent: Intent,
    PayOrder { order_id, .. }: PayOrder,
) -> QueryResult<i64> {
    let rows = sql_query("SELECT 1").execute(db)?;
    let key = intent;
    drop((rows, key));
    Ok(order_id)
}

#[idempotent(scope = "marked", ttl = "48h")]
fn marked(
    _db: &mut SqliteConnection,
    _intent: Option<&Intent>,
    _amount: i64,
    _note: &str,
) -> QueryResult<i64> {
    Ok(1)
}

#[idempotent(scope = "diverges", ttl = "48h")]
fn diverges(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<i64> {
    panic!("{} {}", intent.key(), sql_query("SELECT 1").execute(db)?);
}

mod asynchronous {
    use diesel::{QueryResult, sql_query};
    use diesel_async::{AsyncPgConnection, RunQueryDsl};
    use idem_diesel::Intent;
    use idem_diesel::idempotent;

    #[idempotent(scope = "pay_async", ttl = "48h")]
    pub(crate) async fn pay(
        db: &mut AsyncPgConnection,
        intent: &Intent,
        order_id: i64,
        note: &str,
    ) -> QueryResult<String> {
        if order_id == 0 {
            return Err(diesel::NotFound);
        }
        let rows = sql_query("SELECT 1").execute(db).await?;
        Ok(format!("{note} {rows} {}", intent.key()))
    }

    #[idempotent(scope = "diverges_async", ttl = "48h")]
    pub(crate) async fn diverges(db: &mut AsyncPgConnection, intent: &Intent) -> QueryResult<i64> {
        panic!(
            "{} {}",
            intent.key(),
            sql_query("SELECT 1").execute(db).await?
        );
    }
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
    let order = || PayOrder {
        order_id: 7,
        note: "order".to_owned(),
    };
    let first = pay(db, &intent("1"), &order()).map(Outcome::into_inner);
    let second = pay(db, &intent("1"), &order()).map(Outcome::into_inner);
    assert_eq!(first, second);
    assert_eq!(take(db, intent("2"), order()), Ok(7));
    assert_eq!(marked(db, Some(&intent("3")), 7, ""), Ok(1));
    let _ = (diverges, asynchronous::pay, asynchronous::diverges);
}

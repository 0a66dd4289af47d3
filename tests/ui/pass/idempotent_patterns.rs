//! Parameters that are patterns: bound for the transition and the body, hashed as a whole.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::idempotent;
use idem_diesel::{IdempotencyKey, Intent, RequestHash, Tenant, ensure_schema};

#[derive(RequestHash)]
struct PayOrder {
    order_id: i64,
    note: String,
}

#[idempotent(scope = "by_value", ttl = "48h")]
fn by_value(
    db: &mut SqliteConnection,
    intent: &Intent,
    PayOrder { order_id, mut note }: PayOrder,
) -> QueryResult<String> {
    sql_query("SELECT 1").execute(db)?;
    note.push_str(&order_id.to_string());
    Ok(note)
}

#[idempotent(scope = "by_reference", ttl = "48h")]
fn by_reference(
    db: &mut SqliteConnection,
    intent: &Intent,
    PayOrder { order_id, .. }: &PayOrder,
) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db)?;
    Ok(*order_id)
}

#[idempotent(scope = "several", ttl = "48h")]
fn several(
    db: &mut SqliteConnection,
    intent: &Intent,
    #[idempotent(name = "amount")] (amount, _): (i64, i64),
    #[idempotent(name = "order")] order @ &PayOrder { order_id, .. }: &PayOrder,
    #[idempotent(skip)] [x, y]: [i64; 2],
    mut count: i64,
) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db)?;
    count += 1;
    Ok(amount + order_id + order.order_id + x + y + count)
}

#[idempotent(scope = "ignored", ttl = "48h")]
fn ignored(db: &mut SqliteConnection, _: &Intent, _: i64) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db)?;
    Ok(1)
}

#[idempotent(scope = "marked", ttl = "48h")]
fn marked(_db: &mut SqliteConnection, _intent: &Intent, _amount: i64) -> QueryResult<i64> {
    Ok(1)
}

#[idempotent(scope = "reborrowed", ttl = "48h")]
fn reborrowed(mut db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    fn twice(db: &mut &mut SqliteConnection) -> QueryResult<usize> {
        sql_query("SELECT 1").execute(*db)?;
        sql_query("SELECT 1").execute(*db)
    }
    twice(&mut db)
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
        note: "order ".to_owned(),
    };
    assert_eq!(by_value(db, &intent("1"), order()).unwrap(), "order 7");
    assert_eq!(by_reference(db, &intent("2"), &order()).unwrap(), 7);
    assert_eq!(
        several(db, &intent("3"), (1, 2), &order(), [3, 4], 5).unwrap(),
        28
    );
    assert_eq!(ignored(db, &intent("4"), 3).unwrap(), 1);
    assert_eq!(marked(db, &intent("5"), 3).unwrap(), 1);
    reborrowed(db, &intent("6")).unwrap();
}

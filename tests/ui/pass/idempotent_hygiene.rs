//! What the expansion introduces does not meet what the body names, and functions may come out of `macro_rules!`.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::idempotent;
use idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};

#[idempotent(scope = "same_names", ttl = "48h")]
fn same_names(
    db: &mut SqliteConnection,
    intent: &Intent,
    claim: i64,
    execution: i64,
    result: i64,
    error: i64,
    stored: i64,
    bound: i64,
    moved: i64,
    request: i64,
) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db)?;
    Ok(claim + execution + result + error + stored + bound + moved + request)
}

const OPERATION: i64 = 7;

#[idempotent(scope = "items", ttl = "48h")]
fn items(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<i64> {
    use helper::seven;
    const INSIDE: i64 = 1;
    mod helper {
        pub fn seven() -> i64 {
            7
        }
    }
    sql_query("SELECT 1").execute(db)?;
    Ok(OPERATION + INSIDE + seven())
}

#[idempotent(scope = "raw_identifiers", ttl = "48h")]
fn r#move(
    r#in: &mut SqliteConnection,
    r#ref: &Intent,
    r#type: &str,
    r#fn: i64,
) -> QueryResult<i64> {
    sql_query(format!("SELECT '{}'", r#type)).execute(r#in)?;
    Ok(r#fn)
}

macro_rules! handler {
    ($name:ident, $scope:literal, $db:ident: $connection:ty, $amount:ident: $type:ty, $body:block) => {
        #[idempotent(scope = $scope, ttl = "48h")]
        fn $name($db: &mut $connection, intent: &Intent, $amount: $type) -> QueryResult<$type> $body
    };
}

handler!(generated, "generated", db: SqliteConnection, amount: i64, {
    sql_query("SELECT 1").execute(db)?;
    Ok(amount)
});

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
        same_names(db, &intent("1"), 1, 2, 3, 4, 5, 6, 7, 8).unwrap(),
        36
    );
    assert_eq!(items(db, &intent("2")).unwrap(), 15);
    assert_eq!(r#move(db, &intent("3"), "a", 7).unwrap(), 7);
    assert_eq!(generated(db, &intent("4"), 7).unwrap(), 7);
}

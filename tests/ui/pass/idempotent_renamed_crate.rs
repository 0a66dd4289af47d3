//! The library under another path: a renamed dependency and a re-export.

extern crate idem_diesel as once;

mod library {
    pub mod inner {
        pub use idem_diesel::*;
    }
}

use diesel::prelude::*;
use diesel::sql_query;
use library::inner::{IdempotencyKey, Intent, Tenant, ensure_schema};
use once::idempotent;

#[idempotent(scope = "dependency", ttl = "48h", crate = once)]
fn dependency(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    sql_query("SELECT 1").execute(db)
}

mod elsewhere {
    use diesel::prelude::*;
    use once::idempotent;

    #[idempotent(scope = "re_export", ttl = "48h", crate = crate::library::inner)]
    pub fn re_export(
        db: &mut SqliteConnection,
        intent: &super::Intent,
        a: i64,
        b: i64,
    ) -> QueryResult<usize> {
        diesel::sql_query(format!("SELECT {a} + {b}")).execute(db)
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
    dependency(db, &intent("1")).unwrap();
    elsewhere::re_export(db, &intent("2"), 3, 4).unwrap();
}

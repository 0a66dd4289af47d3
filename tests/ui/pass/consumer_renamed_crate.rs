//! The library under another path: a renamed dependency and a re-export.

extern crate idem_diesel as once;

mod library {
    pub mod inner {
        pub use idem_diesel::*;
    }
}

use diesel::prelude::*;
use diesel::sql_query;
use library::inner::{MessageId, ensure_schema};
use once::consumer;

#[consumer(subscriber = "dependency", retention = "7d", crate = once)]
fn dependency(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    Ok(())
}

mod elsewhere {
    use diesel::prelude::*;
    use once::consumer;

    #[consumer(
        subscriber = "re_export",
        retention = "7d",
        redelivery = "1d",
        crate = crate::library::inner
    )]
    pub fn re_export(
        db: &mut SqliteConnection,
        id: &super::MessageId,
        a: i64,
        b: i64,
    ) -> QueryResult<()> {
        diesel::sql_query(format!("SELECT {a} + {b}")).execute(db)?;
        Ok(())
    }
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
    dependency(db, &id("1")).unwrap();
    elsewhere::re_export(db, &id("2"), 3, 4).unwrap();
}

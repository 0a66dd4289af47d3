//! Methods of inherent and trait impls, with every receiver.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::idempotent;
use idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};

struct Shop {
    orders: i64,
}

impl Shop {
    const STEP: i64 = 1;

    #[idempotent(scope = "shared", ttl = "48h")]
    fn shared(&self, db: &mut SqliteConnection, intent: &Intent, amount: i64) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db)?;
        Ok(self.orders + amount)
    }

    #[idempotent(scope = "exclusive", ttl = "48h")]
    fn exclusive(&mut self, db: &mut SqliteConnection, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db)?;
        self.orders += Self::STEP;
        Ok(self.orders)
    }

    #[idempotent(scope = "boxed", ttl = "48h")]
    fn boxed(self: Box<Self>, db: &mut SqliteConnection, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db)?;
        Ok(self.orders)
    }

    #[idempotent(scope = "by_value", ttl = "48h")]
    fn by_value(self, db: &mut SqliteConnection, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db)?;
        Ok(self.orders)
    }

    #[idempotent(scope = "no_receiver", ttl = "48h")]
    fn no_receiver(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db)?;
        Ok(Self::STEP)
    }
}

trait Sells {
    type Answer;

    fn sell(&mut self, db: &mut SqliteConnection, intent: &Intent, amount: i64) -> Self::Answer;

    fn count(db: &mut SqliteConnection, intent: &Intent) -> Self::Answer;
}

impl Sells for Shop {
    type Answer = QueryResult<i64>;

    #[idempotent(scope = "sell", ttl = "48h")]
    fn sell(&mut self, db: &mut SqliteConnection, intent: &Intent, amount: i64) -> Self::Answer {
        sql_query("SELECT 1").execute(db)?;
        self.orders += amount;
        Ok(self.orders)
    }

    #[idempotent(scope = "count", ttl = "48h")]
    fn count(db: &mut SqliteConnection, intent: &Intent) -> <Self as Sells>::Answer {
        sql_query("SELECT 1").execute(db)?;
        Ok(Self::STEP)
    }
}

trait HasDefault {
    #[idempotent(scope = "default", ttl = "48h")]
    fn default(&self, db: &mut SqliteConnection, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db)?;
        Ok(3)
    }
}

impl HasDefault for Shop {}

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
    let mut shop = Shop { orders: 1 };
    assert_eq!(shop.shared(db, &intent("1"), 6).unwrap(), 7);
    assert_eq!(shop.exclusive(db, &intent("2")).unwrap(), 2);
    assert_eq!(shop.sell(db, &intent("3"), 3).unwrap(), 5);
    assert_eq!(
        Box::new(Shop { orders: 9 })
            .boxed(db, &intent("4"))
            .unwrap(),
        9
    );
    assert_eq!(HasDefault::default(&shop, db, &intent("5")).unwrap(), 3);
    assert_eq!(shop.by_value(db, &intent("6")).unwrap(), 5);
    assert_eq!(Shop::no_receiver(db, &intent("7")).unwrap(), 1);
    assert_eq!(Shop::count(db, &intent("8")).unwrap(), 1);
}

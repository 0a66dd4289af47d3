//! Async methods, native `async fn` in traits among them.

use diesel::{QueryResult, SqliteConnection, sql_query};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, RunQueryDsl};
use idem_diesel::idempotent;
use idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};

struct Shop {
    orders: i64,
}

impl Shop {
    #[idempotent(scope = "shared", ttl = "48h")]
    async fn shared(&self, db: &mut Sqlite, intent: &Intent, amount: i64) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        Ok(self.orders + amount)
    }

    #[idempotent(scope = "exclusive", ttl = "48h")]
    async fn exclusive(&mut self, db: &mut Sqlite, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        self.orders += 1;
        Ok(self.orders)
    }

    #[idempotent(scope = "by_value", ttl = "48h")]
    async fn by_value(self, db: &mut Sqlite, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        Ok(self.orders)
    }
}

trait Sells {
    async fn sell(&mut self, db: &mut Sqlite, intent: &Intent, amount: i64) -> QueryResult<i64>;

    fn send(
        &self,
        db: &mut Sqlite,
        intent: &Intent,
    ) -> impl Future<Output = QueryResult<i64>> + Send;
}

impl Sells for Shop {
    #[idempotent(scope = "sell", ttl = "48h")]
    async fn sell(&mut self, db: &mut Sqlite, intent: &Intent, amount: i64) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        self.orders += amount;
        Ok(self.orders)
    }

    #[idempotent(scope = "send", ttl = "48h")]
    async fn send(&self, db: &mut Sqlite, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        Ok(self.orders)
    }
}

type Sqlite = SyncConnectionWrapper<SqliteConnection>;

async fn database() -> Sqlite {
    let mut db = Sqlite::establish(":memory:").await.unwrap();
    ensure_schema(&mut db).await.unwrap();
    db
}

fn intent(key: &str) -> Intent {
    Intent::new(
        Tenant::of("acme", "alice").unwrap(),
        IdempotencyKey::new(key).unwrap(),
    )
}

#[tokio::main]
async fn main() {
    let db = &mut database().await;
    let mut shop = Shop { orders: 1 };
    assert_eq!(shop.shared(db, &intent("1"), 6).await.unwrap(), 7);
    assert_eq!(shop.exclusive(db, &intent("2")).await.unwrap(), 2);
    assert_eq!(shop.sell(db, &intent("3"), 3).await.unwrap(), 5);
    assert_eq!(shop.send(db, &intent("4")).await.unwrap(), 5);
    assert_eq!(shop.by_value(db, &intent("5")).await.unwrap(), 5);
}

use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{Intent, Policy, idempotent};

struct Shop;

impl Shop {
    const POLICY: Policy = Policy::new();

    #[idempotent(scope = "orders.pay", ttl = "48h", policy = Self::POLICY)]
    fn pay(&self, db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
        diesel::sql_query("SELECT 1").execute(db)
    }
}

fn main() {}

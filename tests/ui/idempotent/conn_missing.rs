use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{Intent, idempotent};

struct Shop {
    db: SqliteConnection,
}

impl Shop {
    #[idempotent(scope = "orders.pay", ttl = "48h")]
    fn pay(&mut self, intent: &Intent) -> QueryResult<usize> {
        diesel::sql_query("SELECT 1").execute(&mut self.db)
    }
}

fn main() {}

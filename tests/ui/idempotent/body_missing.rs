use diesel::{QueryResult, SqliteConnection};
use idem_diesel::{Intent, idempotent};

trait Pays {
    #[idempotent(scope = "orders.pay", ttl = "48h")]
    fn pay(&self, db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize>;
}

fn main() {}

use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::consumer;

#[consumer(subscriber = "billing", retention = "7d", message_id = delivery)]
fn bill(db: &mut SqliteConnection, delivery: &str) -> QueryResult<()> {
    diesel::sql_query("SELECT 1").execute(db)?;
    Ok(())
}

fn main() {}

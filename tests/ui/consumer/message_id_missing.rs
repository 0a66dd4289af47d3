use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::consumer;

#[consumer(subscriber = "billing", retention = "7d")]
fn bill(db: &mut SqliteConnection, id: &str) -> QueryResult<()> {
    diesel::sql_query("SELECT 1").execute(db)?;
    Ok(())
}

fn main() {}

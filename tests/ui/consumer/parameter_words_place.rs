use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{MessageId, consumer};

#[consumer(subscriber = "billing", retention = "7d")]
fn bill(db: &mut SqliteConnection, #[consumer(skip)] id: &MessageId) -> QueryResult<()> {
    diesel::sql_query("SELECT 1").execute(db)?;
    Ok(())
}

fn main() {}

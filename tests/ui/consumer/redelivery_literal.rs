use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{MessageId, consumer};

#[consumer(subscriber = "billing", retention = "7d", redelivery = "0h")]
fn bill(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    diesel::sql_query("SELECT 1").execute(db)?;
    Ok(())
}

fn main() {}

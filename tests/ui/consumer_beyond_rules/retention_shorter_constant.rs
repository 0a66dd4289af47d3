use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{MessageId, Retention, consumer};

const REDELIVERY: Retention = Retention::literal("24h");

#[consumer(subscriber = "billing", retention = "1h", redelivery = REDELIVERY)]
fn bill(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    diesel::sql_query("SELECT 1").execute(db)?;
    Ok(())
}

fn main() {}

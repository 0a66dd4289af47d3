use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{MessageId, Operation, Retention, consumer};

const BILLING: Operation = Operation::new("billing", Retention::literal("7d"));

#[consumer(subscription = BILLING)]
fn bill(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    diesel::sql_query("SELECT 1").execute(db)?;
    Ok(())
}

fn main() {}

use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{MessageId, Retention, Subscription, consumer};

const BILLING: Subscription = Subscription::new("billing", Retention::literal("7d"));

#[consumer(subscription = BILLING, retention = "7d")]
fn bill(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    diesel::sql_query("SELECT 1").execute(db)?;
    Ok(())
}

fn main() {}

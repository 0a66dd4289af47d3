use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{MessageId, consumer};

#[consumer(subscriber = "billing", retention = "7d")]
fn bill(db: &mut SqliteConnection, #[cfg(all())] id: &MessageId) -> QueryResult<()> {
    diesel::sql_query(format!("SELECT {}", id.as_str())).execute(db)?;
    Ok(())
}

fn main() {}

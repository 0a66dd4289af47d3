use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{MessageId, consumer};

struct OrderPlaced {
    order_id: usize,
}

#[consumer(subscriber = "billing", retention = "7d")]
fn bill(db: &mut SqliteConnection, id: &MessageId, event: &OrderPlaced) -> QueryResult<()> {
    diesel::sql_query("SELECT 1").execute(db)?;
    assert_eq!(event.order_id, 7);
    Ok(())
}

fn main() {}

use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use idem_diesel::{MessageId, consumer};

#[consumer(subscriber = "billing", retention = "7d")]
fn bill(
    db: &mut SqliteConnection,
    id: &MessageId,
    order_id: i64,
    [a, b]: [i64; 2],
) -> QueryResult<()> {
    diesel::sql_query(format!("SELECT {a} + {b}")).execute(db)?;
    Ok(())
}

fn main() {}

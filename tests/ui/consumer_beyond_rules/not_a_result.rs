use diesel::{RunQueryDsl, SqliteConnection};
use idem_diesel::{MessageId, consumer};

#[consumer(subscriber = "billing", retention = "7d")]
fn bill(db: &mut SqliteConnection, id: &MessageId) -> usize {
    let _ = diesel::sql_query("SELECT 1").execute(db);
    1
}

fn main() {}

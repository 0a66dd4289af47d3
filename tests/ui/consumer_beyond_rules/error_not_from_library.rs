use diesel::{RunQueryDsl, SqliteConnection};
use idem_diesel::{MessageId, consumer};

struct ShopError;

#[consumer(subscriber = "billing", retention = "7d")]
fn bill(db: &mut SqliteConnection, id: &MessageId) -> Result<(), ShopError> {
    diesel::sql_query("SELECT 1")
        .execute(db)
        .map_err(|_| ShopError)?;
    Ok(())
}

fn main() {}

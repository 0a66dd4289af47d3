use diesel::{QueryResult, SqliteConnection};
use idem_diesel::{MessageId, consumer};

trait Bills {
    #[consumer(subscriber = "billing", retention = "7d")]
    fn bill(&self, db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()>;
}

fn main() {}

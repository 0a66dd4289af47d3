//! Methods of inherent and trait impls, with every receiver.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::consumer;
use idem_diesel::{Consumed, MessageId, ensure_schema};

struct Billing {
    bills: i64,
}

impl Billing {
    const STEP: i64 = 1;

    #[consumer(subscriber = "shared", retention = "7d")]
    fn shared(
        &self,
        db: &mut SqliteConnection,
        id: &MessageId,
        amount: i64,
    ) -> QueryResult<Consumed<i64>> {
        sql_query("SELECT 1").execute(db)?;
        Ok((self.bills + amount).into())
    }

    #[consumer(subscriber = "exclusive", retention = "7d")]
    fn exclusive(&mut self, db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
        sql_query("SELECT 1").execute(db)?;
        self.bills += Self::STEP;
        Ok(())
    }

    #[consumer(subscriber = "boxed", retention = "7d")]
    fn boxed(self: Box<Self>, db: &mut SqliteConnection, id: MessageId) -> QueryResult<()> {
        sql_query("SELECT 1").execute(db)?;
        drop((self, id));
        Ok(())
    }

    #[consumer(subscriber = "no_receiver", retention = "7d")]
    fn no_receiver(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<Consumed<i64>> {
        sql_query("SELECT 1").execute(db)?;
        Ok(Self::STEP.into())
    }
}

trait Consumes {
    type Answer;

    fn consume(&mut self, db: &mut SqliteConnection, id: &MessageId, amount: i64) -> Self::Answer;
}

impl Consumes for Billing {
    type Answer = QueryResult<Consumed<i64>>;

    #[consumer(subscriber = "consume", retention = "7d")]
    fn consume(&mut self, db: &mut SqliteConnection, id: &MessageId, amount: i64) -> Self::Answer {
        sql_query("SELECT 1").execute(db)?;
        self.bills += amount;
        Ok(self.bills.into())
    }
}

trait HasDefault {
    #[consumer(subscriber = "default", retention = "7d")]
    fn default(&self, db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
        sql_query("SELECT 1").execute(db)?;
        Ok(())
    }
}

impl HasDefault for Billing {}

fn database() -> SqliteConnection {
    let mut db = SqliteConnection::establish(":memory:").unwrap();
    ensure_schema(&mut db).unwrap();
    db
}

fn id(id: &str) -> MessageId {
    MessageId::new(id).unwrap()
}

fn main() {
    let db = &mut database();
    let mut billing = Billing { bills: 1 };
    let shared = billing.shared(db, &id("1"), 6).unwrap();
    assert_eq!(shared, Consumed::Processed(7));
    billing.exclusive(db, &id("2")).unwrap();
    let consumed = billing.consume(db, &id("3"), 3).unwrap();
    assert_eq!(consumed, Consumed::Processed(5));
    HasDefault::default(&billing, db, &id("4")).unwrap();
    Box::new(billing).boxed(db, id("5")).unwrap();
    assert_eq!(
        Billing::no_receiver(db, &id("6")).unwrap().processed(),
        Some(1)
    );
}

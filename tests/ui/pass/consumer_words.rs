//! Every word of the attribute.

use std::time::Duration;

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::consumer;
use idem_diesel::{
    Consumed, Intent, MessageId, Policy, Retention, Subscription, Tenant, ensure_schema,
};

mod retention {
    use idem_diesel::Retention;

    pub const EVENTS: Retention = Retention::literal("30d");
    pub const REDELIVERY: Retention = Retention::literal("14d");
    pub const REDELIVERY_OF_A_QUEUE: Retention = Retention::literal("4d");
}

const PATIENT: Policy = Policy::new().wait(Some(Duration::from_secs(30)));
const BILLING: Subscription = Subscription::new("billing", retention::EVENTS)
    .redelivered_for(retention::REDELIVERY)
    .with_policy(PATIENT)
    .with_max_attempts(7);

struct Broker;

impl Broker {
    const REDELIVERY: Retention = Retention::literal("1d");
    const AUDIT: Subscription = Subscription::new("audit", Retention::literal("52w"));
}

#[consumer(subscriber = "constants", retention = retention::EVENTS, redelivery = Broker::REDELIVERY)]
fn constants(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    Ok(())
}

#[consumer(subscriber = "literals", retention = "15m", redelivery = "900s")]
fn literals(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    Ok(())
}

#[consumer(subscription = BILLING)]
fn constant(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    Ok(())
}

#[consumer(subscription = Broker::AUDIT, conn = db)]
fn associated(
    db: &mut SqliteConnection,
    id: &MessageId,
    #[consumer(skip)] log: &mut Vec<String>,
) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    log.push(id.to_string());
    Ok(())
}

type Delivery = MessageId;
type Key = Intent;

#[consumer(
    subscriber = "everything with spaces and \u{e9}",
    retention = "1w",
    redelivery = retention::REDELIVERY_OF_A_QUEUE,
    policy = PATIENT,
    conn = db,
    message_id = delivery,
    intent = key,
    crate = idem_diesel,
)]
fn everything(
    db: &mut SqliteConnection,
    #[consumer(skip)] log: &mut Vec<String>,
    delivery: &Delivery,
    #[consumer(skip)] cause: &MessageId,
    key: &Key,
    amount: i64,
) -> QueryResult<Consumed> {
    let is_bound = key.is_of_message("everything with spaces and \u{e9}", delivery);
    log.push(format!("{delivery} {cause} {is_bound} {amount}"));
    sql_query("SELECT 1").execute(db)?;
    Ok(Consumed::Processed(()))
}

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
    let mut log = Vec::new();
    constants(db, &id("1")).unwrap();
    literals(db, &id("2")).unwrap();
    constant(db, &id("3")).unwrap();
    associated(db, &id("4"), &mut log).unwrap();
    let acme = Tenant::shared("acme").unwrap();
    let key = Intent::of_message(acme, "everything with spaces and \u{e9}", &id("5"));
    everything(db, &mut log, &id("5"), &id("4"), &key, 7).unwrap();
    assert_eq!(log, ["4", "5 4 true 7"]);
}

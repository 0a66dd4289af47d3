//! Every form of a message id and of an intent.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::consumer;
use idem_diesel::{Consumed, Intent, MessageId, Tenant, ensure_schema};

#[consumer(subscriber = "borrowed", retention = "7d")]
fn borrowed(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<Consumed<String>> {
    sql_query("SELECT 1").execute(db)?;
    Ok(id.to_string().into())
}

#[consumer(subscriber = "owned", retention = "7d")]
fn owned(db: &mut SqliteConnection, id: MessageId) -> QueryResult<Consumed<MessageId>> {
    sql_query("SELECT 1").execute(db)?;
    Ok(id.into())
}

#[consumer(subscriber = "changed", retention = "7d")]
fn changed(mut id: idem_diesel::MessageId, db: &mut SqliteConnection) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    id = MessageId::new(format!("{id} again")).unwrap();
    assert_eq!(id.as_str(), "3 again");
    Ok(())
}

#[consumer(subscriber = "intended", retention = "7d")]
fn intended(db: &mut SqliteConnection, id: &MessageId, intent: &Intent) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    assert!(intent.is_of_message("intended", id));
    Ok(())
}

#[consumer(subscriber = "owned_intent", retention = "7d")]
fn owned_intent(db: &mut SqliteConnection, intent: Intent, id: MessageId) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    let moved = move || intent.is_of_message("owned_intent", &id);
    assert!(moved());
    Ok(())
}

#[consumer(subscriber = "optional", retention = "7d")]
fn optional(
    db: &mut SqliteConnection,
    id: &MessageId,
    intent: Option<&Intent>,
) -> QueryResult<Consumed<bool>> {
    sql_query("SELECT 1").execute(db)?;
    Ok(intent.is_some().into())
}

#[consumer(subscriber = "optional_owned", retention = "7d")]
fn optional_owned(
    db: &mut SqliteConnection,
    id: &MessageId,
    intent: std::option::Option<idem_diesel::Intent>,
) -> QueryResult<Consumed<bool>> {
    sql_query("SELECT 1").execute(db)?;
    Ok(intent
        .is_some_and(|intent| intent.is_of_message("optional_owned", id))
        .into())
}

#[consumer(subscriber = "unused", retention = "7d")]
fn unused(db: &mut SqliteConnection, _: MessageId, intent: &Intent) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    Ok(())
}

fn database() -> SqliteConnection {
    let mut db = SqliteConnection::establish(":memory:").unwrap();
    ensure_schema(&mut db).unwrap();
    db
}

fn id(id: &str) -> MessageId {
    MessageId::new(id).unwrap()
}

fn intent(subscriber: &str, id: &MessageId) -> Intent {
    Intent::of_message(Tenant::shared("acme").unwrap(), subscriber, id)
}

fn main() {
    let db = &mut database();
    assert_eq!(borrowed(db, &id("1")).unwrap().processed().unwrap(), "1");
    assert_eq!(owned(db, id("2")).unwrap().processed(), Some(id("2")));
    changed(id("3"), db).unwrap();
    intended(db, &id("4"), &intent("intended", &id("4"))).unwrap();
    owned_intent(db, intent("owned_intent", &id("5")), id("5")).unwrap();
    assert_eq!(
        optional(db, &id("6"), None).unwrap(),
        Consumed::Processed(false)
    );
    let seven = id("7");
    let wish = intent("optional", &seven);
    assert_eq!(
        optional(db, &seven, Some(&wish)).unwrap(),
        Consumed::Processed(true)
    );
    let wish = intent("optional_owned", &seven);
    assert_eq!(
        optional_owned(db, &seven, Some(wish)).unwrap(),
        Consumed::Processed(true)
    );
    unused(db, id("8"), &intent("unused", &id("8"))).unwrap();
}

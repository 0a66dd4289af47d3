//! Generic connections and messages, `where`, `impl Trait`, lifetimes and constants.

use std::error::Error;
use std::fmt::Display;
use std::ops::{Deref, DerefMut};

use diesel::connection::LoadConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sqlite::Sqlite;
use idem_diesel::consumer;
use idem_diesel::{
    Blocking, Consumed, IdempotentConnection, Intent, MessageId, RequestHash, ensure_schema,
};

#[consumer(subscriber = "connection", retention = "7d")]
fn connection<C>(db: &mut C, id: &MessageId, amount: i64) -> QueryResult<()>
where
    C: IdempotentConnection<Flavor = Blocking> + LoadConnection<Backend = Sqlite>,
{
    sql_query(format!("SELECT {amount}")).execute(db)?;
    Ok(())
}

#[consumer(subscriber = "implicit", retention = "7d")]
fn implicit(
    db: &mut (impl IdempotentConnection<Flavor = Blocking> + LoadConnection<Backend = Sqlite>),
    id: &MessageId,
    amount: impl RequestHash + Display,
) -> QueryResult<()> {
    sql_query(format!("SELECT {amount}")).execute(db)?;
    Ok(())
}

#[consumer(subscriber = "message", retention = "7d")]
fn message<T: RequestHash + Display + ?Sized, const N: usize>(
    db: &mut SqliteConnection,
    id: &MessageId,
    amount: &T,
    several: [i64; N],
) -> QueryResult<Consumed<[i64; N]>> {
    sql_query(format!("SELECT {amount}")).execute(db)?;
    Ok(several.into())
}

/// A duplicate has no value, so one may borrow.
#[consumer(subscriber = "lifetimes", retention = "7d")]
fn lifetimes<'a, 'b: 'a>(
    db: &'a mut SqliteConnection,
    id: &'b MessageId,
    intent: Option<&'b Intent>,
    text: &'a str,
    list: &'b [&'a str],
    dynamic: &dyn RequestHash,
) -> QueryResult<Consumed<&'a str>> {
    sql_query(format!("SELECT '{text}', {}", list.len())).execute(db)?;
    Ok(text.into())
}

/// A connection type with a lifetime of its own, as the guards of pools have.
struct Guard<'p>(&'p mut SqliteConnection);

impl Deref for Guard<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        self.0
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        self.0
    }
}

idem_diesel::idempotent_connection!(Guard<'_> => SqliteConnection);

#[consumer(subscriber = "guard", retention = "7d")]
fn guard(db: &mut Guard<'_>, id: &MessageId) -> Result<(), Box<dyn Error + Send + Sync>> {
    sql_query("SELECT 1").execute(&mut **db)?;
    Ok(())
}

struct Billing<T> {
    tax: T,
}

impl<T: Display> Billing<T> {
    #[consumer(subscriber = "inside", retention = "7d")]
    fn inside<'s>(&'s self, db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()>
    where
        T: 's,
    {
        sql_query(format!("SELECT {}", self.tax)).execute(db)?;
        Ok(())
    }
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
    connection(db, &id("1"), 7).unwrap();
    implicit(db, &id("2"), 7_i64).unwrap();
    let numbers = message(db, &id("3"), "7", [1, 2, 3]).unwrap();
    assert_eq!(numbers.processed(), Some([1, 2, 3]));
    let four = id("4");
    let text = lifetimes(db, &four, None, "seven", &["a", "b"], &7).unwrap();
    assert_eq!(text.processed(), Some("seven"));
    guard(&mut Guard(db), &id("5")).unwrap();
    Billing { tax: 21 }.inside(db, &id("6")).unwrap();
}

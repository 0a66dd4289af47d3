//! Generic connections and requests, `where`, `impl Trait`, lifetimes and constants.

use std::error::Error;
use std::fmt::Display;
use std::ops::{Deref, DerefMut};

use diesel::connection::LoadConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sqlite::Sqlite;
use idem_diesel::idempotent;
use idem_diesel::{
    Blocking, IdempotencyKey, IdempotentConnection, Intent, RequestHash, Tenant, ensure_schema,
};

#[idempotent(scope = "connection", ttl = "48h")]
fn connection<C>(db: &mut C, intent: &Intent, amount: i64) -> QueryResult<usize>
where
    C: IdempotentConnection<Flavor = Blocking> + LoadConnection<Backend = Sqlite>,
{
    sql_query(format!("SELECT {amount}")).execute(db)
}

#[idempotent(scope = "implicit", ttl = "48h")]
fn implicit(
    db: &mut (impl IdempotentConnection<Flavor = Blocking> + LoadConnection<Backend = Sqlite>),
    intent: &Intent,
    amount: impl RequestHash + Display,
) -> QueryResult<usize> {
    sql_query(format!("SELECT {amount}")).execute(db)
}

#[idempotent(scope = "request", ttl = "48h")]
fn request<T: RequestHash + Display + ?Sized, const N: usize>(
    db: &mut SqliteConnection,
    intent: &Intent,
    amount: &T,
    several: [i64; N],
) -> QueryResult<usize> {
    sql_query(format!("SELECT {amount} + {}", several.len())).execute(db)
}

#[idempotent(scope = "lifetimes", ttl = "48h")]
fn lifetimes<'a, 'b: 'a>(
    db: &'a mut SqliteConnection,
    intent: &'b Intent,
    text: &'a str,
    list: &'b [&'a str],
    dynamic: &dyn RequestHash,
) -> QueryResult<usize> {
    sql_query(format!("SELECT '{text}', {}", list.len())).execute(db)
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

#[idempotent(scope = "guard", ttl = "48h")]
fn guard(db: &mut Guard<'_>, intent: &Intent) -> Result<usize, Box<dyn Error + Send + Sync>> {
    Ok(sql_query("SELECT 1").execute(&mut **db)?)
}

trait Store {
    type Connection;
}

impl Store for () {
    type Connection = SqliteConnection;
}

#[idempotent(scope = "projection", ttl = "48h")]
fn projection(db: &mut <() as Store>::Connection, intent: &Intent) -> QueryResult<usize> {
    sql_query("SELECT 1").execute(db)
}

struct Shop<T> {
    tax: T,
}

impl<T: Display> Shop<T> {
    #[idempotent(scope = "inside", ttl = "48h")]
    fn inside<'s>(&'s self, db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize>
    where
        T: 's,
    {
        sql_query(format!("SELECT {}", self.tax)).execute(db)
    }
}

fn database() -> SqliteConnection {
    let mut db = SqliteConnection::establish(":memory:").unwrap();
    ensure_schema(&mut db).unwrap();
    db
}

fn intent(key: &str) -> Intent {
    Intent::new(
        Tenant::of("acme", "alice").unwrap(),
        IdempotencyKey::new(key).unwrap(),
    )
}

fn main() {
    let db = &mut database();
    connection(db, &intent("1"), 7).unwrap();
    implicit(db, &intent("2"), 7_i64).unwrap();
    request(db, &intent("3"), "7", [1, 2, 3]).unwrap();
    lifetimes(db, &intent("4"), "seven", &["a", "b"], &7).unwrap();
    guard(&mut Guard(db), &intent("6")).unwrap();
    projection(db, &intent("7")).unwrap();
    Shop { tax: 21 }.inside(db, &intent("5")).unwrap();
}

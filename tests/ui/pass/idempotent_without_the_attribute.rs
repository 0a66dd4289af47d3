//! The other `idempotent_*` fixtures without the attribute: still ordinary Rust. Written by a test of `idem-macros`.
#![allow(unused)]

mod async_attributes {
//! `#[tracing::instrument]` above and below, on async functions and methods.

use diesel::{QueryResult, SqliteConnection, sql_query};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, RunQueryDsl};
use idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};

#[tracing::instrument(skip_all)]
async fn above(db: &mut Sqlite, intent: &Intent, amount: i64) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db).await?;
    Ok(amount)
}

#[tracing::instrument(skip(db), fields(key = intent.key().as_str(), amount), err)]
async fn below(db: &mut Sqlite, intent: &Intent, amount: i64) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db).await?;
    Ok(amount)
}

struct Shop;

impl Shop {
    #[tracing::instrument(skip_all, ret)]
    async fn method_above(
        &self,
        db: &mut Sqlite,
        intent: &Intent,
        amount: i64,
    ) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        Ok(amount)
    }

    #[tracing::instrument(skip_all, ret)]
    async fn method_below(
        &mut self,
        db: &mut Sqlite,
        intent: &Intent,
        amount: i64,
    ) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        Ok(amount)
    }
}

fn sends<F: Future + Send>(future: F) -> F {
    future
}

type Sqlite = SyncConnectionWrapper<SqliteConnection>;

async fn database() -> Sqlite {
    let mut db = Sqlite::establish(":memory:").await.unwrap();
    ensure_schema(&mut db).await.unwrap();
    db
}

fn intent(key: &str) -> Intent {
    Intent::new(
        Tenant::of("acme", "alice").unwrap(),
        IdempotencyKey::new(key).unwrap(),
    )
}

#[tokio::main]
pub(crate) async fn main() {
    let db = &mut database().await;
    assert_eq!(sends(above(db, &intent("1"), 7)).await.unwrap(), 7);
    assert_eq!(sends(below(db, &intent("2"), 7)).await.unwrap(), 7);
    assert_eq!(
        sends(Shop.method_above(db, &intent("3"), 7)).await.unwrap(),
        7
    );
    assert_eq!(
        sends(Shop.method_below(db, &intent("4"), 7)).await.unwrap(),
        7
    );
}
}

mod async_functions {
//! Free async functions: `return` and `?`, several awaits, inferred types.

use diesel::{QueryResult, SqliteConnection, sql_query};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, RunQueryDsl};
use idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};

#[derive(Debug)]
struct ShopError(String);

impl From<diesel::result::Error> for ShopError {
    fn from(error: diesel::result::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<idem_diesel::Error> for ShopError {
    fn from(error: idem_diesel::Error) -> Self {
        Self(error.to_string())
    }
}

impl std::fmt::Display for ShopError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

async fn plain(db: &mut Sqlite, intent: &Intent, amount: i64) -> QueryResult<usize> {
    sql_query(format!("SELECT {amount}")).execute(db).await
}

async fn leaves_early(db: &mut Sqlite, intent: &Intent, amount: i64) -> Result<String, ShopError> {
    if amount == 0 {
        return Ok("nothing to do".into());
    }
    sql_query("SELECT 1").execute(db).await?;
    sql_query("SELECT 2").execute(db).await?;
    Ok(amount.to_string())
}

async fn only_question_marks(db: &mut Sqlite, intent: &Intent) -> Result<(), ShopError> {
    sql_query("SELECT 1").execute(db).await?;
    Err(std::fmt::Error).map_err(|error| ShopError(error.to_string()))?
}

async fn coerced(db: &mut Sqlite, intent: &Intent) -> Result<Box<[i64]>, ShopError> {
    sql_query("SELECT 1").execute(db).await?;
    Ok(Box::new([1, 2, 3]))
}

async fn never_ends_by_itself(db: &mut Sqlite, intent: &Intent) -> QueryResult<usize> {
    loop {
        if let Ok(rows) = sql_query("SELECT 1").execute(db).await {
            return Ok(rows);
        }
    }
}

type Sqlite = SyncConnectionWrapper<SqliteConnection>;

async fn database() -> Sqlite {
    let mut db = Sqlite::establish(":memory:").await.unwrap();
    ensure_schema(&mut db).await.unwrap();
    db
}

fn intent(key: &str) -> Intent {
    Intent::new(
        Tenant::of("acme", "alice").unwrap(),
        IdempotencyKey::new(key).unwrap(),
    )
}

#[tokio::main]
pub(crate) async fn main() {
    let db = &mut database().await;
    let first = plain(db, &intent("1"), 7).await.unwrap();
    assert_eq!(first, plain(db, &intent("1"), 7).await.unwrap());
    assert_eq!(leaves_early(db, &intent("2"), 7).await.unwrap(), "7");
    assert_eq!(
        leaves_early(db, &intent("3"), 0).await.unwrap(),
        "nothing to do"
    );
    assert!(only_question_marks(db, &intent("4")).await.is_err());
    assert_eq!(*coerced(db, &intent("5")).await.unwrap(), [1, 2, 3]);
    never_ends_by_itself(db, &intent("6")).await.unwrap();
}
}

mod async_methods {
//! Async methods, native `async fn` in traits among them.

use diesel::{QueryResult, SqliteConnection, sql_query};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, RunQueryDsl};
use idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};

struct Shop {
    orders: i64,
}

impl Shop {
    async fn shared(&self, db: &mut Sqlite, intent: &Intent, amount: i64) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        Ok(self.orders + amount)
    }

    async fn exclusive(&mut self, db: &mut Sqlite, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        self.orders += 1;
        Ok(self.orders)
    }

    async fn by_value(self, db: &mut Sqlite, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        Ok(self.orders)
    }
}

trait Sells {
    async fn sell(&mut self, db: &mut Sqlite, intent: &Intent, amount: i64) -> QueryResult<i64>;

    fn send(
        &self,
        db: &mut Sqlite,
        intent: &Intent,
    ) -> impl Future<Output = QueryResult<i64>> + Send;
}

impl Sells for Shop {
    async fn sell(&mut self, db: &mut Sqlite, intent: &Intent, amount: i64) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        self.orders += amount;
        Ok(self.orders)
    }

    async fn send(&self, db: &mut Sqlite, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        Ok(self.orders)
    }
}

type Sqlite = SyncConnectionWrapper<SqliteConnection>;

async fn database() -> Sqlite {
    let mut db = Sqlite::establish(":memory:").await.unwrap();
    ensure_schema(&mut db).await.unwrap();
    db
}

fn intent(key: &str) -> Intent {
    Intent::new(
        Tenant::of("acme", "alice").unwrap(),
        IdempotencyKey::new(key).unwrap(),
    )
}

#[tokio::main]
pub(crate) async fn main() {
    let db = &mut database().await;
    let mut shop = Shop { orders: 1 };
    assert_eq!(shop.shared(db, &intent("1"), 6).await.unwrap(), 7);
    assert_eq!(shop.exclusive(db, &intent("2")).await.unwrap(), 2);
    assert_eq!(shop.sell(db, &intent("3"), 3).await.unwrap(), 5);
    assert_eq!(shop.send(db, &intent("4")).await.unwrap(), 5);
    assert_eq!(shop.by_value(db, &intent("5")).await.unwrap(), 5);
}
}

mod attributes {
//! Attributes beside ours, above and below it, on the function, its parameters and its body.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};

/// Documented.
#[must_use]
#[inline]
pub fn documented(
    db: &mut SqliteConnection,
    intent: &Intent,
    amount: i64,
    #[cfg(any())] absent: NoSuchType,
    #[cfg(not(any()))] present: i64,
    #[cfg(any())]
    also_absent: NoSuchType,
    #[allow(unused_variables)] unused: i64,
) -> QueryResult<i64> {
    #![allow(clippy::unused_unit)]
    sql_query("SELECT 1").execute(db)?;
    Ok(amount + present)
}

#[cfg(any())]
fn absent(db: &mut NoSuchType, intent: &Intent) -> NoSuchType {
    db
}

#[tracing::instrument(skip_all)]
fn above(
    db: &mut SqliteConnection,
    intent: &Intent,
    amount: i64,
    trace_id: &str,
) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db)?;
    tracing::info!(trace_id);
    Ok(amount)
}

#[tracing::instrument(skip(db), fields(key = intent.key().as_str(), amount), err)]
fn below(
    db: &mut SqliteConnection,
    intent: &Intent,
    amount: i64,
    trace_id: &str,
) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db)?;
    tracing::info!(trace_id);
    Ok(amount)
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

pub(crate) fn main() {
    let db = &mut database();
    assert_eq!(documented(db, &intent("1"), 7, 1, 0).unwrap(), 8);
    assert_eq!(above(db, &intent("2"), 7, "t").unwrap(), 7);
    assert_eq!(below(db, &intent("3"), 7, "t").unwrap(), 7);
}
}

mod deny_warnings {
//! The expansion is clean under every lint that is commonly denied.

#![deny(warnings, clippy::all, clippy::pedantic)]
#![deny(
    rust_2018_idioms,
    trivial_casts,
    trivial_numeric_casts,
    unreachable_pub,
    unused_lifetimes,
    unused_qualifications
)]
#![deny(
    let_underscore_drop,
    unused_results,
    variant_size_differences,
    single_use_lifetimes,
    missing_docs
)]
#![forbid(unsafe_code)]

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{IdempotencyKey, Intent, Outcome, RequestHash, Tenant, ensure_schema};

#[derive(RequestHash)]
pub(crate) struct PayOrder {
    order_id: i64,
    note: String,
}

/// Pays.
///
/// # Errors
///
/// When it cannot.
pub(crate) fn pay(
    db: &mut SqliteConnection,
    intent: &Intent,
    cmd: &PayOrder,
) -> QueryResult<Outcome<String>> {
    if cmd.order_id == 0 {
        return Err(diesel::NotFound);
    }
    let rows = sql_query("SELECT 1").execute(db)?;
    Ok(format!("{} {rows} {}", cmd.note, intent.key()).into())
}

fn take(
    db: &mut SqliteConnection,
    intent: Intent,
    PayOrder { order_id, .. }: PayOrder,
) -> QueryResult<i64> {
    let rows = sql_query("SELECT 1").execute(db)?;
    let key = intent;
    drop((rows, key));
    Ok(order_id)
}

fn marked(
    _db: &mut SqliteConnection,
    _intent: Option<&Intent>,
    _amount: i64,
    _note: &str,
) -> QueryResult<i64> {
    Ok(1)
}

fn diverges(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<i64> {
    panic!("{} {}", intent.key(), sql_query("SELECT 1").execute(db)?);
}

mod asynchronous {
    use diesel::{QueryResult, sql_query};
    use diesel_async::{AsyncPgConnection, RunQueryDsl};
    use idem_diesel::Intent;

    pub(crate) async fn pay(
        db: &mut AsyncPgConnection,
        intent: &Intent,
        order_id: i64,
        note: &str,
    ) -> QueryResult<String> {
        if order_id == 0 {
            return Err(diesel::NotFound);
        }
        let rows = sql_query("SELECT 1").execute(db).await?;
        Ok(format!("{note} {rows} {}", intent.key()))
    }

    pub(crate) async fn diverges(db: &mut AsyncPgConnection, intent: &Intent) -> QueryResult<i64> {
        panic!(
            "{} {}",
            intent.key(),
            sql_query("SELECT 1").execute(db).await?
        );
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

pub(crate) fn main() {
    let db = &mut database();
    let order = || PayOrder {
        order_id: 7,
        note: "order".to_owned(),
    };
    let first = pay(db, &intent("1"), &order()).map(Outcome::into_inner);
    let second = pay(db, &intent("1"), &order()).map(Outcome::into_inner);
    assert_eq!(first, second);
    assert_eq!(take(db, intent("2"), order()), Ok(7));
    assert_eq!(marked(db, Some(&intent("3")), 7, ""), Ok(1));
    let _ = (diverges, asynchronous::pay, asynchronous::diverges);
}
}

mod functions {
//! Free functions: every kind of return type, `return` and `?`.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{IdempotencyKey, Intent, Outcome, Tenant, Verdict, ensure_schema};

#[derive(Debug)]
enum ShopError {
    Database,
    Library,
    Arithmetic,
}

impl From<diesel::result::Error> for ShopError {
    fn from(_: diesel::result::Error) -> Self {
        Self::Database
    }
}

impl From<idem_diesel::Error> for ShopError {
    fn from(_: idem_diesel::Error) -> Self {
        Self::Library
    }
}

type ShopResult<T> = Result<T, ShopError>;

/// The error type of Diesel itself.
fn query_result(db: &mut SqliteConnection, intent: &Intent, amount: i64) -> QueryResult<usize> {
    sql_query(format!("SELECT {amount}")).execute(db)
}

/// An own error, an early `return` and a `?`.
fn own_error(db: &mut SqliteConnection, intent: &Intent, amount: i64) -> Result<String, ShopError> {
    if amount == 0 {
        return Ok("nothing to do".to_owned());
    }
    sql_query("SELECT 1").execute(db)?;
    let half = amount.checked_div(2).ok_or(ShopError::Arithmetic)?;
    Ok(half.to_string())
}

/// An alias, and no request at all.
fn alias(db: &mut SqliteConnection, intent: &Intent) -> ShopResult<()> {
    sql_query("SELECT 1").execute(db)?;
    Ok(())
}

/// Says whether it was executed or replayed.
fn outcome(db: &mut SqliteConnection, intent: &Intent, amount: &i64) -> ShopResult<Outcome<i64>> {
    sql_query("SELECT 1").execute(db)?;
    Ok((*amount).into())
}

/// May be refused for good.
fn verdict(
    db: &mut SqliteConnection,
    intent: &Intent,
    amount: i64,
) -> ShopResult<Verdict<i64, String>> {
    sql_query("SELECT 1").execute(db)?;
    let answer = if amount > 100 {
        Err("too much".to_owned())
    } else {
        Ok(amount)
    };
    Ok(answer.into())
}

/// Ends in `return`.
fn ends_in_return(db: &mut SqliteConnection, intent: &Intent) -> ShopResult<i64> {
    sql_query("SELECT 1").execute(db)?;
    return Err(ShopError::Arithmetic);
}

/// Returns a value that is coerced.
fn coerced(db: &mut SqliteConnection, intent: &Intent) -> ShopResult<Box<[i64]>> {
    sql_query("SELECT 1").execute(db)?;
    Ok(Box::new([1, 2, 3]))
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

pub(crate) fn main() {
    let db = &mut database();
    assert_eq!(
        query_result(db, &intent("1"), 7).unwrap(),
        query_result(db, &intent("1"), 7).unwrap()
    );
    assert_eq!(own_error(db, &intent("2"), 7).unwrap(), "3");
    assert_eq!(own_error(db, &intent("3"), 0).unwrap(), "nothing to do");
    alias(db, &intent("4")).unwrap();
    assert_eq!(*outcome(db, &intent("5"), &7).unwrap().get(), 7);
    assert_eq!(verdict(db, &intent("6"), 7).unwrap(), Verdict::Completed(7));
    assert!(matches!(
        ends_in_return(db, &intent("8")),
        Err(ShopError::Arithmetic)
    ));
    assert_eq!(*coerced(db, &intent("9")).unwrap(), [1, 2, 3]);
}
}

mod generics {
//! Generic connections and requests, `where`, `impl Trait`, lifetimes and constants.

use std::error::Error;
use std::fmt::Display;
use std::ops::{Deref, DerefMut};

use diesel::connection::LoadConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sqlite::Sqlite;
use idem_diesel::{
    Blocking, IdempotencyKey, IdempotentConnection, Intent, RequestHash, Tenant, ensure_schema,
};

fn connection<C>(db: &mut C, intent: &Intent, amount: i64) -> QueryResult<usize>
where
    C: IdempotentConnection<Flavor = Blocking> + LoadConnection<Backend = Sqlite>,
{
    sql_query(format!("SELECT {amount}")).execute(db)
}

fn implicit(
    db: &mut (impl IdempotentConnection<Flavor = Blocking> + LoadConnection<Backend = Sqlite>),
    intent: &Intent,
    amount: impl RequestHash + Display,
) -> QueryResult<usize> {
    sql_query(format!("SELECT {amount}")).execute(db)
}

fn request<T: RequestHash + Display + ?Sized, const N: usize>(
    db: &mut SqliteConnection,
    intent: &Intent,
    amount: &T,
    several: [i64; N],
) -> QueryResult<usize> {
    sql_query(format!("SELECT {amount} + {}", several.len())).execute(db)
}

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

fn guard(db: &mut Guard<'_>, intent: &Intent) -> Result<usize, Box<dyn Error + Send + Sync>> {
    Ok(sql_query("SELECT 1").execute(&mut **db)?)
}

trait Store {
    type Connection;
}

impl Store for () {
    type Connection = SqliteConnection;
}

fn projection(db: &mut <() as Store>::Connection, intent: &Intent) -> QueryResult<usize> {
    sql_query("SELECT 1").execute(db)
}

struct Shop<T> {
    tax: T,
}

impl<T: Display> Shop<T> {
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

pub(crate) fn main() {
    let db = &mut database();
    connection(db, &intent("1"), 7).unwrap();
    implicit(db, &intent("2"), 7_i64).unwrap();
    request(db, &intent("3"), "7", [1, 2, 3]).unwrap();
    lifetimes(db, &intent("4"), "seven", &["a", "b"], &7).unwrap();
    guard(&mut Guard(db), &intent("6")).unwrap();
    projection(db, &intent("7")).unwrap();
    Shop { tax: 21 }.inside(db, &intent("5")).unwrap();
}
}

mod hygiene {
//! What the expansion introduces does not meet what the body names, and functions may come out of `macro_rules!`.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};

fn same_names(
    db: &mut SqliteConnection,
    intent: &Intent,
    claim: i64,
    execution: i64,
    result: i64,
    error: i64,
    stored: i64,
    bound: i64,
    moved: i64,
    request: i64,
) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db)?;
    Ok(claim + execution + result + error + stored + bound + moved + request)
}

const OPERATION: i64 = 7;

fn items(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<i64> {
    use helper::seven;
    const INSIDE: i64 = 1;
    mod helper {
        pub fn seven() -> i64 {
            7
        }
    }
    sql_query("SELECT 1").execute(db)?;
    Ok(OPERATION + INSIDE + seven())
}

fn r#move(
    r#in: &mut SqliteConnection,
    r#ref: &Intent,
    r#type: &str,
    r#fn: i64,
) -> QueryResult<i64> {
    sql_query(format!("SELECT '{}'", r#type)).execute(r#in)?;
    Ok(r#fn)
}

macro_rules! handler {
    ($name:ident, $scope:literal, $db:ident: $connection:ty, $amount:ident: $type:ty, $body:block) => {
        fn $name($db: &mut $connection, intent: &Intent, $amount: $type) -> QueryResult<$type> $body
    };
}

handler!(generated, "generated", db: SqliteConnection, amount: i64, {
    sql_query("SELECT 1").execute(db)?;
    Ok(amount)
});

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

pub(crate) fn main() {
    let db = &mut database();
    assert_eq!(
        same_names(db, &intent("1"), 1, 2, 3, 4, 5, 6, 7, 8).unwrap(),
        36
    );
    assert_eq!(items(db, &intent("2")).unwrap(), 15);
    assert_eq!(r#move(db, &intent("3"), "a", 7).unwrap(), 7);
    assert_eq!(generated(db, &intent("4"), 7).unwrap(), 7);
}
}

mod intents {
//! Every form of an intent.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};

type Key = Intent;

fn optional(db: &mut SqliteConnection, intent: Option<&Intent>) -> QueryResult<bool> {
    sql_query("SELECT 1").execute(db)?;
    Ok(intent.is_some_and(|intent| intent.key().as_str() == "1"))
}

fn owned(db: &mut SqliteConnection, intent: Intent) -> QueryResult<bool> {
    sql_query("SELECT 1").execute(db)?;
    let moved = move || intent.key().as_str() == "2";
    Ok(moved())
}

fn optional_owned(
    db: &mut SqliteConnection,
    intent: std::option::Option<idem_diesel::Intent>,
) -> QueryResult<bool> {
    sql_query("SELECT 1").execute(db)?;
    Ok(intent.is_some_and(|intent| intent.key().as_str() == "3"))
}

fn path(intent: &::idem_diesel::Intent, db: &mut SqliteConnection) -> QueryResult<bool> {
    sql_query("SELECT 1").execute(db)?;
    Ok(intent.key().as_str() == "4")
}

fn named(db: &mut SqliteConnection, key: &Key, other: &str) -> QueryResult<bool> {
    sql_query("SELECT 1").execute(db)?;
    Ok(key.key().as_str() == other)
}

fn unused(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    sql_query("SELECT 1").execute(db)
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

pub(crate) fn main() {
    let db = &mut database();
    assert!(!optional(db, None).unwrap());
    assert!(optional(db, Some(&intent("1"))).unwrap());
    assert!(owned(db, intent("2")).unwrap());
    assert!(optional_owned(db, Some(intent("3"))).unwrap());
    assert!(!optional_owned(db, None).unwrap());
    assert!(path(&intent("4"), db).unwrap());
    assert!(named(db, &intent("5"), "5").unwrap());
    unused(db, &intent("6")).unwrap();
}
}

mod methods {
//! Methods of inherent and trait impls, with every receiver.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};

struct Shop {
    orders: i64,
}

impl Shop {
    const STEP: i64 = 1;

    fn shared(&self, db: &mut SqliteConnection, intent: &Intent, amount: i64) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db)?;
        Ok(self.orders + amount)
    }

    fn exclusive(&mut self, db: &mut SqliteConnection, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db)?;
        self.orders += Self::STEP;
        Ok(self.orders)
    }

    fn boxed(self: Box<Self>, db: &mut SqliteConnection, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db)?;
        Ok(self.orders)
    }

    fn by_value(self, db: &mut SqliteConnection, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db)?;
        Ok(self.orders)
    }

    fn no_receiver(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db)?;
        Ok(Self::STEP)
    }
}

trait Sells {
    type Answer;

    fn sell(&mut self, db: &mut SqliteConnection, intent: &Intent, amount: i64) -> Self::Answer;

    fn count(db: &mut SqliteConnection, intent: &Intent) -> Self::Answer;
}

impl Sells for Shop {
    type Answer = QueryResult<i64>;

    fn sell(&mut self, db: &mut SqliteConnection, intent: &Intent, amount: i64) -> Self::Answer {
        sql_query("SELECT 1").execute(db)?;
        self.orders += amount;
        Ok(self.orders)
    }

    fn count(db: &mut SqliteConnection, intent: &Intent) -> <Self as Sells>::Answer {
        sql_query("SELECT 1").execute(db)?;
        Ok(Self::STEP)
    }
}

trait HasDefault {
    fn default(&self, db: &mut SqliteConnection, intent: &Intent) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db)?;
        Ok(3)
    }
}

impl HasDefault for Shop {}

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

pub(crate) fn main() {
    let db = &mut database();
    let mut shop = Shop { orders: 1 };
    assert_eq!(shop.shared(db, &intent("1"), 6).unwrap(), 7);
    assert_eq!(shop.exclusive(db, &intent("2")).unwrap(), 2);
    assert_eq!(shop.sell(db, &intent("3"), 3).unwrap(), 5);
    assert_eq!(
        Box::new(Shop { orders: 9 })
            .boxed(db, &intent("4"))
            .unwrap(),
        9
    );
    assert_eq!(HasDefault::default(&shop, db, &intent("5")).unwrap(), 3);
    assert_eq!(shop.by_value(db, &intent("6")).unwrap(), 5);
    assert_eq!(Shop::no_receiver(db, &intent("7")).unwrap(), 1);
    assert_eq!(Shop::count(db, &intent("8")).unwrap(), 1);
}
}

mod no_implicit_prelude {
//! Nothing of the standard prelude is in scope where the attribute expands.

#![no_implicit_prelude]

mod handlers {
    use ::diesel::RunQueryDsl as _;
    use ::std::result::Result::Ok;

    #[derive(::idem_diesel::RequestHash)]
    pub struct PayOrder {
        pub order_id: i64,
    }

    pub fn pay(
        db: &mut ::diesel::SqliteConnection,
        intent: &::idem_diesel::Intent,
        PayOrder { order_id }: PayOrder,
    ) -> ::diesel::QueryResult<i64> {
        ::diesel::sql_query("SELECT 1").execute(db)?;
        Ok(order_id)
    }

    pub fn note(
        db: &mut ::diesel::SqliteConnection,
        intent: ::std::option::Option<::idem_diesel::Intent>,
        text: &str,
        amount: i64,
    ) -> ::diesel::QueryResult<i64> {
        ::diesel::sql_query("SELECT 1").execute(db)?;
        Ok(amount)
    }
}

mod asynchronous {
    use ::diesel_async::RunQueryDsl as _;
    use ::std::result::Result::Ok;

    pub async fn pay(
        db: &mut ::diesel_async::AsyncPgConnection,
        intent: &::idem_diesel::Intent,
        text: &str,
        amount: i64,
    ) -> ::diesel::QueryResult<i64> {
        ::diesel::sql_query("SELECT 1").execute(db).await?;
        Ok(amount)
    }
}

mod application {
    use ::diesel::prelude::*;
    use ::idem_diesel::{IdempotencyKey, Intent, Tenant, ensure_schema};
    use ::std::assert_eq;
    use ::std::prelude::v1::*;

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

    pub fn main() {
        let db = &mut database();
        let _ = super::asynchronous::pay;
        let order = super::handlers::PayOrder { order_id: 7 };
        assert_eq!(super::handlers::pay(db, &intent("1"), order).unwrap(), 7);
        assert_eq!(
            super::handlers::note(db, Some(intent("2")), "seven", 7).unwrap(),
            7
        );
    }
}

pub(crate) fn main() {
    application::main();
}
}

mod patterns {
//! Parameters that are patterns: bound for the transition and the body, hashed as a whole.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{IdempotencyKey, Intent, RequestHash, Tenant, ensure_schema};

#[derive(RequestHash)]
struct PayOrder {
    order_id: i64,
    note: String,
}

fn by_value(
    db: &mut SqliteConnection,
    intent: &Intent,
    PayOrder { order_id, mut note }: PayOrder,
) -> QueryResult<String> {
    sql_query("SELECT 1").execute(db)?;
    note.push_str(&order_id.to_string());
    Ok(note)
}

fn by_reference(
    db: &mut SqliteConnection,
    intent: &Intent,
    PayOrder { order_id, .. }: &PayOrder,
) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db)?;
    Ok(*order_id)
}

fn several(
    db: &mut SqliteConnection,
    intent: &Intent,
    (amount, _): (i64, i64),
    order @ &PayOrder { order_id, .. }: &PayOrder,
    [x, y]: [i64; 2],
    mut count: i64,
) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db)?;
    count += 1;
    Ok(amount + order_id + order.order_id + x + y + count)
}

fn ignored(db: &mut SqliteConnection, _: &Intent, _: i64) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db)?;
    Ok(1)
}

fn marked(_db: &mut SqliteConnection, _intent: &Intent, _amount: i64) -> QueryResult<i64> {
    Ok(1)
}

fn reborrowed(mut db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    fn twice(db: &mut &mut SqliteConnection) -> QueryResult<usize> {
        sql_query("SELECT 1").execute(*db)?;
        sql_query("SELECT 1").execute(*db)
    }
    twice(&mut db)
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

pub(crate) fn main() {
    let db = &mut database();
    let order = || PayOrder {
        order_id: 7,
        note: "order ".to_owned(),
    };
    assert_eq!(by_value(db, &intent("1"), order()).unwrap(), "order 7");
    assert_eq!(by_reference(db, &intent("2"), &order()).unwrap(), 7);
    assert_eq!(
        several(db, &intent("3"), (1, 2), &order(), [3, 4], 5).unwrap(),
        28
    );
    assert_eq!(ignored(db, &intent("4"), 3).unwrap(), 1);
    assert_eq!(marked(db, &intent("5"), 3).unwrap(), 1);
    reborrowed(db, &intent("6")).unwrap();
}
}

mod renamed_crate {
//! The library under another path: a renamed dependency and a re-export.

extern crate idem_diesel as once;

mod library {
    pub mod inner {
        pub use idem_diesel::*;
    }
}

use diesel::prelude::*;
use diesel::sql_query;
use library::inner::{IdempotencyKey, Intent, Tenant, ensure_schema};

fn dependency(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    sql_query("SELECT 1").execute(db)
}

mod elsewhere {
    use diesel::prelude::*;

    pub fn re_export(
        db: &mut SqliteConnection,
        intent: &super::Intent,
        a: i64,
        b: i64,
    ) -> QueryResult<usize> {
        diesel::sql_query(format!("SELECT {a} + {b}")).execute(db)
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

pub(crate) fn main() {
    let db = &mut database();
    dependency(db, &intent("1")).unwrap();
    elsewhere::re_export(db, &intent("2"), 3, 4).unwrap();
}
}

mod retries {
//! `retries` with everything that a run of the body may keep.
#![forbid(unsafe_code)]
#![deny(warnings, clippy::pedantic)]

use diesel::{QueryResult, RunQueryDsl, SqliteConnection};
use diesel_async::AsyncPgConnection;
use idem_diesel::{Error, IdempotencyKey, Intent, Outcome, RequestHash, Tenant, idempotent};

#[derive(Clone, RequestHash)]
struct Line {
    id: i64,
    name: String,
}

struct Desk {
    served: Vec<String>,
}

impl Desk {
    fn serve(
        &mut self,
        db: &mut SqliteConnection,
        intent: Intent,
        mut first: Line,
        Line { id, name }: Line,
        mark: String,
    ) -> Result<Outcome<String>, Error> {
        diesel::sql_query("SELECT 1").execute(db)?;
        first.name.push_str(&name);
        self.served.push(first.name);
        drop(intent);
        Ok(format!("{id}{mark}").into())
    }

    async fn close(
        &mut self,
        db: &mut AsyncPgConnection,
        intent: Option<Intent>,
        cmd: Line,
    ) -> QueryResult<usize> {
        let _ = cmd.id;
        self.served.push(cmd.name);
        diesel_async::RunQueryDsl::execute(diesel::sql_query("SELECT 1"), db).await
    }
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut db = <SqliteConnection as diesel::Connection>::establish(":memory:")?;
    idem_diesel::ensure_schema(&mut db)?;
    let mut desk = Desk { served: Vec::new() };
    let _ = Desk::close;
    let intent = Intent::new(Tenant::shared("acme")?, IdempotencyKey::new("k")?);
    let line = |id, name: &str| Line {
        id,
        name: name.to_owned(),
    };
    for _ in 0..2 {
        let answer = desk.serve(
            &mut db,
            intent.clone(),
            line(1, "a"),
            line(2, "b"),
            "!".to_owned(),
        )?;
        assert_eq!(answer.get(), "2!");
    }
    assert!(desk.served.iter().all(|served| served == "ab"));
    Ok(())
}
}

mod spawn {
//! The future is `Send` when the body's is, generic or not, and can be spawned with borrowed arguments.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use diesel::{QueryResult, SqliteConnection, sql_query};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, RunQueryDsl};
use idem_diesel::{
    Async, IdempotencyKey, IdempotentConnection, Intent, RequestHash, Tenant, ensure_schema,
};

#[derive(RequestHash)]
struct PayOrder {
    order_id: i64,
    lines: Vec<String>,
}

async fn concrete(db: &mut Sqlite, intent: &Intent, cmd: &PayOrder) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(db).await?;
    Ok(cmd.order_id)
}

async fn generic<C>(
    db: &mut C,
    intent: &Intent,
    cmd: &PayOrder,
    lines: &[String],
) -> QueryResult<i64>
where
    C: IdempotentConnection<Flavor = Async> + AsyncConnection<Backend = diesel::sqlite::Sqlite>,
{
    sql_query("SELECT 1").execute(db).await?;
    Ok(cmd.order_id + lines.iter().map(|line| line.len() as i64).sum::<i64>())
}

async fn optional(
    db: &mut Sqlite,
    intent: Option<&Intent>,
    cmd: PayOrder,
    text: &str,
) -> QueryResult<String> {
    sql_query("SELECT 1").execute(db).await?;
    Ok(format!("{} {text}", cmd.order_id))
}

/// A connection type with a lifetime of its own, as the guards of pools have.
struct Guard<'p>(&'p mut Sqlite);

impl Deref for Guard<'_> {
    type Target = Sqlite;

    fn deref(&self) -> &Sqlite {
        self.0
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Sqlite {
        self.0
    }
}

idem_diesel::idempotent_connection!(Guard<'_> => Sqlite);

async fn guard(db: &mut Guard<'_>, intent: &Intent, cmd: &PayOrder) -> QueryResult<i64> {
    sql_query("SELECT 1").execute(&mut **db).await?;
    Ok(cmd.order_id)
}

struct Shop {
    tax: Arc<i64>,
}

impl Shop {
    async fn method(&self, db: &mut Sqlite, intent: &Intent, cmd: &PayOrder) -> QueryResult<i64> {
        sql_query("SELECT 1").execute(db).await?;
        Ok(cmd.order_id + *self.tax)
    }
}

type Sqlite = SyncConnectionWrapper<SqliteConnection>;

async fn database() -> Sqlite {
    let mut db = Sqlite::establish(":memory:").await.unwrap();
    ensure_schema(&mut db).await.unwrap();
    db
}

fn intent(key: &str) -> Intent {
    Intent::new(
        Tenant::of("acme", "alice").unwrap(),
        IdempotencyKey::new(key).unwrap(),
    )
}

#[tokio::main]
pub(crate) async fn main() {
    let shop = Shop { tax: Arc::new(1) };
    let task = tokio::spawn(async move {
        let db = &mut database().await;
        let cmd = PayOrder {
            order_id: 7,
            lines: vec!["a".to_owned(), "bc".to_owned()],
        };
        assert_eq!(concrete(db, &intent("1"), &cmd).await.unwrap(), 7);
        assert_eq!(
            generic(db, &intent("2"), &cmd, &cmd.lines).await.unwrap(),
            10
        );
        assert_eq!(shop.method(db, &intent("3"), &cmd).await.unwrap(), 8);
        assert_eq!(guard(&mut Guard(db), &intent("4"), &cmd).await.unwrap(), 7);
        assert_eq!(optional(db, None, cmd, "seven").await.unwrap(), "7 seven");
    });
    task.await.unwrap();
}
}

mod transition {
//! Transitions from one and from several states, with ids from parameters and from patterns.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{IdempotencyKey, Intent, RequestHash, StateMachine, Tenant, ensure_schema};

mod schema {
    diesel::table! {
        orders (id) {
            id -> BigInt,
            status -> Text,
        }
    }
}

mod status {
    use idem_diesel::StateMachine;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    #[state_machine(table = super::schema::orders, column = status)]
    pub enum OrderStatus {
        #[state(initial, to(Paid, Cancelled))]
        Pending,
        #[state(to(Cancelled))]
        Paid,
        #[state(terminal)]
        Cancelled,
    }
}

use status::OrderStatus;

#[derive(RequestHash)]
struct PayOrder {
    order_id: i64,
    note: String,
}

fn pay(db: &mut SqliteConnection, intent: &Intent, cmd: &PayOrder) -> QueryResult<String> {
    sql_query("SELECT 1").execute(db)?;
    Ok(cmd.note.clone())
}

fn cancel(
    db: &mut SqliteConnection,
    intent: Option<Intent>,
    (_order_id, note): (i64, String),
) -> QueryResult<String> {
    sql_query("SELECT 1").execute(db)?;
    Ok(note)
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

pub(crate) fn main() {
    let db = &mut database();
    diesel::sql_query("CREATE TABLE orders (id BIGINT PRIMARY KEY, status TEXT NOT NULL)")
        .execute(db)
        .unwrap();
    diesel::sql_query("INSERT INTO orders VALUES (7, 'pending')")
        .execute(db)
        .unwrap();
    let cmd = PayOrder {
        order_id: 7,
        note: "paid".to_owned(),
    };
    assert_eq!(pay(db, &intent("1"), &cmd).unwrap(), "paid");
    assert_eq!(
        cancel(db, Some(intent("2")), (7, "cancelled".to_owned())).unwrap(),
        "cancelled"
    );
    assert_eq!(OrderStatus::INITIAL, OrderStatus::Pending);
}
}

mod words {
//! Every word of the attribute.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{IdempotencyKey, Intent, Policy, Retention, Tenant, ensure_schema};

use std::time::Duration;

mod retention {
    use idem_diesel::Retention;

    pub const ORDERS: Retention = Retention::literal("30d");
}

const QUICK: Retention = Retention::literal("15m");
const PATIENT: Policy = Policy::new().wait(Some(Duration::from_secs(30)));

struct Terms;

impl Terms {
    const ORDERS: Retention = Retention::literal("2w");
}

fn constant(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    sql_query("SELECT 1").execute(db)
}

fn associated(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    sql_query("SELECT 1").execute(db)
}

fn short(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    sql_query("SELECT 1").execute(db)
}

fn short_constant(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<usize> {
    sql_query("SELECT 1").execute(db)
}

fn everything(
    db: &mut SqliteConnection,
    log: &mut Vec<String>,
    key: &Intent,
    amount: i64,
) -> QueryResult<usize> {
    log.push(format!("{} {amount}", key.key()));
    sql_query("SELECT 1").execute(db)
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

pub(crate) fn main() {
    let db = &mut database();
    constant(db, &intent("1")).unwrap();
    associated(db, &intent("2")).unwrap();
    short(db, &intent("3")).unwrap();
    short_constant(db, &intent("4")).unwrap();
    let mut log = Vec::new();
    everything(db, &mut log, &intent("5"), 7).unwrap();
    assert_eq!(log, ["5 7"]);
}
}

fn main() {
    async_attributes::main();
    async_functions::main();
    async_methods::main();
    attributes::main();
    deny_warnings::main();
    functions::main();
    generics::main();
    hygiene::main();
    intents::main();
    methods::main();
    no_implicit_prelude::main();
    patterns::main();
    renamed_crate::main();
    retries::main();
    spawn::main();
    transition::main();
    words::main();
}

//! The other `consumer_*` fixtures without the attribute: still ordinary Rust. Written by a test of `idem-macros`.
#![allow(unused)]

mod async_functions {
//! Free async functions: `return` and `?`, several awaits, inferred types.

use diesel::{QueryResult, SqliteConnection, sql_query};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, RunQueryDsl};
use idem_diesel::{Consumed, MessageId, ensure_schema};

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

async fn plain(db: &mut Sqlite, id: &MessageId, amount: i64) -> QueryResult<()> {
    sql_query(format!("SELECT {amount}")).execute(db).await?;
    Ok(())
}

async fn leaves_early(
    db: &mut Sqlite,
    id: &MessageId,
    amount: i64,
) -> Result<Consumed<String>, ShopError> {
    if amount == 0 {
        return Ok(Consumed::Processed("nothing to do".into()));
    }
    sql_query("SELECT 1").execute(db).await?;
    sql_query("SELECT 2").execute(db).await?;
    Ok(amount.to_string().into())
}

async fn only_question_marks(db: &mut Sqlite, id: &MessageId) -> Result<(), ShopError> {
    sql_query("SELECT 1").execute(db).await?;
    Err(std::fmt::Error).map_err(|error| ShopError(error.to_string()))?
}

async fn never_ends_by_itself(db: &mut Sqlite, id: &MessageId) -> QueryResult<Consumed<usize>> {
    loop {
        if let Ok(rows) = sql_query("SELECT 1").execute(db).await {
            return Ok(rows.into());
        }
    }
}

type Sqlite = SyncConnectionWrapper<SqliteConnection>;

async fn database() -> Sqlite {
    let mut db = Sqlite::establish(":memory:").await.unwrap();
    ensure_schema(&mut db).await.unwrap();
    db
}

fn id(id: &str) -> MessageId {
    MessageId::new(id).unwrap()
}

#[tokio::main]
pub(crate) async fn main() {
    let db = &mut database().await;
    plain(db, &id("1"), 7).await.unwrap();
    plain(db, &id("1"), 7).await.unwrap();
    let seven = leaves_early(db, &id("2"), 7).await.unwrap();
    assert_eq!(seven.processed().unwrap(), "7");
    let nothing = leaves_early(db, &id("3"), 0).await.unwrap();
    assert_eq!(nothing.processed().unwrap(), "nothing to do");
    assert!(only_question_marks(db, &id("4")).await.is_err());
    never_ends_by_itself(db, &id("5")).await.unwrap();
}
}

mod attributes {
//! Attributes beside ours, above and below it, on the function, its parameters and its body.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{Consumed, MessageId, ensure_schema};

/// Documented.
#[must_use]
#[inline]
pub fn documented(
    db: &mut SqliteConnection,
    id: &MessageId,
    amount: i64,
    #[cfg(any())] absent: NoSuchType,
    #[cfg(not(any()))] present: i64,
    #[cfg(any())]
    also_absent: NoSuchType,
    #[allow(unused_variables)] unused: i64,
) -> QueryResult<Consumed<i64>> {
    #![allow(clippy::unused_unit)]
    sql_query("SELECT 1").execute(db)?;
    Ok((amount + present).into())
}

#[cfg(any())]
fn absent(db: &mut NoSuchType, id: &MessageId) -> NoSuchType {
    db
}

#[tracing::instrument(skip_all)]
fn above(
    db: &mut SqliteConnection,
    id: &MessageId,
    amount: i64,
    trace_id: &str,
) -> QueryResult<Consumed<i64>> {
    sql_query("SELECT 1").execute(db)?;
    tracing::info!(trace_id);
    Ok(amount.into())
}

#[tracing::instrument(skip(db), fields(id = id.as_str(), amount), err)]
async fn below(
    db: &mut diesel_async::sync_connection_wrapper::SyncConnectionWrapper<SqliteConnection>,
    id: &MessageId,
    amount: i64,
) -> QueryResult<()> {
    diesel_async::RunQueryDsl::execute(sql_query("SELECT 1"), db).await?;
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

pub(crate) fn main() {
    let db = &mut database();
    let consumed = documented(db, &id("1"), 3, 4, 5).unwrap();
    assert_eq!(consumed.processed(), Some(7));
    assert_eq!(above(db, &id("2"), 7, "t").unwrap().processed(), Some(7));
    let _ = below;
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
use idem_diesel::{Consumed, Intent, MessageId, RequestHash, Tenant, ensure_schema};

#[derive(RequestHash)]
pub(crate) struct OrderPaid {
    order_id: i64,
    note: String,
}

/// Bills.
///
/// # Errors
///
/// When it cannot.
pub(crate) fn bill(
    db: &mut SqliteConnection,
    id: &MessageId,
    intent: &Intent,
    event: &OrderPaid,
) -> QueryResult<Consumed<String>> {
    if event.order_id == 0 {
        return Err(diesel::NotFound);
    }
    let rows = sql_query("SELECT 1").execute(db)?;
    Ok(format!("{} {rows} {id} {}", event.note, intent.key()).into())
}

fn take(
    db: &mut SqliteConnection,
    id: MessageId,
    OrderPaid { order_id, .. }: OrderPaid,
) -> QueryResult<Consumed<i64>> {
    let rows = sql_query("SELECT 1").execute(db)?;
    drop((rows, id));
    Ok(order_id.into())
}

fn marked(
    _db: &mut SqliteConnection,
    _id: &MessageId,
    _intent: Option<&Intent>,
    _amount: i64,
    _note: &str,
) -> QueryResult<()> {
    Ok(())
}

fn diverges(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    panic!("{id} {}", sql_query("SELECT 1").execute(db)?);
}

mod asynchronous {
    use diesel::{QueryResult, sql_query};
    use diesel_async::{AsyncPgConnection, RunQueryDsl};
    use idem_diesel::{Consumed, MessageId};

    pub(crate) async fn bill(
        db: &mut AsyncPgConnection,
        id: &MessageId,
        order_id: i64,
        note: &str,
    ) -> QueryResult<Consumed<String>> {
        if order_id == 0 {
            return Err(diesel::NotFound);
        }
        let rows = sql_query("SELECT 1").execute(db).await?;
        Ok(format!("{note} {rows} {id}").into())
    }

    pub(crate) async fn diverges(db: &mut AsyncPgConnection, id: &MessageId) -> QueryResult<()> {
        panic!("{id} {}", sql_query("SELECT 1").execute(db).await?);
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

pub(crate) fn main() {
    let db = &mut database();
    let order = || OrderPaid {
        order_id: 7,
        note: "order".to_owned(),
    };
    let intent = Intent::of_message(Tenant::shared("acme").unwrap(), "bill", &id("1"));
    let billed = bill(db, &id("1"), &intent, &order());
    assert!(billed.is_ok_and(|billed| billed.processed().is_some()));
    assert_eq!(take(db, id("2"), order()), Ok(Consumed::Processed(7)));
    assert_eq!(marked(db, &id("3"), None, 7, ""), Ok(()));
    let _ = (diverges, asynchronous::bill, asynchronous::diverges);
}
}

mod functions {
//! Free functions: every kind of return type, `return` and `?`.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{Consumed, MessageId, ensure_schema};

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
fn query_result(db: &mut SqliteConnection, id: &MessageId, amount: i64) -> QueryResult<()> {
    sql_query(format!("SELECT {amount}")).execute(db).map(drop)
}

/// An own error, an early `return` and a `?`.
fn own_error(
    db: &mut SqliteConnection,
    id: &MessageId,
    amount: i64,
) -> Result<Consumed<String>, ShopError> {
    if amount == 0 {
        return Ok("nothing to do".to_owned().into());
    }
    sql_query("SELECT 1").execute(db)?;
    let half = amount.checked_div(2).ok_or(ShopError::Arithmetic)?;
    Ok(half.to_string().into())
}

/// An alias, and no message at all.
fn alias(db: &mut SqliteConnection, id: &MessageId) -> ShopResult<Consumed> {
    sql_query("SELECT 1").execute(db)?;
    Ok(Consumed::Processed(()))
}

/// The error of the library.
fn library(
    db: &mut SqliteConnection,
    id: &MessageId,
    amount: &i64,
) -> Result<Consumed<i64>, idem_diesel::Error> {
    sql_query("SELECT 1").execute(db)?;
    Ok((*amount).into())
}

/// Ends in `return`.
fn ends_in_return(db: &mut SqliteConnection, id: &MessageId) -> ShopResult<()> {
    sql_query("SELECT 1").execute(db)?;
    return Err(ShopError::Arithmetic);
}

/// Gives a value that is coerced, and that nobody could store.
fn coerced(
    db: &mut SqliteConnection,
    id: &MessageId,
) -> ShopResult<Consumed<Box<dyn Fn() -> i64>>> {
    sql_query("SELECT 1").execute(db)?;
    Ok(Consumed::Processed(Box::new(|| 7)))
}

fn database() -> SqliteConnection {
    let mut db = SqliteConnection::establish(":memory:").unwrap();
    ensure_schema(&mut db).unwrap();
    db
}

fn id(id: &str) -> MessageId {
    MessageId::new(id).unwrap()
}

pub(crate) fn main() {
    let db = &mut database();
    query_result(db, &id("1"), 7).unwrap();
    query_result(db, &id("1"), 7).unwrap();
    let half = own_error(db, &id("2"), 7).unwrap();
    assert_eq!(half.processed().unwrap(), "3");
    let nothing = own_error(db, &id("3"), 0).unwrap();
    assert_eq!(nothing.processed().unwrap(), "nothing to do");
    assert_eq!(alias(db, &id("4")).unwrap(), Consumed::Processed(()));
    assert_eq!(library(db, &id("5"), &7).unwrap(), Consumed::Processed(7));
    assert!(matches!(
        ends_in_return(db, &id("6")),
        Err(ShopError::Arithmetic)
    ));
    let coerced = coerced(db, &id("7")).unwrap();
    assert_eq!(coerced.processed().unwrap()(), 7);
}
}

mod generics {
//! Generic connections and messages, `where`, `impl Trait`, lifetimes and constants.

use std::error::Error;
use std::fmt::Display;
use std::ops::{Deref, DerefMut};

use diesel::connection::LoadConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sqlite::Sqlite;
use idem_diesel::{
    Blocking, Consumed, IdempotentConnection, Intent, MessageId, RequestHash, ensure_schema,
};

fn connection<C>(db: &mut C, id: &MessageId, amount: i64) -> QueryResult<()>
where
    C: IdempotentConnection<Flavor = Blocking> + LoadConnection<Backend = Sqlite>,
{
    sql_query(format!("SELECT {amount}")).execute(db)?;
    Ok(())
}

fn implicit(
    db: &mut (impl IdempotentConnection<Flavor = Blocking> + LoadConnection<Backend = Sqlite>),
    id: &MessageId,
    amount: impl RequestHash + Display,
) -> QueryResult<()> {
    sql_query(format!("SELECT {amount}")).execute(db)?;
    Ok(())
}

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

fn guard(db: &mut Guard<'_>, id: &MessageId) -> Result<(), Box<dyn Error + Send + Sync>> {
    sql_query("SELECT 1").execute(&mut **db)?;
    Ok(())
}

struct Billing<T> {
    tax: T,
}

impl<T: Display> Billing<T> {
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

pub(crate) fn main() {
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
}

mod hygiene {
//! What the expansion introduces does not meet what the body names, and functions may come out of `macro_rules!`.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{Consumed, MessageId, ensure_schema};

fn same_names(
    db: &mut SqliteConnection,
    id: &MessageId,
    claim: i64,
    consumption: i64,
    result: i64,
    error: i64,
    bound: i64,
    moved: i64,
    message: i64,
    intent: i64,
) -> QueryResult<Consumed<i64>> {
    sql_query("SELECT 1").execute(db)?;
    Ok((claim + consumption + result + error + bound + moved + message + intent).into())
}

const SUBSCRIPTION: i64 = 7;

fn items(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<Consumed<i64>> {
    use helper::seven;
    const INSIDE: i64 = 1;
    mod helper {
        pub fn seven() -> i64 {
            7
        }
    }
    sql_query("SELECT 1").execute(db)?;
    Ok((SUBSCRIPTION + INSIDE + seven()).into())
}

fn r#move(
    r#in: &mut SqliteConnection,
    r#ref: &MessageId,
    r#type: &str,
    r#fn: i64,
) -> QueryResult<Consumed<i64>> {
    sql_query(format!("SELECT '{}{}'", r#type, r#ref)).execute(r#in)?;
    Ok(r#fn.into())
}

macro_rules! handler {
    ($name:ident, $subscriber:literal, $retention:expr, $db:ident: $connection:ty, $amount:ident: $type:ty, $body:block) => {
        fn $name($db: &mut $connection, id: &MessageId, $amount: $type) -> QueryResult<Consumed<$type>> $body
    };
}

handler!(generated, "generated", "7d", db: SqliteConnection, amount: i64, {
    sql_query("SELECT 1").execute(db)?;
    Ok(amount.into())
});

fn database() -> SqliteConnection {
    let mut db = SqliteConnection::establish(":memory:").unwrap();
    ensure_schema(&mut db).unwrap();
    db
}

fn id(id: &str) -> MessageId {
    MessageId::new(id).unwrap()
}

pub(crate) fn main() {
    let db = &mut database();
    let sum = same_names(db, &id("1"), 1, 2, 3, 4, 5, 6, 7, 8).unwrap();
    assert_eq!(sum.processed(), Some(36));
    assert_eq!(items(db, &id("2")).unwrap().processed(), Some(15));
    assert_eq!(r#move(db, &id("3"), "a", 7).unwrap().processed(), Some(7));
    assert_eq!(generated(db, &id("4"), 7).unwrap().processed(), Some(7));
}
}

mod intents {
//! Every form of a message id and of an intent.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{Consumed, Intent, MessageId, Tenant, ensure_schema};

fn borrowed(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<Consumed<String>> {
    sql_query("SELECT 1").execute(db)?;
    Ok(id.to_string().into())
}

fn owned(db: &mut SqliteConnection, id: MessageId) -> QueryResult<Consumed<MessageId>> {
    sql_query("SELECT 1").execute(db)?;
    Ok(id.into())
}

fn changed(mut id: idem_diesel::MessageId, db: &mut SqliteConnection) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    id = MessageId::new(format!("{id} again")).unwrap();
    assert_eq!(id.as_str(), "3 again");
    Ok(())
}

fn intended(db: &mut SqliteConnection, id: &MessageId, intent: &Intent) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    assert!(intent.is_of_message("intended", id));
    Ok(())
}

fn owned_intent(db: &mut SqliteConnection, intent: Intent, id: MessageId) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    let moved = move || intent.is_of_message("owned_intent", &id);
    assert!(moved());
    Ok(())
}

fn optional(
    db: &mut SqliteConnection,
    id: &MessageId,
    intent: Option<&Intent>,
) -> QueryResult<Consumed<bool>> {
    sql_query("SELECT 1").execute(db)?;
    Ok(intent.is_some().into())
}

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

pub(crate) fn main() {
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
}

mod methods {
//! Methods of inherent and trait impls, with every receiver.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{Consumed, MessageId, ensure_schema};

struct Billing {
    bills: i64,
}

impl Billing {
    const STEP: i64 = 1;

    fn shared(
        &self,
        db: &mut SqliteConnection,
        id: &MessageId,
        amount: i64,
    ) -> QueryResult<Consumed<i64>> {
        sql_query("SELECT 1").execute(db)?;
        Ok((self.bills + amount).into())
    }

    fn exclusive(&mut self, db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
        sql_query("SELECT 1").execute(db)?;
        self.bills += Self::STEP;
        Ok(())
    }

    fn boxed(self: Box<Self>, db: &mut SqliteConnection, id: MessageId) -> QueryResult<()> {
        sql_query("SELECT 1").execute(db)?;
        drop((self, id));
        Ok(())
    }

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

    fn consume(&mut self, db: &mut SqliteConnection, id: &MessageId, amount: i64) -> Self::Answer {
        sql_query("SELECT 1").execute(db)?;
        self.bills += amount;
        Ok(self.bills.into())
    }
}

trait HasDefault {
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

pub(crate) fn main() {
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
}

mod no_implicit_prelude {
//! Nothing of the standard prelude is in scope where the attribute expands.

#![no_implicit_prelude]

mod handlers {
    use ::diesel::RunQueryDsl as _;
    use ::std::convert::Into as _;
    use ::std::result::Result::Ok;

    #[derive(::idem_diesel::RequestHash)]
    pub struct OrderPaid {
        pub order_id: i64,
    }

    pub fn bill(
        db: &mut ::diesel::SqliteConnection,
        id: &::idem_diesel::MessageId,
        OrderPaid { order_id }: OrderPaid,
    ) -> ::diesel::QueryResult<::idem_diesel::Consumed<i64>> {
        ::diesel::sql_query("SELECT 1").execute(db)?;
        Ok(order_id.into())
    }

    pub fn note(
        db: &mut ::diesel::SqliteConnection,
        id: ::idem_diesel::MessageId,
        intent: ::std::option::Option<::idem_diesel::Intent>,
        text: &str,
        amount: i64,
    ) -> ::diesel::QueryResult<()> {
        ::diesel::sql_query("SELECT 1").execute(db)?;
        Ok(())
    }
}

mod asynchronous {
    use ::diesel_async::RunQueryDsl as _;
    use ::std::result::Result::Ok;

    pub async fn bill(
        db: &mut ::diesel_async::AsyncPgConnection,
        id: &::idem_diesel::MessageId,
        text: &str,
        amount: i64,
    ) -> ::diesel::QueryResult<()> {
        ::diesel::sql_query("SELECT 1").execute(db).await?;
        Ok(())
    }
}

mod application {
    use ::diesel::prelude::*;
    use ::idem_diesel::{Consumed, MessageId, ensure_schema};
    use ::std::assert_eq;
    use ::std::prelude::v1::*;

    fn database() -> SqliteConnection {
        let mut db = SqliteConnection::establish(":memory:").unwrap();
        ensure_schema(&mut db).unwrap();
        db
    }

    pub fn main() {
        let db = &mut database();
        let _ = super::asynchronous::bill;
        let id = MessageId::new("1").unwrap();
        let order = super::handlers::OrderPaid { order_id: 7 };
        let billed = super::handlers::bill(db, &id, order).unwrap();
        assert_eq!(billed, Consumed::Processed(7));
        super::handlers::note(db, id, None, "seven", 7).unwrap();
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
use idem_diesel::{Consumed, MessageId, RequestHash, ensure_schema};

#[derive(RequestHash)]
struct OrderPaid {
    order_id: i64,
    note: String,
}

fn by_value(
    db: &mut SqliteConnection,
    id: &MessageId,
    OrderPaid { order_id, mut note }: OrderPaid,
) -> QueryResult<Consumed<String>> {
    sql_query("SELECT 1").execute(db)?;
    note.push_str(&order_id.to_string());
    Ok(note.into())
}

fn several(
    db: &mut SqliteConnection,
    id: &MessageId,
    (amount, _): (i64, i64),
    order @ &OrderPaid { order_id, .. }: &OrderPaid,
    [x, y]: [i64; 2],
    mut count: i64,
) -> QueryResult<Consumed<i64>> {
    sql_query("SELECT 1").execute(db)?;
    count += 1;
    Ok((amount + order_id + order.order_id + x + y + count).into())
}

fn ignored(db: &mut SqliteConnection, _: &MessageId, _: i64) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    Ok(())
}

fn marked(_db: &mut SqliteConnection, mut _id: MessageId, _amount: i64) -> QueryResult<()> {
    Ok(())
}

fn reborrowed(mut db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    fn twice(db: &mut &mut SqliteConnection) -> QueryResult<usize> {
        sql_query("SELECT 1").execute(*db)?;
        sql_query("SELECT 1").execute(*db)
    }
    twice(&mut db)?;
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

pub(crate) fn main() {
    let db = &mut database();
    let order = || OrderPaid {
        order_id: 7,
        note: "order ".to_owned(),
    };
    let note = by_value(db, &id("1"), order()).unwrap();
    assert_eq!(note.processed().unwrap(), "order 7");
    let sum = several(db, &id("2"), (1, 2), &order(), [3, 4], 5).unwrap();
    assert_eq!(sum.processed(), Some(28));
    ignored(db, &id("3"), 3).unwrap();
    marked(db, id("4"), 3).unwrap();
    reborrowed(db, &id("5")).unwrap();
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
use library::inner::{MessageId, ensure_schema};

fn dependency(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    Ok(())
}

mod elsewhere {
    use diesel::prelude::*;

    pub fn re_export(
        db: &mut SqliteConnection,
        id: &super::MessageId,
        a: i64,
        b: i64,
    ) -> QueryResult<()> {
        diesel::sql_query(format!("SELECT {a} + {b}")).execute(db)?;
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

pub(crate) fn main() {
    let db = &mut database();
    dependency(db, &id("1")).unwrap();
    elsewhere::re_export(db, &id("2"), 3, 4).unwrap();
}
}

mod spawn {
//! The future is `Send` when the body's is, generic or not, and can be spawned with borrowed arguments.

use std::sync::Arc;

use diesel::{QueryResult, SqliteConnection, sql_query};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, RunQueryDsl};
use idem_diesel::{
    Async, Consumed, IdempotentConnection, Intent, MessageId, RequestHash, ensure_schema,
};

#[derive(RequestHash)]
struct OrderPaid {
    order_id: i64,
    lines: Vec<String>,
}

async fn concrete(
    db: &mut Sqlite,
    id: &MessageId,
    event: &OrderPaid,
) -> QueryResult<Consumed<i64>> {
    sql_query("SELECT 1").execute(db).await?;
    Ok(event.order_id.into())
}

async fn generic<C>(
    db: &mut C,
    id: MessageId,
    event: &OrderPaid,
    lines: &[String],
) -> QueryResult<Consumed<usize>>
where
    C: IdempotentConnection<Flavor = Async> + AsyncConnection<Backend = diesel::sqlite::Sqlite>,
{
    sql_query("SELECT 1").execute(db).await?;
    Ok((event.lines.len() + lines.len()).into())
}

async fn optional(
    db: &mut Sqlite,
    id: &MessageId,
    intent: Option<&Intent>,
    event: OrderPaid,
    text: &str,
) -> QueryResult<Consumed<String>> {
    sql_query("SELECT 1").execute(db).await?;
    Ok(format!("{} {text}", event.order_id).into())
}

struct Billing {
    tax: Arc<i64>,
}

impl Billing {
    async fn method(
        &self,
        db: &mut Sqlite,
        id: &MessageId,
        event: &OrderPaid,
    ) -> QueryResult<Consumed<i64>> {
        sql_query("SELECT 1").execute(db).await?;
        Ok((event.order_id + *self.tax).into())
    }
}

type Sqlite = SyncConnectionWrapper<SqliteConnection>;

async fn database() -> Sqlite {
    let mut db = Sqlite::establish(":memory:").await.unwrap();
    ensure_schema(&mut db).await.unwrap();
    db
}

fn id(id: &str) -> MessageId {
    MessageId::new(id).unwrap()
}

#[tokio::main]
pub(crate) async fn main() {
    let billing = Billing { tax: Arc::new(1) };
    let task = tokio::spawn(async move {
        let db = &mut database().await;
        let event = OrderPaid {
            order_id: 7,
            lines: vec!["a".to_owned(), "bc".to_owned()],
        };
        let consumed = concrete(db, &id("1"), &event).await.unwrap();
        assert_eq!(consumed.processed(), Some(7));
        let consumed = generic(db, id("2"), &event, &event.lines).await.unwrap();
        assert_eq!(consumed.processed(), Some(4));
        let consumed = billing.method(db, &id("3"), &event).await.unwrap();
        assert_eq!(consumed.processed(), Some(8));
        let consumed = optional(db, &id("4"), None, event, "seven").await.unwrap();
        assert_eq!(consumed.processed().unwrap(), "7 seven");
    });
    task.await.unwrap();
}
}

mod transition {
//! Transitions from one and from several states, with ids from parameters and from patterns.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::{Consumed, Intent, MessageId, RequestHash, StateMachine, ensure_schema};

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
struct PaymentReceived {
    order_id: i64,
    note: String,
}

fn pay(
    db: &mut SqliteConnection,
    id: &MessageId,
    event: &PaymentReceived,
) -> QueryResult<Consumed<String>> {
    sql_query("SELECT 1").execute(db)?;
    Ok(event.note.clone().into())
}

fn cancel(
    db: &mut SqliteConnection,
    id: MessageId,
    intent: Option<Intent>,
    (_order_id, note): (i64, String),
) -> QueryResult<Consumed<String>> {
    sql_query("SELECT 1").execute(db)?;
    Ok(note.into())
}

fn database() -> SqliteConnection {
    let mut db = SqliteConnection::establish(":memory:").unwrap();
    ensure_schema(&mut db).unwrap();
    db
}

fn id(id: &str) -> MessageId {
    MessageId::new(id).unwrap()
}

pub(crate) fn main() {
    let db = &mut database();
    diesel::sql_query("CREATE TABLE orders (id BIGINT PRIMARY KEY, status TEXT NOT NULL)")
        .execute(db)
        .unwrap();
    diesel::sql_query("INSERT INTO orders VALUES (7, 'pending')")
        .execute(db)
        .unwrap();
    let event = PaymentReceived {
        order_id: 7,
        note: "paid".to_owned(),
    };
    let paid = pay(db, &id("1"), &event).unwrap();
    assert_eq!(paid.processed().unwrap(), "paid");
    let cancelled = cancel(db, id("2"), None, (7, "cancelled".to_owned())).unwrap();
    assert_eq!(cancelled.processed().unwrap(), "cancelled");
    assert_eq!(OrderStatus::INITIAL, OrderStatus::Pending);
}
}

mod words {
//! Every word of the attribute.

use std::time::Duration;

use diesel::prelude::*;
use diesel::sql_query;
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

fn constants(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    Ok(())
}

fn literals(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    Ok(())
}

fn constant(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    Ok(())
}

fn associated(
    db: &mut SqliteConnection,
    id: &MessageId,
    log: &mut Vec<String>,
) -> QueryResult<()> {
    sql_query("SELECT 1").execute(db)?;
    log.push(id.to_string());
    Ok(())
}

type Delivery = MessageId;
type Key = Intent;

fn everything(
    db: &mut SqliteConnection,
    log: &mut Vec<String>,
    delivery: &Delivery,
    cause: &MessageId,
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

pub(crate) fn main() {
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
}

fn main() {
    async_functions::main();
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
    spawn::main();
    transition::main();
    words::main();
}

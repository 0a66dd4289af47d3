//! A test kit for handlers: calls one in every way in which it will be called, and says in words which promise broke.
//!
//! ```
//! use diesel::prelude::*;
//! use idem_diesel::testing::Check;
//! use idem_diesel::{Error, Intent, Outcome, RequestHash, idempotent};
//!
//! diesel::table! { accounts { id -> BigInt, balance -> BigInt, } }
//!
//! #[derive(RequestHash)]
//! struct Withdraw { account: i64, amount: i64 }
//!
//! #[idempotent(scope = "accounts.withdraw", ttl = "48h")]
//! fn withdraw(db: &mut SqliteConnection, intent: &Intent, cmd: &Withdraw) -> Result<Outcome<i64>, Error> {
//!     let balance = diesel::update(accounts::table.find(cmd.account))
//!         .set(accounts::balance.eq(accounts::balance - cmd.amount))
//!         .returning(accounts::balance)
//!         .get_result::<i64>(db)?;
//!     Ok(balance.into())
//! }
//!
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("test.sqlite");
//! # let connect = || SqliteConnection::establish(&file.to_string_lossy()).expect("the file can be made");
//! # let mut db = connect();
//! # diesel::sql_query("PRAGMA journal_mode = WAL").execute(&mut db)?;
//! # idem_diesel::ensure_schema(&mut db)?;
//! # diesel::sql_query("CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL)").execute(&mut db)?;
//! # diesel::insert_into(accounts::table).values((accounts::id.eq(1), accounts::balance.eq(1000))).execute(&mut db)?;
//! Check::new(connect, ["accounts"])
//!     .request(|_db| Withdraw { account: 1, amount: 30 })
//!     .other_request(|first| Withdraw { amount: 99, ..*first })
//!     .assert_idempotent(withdraw);
//!
//! // The same handler without the attribute:
//! fn forgetful(db: &mut SqliteConnection, _: &Intent, cmd: &Withdraw) -> Result<Outcome<i64>, Error> {
//!     let account = diesel::update(accounts::table.find(cmd.account));
//!     account.set(accounts::balance.eq(accounts::balance - cmd.amount)).execute(db)?;
//!     Ok(0.into())
//! }
//!
//! let broken = Check::new(connect, ["accounts"])
//!     .request(|_db| Withdraw { account: 1, amount: 30 })
//!     .run(forgetful)
//!     .unwrap_err();
//! assert_eq!(
//!     broken.to_string(),
//!     "the second call changed `accounts.balance`: by -60 where one call changes it by -30\n\
//!      hint: nothing is recorded under the key: is the handler marked `#[idempotent]`, or does it call `begin`?"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is compared
//!
//! All rows of the named tables, every column as text. Each [`Scenario`] has a key and a request of its own, and works on what the ones before it
//! left. So two runs are compared by what they *changed*: rows that came and went, and in rows that stayed (by primary key) the difference of
//! each number, or the old and the new value of everything else. Two looks at one run are compared to the letter.
//!
//! Primary keys differ between runs and do not count there; other columns that do, such as times, foreign keys of entities that
//! [`request`](Check::request) makes, and running balances in new rows, are named with [`ignoring`](Check::ignoring).
//!
//! # What it needs
//!
//! A database that no other test writes to at the same time, with the library's tables, and connections that see what the
//! others commit: a file rather than `:memory:` on SQLite. A Tokio test on SQLite runs on a multi-thread runtime.

mod caller;
mod difference;
mod image;
mod report;
mod scenarios;
mod stage;

use std::error::Error as StdError;
use std::fmt::Debug;

use idem_core::{Answer, Intent, Tenant};

pub use report::{Broken, Report, Scenario};

use crate::connection::{Async, Blocking, IdempotentConnection, run_blocking};
use caller::{AtOnce, Connect, MakeRequest, Other, Refusal, Waiting};

/// How many calls race, if nothing else is said.
const RACERS: usize = 8;

/// What a handler is checked with; see the [module](self) for an example and for what is compared.
///
/// `C` is the connection, `R` the request.
#[must_use = "nothing is called before `assert_idempotent` or `run`"]
pub struct Check<'a, C, R = ()> {
    connect: Box<dyn Connect<C> + 'a>,
    request: Box<dyn MakeRequest<C, R> + 'a>,
    other_request: Option<Other<'a, R>>,
    tables: Vec<String>,
    volatile: Vec<String>,
    tenant: Option<Tenant>,
    racers: usize,
    has_effect: bool,
}

impl<'a, C: IdempotentConnection> Check<'a, C> {
    /// A check of a sync handler on connections that `connect` makes, all to one database.
    ///
    /// The tables are named as in SQL; on PostgreSQL also with a schema.
    pub fn new<T: Into<String>>(
        connect: impl Fn() -> C + 'a,
        tables: impl IntoIterator<Item = T>,
    ) -> Self
    where
        C: IdempotentConnection<Flavor = Blocking>,
    {
        Self::on(Box::new(AtOnce(connect)), tables)
    }

    /// A check of an async handler on connections that `connect` makes, all to one database.
    ///
    /// ```
    /// use diesel::{Connection, SqliteConnection};
    /// use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
    /// use diesel_async::{AsyncConnection, RunQueryDsl, SimpleAsyncConnection};
    /// use idem_diesel::testing::{Check, Scenario};
    /// use idem_diesel::{Error, Intent, Outcome, idempotent};
    ///
    /// type Db = SyncConnectionWrapper<SqliteConnection>;
    ///
    /// #[idempotent(scope = "notes.add", ttl = "48h")]
    /// async fn add(db: &mut Db, intent: &Intent, text: &str) -> Result<Outcome<usize>, Error> {
    ///     let query = diesel::sql_query("INSERT INTO notes (text) VALUES (?)");
    ///     Ok(query.bind::<diesel::sql_types::Text, _>(text).execute(db).await?.into())
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("test.sqlite").to_string_lossy().into_owned();
    /// # let connect = async || Db::establish(&file).await.expect("the file can be made");
    /// # let mut db = connect().await;
    /// # db.batch_execute("PRAGMA journal_mode = WAL; CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)").await?;
    /// # idem_diesel::ensure_schema(&mut db).await?;
    /// let report = Check::new_async(connect, ["notes"])
    ///     .request(|_db| "hello".to_owned())
    ///     .other_request(|first| format!("{first}!"))
    ///     .run_async(async |db, intent, text| add(db, intent, text).await)
    ///     .await?;
    /// assert!(report.has(Scenario::DroppedCalls));
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    pub fn new_async<T: Into<String>>(
        connect: impl AsyncFn() -> C + 'a,
        tables: impl IntoIterator<Item = T>,
    ) -> Self
    where
        C: IdempotentConnection<Flavor = Async>,
    {
        Self::on(Box::new(Waiting(connect)), tables)
    }

    fn on<T: Into<String>>(
        connect: Box<dyn Connect<C> + 'a>,
        tables: impl IntoIterator<Item = T>,
    ) -> Self {
        Self {
            connect,
            request: Box::new(AtOnce(|_: &mut C| ())),
            other_request: None,
            tables: tables.into_iter().map(Into::into).collect(),
            volatile: Vec::new(),
            tenant: None,
            racers: RACERS,
            has_effect: true,
        }
    }

    /// The request of a scenario, made before each: a handler that ships an order needs a new one every time.
    ///
    /// What is done on `db` here is not part of what the handler changes.
    ///
    /// ```
    /// # use diesel::prelude::*;
    /// # use idem_diesel::testing::*;
    /// # use idem_diesel::*;
    /// # let connect = || SqliteConnection::establish("file:request?mode=memory&cache=shared").expect("in memory");
    /// # let mut db = connect();
    /// # ensure_schema(&mut db)?;
    /// # diesel::sql_query("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT NOT NULL, shipped_at TEXT)").execute(&mut db)?;
    /// #[idempotent(scope = "orders.ship", ttl = "48h")]
    /// fn ship(db: &mut SqliteConnection, intent: &Intent, order_id: &i64) -> Result<Outcome<usize>, Error> {
    ///     let query = diesel::sql_query("UPDATE orders SET status = 'shipped', shipped_at = random() WHERE id = ?");
    ///     Ok(query.bind::<diesel::sql_types::BigInt, _>(*order_id).execute(db)?.into())
    /// }
    ///
    /// fn new_order(db: &mut SqliteConnection) -> i64 {
    ///     let insert = diesel::sql_query("INSERT INTO orders (status) VALUES ('paid')");
    ///     insert.execute(db).expect("an order can be made");
    ///     let id = diesel::dsl::sql::<diesel::sql_types::BigInt>("last_insert_rowid()");
    ///     diesel::select(id).get_result(db).expect("it was made just now")
    /// }
    ///
    /// let report = Check::new(connect, ["orders"])
    ///     .request(new_order)
    ///     .other_request(|order_id| order_id + 1)
    ///     .ignoring(["shipped_at"])
    ///     .run(ship)?;
    /// assert!(report.has(Scenario::OtherRequest));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn request<R>(self, request: impl Fn(&mut C) -> R + 'a) -> Check<'a, C, R> {
        self.with_request(Box::new(AtOnce(request)))
    }

    /// [`request`](Self::request), where making one waits for the database.
    pub fn request_async<R>(self, request: impl AsyncFn(&mut C) -> R + 'a) -> Check<'a, C, R>
    where
        C: IdempotentConnection<Flavor = Async>,
    {
        self.with_request(Box::new(Waiting(request)))
    }

    fn with_request<R>(self, request: Box<dyn MakeRequest<C, R> + 'a>) -> Check<'a, C, R> {
        Check {
            connect: self.connect,
            request,
            other_request: None,
            tables: self.tables,
            volatile: self.volatile,
            tenant: self.tenant,
            racers: self.racers,
            has_effect: self.has_effect,
        }
    }
}

impl<'a, C: IdempotentConnection, R> Check<'a, C, R> {
    /// Another request than the one it is given, which must be refused under the same key. Without it that is not checked.
    ///
    /// See [`request`](Self::request) for an example.
    pub fn other_request(mut self, other: impl Fn(&R) -> R + 'a) -> Self {
        self.other_request = Some(Box::new(other));
        self
    }

    /// Columns that differ between two runs that are otherwise the same: `"created_at"` in all tables, `"payments.order_id"` in one.
    ///
    /// A second call of one key must leave even these as they are.
    ///
    /// ```
    /// # use diesel::prelude::*;
    /// # use idem_diesel::testing::*;
    /// # use idem_diesel::*;
    /// # let connect = || SqliteConnection::establish("file:ignoring?mode=memory&cache=shared").expect("in memory");
    /// # let mut db = connect();
    /// # ensure_schema(&mut db)?;
    /// # diesel::sql_query("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT NOT NULL, shipped_at TEXT)").execute(&mut db)?;
    /// # diesel::sql_query("INSERT INTO orders (status) VALUES ('paid')").execute(&mut db)?;
    /// fn touch(db: &mut SqliteConnection, _: &Intent, (): &()) -> QueryResult<usize> {
    ///     diesel::sql_query("UPDATE orders SET shipped_at = random()").execute(db)
    /// }
    ///
    /// // A forgotten attribute is found all the same.
    /// let broken = Check::new(connect, ["orders"]).ignoring(["orders.shipped_at"]).run(touch).unwrap_err();
    /// assert!(broken.to_string().starts_with("the second call changed `orders.shipped_at`"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ignoring<T: Into<String>>(mut self, columns: impl IntoIterator<Item = T>) -> Self {
        self.volatile.extend(columns.into_iter().map(Into::into));
        self
    }

    /// Whose keys are used, where the handler or row-level security looks at the tenant.
    ///
    /// ```
    /// # use diesel::prelude::*;
    /// # use idem_diesel::testing::*;
    /// # use idem_diesel::*;
    /// # let connect = || SqliteConnection::establish("file:tenant?mode=memory&cache=shared").expect("in memory");
    /// # let mut db = connect();
    /// # ensure_schema(&mut db)?;
    /// # diesel::sql_query("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT NOT NULL, shipped_at TEXT)").execute(&mut db)?;
    /// #[idempotent(scope = "orders.open", ttl = "48h")]
    /// fn open(db: &mut SqliteConnection, intent: &Intent, _cmd: &()) -> QueryResult<usize> {
    ///     assert_eq!(intent.tenant().as_str(), "acme");
    ///     diesel::sql_query("INSERT INTO orders (status) VALUES ('pending')").execute(db)
    /// }
    ///
    /// let check = Check::new(connect, ["orders"]).tenant(Tenant::shared("acme")?).racers(2);
    /// assert!(check.run(open)?.has(Scenario::Race));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tenant(mut self, tenant: Tenant) -> Self {
        self.tenant = Some(tenant);
        self
    }

    /// How many calls race, each on a connection of its own: 8 if nothing is said, at least 2. See [`tenant`](Self::tenant) for an example.
    pub fn racers(mut self, racers: usize) -> Self {
        self.racers = racers.max(2);
        self
    }

    /// One call is to leave the tables as they are: its answer is a final failure, such as a declined card.
    ///
    /// ```
    /// # use diesel::prelude::*;
    /// # use idem_diesel::testing::*;
    /// # use idem_diesel::*;
    /// # let connect = || SqliteConnection::establish("file:without_effect?mode=memory&cache=shared").expect("in memory");
    /// # let mut db = connect();
    /// # ensure_schema(&mut db)?;
    /// # diesel::sql_query("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT NOT NULL, shipped_at TEXT)").execute(&mut db)?;
    /// #[idempotent(scope = "orders.refuse", ttl = "48h")]
    /// fn refuse(db: &mut SqliteConnection, intent: &Intent, _cmd: &()) -> QueryResult<Verdict<i64, String>> {
    ///     diesel::sql_query("INSERT INTO orders (status) VALUES ('pending')").execute(db)?;
    ///     Ok(Verdict::Failed("sold out".to_owned()))
    /// }
    ///
    /// let report = Check::new(connect, ["orders"]).without_effect().run(refuse)?;
    /// assert!(report.to_string().starts_with("one call       changed nothing"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn without_effect(mut self) -> Self {
        self.has_effect = false;
        self
    }

    /// Calls a sync handler in every [`Scenario`].
    ///
    /// # Panics
    ///
    /// With the text of [`Broken`], at the first promise that does not hold.
    #[track_caller]
    pub fn assert_idempotent<A, E>(
        &self,
        handler: impl Fn(&mut C, &Intent, &R) -> Result<A, E> + Sync,
    ) -> Report
    where
        C: IdempotentConnection<Flavor = Blocking> + Send,
        R: Sync,
        A: Answer + PartialEq + Debug + Send,
        E: Into<Box<dyn StdError>>,
    {
        match self.run(handler) {
            Ok(report) => report,
            Err(broken) => panic!("not idempotent: {broken}"),
        }
    }

    /// Calls a sync handler in every [`Scenario`], up to the first in which a promise does not hold.
    ///
    /// # Errors
    ///
    /// That promise; or, before the first call, a table or column that is not there.
    pub fn run<A, E>(
        &self,
        handler: impl Fn(&mut C, &Intent, &R) -> Result<A, E> + Sync,
    ) -> Result<Report, Broken>
    where
        C: IdempotentConnection<Flavor = Blocking> + Send,
        R: Sync,
        A: Answer + PartialEq + Debug + Send,
        E: Into<Box<dyn StdError>>,
    {
        let call = |db: &mut C, intent: &Intent, request: &R| {
            handler(db, intent, request).map_err(Refusal::of)
        };
        run_blocking(scenarios::run(self, caller::Blocking(call)))
    }

    /// Calls an async handler in every [`Scenario`]; also drops its future at every await.
    ///
    /// # Panics
    ///
    /// With the text of [`Broken`], at the first promise that does not hold.
    ///
    /// # Cancellation
    ///
    /// As for [`run_async`](Self::run_async).
    pub async fn assert_idempotent_async<A, E>(
        &self,
        handler: impl AsyncFn(&mut C, &Intent, &R) -> Result<A, E>,
    ) -> Report
    where
        C: IdempotentConnection<Flavor = Async>,
        A: Answer + PartialEq + Debug,
        E: Into<Box<dyn StdError>>,
    {
        match self.run_async(handler).await {
            Ok(report) => report,
            Err(broken) => panic!("not idempotent: {broken}"),
        }
    }

    /// Calls an async handler in every [`Scenario`], up to the first in which a promise does not hold.
    ///
    /// # Errors
    ///
    /// That promise; or, before the first call, a table or column that is not there.
    ///
    /// # Cancellation
    ///
    /// Dropping the future drops the handler's calls; what earlier scenarios committed stays.
    pub async fn run_async<A, E>(
        &self,
        handler: impl AsyncFn(&mut C, &Intent, &R) -> Result<A, E>,
    ) -> Result<Report, Broken>
    where
        C: IdempotentConnection<Flavor = Async>,
        A: Answer + PartialEq + Debug,
        E: Into<Box<dyn StdError>>,
    {
        let call = async |db: &mut C, intent: &Intent, request: &R| {
            handler(db, intent, request).await.map_err(Refusal::of)
        };
        scenarios::run(self, caller::Asynchronous(call)).await
    }
}

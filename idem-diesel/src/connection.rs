//! The connections a handler can be given, and how a call is run on each.

use std::future::Future;
use std::task::{Context, Poll, Waker};

use crate::driver::Driver;

/// How functions of this library run on a connection: at once, or as a future.
///
/// `Run` is what such a function returns: the value itself on a [`Blocking`] connection, a future on an [`Async`] one.
/// So the same name serves both: `begin(…)?` and `begin(…).await?`.
///
/// ```
/// use idem_diesel::{Blocking, Flavor};
///
/// // On a blocking connection a function returns what it gives.
/// let value: <Blocking as Flavor>::Run<'static, i32> = 7;
/// assert_eq!(value, 7);
/// ```
pub trait Flavor: 'static {
    /// What a function returns that gives `T`.
    type Run<'a, T: Send + 'a>: Send + 'a;

    /// Runs the library's own code.
    #[doc(hidden)]
    fn run<'a, T: Send + 'a>(future: impl Future<Output = T> + Send + 'a) -> Self::Run<'a, T>;
}

/// Sync Diesel: a function returns when it is done.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::{Blocking, IdempotentConnection};
///
/// fn ready<C: IdempotentConnection<Flavor = Blocking>>(db: &mut C) -> bool {
///     idem_diesel::ensure_schema(db).is_ok()
/// }
///
/// assert!(ready(&mut SqliteConnection::establish(":memory:")?));
/// # Ok::<(), diesel::ConnectionError>(())
/// ```
#[derive(Debug)]
pub enum Blocking {}

/// diesel-async: a function returns a future.
///
/// ```
/// use idem_diesel::{Async, Flavor};
///
/// let future: <Async as Flavor>::Run<'static, i32> = Box::pin(async { 7 });
/// assert_eq!(futures_util::FutureExt::now_or_never(future), Some(7));
/// ```
#[derive(Debug)]
pub enum Async {}

impl Flavor for Blocking {
    type Run<'a, T: Send + 'a> = T;

    fn run<'a, T: Send + 'a>(future: impl Future<Output = T> + Send + 'a) -> T {
        run_blocking(future)
    }
}

impl Flavor for Async {
    type Run<'a, T: Send + 'a> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

    fn run<'a, T: Send + 'a>(future: impl Future<Output = T> + Send + 'a) -> Self::Run<'a, T> {
        Box::pin(future)
    }
}

/// Runs the protocol over a blocking connection, whose futures are ready when they are first polled.
pub(crate) fn run_blocking<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("I9: the futures of a blocking connection never wait"),
    }
}

/// What a library function returns on the connection `C`.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::{Error, IdempotentConnection, Run};
///
/// /// Makes the tables on any connection: at once on a sync one, as a future on an async one.
/// fn prepare<C: IdempotentConnection>(db: &mut C) -> Run<'_, C, Result<(), Error>> {
///     idem_diesel::ensure_schema(db)
/// }
///
/// assert!(prepare(&mut SqliteConnection::establish(":memory:")?).is_ok());
/// # Ok::<(), diesel::ConnectionError>(())
/// ```
pub type Run<'a, C, T> = <<C as IdempotentConnection>::Flavor as Flavor>::Run<'a, T>;

/// A connection that an idempotent handler can be given.
///
/// It is implemented for `PgConnection`, `SqliteConnection`, `AsyncPgConnection` and
/// `SyncConnectionWrapper<SqliteConnection>`, and for the guards of r2d2, bb8 and deadpool around them, each behind the feature
/// of its name. A type of your own that derefs to one of them is added with [`idempotent_connection!`](crate::idempotent_connection).
///
/// A generic handler is bound by this trait and by what its own queries need:
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::{Blocking, IdempotentConnection};
///
/// fn count<C>(db: &mut C) -> QueryResult<i64>
/// where
///     C: IdempotentConnection<Flavor = Blocking> + diesel::connection::LoadConnection<Backend = diesel::sqlite::Sqlite>,
/// {
///     diesel::select(diesel::dsl::sql::<diesel::sql_types::BigInt>("1")).get_result(db)
/// }
///
/// let mut db = SqliteConnection::establish(":memory:")?;
/// assert_eq!(count(&mut db)?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a connection that an idempotent handler can use",
    label = "not a supported connection",
    note = "use PgConnection, SqliteConnection, AsyncPgConnection, SyncConnectionWrapper<SqliteConnection>, or a guard of r2d2, bb8 or deadpool, and turn on the feature of idem-diesel with its name",
    note = "for a type of your own that derefs to one of them, write `idem_diesel::idempotent_connection!(YourType => AsyncPgConnection);`"
)]
pub trait IdempotentConnection: Send {
    /// Whether it blocks or gives futures.
    type Flavor: Flavor;
    /// The Diesel connection inside.
    type Inner: Driver<Flavor = Self::Flavor>;

    /// The Diesel connection inside.
    ///
    /// ```
    /// use diesel::prelude::*;
    /// use idem_diesel::IdempotentConnection;
    ///
    /// let mut db = SqliteConnection::establish(":memory:")?;
    /// assert_eq!(diesel::sql_query("SELECT 1").execute(db.inner())?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn inner(&mut self) -> &mut Self::Inner;
}

/// A connection that fits the function it is given to: a sync one to a `fn`, an async one to an `async fn`.
///
/// ```
/// use idem_diesel::{Blocking, FlavoredConnection};
///
/// fn fits_a_sync_handler<C: FlavoredConnection<Blocking>>() -> bool {
///     true
/// }
///
/// assert!(fits_a_sync_handler::<diesel::SqliteConnection>());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used in this kind of handler",
    label = "this connection does not fit the handler",
    note = "a sync connection goes with `fn`, an async connection with `async fn`",
    note = "if it is no supported connection at all: see `idem_diesel::IdempotentConnection`"
)]
pub trait FlavoredConnection<F: Flavor>: IdempotentConnection<Flavor = F> {}

#[diagnostic::do_not_recommend]
impl<C: IdempotentConnection<Flavor = F>, F: Flavor> FlavoredConnection<F> for C {}

/// Makes a type that derefs to a supported connection one itself.
///
/// ```
/// use diesel::prelude::*;
/// use diesel::SqliteConnection;
///
/// struct Timed { inner: SqliteConnection }
///
/// impl std::ops::Deref for Timed {
///     type Target = SqliteConnection;
///     fn deref(&self) -> &SqliteConnection { &self.inner }
/// }
/// impl std::ops::DerefMut for Timed {
///     fn deref_mut(&mut self) -> &mut SqliteConnection { &mut self.inner }
/// }
///
/// idem_diesel::idempotent_connection!(Timed => SqliteConnection);
///
/// let mut db = Timed { inner: SqliteConnection::establish(":memory:")? };
/// idem_diesel::ensure_schema(&mut db)?;
/// assert!(idem_diesel::check_schema(&mut db).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[macro_export]
macro_rules! idempotent_connection {
    ($guard:ty => $inner:ty) => {
        impl $crate::IdempotentConnection for $guard {
            type Flavor = <$inner as $crate::IdempotentConnection>::Flavor;
            type Inner = $inner;

            fn inner(&mut self) -> &mut $inner {
                self
            }
        }
    };
}

/// The Diesel connections themselves.
#[cfg(any(feature = "_pg", feature = "_sqlite"))]
macro_rules! own_connection {
    ($connection:ty) => {
        impl IdempotentConnection for $connection {
            type Flavor = <Self as Driver>::Flavor;
            type Inner = Self;

            fn inner(&mut self) -> &mut Self {
                self
            }
        }
    };
}

#[cfg(feature = "postgres")]
own_connection!(diesel::PgConnection);
#[cfg(feature = "sqlite")]
own_connection!(diesel::SqliteConnection);
#[cfg(feature = "async-postgres")]
own_connection!(diesel_async::AsyncPgConnection);
#[cfg(feature = "async-sqlite")]
own_connection!(
    diesel_async::sync_connection_wrapper::SyncConnectionWrapper<diesel::SqliteConnection>
);

#[cfg(feature = "r2d2")]
impl<C> IdempotentConnection for diesel::r2d2::PooledConnection<diesel::r2d2::ConnectionManager<C>>
where
    C: Driver<Flavor = Blocking> + diesel::r2d2::R2D2Connection,
{
    type Flavor = Blocking;
    type Inner = C;

    fn inner(&mut self) -> &mut C {
        self
    }
}

#[cfg(feature = "bb8")]
impl<C> IdempotentConnection
    for bb8::PooledConnection<'_, diesel_async::pooled_connection::AsyncDieselConnectionManager<C>>
where
    C: Driver<Flavor = Async> + diesel_async::AsyncConnection,
    diesel_async::pooled_connection::AsyncDieselConnectionManager<C>:
        bb8::ManageConnection<Connection = C>,
{
    type Flavor = Async;
    type Inner = C;

    fn inner(&mut self) -> &mut C {
        self
    }
}

#[cfg(feature = "deadpool")]
impl<C> IdempotentConnection
    for deadpool::managed::Object<diesel_async::pooled_connection::AsyncDieselConnectionManager<C>>
where
    C: Driver<Flavor = Async> + diesel_async::AsyncConnection,
    diesel_async::pooled_connection::AsyncDieselConnectionManager<C>:
        deadpool::managed::Manager<Type = C>,
{
    type Flavor = Async;
    type Inner = C;

    fn inner(&mut self) -> &mut C {
        self
    }
}

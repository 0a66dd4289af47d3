//! What an application does with a message.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use idem_diesel::Consumed;

use super::Received;
use crate::relay::shown;

/// What a handler gives: the message is consumed, or it is not.
pub type Handled = Result<Consumed, HandlerError>;

/// The future of a handler, in a box.
pub type Handling<'a> = Pin<Box<dyn Future<Output = Handled> + Send + 'a>>;

/// Handles messages with a connection of type `C`. A function that gives a boxed future is one; [`handler`] helps a closure to be one.
///
/// The handler marks the message and does the work in one transaction: it calls a function with `#[consumer]`, or [`inbox::consume`](idem_diesel::inbox::consume). A loop acknowledges
/// the message after the handler has returned `Ok`, which is after COMMIT. It waits for the handler as long as it takes: what may hang has a timeout inside of it.
///
/// ```
/// use idem_diesel::{Async, Error, IdempotentConnection, Retention, Subscription, inbox};
/// use idem_relay::consume::Handling;
/// use idem_relay::{Handler, Received};
///
/// const MAIL: Subscription = Subscription::new("mail", Retention::literal("7d"));
///
/// struct Mail {
///     sender: String,
/// }
///
/// impl<C: IdempotentConnection<Flavor = Async>> Handler<C> for Mail {
///     fn handle<'a>(&'a self, db: &'a mut C, message: &'a Received) -> Handling<'a> {
///         Box::pin(async move {
///             let address: String = message.json()?;
///             let consumed = inbox::consume(db, &MAIL, message.id(), &address, async |_db| {
///                 println!("{} writes to {address}", self.sender);
///                 Ok::<_, Error>(())
///             });
///             Ok(consumed.await?)
///         })
///     }
/// }
/// # fn is_handler<C>(_: impl Handler<C>) {}
/// # is_handler::<diesel_async::sync_connection_wrapper::SyncConnectionWrapper<diesel::SqliteConnection>>(Mail { sender: String::new() });
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not handle messages with a connection `{C}`",
    label = "not a handler",
    note = "a closure becomes one inside `idem_relay::consume::handler(|db, message| Box::pin(async move {{ … }}))`"
)]
pub trait Handler<C>: Send + Sync {
    /// Handles one message.
    ///
    /// # Errors
    ///
    /// Why the message is not consumed. Everything it did must be rolled back.
    ///
    /// # Cancellation
    ///
    /// A loop that is dropped drops the future, and the message comes again. The transaction of a consumer rolls back then.
    fn handle<'a>(&'a self, db: &'a mut C, message: &'a Received) -> Handling<'a>;
}

impl<C, F> Handler<C> for F
where
    F: for<'a> Fn(&'a mut C, &'a Received) -> Handling<'a> + Send + Sync,
{
    fn handle<'a>(&'a self, db: &'a mut C, message: &'a Received) -> Handling<'a> {
        self(db, message)
    }
}

/// A closure as a handler. It does nothing: the compiler learns here what the closure's arguments are.
///
/// ```
/// use diesel::SqliteConnection;
/// use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
/// use idem_diesel::{Error, Retention, Subscription, inbox};
/// use idem_relay::Handler;
/// use idem_relay::consume::handler;
///
/// const BILLING: Subscription = Subscription::new("billing", Retention::literal("7d"));
///
/// fn bills() -> impl Handler<SyncConnectionWrapper<SqliteConnection>> {
///     handler(|db, message| Box::pin(async move {
///         let cents: i64 = message.json()?;
///         let consumed = inbox::consume(db, &BILLING, message.id(), &cents, async |_db| Ok::<_, Error>(()));
///         Ok(consumed.await?)
///     }))
/// }
///
/// let _it_is_one = bills();
/// ```
pub fn handler<C, F>(closure: F) -> F
where
    F: for<'a> Fn(&'a mut C, &'a Received) -> Handling<'a> + Send + Sync,
{
    closure
}

/// Why a message is not consumed. Every error becomes one with `?`.
///
/// ```
/// use idem_relay::HandlerError;
///
/// fn parse(text: &str) -> Result<i64, HandlerError> {
///     Ok(text.parse::<i64>()?)
/// }
///
/// let error = parse("seven").unwrap_err();
/// assert_eq!(error.to_string(), "invalid digit found in string");
/// assert!(!error.is_permanent());
/// ```
pub struct HandlerError {
    source: Box<dyn StdError + Send + Sync>,
    permanent: bool,
}

impl HandlerError {
    /// What no further attempt can mend: the message cannot be read, or nobody knows what to do with it. It is dead at once.
    ///
    /// ```
    /// use idem_relay::HandlerError;
    ///
    /// assert!(HandlerError::permanent("no such event type").is_permanent());
    /// ```
    pub fn permanent(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self {
            source: source.into(),
            permanent: true,
        }
    }

    /// Whether no further attempt can mend it.
    pub fn is_permanent(&self) -> bool {
        self.permanent
    }

    /// The error of this library in it.
    pub(super) fn kind(&self) -> Option<&idem_diesel::ErrorKind> {
        let error = idem_diesel::Error::find(&*self.source)?;
        Some(error.kind())
    }

    /// It with its causes, in one line.
    pub(super) fn shown(&self) -> String {
        shown(&*self.source)
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for HandlerError {
    fn from(source: E) -> Self {
        Self {
            source: source.into(),
            permanent: false,
        }
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerError")
            .field("permanent", &self.permanent)
            .field("source", &self.source)
            .finish()
    }
}

//! What the protocol needs of a connection, implemented for the four Diesel connections.
//!
//! The protocol is written once, as async functions over this trait. The futures of a blocking connection are ready when
//! they are first polled, so [`Blocking`](crate::connection::Blocking) runs the same code without an executor.

use std::future::Future;
use std::time::Duration;

use diesel::QueryResult;
use diesel::connection::TransactionManagerStatus;
use diesel::query_builder::{QueryFragment, QueryId};
use diesel::result::Error as DieselError;
use idem_core::Isolation;
use idem_core::answer::End;

use crate::connection::Flavor;
use crate::dialect::Dialect;
use crate::store::{KeyLocks, Read, RecordRow, Records, Row};
use crate::texts::TextQuery;

#[cfg(feature = "async-postgres")]
mod async_postgres;
#[cfg(feature = "async-sqlite")]
mod async_sqlite;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod blocking;
#[cfg(any(feature = "postgres", feature = "async-postgres"))]
mod postgres;
#[cfg(any(feature = "sqlite", feature = "async-sqlite"))]
mod sqlite;

/// In which kind of transaction a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A transaction of its own.
    Own,
    /// A savepoint inside a transaction that is open already.
    Joined {
        /// How many levels Diesel's account has.
        depth: u32,
        /// Whether it is one of Diesel's test transactions.
        is_test: bool,
    },
}

/// What a transaction begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// Its isolation level.
    pub isolation: Isolation,
    /// How long it may sit idle before the server ends it.
    pub max_idle: Option<Duration>,
    /// The setting that row-level security reads, and the tenant it is set to.
    pub tenant: Option<(&'static str, String)>,
    /// The call whose key is locked in it, if it has one.
    pub call: Option<Call>,
    /// How long the statement that claims a message may take. That statement puts the session's own bound back.
    pub claim_within: Option<Duration>,
    /// Whether its statements go by their indexes, whatever the database believes of its tables: what is known of a queue is always old.
    pub by_index: bool,
}

impl Opening {
    /// An ordinary transaction.
    pub const PLAIN: Self = Self {
        isolation: Isolation::ReadCommitted,
        max_idle: None,
        tenant: None,
        call: None,
        claim_within: None,
        by_index: false,
    };
}

/// What a session knows of the call that runs on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// No two calls have the same. It stands in SQL text.
    pub name: String,
    /// Its key is locked under these.
    pub locks: KeyLocks,
}

/// A wait for a key's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The longest wait.
    pub at_most: Duration,
}

/// What ends a transaction in which nothing failed so far.
#[derive(Debug)]
pub struct Last<S> {
    /// How the savepoint around the body is closed, if there is one.
    pub close: Option<End>,
    /// The statement that stores the answer.
    pub store: S,
    /// How many rows it must change.
    pub rows: Option<usize>,
}

/// The statement at which a transaction could not be ended.
#[derive(Debug)]
pub enum Refused {
    /// The end of the savepoint around the body.
    Close(DieselError),
    /// The store.
    Store(DieselError),
    /// The store, which changed nothing and yet did not fail.
    NothingStored,
    /// COMMIT.
    Commit(DieselError),
}

/// A Diesel connection, as the protocol uses it.
pub trait Driver: Send + Sized + 'static {
    /// Its backend.
    type Dialect: Dialect;
    /// Whether its futures wait.
    type Flavor: Flavor;

    /// Diesel's own account of open transactions.
    fn status(&mut self) -> &mut TransactionManagerStatus;

    /// Whether Diesel takes the connection for broken although its account has nothing open.
    fn is_broken(&mut self) -> bool {
        false
    }

    /// Whether a statement of the open transaction met a serialization failure, where Diesel keeps that in its account.
    fn met_conflict(&mut self) -> bool {
        false
    }

    /// Makes Diesel's account say that no transaction is open.
    fn forget_transactions(&mut self);

    /// Sends text.
    fn batch(&mut self, sql: &str) -> impl Future<Output = QueryResult<()>> + Send;

    /// Opens the savepoint around a body. It is not one of Diesel's, so that Diesel's account of levels is the body's own.
    fn open_body(&mut self) -> impl Future<Output = QueryResult<()>> + Send {
        self.batch("SAVEPOINT idem_body")
    }

    /// Closes it.
    fn close_body(&mut self, end: End) -> impl Future<Output = QueryResult<()>> + Send {
        self.batch(close_text(end))
    }

    /// Fails if a statement of this transaction failed before, where the server takes no further one then.
    fn probe(&mut self) -> impl Future<Output = QueryResult<()>> + Send {
        self.batch("SELECT 1")
    }

    /// Opens a transaction, stating its isolation level, and waits for a key's lock, if there is one to wait for.
    fn begin(
        &mut self,
        opening: &Opening,
        wait: Option<Wait>,
    ) -> impl Future<Output = QueryResult<()>> + Send;

    /// [`begin`](Self::begin), then [`read`](Self::read): without waiting in between, where the connection can do that.
    fn begin_and_read(
        &mut self,
        opening: &Opening,
        wait: Option<Wait>,
        read: Read,
    ) -> impl Future<Output = QueryResult<Row>> + Send {
        async move {
            self.begin(opening, wait).await?;
            self.read(read).await
        }
    }

    /// [`begin`](Self::begin), then [`texts`](Self::texts): without waiting in between, where the connection can do that.
    fn begin_and_texts<Q>(
        &mut self,
        opening: &Opening,
        query: Q,
    ) -> impl Future<Output = QueryResult<Vec<Option<String>>>> + Send
    where
        Q: TextQuery<Self::Dialect>,
    {
        async move {
            self.begin(opening, None).await?;
            self.texts(query).await
        }
    }

    /// Waits for a key's lock in a transaction that ends with the wait, for a snapshot that is taken after it.
    fn wait_apart(
        &mut self,
        call: &Call,
        wait: Wait,
    ) -> impl Future<Output = QueryResult<()>> + Send;

    /// Bounds the waits for locks until [`unbound_locks`](Self::unbound_locks).
    fn bound_locks(&mut self, _: Duration) -> impl Future<Output = QueryResult<()>> + Send {
        std::future::ready(Ok(()))
    }

    /// Puts the session's own bound back.
    fn unbound_locks(&mut self) -> impl Future<Output = QueryResult<()>> + Send {
        std::future::ready(Ok(()))
    }

    /// What [`begin`](Self::begin) does besides opening, inside a transaction that is open already.
    fn settle_in(
        &mut self,
        opening: &Opening,
        wait: Option<Wait>,
    ) -> impl Future<Output = QueryResult<()>> + Send;

    /// Commits the transaction through Diesel.
    fn commit(&mut self) -> impl Future<Output = QueryResult<()>> + Send;

    /// Whether the last statements of a transaction can be sent without waiting in between.
    const PIPELINES: bool = false;

    /// Stores and commits without waiting in between, on connections that can. Whatever comes of it, no transaction is open then.
    fn store_and_commit<S>(
        &mut self,
        last: Last<S>,
    ) -> impl Future<Output = Result<(), Refused>> + Send
    where
        S: QueryFragment<Self::Dialect> + QueryId + Send + 'static,
    {
        async move {
            let _ = last;
            unreachable!("I12: only what pipelines is asked to pipeline")
        }
    }

    /// Rolls the transaction back through Diesel.
    fn rollback(&mut self) -> impl Future<Output = QueryResult<()>> + Send;

    /// Rolls back what wrote nothing: whether that is answered does not matter, so a connection that can does not wait for it.
    fn leave(&mut self) -> impl Future<Output = QueryResult<()>> + Send {
        self.rollback()
    }

    /// Whether an error of [`store_and_commit`](Self::store_and_commit) says that a statement before it had failed, and nothing else. No transaction may be open.
    fn says_aborted(&mut self, error: &DieselError) -> impl Future<Output = bool> + Send {
        let _ = error;
        std::future::ready(false)
    }

    /// Runs a statement and counts the rows it changed.
    fn execute<S>(&mut self, statement: S) -> impl Future<Output = QueryResult<usize>> + Send
    where
        S: QueryFragment<Self::Dialect> + QueryId + Send + 'static;

    /// Runs [`Read`].
    fn read(&mut self, read: Read) -> impl Future<Output = QueryResult<Row>> + Send;

    /// Runs [`Records`].
    fn records(
        &mut self,
        records: Records,
    ) -> impl Future<Output = QueryResult<Vec<RecordRow>>> + Send;

    /// Runs a query of one text column.
    fn texts<Q>(
        &mut self,
        query: Q,
    ) -> impl Future<Output = QueryResult<Vec<Option<String>>>> + Send
    where
        Q: TextQuery<Self::Dialect>;

    /// Waits for nothing but time.
    fn pause(time: Duration) -> impl Future<Output = ()> + Send;

    /// How long this session waits for another writer, when the backend has such a setting.
    fn patience(&mut self) -> impl Future<Output = QueryResult<Option<Duration>>> + Send;

    /// Sets it.
    fn set_patience(&mut self, patience: Duration) -> impl Future<Output = QueryResult<()>> + Send;

    /// Ends what is open, without waiting for more than this connection's own statement, because the call was dropped or panicked.
    fn abandon(&mut self, abandon: Abandon) -> Abandoned;
}

/// What there is to do for a call that was dropped.
#[derive(Debug)]
pub struct Abandon {
    /// The text that ends what is open, if anything is.
    pub rollback: Option<String>,
    /// Whether a statement that still runs on the server may be cancelled, at the price of the connection.
    pub may_cancel: bool,
    /// The session's own patience, to be put back.
    pub patience: Option<Duration>,
}

/// Whether this runs on a runtime of one thread, which stands still while something blocks, and may never run again after this.
#[cfg(feature = "_async")]
fn is_on_one_thread() -> bool {
    use tokio::runtime::{Handle, RuntimeFlavor};
    Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::CurrentThread)
}

/// Closes the savepoint around a body: what a final failure wrote is rolled back.
fn close_text(end: End) -> &'static str {
    match end {
        End::Completed => "RELEASE SAVEPOINT idem_body",
        // Going back leaves the savepoint there, and the store would be inside of it.
        End::Failed => "ROLLBACK TO SAVEPOINT idem_body; RELEASE SAVEPOINT idem_body",
    }
}

/// Whether a server said the same twice.
pub(crate) fn is_same(again: &QueryResult<()>, error: &DieselError) -> bool {
    match (again, error) {
        (Err(DieselError::DatabaseError(_, again)), DieselError::DatabaseError(_, error)) => {
            again.message() == error.message()
        }
        _ => false,
    }
}

/// What became of an abandoned transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abandoned {
    /// It is rolled back, or the message is on the wire.
    Done,
    /// The database did not take it.
    Failed,
    /// The statement before it is being cancelled on the server, and the connection is marked broken.
    Broken,
    /// It could not be tried. The transaction stays open in Diesel's account.
    NotTried,
}

/// Sets Diesel's account to what it was when the call came: nothing, or the test transaction alone.
pub(crate) fn reset_status<D: Driver>(db: &mut D, entry: Entry) {
    db.forget_transactions();
    if let Entry::Joined { depth, is_test } = entry {
        for _ in 0..depth {
            open_one_level(db);
        }
        if is_test {
            db.status().set_test_transaction_flag();
        }
    }
}

/// Tells Diesel's account of one more open level.
pub(crate) fn open_one_level<D: Driver>(db: &mut D) {
    use diesel::connection::TransactionDepthChange::IncreaseDepth;
    if let Ok(state) = db.status().transaction_state() {
        // An increase of a valid account cannot fail.
        let _ = state.change_transaction_depth(IncreaseDepth);
    }
}

impl Entry {
    /// The savepoint of a joined call. The name has the depth in it, so that no older one of that name is ever meant.
    fn savepoint(self) -> String {
        match self {
            Self::Own => unreachable!("I11: a transaction of its own has no savepoint around it"),
            Self::Joined { depth, .. } => format!("idem_call_{depth}"),
        }
    }

    /// Opens a joined call.
    pub(crate) fn open_text(self) -> String {
        format!("SAVEPOINT {}", self.savepoint())
    }

    /// Ends a joined call.
    pub(crate) fn release_text(self) -> String {
        format!("RELEASE SAVEPOINT {}", self.savepoint())
    }

    /// Takes everything back.
    pub(crate) fn rollback_text(self) -> String {
        if self == Self::Own {
            return "ROLLBACK".to_owned();
        }
        // Going back to a savepoint leaves it there.
        let savepoint = self.savepoint();
        format!("ROLLBACK TO SAVEPOINT {savepoint}; RELEASE SAVEPOINT {savepoint}")
    }
}

//! The end of retention: answers that have expired are blanked, rows that may go are deleted.
//!
//! A row has two horizons. From `expires_at` on its answer is not replayed any more, so it may be blanked: what stays, a tombstone,
//! still tells a late retry from a new intent. Only from `forget_at` on the row may go, and then the key is new. [`purge`] looks
//! at these alone, by the database's time, and touches no record without an answer, however old it is.
//!
//! It walks through the whole table once, in the order in which the rows lie on disk, so that no call pays for an index on the
//! horizons. Where nothing is due the table is only read. It works in batches, each a transaction of its own, and runs beside all calls:
//!
//! * It waits for no call. On PostgreSQL rows that a call holds are skipped, and come with the next run.
//! * A call waits for it at most as long as one batch takes, and only if its key is in the batch (on SQLite: if it writes).
//! * One purge at a time works on a table; another one is told so and ends ([`Ended::AnotherRunner`]).
//!
//! On a thread or a scheduler of your own a purge is a loop over [`purge`]:
//!
//! ```
//! use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
//! use std::time::Duration;
//! use diesel::prelude::*;
//! use idem_diesel::Error;
//! use idem_diesel::retention::{Purge, purge};
//!
//! /// Purges every hour, until the other end of `shutdown` is dropped.
//! fn purge_until(shutdown: &Receiver<()>, mut db: SqliteConnection) -> Result<u32, Error> {
//!     let mut runs = 0;
//!     loop {
//!         purge(&mut db, &Purge::new())?;
//!         runs += 1;
//!         if shutdown.recv_timeout(Duration::from_secs(3600)) != Err(RecvTimeoutError::Timeout) {
//!             return Ok(runs);
//!         }
//!     }
//! }
//!
//! # let mut db = SqliteConnection::establish(":memory:")?;
//! # idem_diesel::ensure_schema(&mut db)?;
//! let (stop, shutdown) = channel();
//! let purging = std::thread::spawn(move || purge_until(&shutdown, db));
//! drop(stop);
//! assert_eq!(purging.join().expect("it does not panic")?, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! On async connections, with their features, `purge_periodically` is that loop.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use diesel::QueryResult;
use idem_core::limits::{DEFAULT_MAX_IDLE, DEFAULT_WAIT};
use idem_core::{ErrorKind, Nested};
use tracing::{Instrument, field};

use crate::connection::{Flavor, IdempotentConnection, Run};
use crate::dialect::Dialect;
use crate::driver::{Driver, Opening};
use crate::error::Error;
use crate::migrations::explain;
use crate::store::{Batch, Blank, Forget, Look};
use crate::texts::Sql;
use crate::transaction::Transaction;

/// The most rows of a batch unless the options say otherwise.
///
/// ```
/// use idem_diesel::retention::{DEFAULT_BATCH_ROWS, Purge};
///
/// assert_eq!(Purge::new(), Purge::new().batch_rows(DEFAULT_BATCH_ROWS));
/// ```
pub const DEFAULT_BATCH_ROWS: u32 = 1000;

/// The most rows of a batch: what bounds how long a call waits for one.
///
/// ```
/// use idem_diesel::retention::{MAX_BATCH_ROWS, Purge};
///
/// assert_eq!(Purge::new().batch_rows(u32::MAX), Purge::new().batch_rows(MAX_BATCH_ROWS));
/// ```
pub const MAX_BATCH_ROWS: u32 = 10_000;

/// The pause after a full batch unless the options say otherwise.
///
/// ```
/// use idem_diesel::retention::{DEFAULT_PAUSE, Purge};
///
/// assert_eq!(Purge::new(), Purge::new().pause(DEFAULT_PAUSE));
/// ```
pub const DEFAULT_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause after a full batch.
///
/// ```
/// use std::time::Duration;
/// use idem_diesel::retention::{MAX_PAUSE, Purge};
///
/// assert_eq!(Purge::new().pause(Duration::MAX), Purge::new().pause(MAX_PAUSE));
/// ```
pub const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The time limit of a whole run unless the options say otherwise.
///
/// ```
/// use idem_diesel::retention::{DEFAULT_TIME_LIMIT, Purge};
///
/// assert_eq!(Purge::new(), Purge::new().time_limit(DEFAULT_TIME_LIMIT));
/// ```
pub const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(60);

/// The longest time limit of a whole run.
///
/// ```
/// use std::time::Duration;
/// use idem_diesel::retention::{MAX_TIME_LIMIT, Purge};
///
/// assert_eq!(Purge::new().time_limit(Duration::MAX), Purge::new().time_limit(MAX_TIME_LIMIT));
/// ```
pub const MAX_TIME_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The shortest time between two runs of [`purge_periodically`].
///
/// ```
/// use idem_diesel::retention::{DEFAULT_PAUSE, MIN_EVERY};
///
/// assert!(MIN_EVERY > DEFAULT_PAUSE);
/// ```
#[cfg(feature = "_async")]
pub const MIN_EVERY: Duration = Duration::from_secs(1);

/// How a purge works. Values outside of their bounds become the nearest that is inside.
///
/// ```
/// use std::time::Duration;
/// use idem_diesel::retention::Purge;
///
/// const GENTLE: Purge = Purge::new()
///     .batch_rows(100)
///     .pause(Duration::from_millis(500))
///     .time_limit(Duration::from_secs(600));
/// assert_ne!(GENTLE, Purge::new());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "options do nothing by themselves"]
pub struct Purge {
    batch_rows: u32,
    pause: Duration,
    time_limit: Duration,
}

impl Purge {
    /// At most 1000 rows in a batch, 50 ms after a full one, 60 s for the whole run.
    ///
    /// ```
    /// use idem_diesel::retention::Purge;
    ///
    /// assert_eq!(Purge::new(), Purge::default());
    /// ```
    pub const fn new() -> Self {
        Self {
            batch_rows: DEFAULT_BATCH_ROWS,
            pause: DEFAULT_PAUSE,
            time_limit: DEFAULT_TIME_LIMIT,
        }
    }

    /// How many rows a batch changes at most: 1 to [`MAX_BATCH_ROWS`].
    ///
    /// ```
    /// use idem_diesel::retention::Purge;
    ///
    /// assert_eq!(Purge::new().batch_rows(0), Purge::new().batch_rows(1));
    /// ```
    pub const fn batch_rows(self, rows: u32) -> Self {
        let batch_rows = match rows {
            0 => 1,
            MAX_BATCH_ROWS.. => MAX_BATCH_ROWS,
            rows => rows,
        };
        Self { batch_rows, ..self }
    }

    /// How long it rests after a full batch, so that others get at the database: up to [`MAX_PAUSE`]. After a batch that changed fewer
    /// rows it rests in proportion to them: not at all where nothing is due.
    ///
    /// ```
    /// use std::time::Duration;
    /// use idem_diesel::retention::Purge;
    ///
    /// assert_ne!(Purge::new().pause(Duration::ZERO), Purge::new());
    /// ```
    pub const fn pause(self, pause: Duration) -> Self {
        let pause = shorter(pause, MAX_PAUSE);
        Self { pause, ..self }
    }

    /// How long a whole run may take, up to [`MAX_TIME_LIMIT`]. It is looked at before each batch, so the last one may end later.
    ///
    /// Every run begins at the front of the table. So let it be long enough to come to the end: reading takes a part of a second for each
    /// million rows that are in memory, and each full batch its pause.
    ///
    /// ```
    /// use std::time::Duration;
    /// use diesel::prelude::*;
    /// use idem_diesel::retention::{Ended, Purge, purge};
    ///
    /// # let mut db = SqliteConnection::establish(":memory:")?;
    /// # idem_diesel::ensure_schema(&mut db)?;
    /// let purged = purge(&mut db, &Purge::new().time_limit(Duration::ZERO))?;
    /// assert_eq!(purged.ended, Ended::TimeLimit);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn time_limit(self, limit: Duration) -> Self {
        let time_limit = shorter(limit, MAX_TIME_LIMIT);
        Self { time_limit, ..self }
    }

    /// How long it rests after a batch that changed so many rows.
    fn pause_after(&self, changed: u32) -> Duration {
        self.pause * changed.min(self.batch_rows) / self.batch_rows
    }
}

impl Default for Purge {
    fn default() -> Self {
        Self::new()
    }
}

const fn shorter(one: Duration, other: Duration) -> Duration {
    if one.as_nanos() < other.as_nanos() {
        one
    } else {
        other
    }
}

/// What a purge did. The numbers are of committed batches, and exact.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::retention::{Ended, Purge, purge};
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # idem_diesel::ensure_schema(&mut db)?;
///
/// let purged = purge(&mut db, &Purge::new())?;
/// assert_eq!((purged.blanked, purged.forgotten, purged.ended), (0, 0, Ended::Complete));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Purged {
    /// Rows that lost their answer and became tombstones.
    pub blanked: u64,
    /// Rows that were deleted.
    pub forgotten: u64,
    /// Why it ended.
    pub ended: Ended,
}

/// Why a purge ended.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::retention::{Ended, Purge, purge};
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # idem_diesel::ensure_schema(&mut db)?;
///
/// let again_soon = match purge(&mut db, &Purge::new())?.ended {
///     Ended::Complete | Ended::AnotherRunner => false,
///     Ended::TimeLimit => true,
///     other => panic!("{other:?}"),
/// };
/// assert!(!again_soon);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// It has come to the end of the table as it was at the beginning: nothing that was due then is left, but for rows that a call held.
    Complete,
    /// The time was over; the rest is for the next run.
    TimeLimit,
    /// Another purge is at work. On SQLite, where the write lock is what keeps purges apart: any other writer was, for as long as
    /// this one was willing to wait.
    AnotherRunner,
    /// It was told to shut down.
    Shutdown,
}

/// Blanks answers that have expired, deletes rows that may go, and counts both.
///
/// A span of [`tracing`] at level INFO, with the target `idem_diesel::retention`, says what it did.
///
/// Records without an answer are left alone, whatever their age: a claim that is running, leased or orphaned. Under row-level
/// security it sees what the connection's role sees.
///
/// It goes through the table in the order of its blocks on PostgreSQL, and of its primary key on SQLite; which of the due rows go first is not
/// promised. PostgreSQL needs version 14 for that: an older one reads the whole table for each of its stretches.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::retention::{Purge, purge};
/// # use idem_diesel::*;
/// # const PAY: Operation = Operation::new("orders.pay", Retention::literal("48h"));
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # ensure_schema(&mut db)?;
/// # let mut pay = |db: &mut _, key: &str| -> Result<_, Box<dyn std::error::Error>> {
/// #     let intent = Intent::new(Tenant::of("acme", "alice")?, IdempotencyKey::new(key)?);
/// #     Ok(idempotent_sync(db, &intent, &PAY, &17, |_, _| Ok::<_, Error>("paid".to_owned()))?)
/// # };
/// # let mut age = |db: &mut _, hours: u32| diesel::sql_query(format!(
/// #     "UPDATE api_idempotency SET expires_at = strftime('%Y-%m-%d %H:%M:%f', expires_at, '-{hours} hours'),
/// #          forget_at = strftime('%Y-%m-%d %H:%M:%f', forget_at, '-{hours} hours')")).execute(db);
///
/// // Two calls are answered, one 4 days ago and one 2 days ago; both were to be kept for 48 hours.
/// # pay(&mut db, "order-17")?;
/// # age(&mut db, 48)?;
/// # pay(&mut db, "order-18")?;
/// # age(&mut db, 48)?;
/// let purged = purge(&mut db, &Purge::new())?;
/// assert_eq!((purged.forgotten, purged.blanked), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`UnfinishedTransaction`](ErrorKind::UnfinishedTransaction), [`TableMissing`](ErrorKind::TableMissing), or what the database
/// says. Batches that were committed before stay, and their numbers are in the span; a connection that is lost while COMMIT is on its
/// way may have done one batch more.
///
/// # Cancellation
///
/// A dropped future rolls back the batch that it is in, as [`begin`](crate::begin()) says; all before are committed.
///
/// # SQL
///
/// Each batch is this in a transaction, about 512 blocks of the table. The second and third statement follow if the first says so; on
/// SQLite, where the first is about 5000 rows and without SKIP LOCKED, it stands before the transaction, which then is not even begun.
///
/// ```sql
/// SELECT EXISTS (SELECT 1 FROM api_idempotency WHERE ctid >= '(0,0)' AND ctid < '(512,0)' AND (forget_at <= now … OR expires_at <= now …));
/// DELETE FROM api_idempotency WHERE ctid = ANY (ARRAY(SELECT ctid FROM api_idempotency WHERE ctid >= '(0,0)' AND ctid < '(512,0)'
///     AND forget_at <= now AND state IN ('completed', 'failed') LIMIT 1000 FOR UPDATE SKIP LOCKED)) AND …;
/// UPDATE api_idempotency SET status_code = NULL, response_headers = NULL, response_body = NULL, codec = NULL WHERE ctid = ANY (ARRAY(…
///     AND expires_at <= now AND state IN ('completed', 'failed') AND codec IS NOT NULL LIMIT 1000 FOR UPDATE SKIP LOCKED)) AND …
/// ```
pub fn purge<'c, C: IdempotentConnection>(
    db: &'c mut C,
    options: &Purge,
) -> Run<'c, C, Result<Purged, Error>> {
    let options = *options;
    C::Flavor::run(async move {
        let mut purged = Purged::NOTHING;
        run(
            db,
            &options,
            pin!(std::future::pending::<()>()),
            &mut purged,
        )
        .await?;
        Ok(purged)
    })
}

/// Purges again and again, on a connection that it takes for each run and gives back after it, until `shutdown` is done.
///
/// It ends within its pauses at once, and in the middle of a batch when that has committed. A run that fails does not end it: the
/// error is an event of [`tracing`], and the next run comes in its time. Gives the sum of all runs. It needs tokio's timer.
///
/// ```
/// use std::time::Duration;
/// use diesel::SqliteConnection;
/// use diesel_async::AsyncConnection;
/// use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
/// use idem_diesel::retention::{Ended, Purge, purge_periodically};
///
/// # tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?.block_on(async {
/// // With a pool of deadpool: `move || { let pool = pool.clone(); async move { pool.get().await } }`.
/// let connect = || async {
///     let mut db = SyncConnectionWrapper::<SqliteConnection>::establish(":memory:").await?;
///     idem_diesel::ensure_schema(&mut db).await?;
///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(db)
/// };
/// let (stop, shutdown) = tokio::sync::oneshot::channel::<()>();
/// let hourly = Duration::from_secs(3600);
/// let purging = tokio::spawn(purge_periodically(connect, Purge::new(), hourly, shutdown));
///
/// drop(stop);
/// let purged = purging.await?;
/// assert_eq!(purged.ended, Ended::Shutdown);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cancellation
///
/// Dropping it is safe, but rolls the batch back that it is in. `shutdown` is the clean way.
#[cfg(feature = "_async")]
pub async fn purge_periodically<C, E, F>(
    mut connect: impl FnMut() -> F,
    options: Purge,
    every: Duration,
    shutdown: impl Future,
) -> Purged
where
    C: IdempotentConnection<Flavor = crate::Async>,
    E: std::fmt::Display,
    F: Future<Output = Result<C, E>>,
{
    let every = every.max(MIN_EVERY);
    let mut shutdown = pin!(shutdown);
    let mut sum = Purged::NOTHING;
    loop {
        let Some(connected) = unless(shutdown.as_mut(), connect()).await else {
            break;
        };
        match connected {
            Ok(mut db) => {
                let mut purged = Purged::NOTHING;
                let done = run(&mut db, &options, shutdown.as_mut(), &mut purged).await;
                sum.blanked += purged.blanked;
                sum.forgotten += purged.forgotten;
                match done {
                    Ok(()) if purged.ended == Ended::Shutdown => break,
                    Ok(()) => {}
                    Err(error) => tracing::error!(%error, "a purge failed"),
                }
            }
            Err(error) => tracing::error!(%error, "a purge got no connection"),
        }
        if unless(shutdown.as_mut(), C::Inner::pause(every))
            .await
            .is_none()
        {
            break;
        }
    }
    sum.ended = Ended::Shutdown;
    sum
}

impl Purged {
    const NOTHING: Self = Self {
        blanked: 0,
        forgotten: 0,
        ended: Ended::Complete,
    };
}

/// One run, in a span that says what it did, also when it failed on the way.
async fn run<C: IdempotentConnection, S: Future>(
    db: &mut C,
    options: &Purge,
    shutdown: Pin<&mut S>,
    purged: &mut Purged,
) -> Result<(), Error> {
    let (blanked, forgotten, ended) = (field::Empty, field::Empty, field::Empty);
    let span = tracing::info_span!("purge", blanked, forgotten, ended);
    let done = batches(db, options, shutdown, purged).instrument(span.clone());
    let done = done.await;
    span.record("blanked", purged.blanked);
    span.record("forgotten", purged.forgotten);
    match done {
        Ok(ended) => {
            span.record("ended", field::debug(ended));
            purged.ended = ended;
            Ok(())
        }
        Err(error) => Err(explain(db.inner(), error).await),
    }
}

/// How far a run has come, in the order in which the table lies on disk.
#[derive(Debug)]
struct Walk {
    after: String,
    /// The table's end when the run began, so that a run ends although calls append rows. It is looked up in the first batch.
    until: Option<String>,
}

impl Walk {
    fn new<D: Driver>() -> Self {
        Self {
            after: D::Dialect::TABLE_START.to_owned(),
            until: None,
        }
    }

    fn is_over(&self) -> bool {
        self.until.as_ref() == Some(&self.after)
    }
}

/// The stretch of the table that the next batch is about.
#[derive(Debug)]
struct Stretch {
    upto: String,
    is_due: bool,
}

/// What a batch did.
#[derive(Debug)]
struct Done {
    upto: String,
    forgotten: u32,
    blanked: u32,
}

/// The batches of one run, until it comes to the table's end, or its time or another's word ends it.
async fn batches<C: IdempotentConnection, S: Future>(
    db: &mut C,
    options: &Purge,
    mut shutdown: Pin<&mut S>,
    purged: &mut Purged,
) -> Result<Ended, Error> {
    let started = Instant::now();
    let mut walk = Walk::new::<C::Inner>();
    loop {
        let left = options.time_limit.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Ok(Ended::TimeLimit);
        }
        let patience = left.min(DEFAULT_WAIT);
        let Some(done) = batch(db, &mut walk, options.batch_rows, patience).await? else {
            return Ok(Ended::AnotherRunner);
        };
        purged.forgotten += u64::from(done.forgotten);
        purged.blanked += u64::from(done.blanked);
        let changed = done.forgotten.saturating_add(done.blanked);
        // Behind a full batch its stretch may have more, and only what was changed is not due any more: so either rows or places get fewer.
        if changed < options.batch_rows {
            walk.after = done.upto;
        }
        if walk.is_over() {
            return Ok(Ended::Complete);
        }
        let pause = options.pause_after(changed);
        if options.time_limit.saturating_sub(started.elapsed()) <= pause {
            return Ok(Ended::TimeLimit);
        }
        if unless(shutdown.as_mut(), rest::<C::Inner>(pause))
            .await
            .is_none()
        {
            return Ok(Ended::Shutdown);
        }
    }
}

/// A purge that vanishes holds the rows of one batch, and no longer than a call would.
const OPENING: Opening = Opening {
    max_idle: Some(DEFAULT_MAX_IDLE),
    ..Opening::PLAIN
};

/// One batch in a transaction of its own: what it did, or `None` if another purge is at work.
async fn batch<C: IdempotentConnection>(
    db: &mut C,
    walk: &mut Walk,
    at_most: u32,
    patience: Duration,
) -> Result<Option<Done>, Error> {
    let mut transaction = Transaction::new(db, Nested::Refuse)?;
    transaction.set_patience(patience).await?;
    let opened = open(&mut transaction, walk).await;
    transaction.restore_patience().await?;
    let done = match opened {
        Ok(Some(stretch)) if stretch.is_due => {
            change(transaction.inner(), walk, stretch, at_most).await
        }
        other => {
            transaction.rollback().await;
            return match other {
                Ok(stretch) => Ok(stretch.map(Stretch::pass)),
                Err(error) => none_if_busy(error.into()),
            };
        }
    };
    let done = match done {
        Ok(done) => transaction.commit(patience).await.map(|()| done),
        Err(error) => {
            transaction.rollback().await;
            Err(error)
        }
    };
    done.map_or_else(|error| none_if_busy(error.into()), |done| Ok(Some(done)))
}

impl Stretch {
    /// Nothing was due.
    fn pass(self) -> Done {
        Done {
            upto: self.upto,
            forgotten: 0,
            blanked: 0,
        }
    }
}

/// Looks ahead, and opens the transaction: before the look, where a transaction can read first and write later, and else only if something
/// is due. `None` if another purge is at work.
async fn open<C: IdempotentConnection>(
    transaction: &mut Transaction<'_, C>,
    walk: &mut Walk,
) -> QueryResult<Option<Stretch>> {
    let looks_first = <C::Inner as Driver>::Dialect::READS_BEFORE_BEGIN;
    let mut ahead = None;
    if looks_first {
        let stretch = look(transaction.inner(), walk).await?;
        if !stretch.is_due {
            return Ok(Some(stretch));
        }
        ahead = Some(stretch);
    }
    transaction.open(&OPENING, None).await?;
    let db = transaction.inner();
    let take_lock = Sql(<C::Inner as Driver>::Dialect::TAKE_PURGE_LOCK);
    if db.texts(take_lock).await?.is_empty() {
        return Ok(None);
    }
    match ahead {
        Some(stretch) => Ok(Some(stretch)),
        None => look(db, walk).await.map(Some),
    }
}

/// Looks at the stretch that comes next. What is due on it is decided again by the statements that change it.
async fn look<D: Driver>(db: &mut D, walk: &mut Walk) -> QueryResult<Stretch> {
    let until = if let Some(until) = &walk.until {
        until.clone()
    } else {
        let end = db.texts(Sql(D::Dialect::TABLE_END)).await?.pop().flatten();
        let end = end.unwrap_or_else(|| walk.after.clone());
        walk.until.insert(end).clone()
    };
    let ahead = Look {
        after: walk.after.clone(),
        until: until.clone(),
    };
    let found = db.texts(ahead).await?.pop().flatten().unwrap_or(until);
    Ok(match found.strip_prefix("due ") {
        Some(upto) => Stretch {
            upto: upto.to_owned(),
            is_due: true,
        },
        None => Stretch {
            upto: found,
            is_due: false,
        },
    })
}

/// The statements that change rows. The deletions come first: a row that goes needs no blanking.
async fn change<D: Driver>(
    db: &mut D,
    walk: &Walk,
    stretch: Stretch,
    at_most: u32,
) -> QueryResult<Done> {
    let rows = |at_most: u32| Batch {
        after: walk.after.clone(),
        upto: stretch.upto.clone(),
        at_most: at_most.into(),
    };
    let forgotten = count(db.execute(Forget(rows(at_most))).await?);
    let left = at_most.saturating_sub(forgotten);
    let blanked = match left {
        0 => 0,
        left => count(db.execute(Blank(rows(left))).await?),
    };
    Ok(Done {
        upto: stretch.upto,
        forgotten,
        blanked,
    })
}

fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

/// On SQLite the write lock is what keeps two purges apart.
fn none_if_busy<T>(error: Error) -> Result<Option<T>, Error> {
    match error.kind() {
        ErrorKind::Busy { .. } => Ok(None),
        _ => Err(error),
    }
}

/// Without a pause there is no need of a timer.
async fn rest<D: Driver>(pause: Duration) {
    if !pause.is_zero() {
        D::pause(pause).await;
    }
}

/// What `other` gives, unless `stop` is done before; it must not be polled again then.
async fn unless<T>(mut stop: Pin<&mut impl Future>, other: impl Future<Output = T>) -> Option<T> {
    let mut other = pin!(other);
    poll_fn(|context| {
        if stop.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        other.as_mut().poll(context).map(Some)
    })
    .await
}

//! The end of retention: answers that have expired are blanked, rows that may go are deleted.
//!
//! A record has two horizons. From `expires_at` on its answer is not replayed any more, so it may be blanked: what stays, a tombstone,
//! still tells a late retry from a new intent. Only from `forget_at` on the row may go, and then the key is new. A message of the inbox has
//! the second one alone. An event of the outbox has none: it goes some time after it was delivered, which the options say. No duplicate is known
//! by it, so neither the retention of keys nor that of messages has a part in that. [`purge`] goes by these, by the database's time, and
//! touches nothing that is not done, however old it is: no record without an answer, no message that failed or was given up, and no
//! event that is pending, leased or dead.
//!
//! It walks through the records and the messages once, in the order in which the rows lie on disk, so that no call pays for an index on the
//! horizons; delivered events have one. Where nothing is due the tables are only read. It works in batches, each a transaction of its own,
//! and runs beside all calls:
//!
//! * It waits for no call. On PostgreSQL rows that somebody else holds are skipped, and come with the next run.
//! * A call waits for it at most as long as one batch takes, and only if its key is in the batch (on SQLite: if it writes).
//! * The tables take turns, a batch each, so that none waits for the end of another.
//! * One purge at a time works on a table; another one that comes to it is told so and ends ([`Ended::AnotherRunner`]).
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

use std::pin::pin;
use std::time::Duration;

use idem_core::Retention;

use crate::connection::{Flavor, IdempotentConnection, Run};
use crate::error::Error;

#[cfg(feature = "_async")]
mod periodically;
mod run;
mod sweep;
mod walk;

#[cfg(feature = "_async")]
pub use periodically::{MIN_EVERY, purge_periodically};

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

/// How long an event stays after it was delivered, unless the options say otherwise.
///
/// Nothing depends on it: it is for people who look for what was published, so a week covers a weekend and the question on Monday.
///
/// ```
/// use idem_diesel::retention::{DEFAULT_DELIVERED_FOR, Purge};
///
/// assert_eq!(Purge::new(), Purge::new().delivered_for(DEFAULT_DELIVERED_FOR));
/// ```
pub const DEFAULT_DELIVERED_FOR: Retention = Retention::literal("7d");

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
    delivered_for: Retention,
}

impl Purge {
    /// At most 1000 rows in a batch, 50 ms after a full one, 60 s for the whole run; 7 days for delivered events.
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
            delivered_for: DEFAULT_DELIVERED_FOR,
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
    /// Every run begins at the front of the tables. So let it be long enough to come to their ends: reading takes a part of a second for each
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

    /// How long an event stays in the outbox after it was delivered, by the database's time.
    ///
    /// That is independent of the retention of messages in an inbox, which must cover the longest time in which a broker may deliver one again:
    /// there the row is the memory, here it has done its work. An event that is not delivered stays, however long this is.
    ///
    /// ```
    /// use diesel::prelude::*;
    /// use idem_diesel::Retention;
    /// use idem_diesel::retention::{Purge, purge};
    ///
    /// # let mut db = SqliteConnection::establish(":memory:")?;
    /// # idem_diesel::ensure_schema(&mut db)?;
    /// # diesel::sql_query(
    /// #     "INSERT INTO outbox_events (tenant_id, id, aggregatetype, aggregateid, type)
    /// #      VALUES ('acme', '8e03978e-40d5-43e8-bc93-6894a57f9324', 'order', '17', 'order.placed')",
    /// # ).execute(&mut db)?;
    /// # diesel::sql_query(
    /// #     "INSERT INTO outbox_deliveries (tenant_id, event_id, aggregatetype, aggregateid, type, state, settled_at)
    /// #      VALUES ('acme', '8e03978e-40d5-43e8-bc93-6894a57f9324', 'order', '17', 'order.placed', 'delivered',
    /// #              strftime('%Y-%m-%d %H:%M:%f', 'now', '-3 days'))",
    /// # ).execute(&mut db)?;
    /// // An event was delivered 3 days ago.
    /// assert_eq!(purge(&mut db, &Purge::new())?.events, 0);
    /// let two_days = Purge::new().delivered_for(Retention::literal("2d"));
    /// assert_eq!(purge(&mut db, &two_days)?.events, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn delivered_for(self, retention: Retention) -> Self {
        Self {
            delivered_for: retention,
            ..self
        }
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
/// assert_eq!((purged.blanked, purged.forgotten), (0, 0));
/// assert_eq!((purged.messages, purged.events, purged.ended), (0, 0, Ended::Complete));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Purged {
    /// Records that lost their answer and became tombstones.
    pub blanked: u64,
    /// Records that were deleted.
    pub forgotten: u64,
    /// Messages that were deleted from the inbox.
    pub messages: u64,
    /// Events that were deleted from the outbox.
    pub events: u64,
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
    /// It has come to the end of each table as it was at the beginning: nothing that was due then is left, but for rows that somebody else held.
    Complete,
    /// The time was over; the rest is for the next run.
    TimeLimit,
    /// Another purge is at work on a table that this one came to, and goes on to the others. On SQLite, where the write lock is what
    /// keeps purges apart: any other writer was, for as long as this one was willing to wait.
    AnotherRunner,
    /// It was told to shut down.
    Shutdown,
}

/// Blanks answers that have expired, deletes records, messages and events that may go, and counts all.
///
/// A span of [`tracing`] at level INFO, with the target `idem_diesel::retention`, says what it did.
///
/// What is not done is left alone, whatever its age: a record without an answer, whose claim is running, leased or orphaned; a message that
/// failed or was given up; an event that is not delivered. Under row-level security it sees what the connection's role sees.
///
/// It goes through records and messages in the order of their tables' blocks on PostgreSQL, and of their primary keys on SQLite; which of the due
/// rows go first is not promised. PostgreSQL needs version 14 for that: an older one reads the whole table for each of its stretches.
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
/// [`UnfinishedTransaction`](crate::ErrorKind::UnfinishedTransaction), [`TableMissing`](crate::ErrorKind::TableMissing), or what the database
/// says. All tables of this library must be there, also those that the application does not use. Batches that were committed before stay,
/// and their numbers are in the span; a connection that is lost while COMMIT is on its way may have done one batch more.
///
/// # Cancellation
///
/// A dropped future rolls back the batch that it is in, as [`begin`](crate::begin()) says; all before are committed.
///
/// # SQL
///
/// Each batch of records is this in a transaction, about 512 blocks of the table. The second and third statement follow if the first says so;
/// on SQLite, where the first is about 5000 rows and without SKIP LOCKED, it stands before the transaction, which then is not even begun.
///
/// ```sql
/// SELECT EXISTS (SELECT 1 FROM api_idempotency WHERE ctid >= '(0,0)' AND ctid < '(512,0)' AND (forget_at <= now … OR expires_at <= now …));
/// DELETE FROM api_idempotency WHERE ctid = ANY (ARRAY(SELECT ctid FROM api_idempotency WHERE ctid >= '(0,0)' AND ctid < '(512,0)'
///     AND forget_at <= now AND state IN ('completed', 'failed') LIMIT 1000 FOR UPDATE SKIP LOCKED)) AND …;
/// UPDATE api_idempotency SET status_code = NULL, response_headers = NULL, response_body = NULL, codec = NULL WHERE ctid = ANY (ARRAY(…
///     AND expires_at <= now AND state IN ('completed', 'failed') AND codec IS NOT NULL LIMIT 1000 FOR UPDATE SKIP LOCKED)) AND …
/// ```
///
/// One of messages is the first two on `processed_messages`, `AND state IN ('processed')`. One of events has no stretch:
///
/// ```sql
/// SELECT 'due' WHERE EXISTS (SELECT 1 FROM outbox_deliveries WHERE state = 'delivered' AND settled_at <= now - 7 days);
/// DELETE FROM outbox_deliveries WHERE ctid = ANY (ARRAY(SELECT ctid FROM outbox_deliveries WHERE state = 'delivered'
///     AND settled_at <= now - 7 days ORDER BY settled_at LIMIT 1000 FOR UPDATE SKIP LOCKED)) AND … RETURNING tenant_id, event_id;
/// DELETE FROM outbox_events WHERE (tenant_id, id) IN (…)
/// ```
pub fn purge<'c, C: IdempotentConnection>(
    db: &'c mut C,
    options: &Purge,
) -> Run<'c, C, Result<Purged, Error>> {
    let options = *options;
    C::Flavor::run(async move {
        let mut purged = Purged::NOTHING;
        let shutdown = pin!(std::future::pending::<()>());
        run::run(db, &options, shutdown, &mut purged).await?;
        Ok(purged)
    })
}

impl Purged {
    const NOTHING: Self = Self {
        blanked: 0,
        forgotten: 0,
        messages: 0,
        events: 0,
        ended: Ended::Complete,
    };
}

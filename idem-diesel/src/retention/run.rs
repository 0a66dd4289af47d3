//! One run: the tables take turns, a batch each, until all are at their ends.
//!
//! Each batch is a transaction of its own, behind the lock of its table's purge. Turns are taken so that a large table does not keep the
//! others from being purged in a run whose time is too short for it.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use diesel::QueryResult;
use idem_core::limits::{DEFAULT_MAX_IDLE, DEFAULT_WAIT};
use idem_core::{ErrorKind, Nested};
use tracing::{Instrument, field};

use super::sweep::Sweep;
use super::walk::Walk;
use super::{Ended, Purge, Purged};
use crate::connection::IdempotentConnection;
use crate::dialect::Dialect;
use crate::driver::{Driver, Opening};
use crate::error::Error;
use crate::migrations::explain;
use crate::store::{DELIVERIES, MESSAGES, PurgeLock, RECORDS, Table};
use crate::transaction::Transaction;

/// One run, in a span that says what it did, also when it failed on the way.
pub(super) async fn run<C: IdempotentConnection, S: Future>(
    db: &mut C,
    options: &Purge,
    shutdown: Pin<&mut S>,
    purged: &mut Purged,
) -> Result<(), Error> {
    let span = tracing::info_span!(
        target: "idem_diesel::retention",
        "purge",
        blanked = field::Empty,
        forgotten = field::Empty,
        messages = field::Empty,
        events = field::Empty,
        ended = field::Empty,
    );
    let done = batches(db, options, shutdown, purged).instrument(span.clone());
    let done = done.await;
    span.record("blanked", purged.blanked);
    span.record("forgotten", purged.forgotten);
    span.record("messages", purged.messages);
    span.record("events", purged.events);
    match done {
        Ok(ended) => {
            span.record("ended", field::debug(ended));
            purged.ended = ended;
            Ok(())
        }
        Err(error) => Err(explain(db.inner(), error).await),
    }
}

/// What is left of a run in one table.
#[derive(Debug)]
enum Part {
    Records(Walk),
    Messages(Walk),
    Events(Sweep),
}

/// How many rows a batch changed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Changed {
    pub(super) forgotten: u32,
    pub(super) blanked: u32,
}

impl Changed {
    /// So many rows; a batch has fewer than this can hold.
    pub(super) fn count(rows: usize) -> u32 {
        u32::try_from(rows).unwrap_or(u32::MAX)
    }

    fn rows(self) -> u32 {
        self.forgotten.saturating_add(self.blanked)
    }
}

/// The batches of one run, until all parts are at their ends, or its time or another's word ends it.
async fn batches<C: IdempotentConnection, S: Future>(
    db: &mut C,
    options: &Purge,
    mut shutdown: Pin<&mut S>,
    purged: &mut Purged,
) -> Result<Ended, Error> {
    let started = Instant::now();
    let mut parts = VecDeque::from([
        Part::Records(Walk::new::<C::Inner>(RECORDS)),
        Part::Messages(Walk::new::<C::Inner>(MESSAGES)),
        Part::Events(Sweep::new(options.delivered_for, started)),
    ]);
    while let Some(mut part) = parts.pop_front() {
        let left = options.time_limit.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Ok(Ended::TimeLimit);
        }
        let patience = left.min(DEFAULT_WAIT);
        let Some(changed) = batch(db, &mut part, options.batch_rows, patience).await? else {
            return Ok(Ended::AnotherRunner);
        };
        part.count(changed, purged);
        // Behind a full batch there may be more, and only what was changed is not due any more: so either rows or places get fewer.
        if changed.rows() < options.batch_rows {
            part.pass();
        }
        if !part.is_over() {
            parts.push_back(part);
        }
        if parts.is_empty() {
            break;
        }
        let pause = options.pause_after(changed.rows());
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
    Ok(Ended::Complete)
}

impl Part {
    /// The table by whose lock purges are kept apart.
    fn table(&self) -> &'static Table {
        match self {
            Self::Records(walk) | Self::Messages(walk) => walk.table(),
            Self::Events(_) => DELIVERIES,
        }
    }

    async fn look<D: Driver>(&mut self, db: &mut D) -> QueryResult<bool> {
        match self {
            Self::Records(walk) | Self::Messages(walk) => walk.look(db).await,
            Self::Events(sweep) => sweep.look(db).await,
        }
    }

    async fn change<D: Driver>(&self, db: &mut D, at_most: u32) -> QueryResult<Changed> {
        match self {
            Self::Records(walk) | Self::Messages(walk) => walk.change(db, at_most).await,
            Self::Events(sweep) => sweep.change(db, at_most).await,
        }
    }

    fn count(&self, changed: Changed, purged: &mut Purged) {
        purged.blanked += u64::from(changed.blanked);
        *match self {
            Self::Records(_) => &mut purged.forgotten,
            Self::Messages(_) => &mut purged.messages,
            Self::Events(_) => &mut purged.events,
        } += u64::from(changed.forgotten);
    }

    fn pass(&mut self) {
        match self {
            Self::Records(walk) | Self::Messages(walk) => walk.pass(),
            Self::Events(sweep) => sweep.pass(),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Records(walk) | Self::Messages(walk) => walk.is_over(),
            Self::Events(sweep) => sweep.is_over(),
        }
    }
}

/// A purge that vanishes holds the rows of one batch, and no longer than a call would.
const OPENING: Opening = Opening {
    max_idle: Some(DEFAULT_MAX_IDLE),
    ..Opening::PLAIN
};

/// How a batch begins.
#[derive(Debug)]
enum Opened {
    /// Rows are due, and the transaction is open.
    Due,
    NothingDue,
    AnotherRunner,
}

/// One batch in a transaction of its own: what it did, or `None` if another purge is at work.
async fn batch<C: IdempotentConnection>(
    db: &mut C,
    part: &mut Part,
    at_most: u32,
    patience: Duration,
) -> Result<Option<Changed>, Error> {
    let mut transaction = Transaction::new(db, Nested::Refuse)?;
    transaction.set_patience(patience).await?;
    let opened = open(&mut transaction, part).await;
    transaction.restore_patience().await?;
    let changed = match opened {
        Ok(Opened::Due) => part.change(transaction.inner(), at_most).await,
        other => {
            transaction.rollback().await;
            return match other {
                Ok(Opened::AnotherRunner) => Ok(None),
                Ok(_) => Ok(Some(Changed::default())),
                Err(error) => none_if_busy(error.into()),
            };
        }
    };
    let changed = match changed {
        Ok(changed) => transaction.commit(patience).await.map(|()| changed),
        Err(error) => {
            transaction.rollback().await;
            Err(error)
        }
    };
    changed.map_or_else(
        |error| none_if_busy(error.into()),
        |changed| Ok(Some(changed)),
    )
}

/// Looks ahead, and opens the transaction: before the look, where a transaction can read first and write later, and else only if something
/// is due.
async fn open<C: IdempotentConnection>(
    transaction: &mut Transaction<'_, C>,
    part: &mut Part,
) -> QueryResult<Opened> {
    let looks_first = <C::Inner as Driver>::Dialect::READS_BEFORE_BEGIN;
    if looks_first && !part.look(transaction.inner()).await? {
        return Ok(Opened::NothingDue);
    }
    transaction.open(&OPENING, None).await?;
    let db = transaction.inner();
    if db.texts(PurgeLock(part.table())).await?.is_empty() {
        return Ok(Opened::AnotherRunner);
    }
    if looks_first || part.look(db).await? {
        Ok(Opened::Due)
    } else {
        Ok(Opened::NothingDue)
    }
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
pub(super) async fn unless<T>(
    mut stop: Pin<&mut impl Future>,
    other: impl Future<Output = T>,
) -> Option<T> {
    let mut other = pin!(other);
    poll_fn(|context| {
        if stop.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        other.as_mut().poll(context).map(Some)
    })
    .await
}

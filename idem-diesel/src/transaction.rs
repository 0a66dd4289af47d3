//! One call's transaction, and what happens to it when the call is dropped.

use std::time::Duration;

use diesel::QueryResult;
use diesel::query_builder::{QueryFragment, QueryId};
use diesel::result::Error as DieselError;

use crate::connection::IdempotentConnection;
use crate::driver::{
    Abandon, Abandoned, Driver, Entry, Last, Opening, Refused, Wait, open_one_level, reset_status,
};
use crate::error::{Error, kind_of};
use crate::migrations::explain;
use crate::running::Place;
use crate::store::{Read, Row};
use crate::texts::TextQuery;
use idem_core::limits::{DEFAULT_MAX_IDLE, DEFAULT_WAIT};
use idem_core::{ErrorKind, Isolation, Nested};

/// A connection inside a call. While a transaction is open on it, dropping it rolls back.
pub(crate) struct Transaction<'c, C: IdempotentConnection> {
    db: &'c mut C,
    entry: Entry,
    progress: Progress,
    /// The session's own patience with other writers, once it was looked at, where there is such a setting.
    own_patience: Option<Duration>,
    /// The same, while the session's is set to the call's.
    patience: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Nothing is open.
    Closed,
    /// Something is open, or about to be.
    Open,
    /// COMMIT is on its way, or the end of a joined call, whose effects are then in the caller's transaction.
    Ending,
}

impl<'c, C: IdempotentConnection> Transaction<'c, C> {
    /// Takes a connection that has no unfinished transaction, or one that the call joins: Diesel's test transaction alone, or
    /// any if `nested` says so.
    pub(crate) fn new(db: &'c mut C, nested: Nested) -> Result<Self, Error> {
        let entry = entry(db.inner(), nested)?;
        if entry == Entry::Own {
            Place::of(db.inner()).forget();
        }
        Ok(Self {
            db,
            entry,
            progress: Progress::Closed,
            own_patience: None,
            patience: None,
        })
    }

    pub(crate) fn connection(&mut self) -> &mut C {
        self.db
    }

    pub(crate) fn inner(&mut self) -> &mut C::Inner {
        self.db.inner()
    }

    pub(crate) fn entry(&self) -> Entry {
        self.entry
    }

    pub(crate) fn is_joined(&self) -> bool {
        matches!(self.entry, Entry::Joined { .. })
    }

    /// Opens the transaction, behind the wait if there is one. Whatever an error left of it is gone.
    pub(crate) async fn open(&mut self, opening: &Opening, wait: Option<Wait>) -> QueryResult<()> {
        self.open_with(opening, wait, None).await.map(drop)
    }

    /// [`open`](Self::open), then the read: without waiting in between, where the connection can do that.
    pub(crate) async fn open_and_read(
        &mut self,
        opening: &Opening,
        wait: Option<Wait>,
        read: Read,
    ) -> QueryResult<Row> {
        match self.open_with(opening, wait, Some(read)).await? {
            Some(row) => Ok(row),
            None => unreachable!("I13: what is read gives a row"),
        }
    }

    async fn open_with(
        &mut self,
        opening: &Opening,
        wait: Option<Wait>,
        read: Option<Read>,
    ) -> QueryResult<Option<Row>> {
        // Before the first message: a call that is dropped while it waits has opened something, too.
        self.progress = Progress::Open;
        if self.is_joined() {
            let text = self.entry.open_text();
            if let Err(error) = self.inner().batch(&text).await {
                // There is no savepoint to go back to, and what is open around it is the caller's.
                self.progress = Progress::Closed;
                return Err(error);
            }
            open_one_level(self.inner());
            let settled = async {
                self.inner().settle_in(opening, wait).await?;
                match read {
                    Some(read) => self.inner().read(read).await.map(Some),
                    None => Ok(None),
                }
            };
            let settled = settled.await;
            if settled.is_err() {
                self.rollback().await;
            }
            return settled;
        }
        let opened = self.open_own(opening, wait, read).await;
        self.closed_if_refused(opened).await
    }

    /// [`open`](Self::open), then the query: without waiting in between, where the connection can do that.
    pub(crate) async fn open_and_texts<Q>(
        &mut self,
        opening: &Opening,
        query: Q,
    ) -> QueryResult<Vec<Option<String>>>
    where
        Q: TextQuery<<C::Inner as Driver>::Dialect>,
    {
        if self.is_joined() {
            self.open(opening, None).await?;
            let texts = self.inner().texts(query).await;
            if texts.is_err() {
                self.rollback().await;
            }
            return texts;
        }
        self.progress = Progress::Open;
        let texts = self.inner().begin_and_texts(opening, query).await;
        self.closed_if_refused(texts).await
    }

    /// Whatever an error at the opening left is gone behind this.
    async fn closed_if_refused<T>(&mut self, opened: QueryResult<T>) -> QueryResult<T> {
        match &opened {
            Ok(_) => {}
            // An application that sent BEGIN by itself: what is open is its own.
            Err(error) if kind_of(error) == ErrorKind::UnfinishedTransaction => {
                self.progress = Progress::Closed;
            }
            Err(_) => self.rollback().await,
        }
        opened
    }

    async fn open_own(
        &mut self,
        opening: &Opening,
        mut wait: Option<Wait>,
        read: Option<Read>,
    ) -> QueryResult<Option<Row>> {
        // Above READ COMMITTED the first statement takes the snapshot for all, so the wait comes before it.
        let needs_fresh_snapshot = opening.isolation != Isolation::ReadCommitted;
        if let (Some(apart), Some(call), true) = (wait, &opening.call, needs_fresh_snapshot) {
            self.inner().wait_apart(call, apart).await?;
            wait = None;
        }
        match read {
            Some(read) => self
                .inner()
                .begin_and_read(opening, wait, read)
                .await
                .map(Some),
            None => self.inner().begin(opening, wait).await.map(|()| None),
        }
    }

    /// Stores and commits. Whatever comes of it, nothing is open then.
    pub(crate) async fn store_and_commit<S>(&mut self, last: Last<S>) -> Result<(), Refused>
    where
        S: QueryFragment<<C::Inner as Driver>::Dialect> + QueryId + Send + 'static,
    {
        self.progress = Progress::Ending;
        let mut ended = self.inner().store_and_commit(last).await;
        self.progress = Progress::Closed;
        if let Err(Refused::Close(error) | Refused::Store(error) | Refused::Commit(error)) =
            &mut ended
        {
            self.find_out_whether_lost(error).await;
        }
        ended
    }

    /// Commits, waiting for others that hold the database as long as `patience` says. An error leaves nothing open.
    pub(crate) async fn commit(&mut self, patience: Duration) -> QueryResult<()> {
        if self.is_joined() {
            let text = self.entry.release_text();
            self.progress = Progress::Ending;
            let released = self.inner().batch(&text).await;
            self.progress = Progress::Open;
            match &released {
                Ok(()) => self.close(),
                Err(_) => self.rollback().await,
            }
            return released;
        }
        self.set_patience(patience).await?;
        self.progress = Progress::Ending;
        let mut committed = self.inner().commit().await;
        if let Err(error) = &mut committed {
            self.find_out_whether_lost(error).await;
        }
        if committed.is_err() && self.levels_left_open() != Levels::Fewer {
            self.rollback().await;
        }
        self.progress = Progress::Closed;
        // The answer is known: an error here is about the next call.
        let _ = self.restore_patience().await;
        committed
    }

    /// A pooler that lost its server says so with an error of its own, which looks like any other. The next statement
    /// tells: on a connection that lives, the transaction has ended.
    async fn find_out_whether_lost(&mut self, error: &mut DieselError) {
        if kind_of(error) != ErrorKind::Database {
            return;
        }
        if let Err(probe) = self.inner().probe().await
            && kind_of(&probe) == ErrorKind::ConnectionLost
        {
            *error = probe;
        }
    }

    /// Rolls back what wrote nothing, without waiting for more than is needed.
    pub(crate) async fn leave(&mut self) {
        if self.is_joined() {
            return self.rollback().await;
        }
        self.forget_levels_of_the_body();
        let _ = self.inner().leave().await;
        self.close();
    }

    /// Rolls everything back. A connection that cannot even do that is marked broken by Diesel.
    pub(crate) async fn rollback(&mut self) {
        if self.progress == Progress::Closed {
            return;
        }
        // The error that led here is the one that the caller wants; a dead connection has rolled back by itself.
        if self.is_joined() {
            let text = self.entry.rollback_text();
            // A second one would find no savepoint, and end the caller's transaction with that.
            self.progress = Progress::Ending;
            let _ = self.inner().batch(&text).await;
        } else {
            self.forget_levels_of_the_body();
            let _ = self.inner().rollback().await;
        }
        self.close();
    }

    fn close(&mut self) {
        if self.is_joined() {
            let entry = self.entry;
            reset_status(self.inner(), entry);
        }
        self.progress = Progress::Closed;
    }

    /// Makes Diesel's account say that the level opened here is the innermost. The body may have left savepoints of its own open, or
    /// dropped a future of Diesel's that left a private flag set.
    pub(crate) fn forget_levels_of_the_body(&mut self) {
        let entry = self.entry;
        let db = self.inner();
        reset_status(db, entry);
        open_one_level(db);
    }

    /// Whether Diesel's account has the level that was opened here as its innermost.
    pub(crate) fn levels_left_open(&mut self) -> Levels {
        let expected = match self.entry {
            Entry::Own => 1,
            Entry::Joined { depth, .. } => depth.saturating_add(1),
        };
        match self.inner().status().transaction_depth() {
            Ok(Some(depth)) if depth.get() == expected => Levels::AsOpened,
            Ok(Some(depth)) if depth.get() > expected => Levels::More,
            _ => Levels::Fewer,
        }
    }

    /// Sets how long the session waits for another writer to the call's own patience, unless it waits as long by itself.
    pub(crate) async fn set_patience(&mut self, patience: Duration) -> QueryResult<()> {
        if self.own_patience.is_none() {
            self.own_patience = self.inner().patience().await?;
        }
        // First what it is, then what it shall be: a call that is dropped between the two still knows what to put back.
        self.patience = self.own_patience.filter(|own| *own != patience);
        if self.patience.is_some() {
            self.inner().set_patience(patience).await?;
        }
        Ok(())
    }

    /// Puts the session's patience back.
    pub(crate) async fn restore_patience(&mut self) -> QueryResult<()> {
        if let Some(before) = self.patience {
            self.inner().set_patience(before).await?;
            self.patience = None;
        }
        Ok(())
    }
}

/// Runs a query in a transaction of its own, with the patience of a call. A pooler that gives each transaction another server keeps the query together that way.
pub(crate) async fn alone<C, Q>(db: &mut C, query: Q) -> Result<Vec<String>, Error>
where
    C: IdempotentConnection,
    Q: TextQuery<<C::Inner as Driver>::Dialect>,
{
    let mut transaction = Transaction::new(db, Nested::Refuse)?;
    transaction.set_patience(DEFAULT_WAIT).await?;
    let opening = Opening {
        max_idle: Some(DEFAULT_MAX_IDLE),
        by_index: true,
        ..Opening::PLAIN
    };
    let texts = transaction.open_and_texts(&opening, query).await;
    transaction.restore_patience().await?;
    let done = match texts {
        Ok(texts) => transaction.commit(DEFAULT_WAIT).await.map(|()| texts),
        Err(error) => Err(error),
    };
    match done {
        Ok(texts) => Ok(texts.into_iter().flatten().collect()),
        Err(error) => Err(explain(transaction.inner(), error.into()).await),
    }
}

/// How many levels a body left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Levels {
    AsOpened,
    More,
    Fewer,
}

impl<C: IdempotentConnection> Drop for Transaction<'_, C> {
    fn drop(&mut self) {
        let (entry, patience) = (self.entry, self.patience.take());
        let was_open = self.progress != Progress::Closed;
        if !was_open && patience.is_none() {
            return;
        }
        // Behind a COMMIT there is nothing to roll back, unless the server refused it.
        let has_effects_to_take_back = match self.progress {
            Progress::Open => true,
            Progress::Ending => !self.is_joined(),
            Progress::Closed => false,
        };
        let abandon = Abandon {
            rollback: has_effects_to_take_back.then(|| entry.rollback_text()),
            may_cancel: self.progress == Progress::Open && !self.is_joined(),
            patience,
        };
        match self.inner().abandon(abandon) {
            Abandoned::Done if was_open => reset_status(self.inner(), entry),
            Abandoned::Failed if self.levels_left_open() == Levels::Fewer => {
                // There was nothing to roll back: the database had ended the transaction by itself.
                reset_status(self.inner(), entry);
            }
            // Nobody can say what is open on it now: no pool may hand it out again.
            Abandoned::Failed => self.inner().status().set_in_error(),
            Abandoned::Done | Abandoned::Broken | Abandoned::NotTried => {}
        }
    }
}

/// In which kind of transaction a call on this connection runs.
fn entry<D: Driver>(db: &mut D, nested: Nested) -> Result<Entry, Error> {
    let Some(open) = db.status().transaction_state()?.in_transaction.as_ref() else {
        // Nothing is open in Diesel's account, and yet it takes the connection for broken: a BEGIN of its own was dropped.
        return if db.is_broken() {
            Err(ErrorKind::UnfinishedTransaction.into())
        } else {
            Ok(Entry::Own)
        };
    };
    let (depth, is_test) = (open.transaction_depth.get(), open.test_transaction);
    if nested == Nested::Join || (is_test && depth == 1) {
        return Ok(Entry::Joined { depth, is_test });
    }
    Err(ErrorKind::UnfinishedTransaction.into())
}

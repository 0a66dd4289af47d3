//! One call's transaction, and what happens to it when the call is dropped.

use std::time::Duration;

use diesel::QueryResult;

use crate::connection::IdempotentConnection;
use crate::driver::{Driver, Entry, Opening, Wait, open_one_level, reset_status};
use crate::error::Error;
use idem_core::{ErrorKind, Isolation, Nested};

/// A connection inside a call. While a transaction is open on it, dropping it rolls back.
pub(crate) struct Transaction<'c, C: IdempotentConnection> {
    db: &'c mut C,
    entry: Entry,
    is_open: bool,
    /// The session's own patience, while it is set to the call's.
    patience: Option<Duration>,
}

impl<'c, C: IdempotentConnection> Transaction<'c, C> {
    /// Takes a connection that has no unfinished transaction, or one that the call joins: Diesel's test transaction alone, or
    /// any if `nested` says so.
    pub(crate) fn new(db: &'c mut C, nested: Nested) -> Result<Self, Error> {
        let entry = entry(db.inner(), nested)?;
        Ok(Self {
            db,
            entry,
            is_open: false,
            patience: None,
        })
    }

    pub(crate) fn connection(&mut self) -> &mut C {
        self.db
    }

    pub(crate) fn inner(&mut self) -> &mut C::Inner {
        self.db.inner()
    }

    pub(crate) fn is_joined(&self) -> bool {
        matches!(self.entry, Entry::Joined { .. })
    }

    /// Opens the transaction, behind the wait if there is one. Whatever an error left of it is gone.
    pub(crate) async fn open(&mut self, opening: &Opening, wait: Option<Wait>) -> QueryResult<()> {
        // Before the first message: a call that is dropped while it waits has opened something, too.
        self.is_open = true;
        let opened = self.try_open(opening, wait).await;
        if opened.is_err() {
            self.rollback().await;
        }
        opened
    }

    async fn try_open(&mut self, opening: &Opening, wait: Option<Wait>) -> QueryResult<()> {
        if self.is_joined() {
            self.inner().begin_savepoint().await?;
            return self.inner().settle_in(opening, wait).await;
        }
        // Above READ COMMITTED the first statement takes the snapshot for all, so the wait comes before it.
        let needs_fresh_snapshot = opening.isolation != Isolation::ReadCommitted;
        match wait {
            Some(wait) if needs_fresh_snapshot => {
                self.inner().wait_apart(wait).await?;
                self.inner().begin(opening, None).await
            }
            wait => self.inner().begin(opening, wait).await,
        }
    }

    /// Commits. An error leaves nothing open.
    pub(crate) async fn commit(mut self) -> QueryResult<()> {
        let committed = self.inner().commit().await;
        if committed.is_err() && self.levels_left_open() != Levels::Fewer {
            self.rollback().await;
        }
        self.is_open = false;
        committed
    }

    /// Rolls everything back. A connection that cannot even do that is marked broken by Diesel.
    pub(crate) async fn rollback(&mut self) {
        let entry = self.entry;
        let db = self.inner();
        // The body may have left savepoints of its own open.
        reset_status(db, entry);
        open_one_level(db);
        // The error that led here is the one that the caller wants; a dead connection has rolled back by itself.
        let _ = db.rollback().await;
        self.is_open = false;
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

    /// Sets how long the session waits for another writer to the call's own patience.
    pub(crate) async fn set_patience(&mut self, patience: Duration) -> QueryResult<()> {
        self.patience = self.inner().set_patience(patience).await?;
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

/// How many levels a body left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Levels {
    AsOpened,
    More,
    Fewer,
}

impl<C: IdempotentConnection> Drop for Transaction<'_, C> {
    fn drop(&mut self) {
        if self.is_open || self.patience.is_some() {
            let (entry, patience) = (self.entry, self.patience.take());
            self.inner().abandon(entry, patience);
        }
    }
}

/// In which kind of transaction a call on this connection runs.
fn entry<D: Driver>(db: &mut D, nested: Nested) -> Result<Entry, Error> {
    let Some(open) = db.status().transaction_state()?.in_transaction.as_ref() else {
        return Ok(Entry::Own);
    };
    let (depth, is_test) = (open.transaction_depth.get(), open.test_transaction);
    if nested == Nested::Join || (is_test && depth == 1) {
        return Ok(Entry::Joined { depth, is_test });
    }
    Err(ErrorKind::UnfinishedTransaction.into())
}

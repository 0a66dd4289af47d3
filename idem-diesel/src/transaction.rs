//! One call's transaction, and what happens to it when the call is dropped.

use std::time::Duration;

use diesel::QueryResult;

use crate::connection::IdempotentConnection;
use crate::driver::{Begin, Driver, Entry, open_one_level, reset_status};
use crate::error::Error;
use idem_core::ErrorKind;

/// A connection inside a call. While a transaction is open on it, dropping it rolls back.
pub(crate) struct Transaction<'c, C: IdempotentConnection> {
    db: &'c mut C,
    entry: Entry,
    is_open: bool,
    /// The session's own patience, while it is set to the call's.
    patience: Option<Duration>,
}

impl<'c, C: IdempotentConnection> Transaction<'c, C> {
    /// Takes a connection that has no unfinished transaction, or Diesel's test transaction alone.
    pub(crate) fn new(db: &'c mut C) -> Result<Self, Error> {
        let entry = entry(db.inner())?;
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
        self.entry == Entry::Joined
    }

    /// Opens the transaction. Whatever an error left of it is gone.
    pub(crate) async fn open(&mut self, begin: Begin) -> QueryResult<()> {
        // Before the first message: a call that is dropped while it waits has opened something, too.
        self.is_open = true;
        let opened = match (self.entry, begin) {
            (Entry::Own, begin) => self.inner().begin(begin).await,
            (Entry::Joined, Begin::AtOnce) => self.inner().begin_savepoint().await,
            (Entry::Joined, Begin::Waiting { lock, at_most }) => {
                match self.inner().begin_savepoint().await {
                    Ok(()) => self.inner().wait_for_lock(lock, at_most).await,
                    Err(error) => Err(error),
                }
            }
        };
        if opened.is_err() {
            self.rollback().await;
        }
        opened
    }

    /// Commits.
    pub(crate) async fn commit(mut self) -> QueryResult<()> {
        self.inner().commit().await?;
        self.is_open = false;
        Ok(())
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
            Entry::Joined => 2,
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
fn entry<D: Driver>(db: &mut D) -> Result<Entry, Error> {
    match db.status().transaction_state()?.in_transaction.as_ref() {
        None => Ok(Entry::Own),
        Some(open) if open.test_transaction && open.transaction_depth.get() == 1 => {
            Ok(Entry::Joined)
        }
        Some(_) => Err(ErrorKind::UnfinishedTransaction.into()),
    }
}

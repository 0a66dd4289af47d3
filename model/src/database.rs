//! What the database does for one key: a committed row, transactions that hold back theirs, the key's lock, the purge.

use idem_core::answer::End;

use crate::caller::{Payload, Receipt, Who};

/// Time goes in ticks; a record is made for one of them.
pub type Tick = u8;

/// After so many ticks an answer is not replayed any more.
pub const EXPIRES_AFTER: Tick = 1;

/// After so many ticks the row may go.
pub const FORGET_AFTER: Tick = 2;

/// The time at which the model ends: a record can expire twice, or be purged and made anew.
pub const LAST_TICK: Tick = 2;

/// The row of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Row {
    /// Whose hash it has.
    pub payload: Payload,
    /// The columns `state` and `response_body`.
    pub state: RowState,
    /// Counted from 1.
    pub attempt: u32,
    /// From then on the answer is not replayed.
    pub expires_at: Tick,
    /// From then on the row may be purged.
    pub forget_at: Tick,
}

/// How far the call of a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowState {
    /// Taken over, or marked for a person to look at.
    Pending,
    /// Ended, with its answer.
    Ended(End, Receipt),
    /// Ended, and the answer was blanked.
    Tombstone,
}

impl Row {
    /// A row that is written now and has no answer.
    pub fn pending(payload: Payload, attempt: u32, now: Tick) -> Self {
        Self {
            payload,
            state: RowState::Pending,
            attempt,
            expires_at: now + EXPIRES_AFTER,
            forget_at: now + FORGET_AFTER,
        }
    }

    /// The row with an answer that is stored now.
    #[must_use]
    pub fn ended(self, end: End, receipt: Receipt, now: Tick) -> Self {
        Self {
            state: RowState::Ended(end, receipt),
            ..Self::pending(self.payload, self.attempt, now)
        }
    }
}

/// The two things that an execution writes beside the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Writes {
    /// The transition of the entity.
    pub guard: bool,
    /// What the body wrote.
    pub body: bool,
}

impl Writes {
    /// Both.
    pub const ALL: Self = Self {
        guard: true,
        body: true,
    };
    /// Neither.
    pub const NONE: Self = Self {
        guard: false,
        body: false,
    };
}

/// The transaction of a won key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Transaction {
    /// False when it is over while its call goes on.
    pub is_open: bool,
    /// The transaction's own version of the row. A new key has none before its answer is stored.
    pub row: Option<Row>,
    /// What it wrote so far.
    pub writes: Writes,
    /// What it had written at its savepoint, if one is open.
    pub savepoint: Option<Writes>,
    /// The attempt as which its call runs; the first is that of a new key.
    pub attempt: u32,
    /// What its call will answer.
    pub receipt: Receipt,
    /// Whose call it is.
    pub by: Who,
    /// How its body ended.
    pub end: Option<End>,
    /// Whether its call read the key before the execution that it follows was marked.
    pub came_before_mark: bool,
    /// When the transaction first wrote the row.
    pub claimed_at: Option<Tick>,
    /// When the answer was stored.
    pub stored_at: Option<Tick>,
}

/// Who holds the key's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// The transaction of a caller.
    Caller(Who),
    /// A session whose client is gone, which the server has not noticed.
    Vanished,
}

/// The transaction of a client that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Vanished {
    /// `None`: it holds the lock and has written nothing.
    pub transaction: Option<Transaction>,
    /// Whether COMMIT may be on its way to the server.
    pub may_commit: bool,
}

/// An execution that was committed. Nobody in the model reads this but the promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Published {
    /// Its answer.
    pub receipt: Receipt,
    /// Whose call it was.
    pub by: Who,
    /// What became visible.
    pub writes: Writes,
    /// How its body ended; `None` when the body committed by itself.
    pub end: Option<End>,
    /// Whether its call read the key before the execution that it follows was marked.
    pub came_before_mark: bool,
    /// When its transaction first wrote the row; if it did not, when it was committed.
    pub claimed_at: Tick,
    /// When its answer was stored; `None`: never.
    pub stored_at: Option<Tick>,
    /// Whether it left a row without an answer, so that it is remembered for ever.
    pub is_marked: bool,
}

impl Published {
    /// Whether its body committed by itself, and nothing in the database says so.
    pub fn is_unknown(&self) -> bool {
        self.end.is_none() && !self.is_marked
    }
}

/// Everything that the database knows of the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Database {
    /// Its clock.
    pub now: Tick,
    /// The committed row.
    pub row: Option<Row>,
    /// The purge has deleted the committed row and not yet committed that.
    pub is_deleting: bool,
    /// Who holds the key's lock.
    pub lock: Option<Holder>,
    /// A session without a client.
    pub vanished: Option<Vanished>,
    /// All executions, in the order of their commits.
    pub published: Vec<Published>,
}

impl Database {
    /// `pg_try_advisory_xact_lock`: the lock is the caller's now, unless it is somebody else's.
    pub fn try_lock(&mut self, who: Who) {
        self.lock.get_or_insert(Holder::Caller(who));
    }

    /// Whether the lock is the caller's.
    pub fn is_locked_by(&self, who: Who) -> bool {
        self.lock == Some(Holder::Caller(who))
    }

    /// The end of a caller's transaction, as far as the lock goes.
    pub fn unlock(&mut self, who: Who) {
        if self.is_locked_by(who) {
            self.lock = None;
        }
    }

    /// Makes the writes of a transaction visible, all at once.
    pub fn publish(&mut self, transaction: &Transaction) {
        self.row = transaction.row.or(self.row);
        self.published.push(Published {
            receipt: transaction.receipt,
            by: transaction.by,
            writes: transaction.writes,
            end: transaction.end,
            came_before_mark: transaction.came_before_mark,
            claimed_at: transaction.claimed_at.unwrap_or(self.now),
            stored_at: transaction.stored_at,
            is_marked: transaction
                .row
                .is_some_and(|row| row.state == RowState::Pending),
        });
    }

    /// `INSERT … ON CONFLICT DO NOTHING` of a row for the execution that has this receipt.
    pub fn mark(&mut self, payload: Payload, receipt: Receipt) {
        if self.row.is_some() {
            return;
        }
        self.row = Some(Row::pending(payload, 1, self.now));
        // It comes too late for an execution that is not the newest any more.
        let newest = self.published.last_mut();
        if let Some(newest) = newest.filter(|newest| newest.receipt == receipt) {
            newest.is_marked = true;
        }
    }

    /// How many executions were committed by their bodies.
    pub fn committed_by_bodies(&self) -> usize {
        let published = self.published.iter();
        published
            .filter(|execution| execution.end.is_none())
            .count()
    }

    /// Whether nobody but the callers has a transaction open.
    pub fn has_only_callers(&self) -> bool {
        self.vanished.is_none() && !self.is_deleting
    }

    /// Whether the lock is the caller's, or could be.
    pub fn is_free_for(&self, who: Who) -> bool {
        self.lock.is_none() || self.is_locked_by(who)
    }

    /// The newest execution.
    pub fn newest(&self) -> Option<&Published> {
        self.published.last()
    }
}

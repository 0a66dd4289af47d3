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
    /// Claimed.
    Pending,
    /// Ended, with its answer.
    Ended(End, Receipt),
    /// Ended, and the answer was blanked.
    Tombstone,
}

impl Row {
    /// A row that is claimed now.
    pub fn claimed(payload: Payload, attempt: u32, now: Tick) -> Self {
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
            ..Self::claimed(self.payload, self.attempt, now)
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

/// The open transaction of a won key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Transaction {
    /// The transaction's own version of the row; `None` when the transaction is over while its call goes on.
    pub row: Option<Row>,
    /// What it wrote so far.
    pub writes: Writes,
    /// What it had written at its savepoint, if one is open.
    pub savepoint: Option<Writes>,
    /// The attempt as which its call runs.
    pub attempt: u32,
    /// What its call will answer.
    pub receipt: Receipt,
    /// Whose call it is.
    pub by: Who,
    /// How its body ended.
    pub end: Option<End>,
    /// When the key was won.
    pub claimed_at: Tick,
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
    /// When its key was won.
    pub claimed_at: Tick,
    /// When its answer was stored; `None`: never, so it is remembered for ever.
    pub stored_at: Option<Tick>,
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
    /// `pg_try_advisory_xact_lock`: whether the lock is the caller's now.
    pub fn try_lock(&mut self, who: Who) -> bool {
        let holder = *self.lock.get_or_insert(Holder::Caller(who));
        holder == Holder::Caller(who)
    }

    /// The end of a caller's transaction, as far as the lock goes.
    pub fn unlock(&mut self, who: Who) {
        if self.lock == Some(Holder::Caller(who)) {
            self.lock = None;
        }
    }

    /// Makes the writes of a transaction visible, all at once.
    pub fn publish(&mut self, transaction: &Transaction) {
        self.row = transaction.row;
        self.published.push(Published {
            receipt: transaction.receipt,
            by: transaction.by,
            writes: transaction.writes,
            end: transaction.end,
            claimed_at: transaction.claimed_at,
            stored_at: transaction.stored_at,
        });
    }

    /// Whether nobody but the callers has a transaction open.
    pub fn has_only_callers(&self) -> bool {
        self.vanished.is_none() && !self.is_deleting
    }

    /// Whether the lock is the caller's, or could be.
    pub fn is_free_for(&self, who: Who) -> bool {
        self.lock.is_none_or(|holder| holder == Holder::Caller(who))
    }

    /// The newest execution.
    pub fn newest(&self) -> Option<&Published> {
        self.published.last()
    }
}

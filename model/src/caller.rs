//! Who calls, with what, and how far each call is.

use idem_core::Late;
use idem_core::answer::End;

use crate::call::Step;
use crate::database::{Row, Transaction};

/// The three callers of the key. All of them may call at any time, so each can be the first or the late one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Who {
    /// Waits, may end with a final failure, and is rejected when it is late.
    Patient,
    /// Has the key, but another request. Nothing else stops it: it executes when it is late.
    Other,
    /// Retries the request of the patient one, and executes when it is late.
    Retrying,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Payload {
    /// What the key was made for.
    Right,
    /// Something else.
    Wrong,
}

/// What a body answers: by whom it was called, and for the how manyth time. No two executions have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Receipt(pub u8);

impl Who {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Patient, Self::Other, Self::Retrying];

    /// What it asks for.
    pub fn payload(self) -> Payload {
        match self {
            Self::Patient | Self::Retrying => Payload::Right,
            Self::Other => Payload::Wrong,
        }
    }

    /// What it gets when it is late.
    pub fn late(self) -> Late {
        match self {
            Self::Patient => Late::Reject,
            Self::Other | Self::Retrying => Late::Execute,
        }
    }

    /// Whether it waits for another call of the key.
    pub fn waits(self) -> bool {
        match self {
            Self::Patient | Self::Retrying => true,
            Self::Other => false,
        }
    }

    /// Whether its handler may end with a final failure, so that its body runs in a savepoint.
    pub fn may_fail(self) -> bool {
        match self {
            Self::Patient => true,
            Self::Other | Self::Retrying => false,
        }
    }

    /// How often it calls, whatever it is told.
    pub fn calls(self) -> u8 {
        match self {
            Self::Patient | Self::Retrying => 2,
            Self::Other => 1,
        }
    }

    /// The receipt of its call number `call`.
    pub fn receipt(self, call: u8) -> Receipt {
        let tens = match self {
            Self::Patient => 10,
            Self::Other => 20,
            Self::Retrying => 30,
        };
        Receipt(tens + call)
    }
}

/// What a call ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Told {
    /// It executed.
    Executed(Receipt),
    /// It got the answer of an earlier execution.
    Replayed {
        /// That answer.
        receipt: Receipt,
        /// How that execution had ended.
        end: End,
    },
    /// Its body ended with an error, so nothing was stored.
    Released,
    /// Somebody else has the key now.
    InFlight,
    /// The key is another request's.
    Mismatch,
    /// It came too late.
    Expired,
    /// A claim was committed without its answer.
    Orphaned,
    /// Its body had ended the transaction before its answer could be stored.
    RecordLost,
    /// A row was there before its answer could be stored. It left nothing.
    Conflict,
    /// The row is there and cannot be seen.
    RecordHidden,
    /// An error that a transactional call never gets.
    Unexpected,
}

/// How far a call is. Each phase ends with one statement, or with one thing that the server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// No call.
    Idle,
    /// A transaction is open and about to try the lock.
    Lock,
    /// The lock was tried; the read is about to take its snapshot.
    Read,
    /// The read has its snapshot and is about to read the time.
    Decide {
        /// The row in the snapshot.
        seen: Option<Row>,
    },
    /// The row is about to be taken over.
    TakeOver {
        /// As which attempt.
        attempt: u32,
        /// Whose request hash was read.
        seen: Payload,
    },
    /// A new transaction stands in the queue of the key's lock.
    Wait,
    /// The key is won.
    Run {
        /// What it has written so far.
        transaction: Transaction,
        /// What comes next.
        next: Step,
    },
    /// The body has ended the transaction by itself, and the key is about to be marked.
    Mark,
    /// COMMIT has happened, and the caller does not know it yet.
    Answer(Receipt),
}

/// One caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Caller {
    /// How often it has called.
    pub calls: u8,
    /// How far its call is.
    pub phase: Phase,
    /// How often this look at the key has begun anew.
    pub reads: u8,
    /// Whether its deadline is over.
    pub is_out_of_time: bool,
    /// What it saw before it waited. Only a mutant keeps that.
    pub kept: Option<Option<Row>>,
    /// Whether it read the key after a body had committed by itself and before that was marked. Only the promises look at this.
    pub came_before_mark: bool,
}

impl Caller {
    /// One that has not called yet.
    pub const NEW: Self = Self {
        calls: 0,
        phase: Phase::Idle,
        reads: 0,
        is_out_of_time: false,
        kept: None,
        came_before_mark: false,
    };

    /// Whether a call is on its way.
    pub fn is_calling(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Whether its next step neither shows in the database nor depends on it. Such a step is taken at once: it makes no difference
    /// for anybody what happens before it.
    pub fn is_private(&self) -> bool {
        match self.phase {
            Phase::Run { next, .. } => matches!(next, Step::Savepoint | Step::Guard | Step::Close),
            Phase::Answer(_) => true,
            _ => false,
        }
    }

    /// The next step of its execution.
    pub fn next_step(&self) -> Option<Step> {
        match self.phase {
            Phase::Run { next, .. } => Some(next),
            _ => None,
        }
    }

    /// Whether its transaction is that of a won key.
    pub fn executes(&self) -> bool {
        matches!(self.phase, Phase::Run { transaction, .. } if transaction.is_open)
    }

    /// Whether it has just won the key. What is left before the body is private, so nothing has happened since.
    pub fn begins(&self) -> bool {
        matches!(self.next_step(), Some(Step::Savepoint | Step::Guard))
    }

    /// Its transaction's own version of the row, which nobody else sees and which is in the way of every other writer.
    pub fn own_row(&self) -> Option<&Row> {
        match &self.phase {
            Phase::Run { transaction, .. } => transaction.row.as_ref(),
            _ => None,
        }
    }
}

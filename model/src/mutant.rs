//! Mistakes that somebody could make in the protocol. Each must break a promise, or the promises say too little.

/// One mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// The policy takes every request for the stored one.
    NoHashCompare,
    /// The policy looks at the time before it looks whether the call has ended.
    ExpiryBeforeState,
    /// The takeover does not ask whether the row is still as it was read.
    TakeoverWithoutCompareAndSet,
    /// The takeover compares state and attempt alone. They are those of another row when the one that was read was purged and the
    /// key used again, between the snapshot of the read and its lock.
    TakeoverByAttemptAlone,
    /// Who has waited decides on what it had seen before.
    NoReadAfterWait,
    /// The purge deletes what has expired.
    PurgeAtExpiry,
    /// The purge deletes pending rows, too.
    PurgePending,
    /// The answer is stored in a transaction of its own, after the one of the effects.
    StoreAfterCommit,
    /// The transition is written before the savepoint that a final failure goes back to.
    SavepointAfterGuard,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::NoHashCompare,
        Self::ExpiryBeforeState,
        Self::TakeoverWithoutCompareAndSet,
        Self::TakeoverByAttemptAlone,
        Self::NoReadAfterWait,
        Self::PurgeAtExpiry,
        Self::PurgePending,
        Self::StoreAfterCommit,
        Self::SavepointAfterGuard,
    ];
}

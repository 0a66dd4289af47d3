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
    /// key used again. Whoever has the key's lock is safe from that, so this one is looked for without it.
    TakeoverByAttemptAlone,
    /// The read takes its snapshot before it tries the lock: a row that was committed between the two is not seen.
    ReadBeforeLock,
    /// Who has waited decides on what it had seen before.
    NoReadAfterWait,
    /// The purge deletes what has expired.
    PurgeAtExpiry,
    /// The purge deletes pending rows, too.
    PurgePending,
    /// The answer is stored in a transaction of its own, after the one of the effects.
    StoreAfterCommit,
    /// The insert of the answer does not ask whether its transaction is the one in which the key was read.
    StoreWithoutTransactionCheck,
    /// Who finds that its body committed by itself says so, and leaves no mark.
    NoMark,
    /// Whose body errs is told that nothing was stored, without a look at whether the body committed by itself.
    ReleaseWithoutCheck,
    /// The transition is written before the savepoint that a final failure goes back to.
    SavepointAfterGuard,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::NoHashCompare,
        Self::ExpiryBeforeState,
        Self::TakeoverWithoutCompareAndSet,
        Self::TakeoverByAttemptAlone,
        Self::ReadBeforeLock,
        Self::NoReadAfterWait,
        Self::PurgeAtExpiry,
        Self::PurgePending,
        Self::StoreAfterCommit,
        Self::StoreWithoutTransactionCheck,
        Self::NoMark,
        Self::ReleaseWithoutCheck,
        Self::SavepointAfterGuard,
    ];
}

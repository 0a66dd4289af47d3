//! What must happen in some state, lest the promises be kept by a model in which nothing happens.

use idem_core::answer::End;

use crate::caller::{Phase, Told};
use crate::database::{Row, RowState};
use crate::promise::Condition;
use crate::system::State;

/// What happens whether or not calls use the lock of their key.
pub(crate) const WITNESSES: [(&str, Condition); 17] = [
    ("a call executes", |_, state| {
        told(state, |told| matches!(told, Told::Executed(_)))
    }),
    ("a result is replayed", |_, state| {
        told(state, |told| is_replay(told, End::Completed))
    }),
    ("a final failure is replayed", |_, state| {
        told(state, |told| is_replay(told, End::Failed))
    }),
    ("a body errs", |_, state| {
        told(state, |told| told == Told::Released)
    }),
    ("a call is a mismatch", |_, state| {
        told(state, |told| told == Told::Mismatch)
    }),
    ("a call is late", |_, state| {
        told(state, |told| told == Told::Expired)
    }),
    ("a claim is orphaned", |_, state| {
        told(state, |told| told == Told::Orphaned)
    }),
    ("a record is lost", |_, state| {
        told(state, |told| told == Told::RecordLost)
    }),
    ("a late retry executes", |_, state| {
        row(state, |row| row.attempt == 2 && is_ended(row))
    }),
    ("a late retry is late again", |_, state| {
        row(state, |row| row.attempt == 3 && is_ended(row))
    }),
    ("an answer is blanked", |_, state| {
        row(state, |row| row.state == RowState::Tombstone)
    }),
    ("a key is forgotten and used again", |_, state| {
        let executions = state.database.published.len();
        executions == 2 && row(state, |row| row.attempt == 1)
    }),
    ("a forgotten key is used for another request", |_, state| {
        let mut payloads = state.database.published.iter().map(|one| one.by.payload());
        let first = payloads.next();
        payloads.any(|payload| Some(payload) != first)
    }),
    ("a claim is blocked by the purge", |_, state| {
        state.database.is_deleting && phase(state, |phase| phase == Phase::Insert)
    }),
    ("a takeover is blocked by the purge", |_, state| {
        let is_takeover = |phase| matches!(phase, Phase::TakeOver { .. });
        state.database.is_deleting && phase(state, is_takeover)
    }),
    ("a look begins anew", |_, state| {
        state.callers.iter().any(|caller| caller.reads > 0)
    }),
    ("a session outlives its client", |_, state| {
        state.database.vanished.is_some()
    }),
];

/// What happens only with the lock.
pub(crate) const WITNESSES_OF_THE_LOCK: [(&str, Condition); 2] = [
    ("a call waits", |_, state| {
        phase(state, |phase| phase == Phase::Wait)
    }),
    ("a call is in flight", |_, state| {
        told(state, |told| told == Told::InFlight)
    }),
];

fn phase(state: &State, is: impl Fn(Phase) -> bool) -> bool {
    state.callers.iter().any(|caller| is(caller.phase))
}

fn told(state: &State, is: impl Fn(Told) -> bool) -> bool {
    state.told.is_some_and(|(_, told)| is(told))
}

fn row(state: &State, is: impl Fn(&Row) -> bool) -> bool {
    state.database.row.as_ref().is_some_and(is)
}

fn is_ended(row: &Row) -> bool {
    matches!(row.state, RowState::Ended(..))
}

fn is_replay(told: Told, of: End) -> bool {
    matches!(told, Told::Replayed { end, .. } if end == of)
}

//! What must happen in some state, lest the promises be kept by a model in which nothing happens.

use idem_core::answer::End;

use crate::call::Step;
use crate::caller::{Caller, Phase, Told};
use crate::database::{Row, RowState};
use crate::promise::Condition;
use crate::system::State;

/// What happens whether or not calls use the lock of their key.
pub(crate) const WITNESSES: [(&str, Condition); 15] = [
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
    ("a store is refused", |_, state| {
        told(state, |told| told == Told::Conflict)
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
        let mut published = state.database.published.iter();
        let is_all_stored = published.all(|execution| execution.stored_at.is_some());
        let executions = state.database.published.len();
        is_all_stored && executions == 2 && row(state, |row| row.attempt == 1)
    }),
    ("a forgotten key is used for another request", |_, state| {
        let published = state.database.published.iter();
        let stored = published.filter(|execution| execution.stored_at.is_some());
        let mut payloads = stored.map(|execution| execution.by.payload());
        let first = payloads.next();
        payloads.any(|payload| Some(payload) != first)
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
pub(crate) const WITNESSES_OF_THE_LOCK: [(&str, Condition); 7] = [
    ("a call waits", |_, state| {
        phase(state, |phase| phase == Phase::Wait)
    }),
    ("a call is in flight", |_, state| {
        told(state, |told| told == Told::InFlight)
    }),
    ("a record is lost", |_, state| {
        told(state, |told| told == Told::RecordLost)
    }),
    ("a claim is orphaned", |_, state| {
        told(state, |told| told == Told::Orphaned)
    }),
    ("a mark waits for a store", |_, state| {
        let has_row = state
            .callers
            .iter()
            .any(|caller| caller.own_row().is_some());
        has_row && phase(state, |phase| phase == Phase::Mark)
    }),
    ("a key is used again before it is marked", |_, state| {
        let mut published = state.database.published.iter();
        let first = published.next();
        published.len() > 0 && first.is_some_and(|first| first.end.is_none())
    }),
    ("a mark comes after the answer of another", |_, state| {
        let newest = state.database.newest();
        let is_answered = newest.is_some_and(|newest| newest.end.is_some());
        is_answered && row(state, |row| row.state == RowState::Pending)
    }),
];

/// What happens only without it.
pub(crate) const WITNESSES_WITHOUT_LOCK: [(&str, Condition); 2] = [
    ("two calls execute at once", |_, state| {
        let executing = state.callers.iter().filter(|caller| caller.executes());
        executing.count() == 2
    }),
    ("a store waits for the purge", |_, state| {
        let is_storing = |caller: &Caller| caller.next_step() == Some(Step::Store);
        state.database.is_deleting && state.callers.iter().any(is_storing)
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

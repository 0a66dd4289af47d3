//! What must hold in every state, and what must have happened in some, lest the promises be kept by a model that does nothing.

use idem_core::Late;
use idem_core::answer::End;
use stateright::{Expectation, Property};

use crate::call::BodyEnd;
use crate::caller::{Phase, Receipt, Told, Who};
use crate::database::{
    EXPIRES_AFTER, FORGET_AFTER, Holder, Published, RowState, Tick, Vanished, Writes,
};
use crate::mutant::Mutant;
use crate::system::{Action, Protocol, State};

/// A call that meets nobody has ended after so many steps.
const STEPS_OF_A_CALL: usize = 20;

type Condition = fn(&Protocol, &State) -> bool;

/// What holds in every state.
const ALWAYS: [(&str, Condition); 9] = [
    ("no second execution while the key is remembered", |_, state| {
        let pairs = state.database.published.array_windows::<2>();
        pairs.into_iter().all(|[first, second]| may_follow(first, second))
    }),
    ("a mismatch never executes", mismatch_never_executes),
    ("a replay equals the first answer", replay_is_first_answer),
    ("a final failure leaves no writes, a result leaves all", writes_match_end),
    ("an execution is answered with what it stored", executed_is_stored),
    ("an ended call leaves no claim and no lock", nothing_is_left),
    ("somebody can go on", somebody_can_go_on),
    ("a call that meets nobody ends with an answer or a known error", next_call_ends),
    ("an error has its reason", error_has_reason),
];

/// What holds in some state.
const SOMETIMES: [(&str, Condition); 17] = [
    ("a call executes", |_, state| told(state, |told| matches!(told, Told::Executed(_)))),
    ("a result is replayed", |_, state| told(state, |told| replayed(told, End::Completed))),
    ("a final failure is replayed", |_, state| told(state, |told| replayed(told, End::Failed))),
    ("a call is in flight", |_, state| told(state, |told| told == Told::InFlight)),
    ("a call is a mismatch", |_, state| told(state, |told| told == Told::Mismatch)),
    ("a call is late", |_, state| told(state, |told| told == Told::Expired)),
    ("a claim is orphaned", |_, state| told(state, |told| told == Told::Orphaned)),
    ("a record is lost", |_, state| told(state, |told| told == Told::RecordLost)),
    ("a call waits", |_, state| any_phase(state, |phase| phase == Phase::Wait)),
    ("a late call executes as the second attempt", |_, state| {
        state.database.row.is_some_and(|row| row.attempt == 2 && row.state != RowState::Pending)
    }),
    ("a late call executes as the third attempt", |_, state| {
        state.database.row.is_some_and(|row| row.attempt == 3 && row.state != RowState::Pending)
    }),
    ("a key is forgotten and used again", |_, state| {
        let attempt = state.database.row.map(|row| row.attempt);
        state.database.published.len() == 2 && attempt == Some(1)
    }),
    ("a forgotten key is used for another request", |_, state| {
        let pairs = state.database.published.array_windows::<2>();
        pairs.into_iter().any(|[first, second]| first.payload != second.payload)
    }),
    ("an answer is blanked", |_, state| {
        state.database.row.is_some_and(|row| row.state == RowState::Tombstone)
    }),
    ("a claim is blocked by the purge", |_, state| {
        state.database.is_deleting && any_phase(state, |phase| phase == Phase::Insert)
    }),
    ("a takeover is blocked by the purge", |_, state| {
        let is_take_over = |phase| matches!(phase, Phase::TakeOver { .. });
        state.database.is_deleting && any_phase(state, is_take_over)
    }),
    ("a session outlives its client", |_, state| state.database.vanished.is_some()),
];

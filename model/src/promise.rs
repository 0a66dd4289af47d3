//! What must hold in every state.

use idem_core::Late;
use idem_core::answer::End;

use crate::call::{BodyEnd, Step};
use crate::caller::{Caller, Phase, Told, Who};
use crate::database::{EXPIRES_AFTER, FORGET_AFTER, Holder, Published, RowState, Writes};
use crate::system::{Protocol, State};

/// A property of one state.
pub(crate) type Condition = fn(&Protocol, &State) -> bool;

/// More steps than a call takes that meets nobody.
const STEPS_OF_A_CALL: usize = 20;

/// The promises, by name.
pub(crate) const PROMISES: [(&str, Condition); 9] = [
    (
        "no second execution while the key is remembered",
        no_second_execution,
    ),
    ("a mismatch never executes", no_mismatch_executes),
    (
        "a replay equals the first answer",
        replays_are_first_answers,
    ),
    (
        "a result leaves all writes, a final failure none",
        writes_match_ends,
    ),
    (
        "who is told that it executed is remembered",
        executed_is_stored,
    ),
    ("an ended call leaves no claim and no lock", nothing_is_left),
    ("somebody can go on", somebody_can_go_on),
    ("a later call ends", later_calls_end),
    ("an error has its reason", errors_have_reasons),
];

/// Judged by the clock and by what was committed, not by the row that the protocol keeps.
fn no_second_execution(_: &Protocol, state: &State) -> bool {
    let published = &state.database.published;
    let mut pairs = published.iter().zip(published.iter().skip(1));
    pairs.all(|(first, second)| may_follow(*first, *second))
}

fn may_follow(first: Published, second: Published) -> bool {
    let Some(stored_at) = first.stored_at else {
        return false;
    };
    let is_forgotten = second.claimed_at >= stored_at + FORGET_AFTER;
    let is_expired = second.claimed_at >= stored_at + EXPIRES_AFTER;
    let is_late_retry =
        second.by.late() == Late::Execute && second.by.payload() == first.by.payload();
    is_forgotten || (is_expired && is_late_retry)
}

/// Also not in a transaction that will be rolled back.
fn no_mismatch_executes(_: &Protocol, state: &State) -> bool {
    let is_right = |who: &Who| match (state.caller(*who).own_row(), &state.database.row) {
        (Some(_), Some(committed)) => committed.payload == who.payload(),
        _ => true,
    };
    Who::ALL.iter().all(is_right)
}

fn replays_are_first_answers(_: &Protocol, state: &State) -> bool {
    let Some((who, Told::Replayed { receipt, end })) = state.told else {
        return true;
    };
    state.database.newest().is_some_and(|first| {
        let is_same_answer = first.receipt == receipt && first.end == Some(end);
        is_same_answer && first.by.payload() == who.payload()
    })
}

fn writes_match_ends(_: &Protocol, state: &State) -> bool {
    let is_whole = |execution: &Published| match execution.end {
        Some(End::Completed) => execution.writes == Writes::ALL,
        Some(End::Failed) => execution.writes == Writes::NONE,
        None => true,
    };
    state.database.published.iter().all(is_whole)
}

fn executed_is_stored(_: &Protocol, state: &State) -> bool {
    let Some((_, Told::Executed(receipt))) = state.told else {
        return true;
    };
    let newest = state.database.newest();
    newest.is_some_and(|execution| execution.receipt == receipt && execution.end.is_some())
}

/// No key is wedged: neither by a claim without an answer, nor by a lock that nobody gives back.
fn nothing_is_left(_: &Protocol, state: &State) -> bool {
    let database = &state.database;
    let is_running = |caller: &Caller| matches!(caller.phase, Phase::Run { .. });
    let has_claim = database
        .row
        .is_some_and(|row| row.state == RowState::Pending)
        && !state.callers.iter().any(is_running);
    let committed_itself = database.newest().is_some_and(|newest| newest.end.is_none());
    let is_held = match database.lock {
        None => true,
        Some(Holder::Vanished) => database.vanished.is_some(),
        Some(Holder::Caller(who)) => !matches!(
            state.caller(who).phase,
            Phase::Idle | Phase::Wait | Phase::Answer(_)
        ),
    };
    (!has_claim || committed_itself) && is_held
}

/// No call waits for ever: without a deadline, too, there is one that can move. As every call has a bounded number of steps, all
/// of them end.
fn somebody_can_go_on(protocol: &Protocol, state: &State) -> bool {
    let is_body = |who: Who| {
        let next = state.caller(who).next_step();
        next == Some(Step::Body)
    };
    let is_moving = |who: &Who| is_body(*who) || protocol.can_advance(state, *who);
    state.is_quiet() || !state.database.has_only_callers() || Who::ALL.iter().any(is_moving)
}

/// When everybody else has gone, whoever calls next executes, gets an answer, or is told why not. Everybody can go in every state:
/// calls are dropped, sessions end. So it is enough to look at the states in which they have.
fn later_calls_end(protocol: &Protocol, state: &State) -> bool {
    let ends = |who: &Who| match call_alone(protocol, state, *who) {
        Some(Told::Executed(_) | Told::Replayed { .. } | Told::Mismatch | Told::Expired) => true,
        Some(Told::Orphaned) => {
            let newest = state.database.newest();
            newest.is_some_and(|newest| newest.end.is_none())
        }
        _ => false,
    };
    !state.is_quiet() || Who::ALL.iter().all(ends)
}

/// What a call is told that nobody disturbs.
fn call_alone(protocol: &Protocol, state: &State, who: Who) -> Option<Told> {
    let mut state = state.clone();
    Protocol::start(&mut state, who);
    for _ in 0..STEPS_OF_A_CALL {
        match state.caller(who).phase {
            Phase::Idle => return state.told.map(|(_, told)| told),
            Phase::Run {
                next: Step::Body, ..
            } => protocol.end_body(&mut state, who, BodyEnd::Completes),
            _ if protocol.can_advance(&state, who) => protocol.advance(&mut state, who),
            _ => return None,
        }
    }
    None
}

/// Who did nothing wrong is not told so.
fn errors_have_reasons(_: &Protocol, state: &State) -> bool {
    let Some((who, told)) = state.told else {
        return true;
    };
    let database = &state.database;
    let any = |is_reason: &dyn Fn(&Published) -> bool| database.published.iter().any(is_reason);
    match told {
        Told::Mismatch => any(&|earlier| earlier.by.payload() != who.payload()),
        Told::Expired => any(&|earlier| {
            let stored_at = earlier.stored_at;
            stored_at.is_some_and(|stored_at| stored_at + EXPIRES_AFTER <= database.now)
        }),
        Told::Orphaned => any(&|earlier| earlier.end.is_none()),
        Told::RecordLost => {
            let receipt = who.receipt(state.caller(who).calls);
            any(&|own| own.receipt == receipt && own.end.is_none())
        }
        Told::RecordHidden | Told::Unexpected => false,
        Told::Executed(_)
        | Told::Replayed { .. }
        | Told::Released
        | Told::Nothing
        | Told::InFlight => true,
    }
}

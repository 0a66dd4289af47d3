//! What must hold in every state.

use idem_core::Late;
use idem_core::answer::End;

use crate::call::{BodyEnd, Step};
use crate::caller::{Phase, Told, Who};
use crate::database::{
    EXPIRES_AFTER, FORGET_AFTER, Holder, Published, Row, RowState, Tick, Writes,
};
use crate::system::{Protocol, State};

/// A property of one state.
pub(crate) type Condition = fn(&Protocol, &State) -> bool;

/// More steps than a call takes that meets nobody.
const STEPS_OF_A_CALL: usize = 20;

/// The promises, by name.
pub(crate) const PROMISES: [(&str, Condition); 12] = [
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
        "an answer is stored together with its effects",
        answers_have_effects,
    ),
    (
        "who is told that it executed is remembered",
        executed_is_stored,
    ),
    (
        "who is told that nothing is stored has left nothing",
        nothing_is_nothing,
    ),
    (
        "who is told that its record is lost leaves a row",
        lost_is_marked,
    ),
    ("an ended call leaves no claim and no lock", nothing_is_left),
    ("somebody can go on", somebody_can_go_on),
    ("a later call ends", later_calls_end),
    ("an error has its reason", errors_have_reasons),
];

/// What only the lock promises. Without it a body may run in vain: its answer is refused and its effects are rolled back.
pub(crate) const PROMISES_OF_THE_LOCK: [(&str, Condition); 2] = [
    (
        "no body begins while the key is remembered",
        no_body_in_vain,
    ),
    ("no two calls execute at once", one_at_a_time),
];

/// Judged by the clock and by what was committed, not by the row that the protocol keeps.
fn no_second_execution(_: &Protocol, state: &State) -> bool {
    let published = &state.database.published;
    let mut pairs = published.iter().zip(published.iter().skip(1));
    pairs.all(|(first, second)| {
        // An answer is refused behind the mark. A body that commits by itself, too, asks nobody.
        let is_excused = second.came_before_mark && (!first.is_marked || second.end.is_none());
        is_excused || may_follow(first, second.by, second.claimed_at)
    })
}

/// Whether an execution that is claimed at `claimed_at` may come right after `first`.
fn may_follow(first: &Published, by: Who, claimed_at: Tick) -> bool {
    let Some(stored_at) = first.stored_at else {
        return false;
    };
    let is_forgotten = claimed_at >= stored_at + FORGET_AFTER;
    let is_expired = claimed_at >= stored_at + EXPIRES_AFTER;
    let is_late_retry = by.late() == Late::Execute && by.payload() == first.by.payload();
    is_forgotten || (is_expired && is_late_retry)
}

/// With the lock, also not in a transaction that will be rolled back.
fn no_mismatch_executes(protocol: &Protocol, state: &State) -> bool {
    let is_wrong = |who: &Who| {
        let caller = state.caller(*who);
        let is_mismatch = |row: &Row| row.payload != who.payload();
        // A mark that came after the read is in the way of the store alone.
        let is_answer = |row: &Row| row.state != RowState::Pending;
        let begins = protocol.has_lock() && caller.begins();
        let executes = |row: &Row| caller.own_row().is_some() || (begins && is_answer(row));
        let committed = state.database.row.as_ref();
        committed.is_some_and(|row| is_mismatch(row) && executes(row))
    };
    !Who::ALL.iter().any(is_wrong)
}

/// Also not in a transaction that will be rolled back: it may have effects outside of the database.
fn no_body_in_vain(_: &Protocol, state: &State) -> bool {
    let database = &state.database;
    let is_wrong = |who: &Who| {
        let caller = state.caller(*who);
        let newest = database.newest();
        let is_second = newest.is_some_and(|newest| !may_follow(newest, *who, database.now));
        caller.begins() && is_second && !caller.came_before_mark
    };
    !Who::ALL.iter().any(is_wrong)
}

fn one_at_a_time(_: &Protocol, state: &State) -> bool {
    let executing = state.callers.iter().filter(|caller| caller.executes());
    let vanished = state.database.vanished.as_ref();
    let left = vanished.and_then(|vanished| vanished.transaction);
    executing.count() + usize::from(left.is_some()) <= 1
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

/// Neither effects without an answer nor an answer without effects, and not in two transactions.
fn answers_have_effects(_: &Protocol, state: &State) -> bool {
    let published = &state.database.published;
    let is_answered =
        |execution: &Published| execution.end.is_some() == execution.stored_at.is_some();
    let has_effects = match state.database.row.map(|row| row.state) {
        Some(RowState::Ended(end, receipt)) => published
            .iter()
            .any(|execution| execution.receipt == receipt && execution.end == Some(end)),
        _ => true,
    };
    published.iter().all(is_answered) && has_effects
}

fn executed_is_stored(_: &Protocol, state: &State) -> bool {
    let Some((_, Told::Executed(receipt))) = state.told else {
        return true;
    };
    let newest = state.database.newest();
    newest.is_some_and(|execution| execution.receipt == receipt && execution.stored_at.is_some())
}

fn nothing_is_nothing(_: &Protocol, state: &State) -> bool {
    let Some((who, Told::Released | Told::Conflict)) = state.told else {
        return true;
    };
    let receipt = who.receipt(state.caller(who).calls);
    let mut published = state.database.published.iter();
    published.all(|execution| execution.receipt != receipt)
}

/// Either its own mark, or the row of another call that came before the mark.
fn lost_is_marked(_: &Protocol, state: &State) -> bool {
    let is_lost = matches!(state.told, Some((_, Told::RecordLost)));
    !is_lost || state.database.row.is_some()
}

/// No key is wedged: neither by a claim without an answer, nor by a lock that nobody gives back.
fn nothing_is_left(_: &Protocol, state: &State) -> bool {
    let database = &state.database;
    let row = database.row;
    let has_claim = row.is_some_and(|row| row.state == RowState::Pending);
    let is_held = match database.lock {
        None => true,
        Some(Holder::Vanished) => database.vanished.is_some(),
        Some(Holder::Caller(who)) => !matches!(
            state.caller(who).phase,
            Phase::Idle | Phase::Wait | Phase::Mark | Phase::Answer(_)
        ),
    };
    (!has_claim || database.committed_by_bodies() > 0) && is_held
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
        Some(Told::Orphaned) => state.database.committed_by_bodies() > 0,
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
fn errors_have_reasons(protocol: &Protocol, state: &State) -> bool {
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
        Told::Orphaned => database.committed_by_bodies() > 0,
        // With the lock, only a mark can come between.
        Told::Conflict if protocol.has_lock() => database.committed_by_bodies() > 0,
        Told::Conflict => database.newest().is_some(),
        Told::RecordLost => {
            let receipt = who.receipt(state.caller(who).calls);
            any(&|own| own.receipt == receipt && own.end.is_none())
        }
        Told::RecordHidden | Told::Unexpected => false,
        Told::Executed(_) | Told::Replayed { .. } | Told::Released | Told::InFlight => true,
    }
}

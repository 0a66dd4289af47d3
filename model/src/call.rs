//! The steps of one call, as they stand in `guard.rs` and `claim.rs` of idem-diesel. Between any two of them everybody else may move.

use idem_core::answer::End;

use crate::caller::{Caller, Payload, Phase, Told, Who};
use crate::database::{Database, Row, RowState, Tick, Transaction, Writes};
use crate::mutant::Mutant;
use crate::policy::Next;
use crate::system::{Protocol, State};

/// How often a row that was there and then was not is looked for: `MAX_READS` of `claim.rs`.
const MAX_READS: u8 = 4;

/// The steps of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// SAVEPOINT, if the answer may be a final failure.
    Savepoint,
    /// The transition of the entity.
    Guard,
    /// The handler.
    Body,
    /// RELEASE, or ROLLBACK TO after a final failure.
    Close,
    /// The answer goes into the row.
    Store,
    /// COMMIT.
    Commit,
}

/// How a body can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodyEnd {
    /// With a result.
    Completes,
    /// With a final failure, after it wrote something.
    Fails,
    /// With an error.
    Errs,
    /// With a result, and with a COMMIT of its own, which it must not do.
    CommitsItself,
}

const AS_BUILT: [Step; 6] = [
    Step::Savepoint,
    Step::Guard,
    Step::Body,
    Step::Close,
    Step::Store,
    Step::Commit,
];

const SAVEPOINT_AFTER_GUARD: [Step; 6] = [
    Step::Guard,
    Step::Savepoint,
    Step::Body,
    Step::Close,
    Step::Store,
    Step::Commit,
];

const STORE_AFTER_COMMIT: [Step; 6] = [
    Step::Savepoint,
    Step::Guard,
    Step::Body,
    Step::Close,
    Step::Commit,
    Step::Store,
];

impl Protocol {
    /// The steps of an execution, in their order.
    fn plan(&self, who: Who) -> impl Iterator<Item = Step> {
        let plan = match self.mutant() {
            Some(Mutant::SavepointAfterGuard) => SAVEPOINT_AFTER_GUARD,
            Some(Mutant::StoreAfterCommit) => STORE_AFTER_COMMIT,
            _ => AS_BUILT,
        };
        let has_savepoint = who.may_fail();
        plan.into_iter()
            .filter(move |step| has_savepoint || !matches!(step, Step::Savepoint | Step::Close))
    }

    /// A new call.
    pub(crate) fn start(state: &mut State, who: Who) {
        let caller = state.caller_mut(who);
        caller.calls += 1;
        caller.phase = Phase::Claim;
    }

    /// Whether the next statement of a call can end now.
    pub(crate) fn can_advance(&self, state: &State, who: Who) -> bool {
        match state.caller(who).phase {
            // Whoever is idle starts, and a body ends in one of several ways.
            Phase::Idle
            | Phase::Run {
                next: Step::Body, ..
            } => false,
            // A row that somebody else is changing is waited for, whatever the lock says.
            Phase::Insert | Phase::TakeOver { .. } => !state.is_row_taken(who),
            Phase::Wait => !self.has_lock() || state.database.is_free_for(who),
            _ => true,
        }
    }

    /// The next statement of a call that can advance.
    pub(crate) fn advance(&self, state: &mut State, who: Who) {
        let caller = *state.caller(who);
        let phase = match caller.phase {
            Phase::Wait => {
                self.try_lock(state, who);
                Phase::Claim
            }
            Phase::Claim if self.try_lock(state, who) => Phase::Insert,
            Phase::Claim => Phase::Read,
            Phase::Insert if state.database.row.is_none() => self.won(state, who, 1),
            Phase::Insert => match caller.kept {
                Some(seen) => Phase::Decide { seen },
                None => Phase::Read,
            },
            Phase::Read => Phase::Decide {
                seen: state.database.row,
            },
            Phase::Decide { seen } => return self.decide(state, who, seen),
            Phase::TakeOver { attempt, seen } => {
                if !self.may_take_over(&state.database, attempt, seen) {
                    return look_again(state, who);
                }
                self.won(state, who, attempt)
            }
            Phase::Run { transaction, next } => return self.run(state, who, transaction, next),
            Phase::Answer(receipt) => return end_call(state, who, Told::Executed(receipt)),
            Phase::Idle => unreachable!("whoever is idle cannot advance"),
        };
        state.caller_mut(who).phase = phase;
    }

    /// The deadline is over before the lock was free. The row is looked at once more.
    pub(crate) fn stop_waiting(state: &mut State, who: Who) {
        let caller = state.caller_mut(who);
        caller.is_out_of_time = true;
        caller.phase = Phase::Claim;
    }

    /// Without the lock, the unique key alone decides.
    fn try_lock(&self, state: &mut State, who: Who) -> bool {
        !self.has_lock() || state.database.try_lock(who)
    }

    /// One look has read the row: its lock, its time, and what follows.
    fn decide(&self, state: &mut State, who: Who, seen: Option<Row>) {
        let is_locked = self.try_lock(state, who);
        if seen.is_none() && !is_locked {
            return self.contended(state, who, seen);
        }
        let now = state.database.now;
        match self.policy().next(seen.as_ref(), who, now, self.mutant()) {
            Next::Replay(end, receipt) => {
                end_call(state, who, Told::Replayed { receipt, end });
            }
            Next::Execute => look_again(state, who),
            Next::TakeOver { .. } if !is_locked => self.contended(state, who, seen),
            Next::TakeOver { attempt } => {
                let seen = seen.map_or(who.payload(), |row| row.payload);
                state.caller_mut(who).phase = Phase::TakeOver { attempt, seen };
            }
            Next::Reject(told) => end_call(state, who, told),
        }
    }

    /// Somebody else is changing the row now.
    fn contended(&self, state: &mut State, who: Who, seen: Option<Row>) {
        if !who.waits() || state.caller(who).is_out_of_time {
            return end_call(state, who, Told::InFlight);
        }
        state.database.unlock(who);
        let caller = state.caller_mut(who);
        caller.phase = Phase::Wait;
        caller.reads = 0;
        if self.mutant() == Some(Mutant::NoReadAfterWait) {
            caller.kept = Some(seen);
        }
    }

    /// The condition of the takeover, which is evaluated on the newest committed row, not on the one that was read.
    fn may_take_over(&self, database: &Database, attempt: u32, seen: Payload) -> bool {
        let Some(row) = database.row else {
            return false;
        };
        let is_attempt = row.state != RowState::Pending && row.attempt + 1 == attempt;
        let has_expired = row.state == RowState::Tombstone || row.expires_at <= database.now;
        match self.mutant() {
            Some(Mutant::TakeoverWithoutCompareAndSet) => true,
            Some(Mutant::TakeoverByAttemptAlone) => is_attempt,
            _ => is_attempt && row.payload == seen && has_expired,
        }
    }

    fn won(&self, state: &State, who: Who, attempt: u32) -> Phase {
        let now = state.database.now;
        let transaction = Transaction {
            row: Some(Row::claimed(who.payload(), attempt, now)),
            writes: Writes::NONE,
            savepoint: None,
            attempt,
            receipt: who.receipt(state.caller(who).calls),
            by: who,
            end: None,
            claimed_at: now,
            stored_at: None,
        };
        self.after(who, None, transaction)
    }

    /// What comes after a step of an execution; `None` is before the first.
    fn after(&self, who: Who, step: Option<Step>, transaction: Transaction) -> Phase {
        let mut plan = self.plan(who);
        if let Some(step) = step {
            plan.find(|planned| *planned == step);
        }
        match plan.next() {
            Some(next) => Phase::Run { transaction, next },
            None => Phase::Answer(transaction.receipt),
        }
    }

    fn run(&self, state: &mut State, who: Who, mut transaction: Transaction, step: Step) {
        let is_done = match step {
            Step::Savepoint => {
                transaction.savepoint = Some(transaction.writes);
                true
            }
            Step::Guard => {
                transaction.writes.guard = true;
                true
            }
            Step::Body => unreachable!("a body ends in one of several ways"),
            Step::Close => close(&mut transaction),
            Step::Store if self.mutant() == Some(Mutant::StoreAfterCommit) => {
                store_apart(&mut state.database, &transaction)
            }
            Step::Store => store(&mut transaction, state.database.now),
            Step::Commit => {
                // Outside of a transaction it does nothing.
                if transaction.row.is_some() {
                    state.database.publish(&transaction);
                    state.database.unlock(who);
                    transaction.row = None;
                }
                true
            }
        };
        if is_done {
            state.caller_mut(who).phase = self.after(who, Some(step), transaction);
        } else {
            end_call(state, who, Told::RecordLost);
        }
    }

    /// The end of a body.
    pub(crate) fn end_body(&self, state: &mut State, who: Who, end: BodyEnd) {
        let Phase::Run {
            mut transaction,
            next: Step::Body,
        } = state.caller(who).phase
        else {
            unreachable!("only a body that runs can end");
        };
        transaction.writes.body = true;
        match end {
            BodyEnd::Errs => return end_call(state, who, Told::Released),
            BodyEnd::Completes => transaction.end = Some(End::Completed),
            BodyEnd::Fails => transaction.end = Some(End::Failed),
            BodyEnd::CommitsItself => {
                state.database.publish(&transaction);
                state.database.unlock(who);
                // What the call does from here on is outside of any transaction, and its savepoint is gone.
                transaction.row = None;
                transaction.savepoint = None;
                transaction.end = Some(End::Completed);
            }
        }
        state.caller_mut(who).phase = self.after(who, Some(Step::Body), transaction);
    }
}

/// RELEASE or ROLLBACK TO; false without a savepoint.
fn close(transaction: &mut Transaction) -> bool {
    let Some(before) = transaction.savepoint.take() else {
        return false;
    };
    if transaction.end == Some(End::Failed) {
        transaction.writes = before;
    }
    true
}

/// One pending row of this attempt, written by this transaction, gets the answer; false without one.
fn store(transaction: &mut Transaction, now: Tick) -> bool {
    let attempt = transaction.attempt;
    match (&mut transaction.row, transaction.end) {
        (Some(row), Some(end)) if row.state == RowState::Pending && row.attempt == attempt => {
            *row = row.ended(end, transaction.receipt, now);
            transaction.stored_at = Some(now);
            true
        }
        _ => false,
    }
}

/// What a mutant does after its COMMIT: the row is updated in a transaction of its own, if it is still there.
fn store_apart(database: &mut Database, transaction: &Transaction) -> bool {
    let now = database.now;
    match (&mut database.row, transaction.end) {
        (Some(row), Some(end))
            if row.state == RowState::Pending && row.attempt == transaction.attempt =>
        {
            *row = row.ended(end, transaction.receipt, now);
            true
        }
        _ => false,
    }
}

/// The claim goes on with its next insert, unless that was the last.
fn look_again(state: &mut State, who: Who) {
    let caller = state.caller_mut(who);
    caller.reads += 1;
    caller.phase = Phase::Claim;
    if caller.reads == MAX_READS {
        end_call(state, who, Told::RecordHidden);
    }
}

/// A call is over. What is left of its transaction is rolled back.
pub(crate) fn end_call(state: &mut State, who: Who, told: Told) {
    state.database.unlock(who);
    let caller = state.caller_mut(who);
    *caller = Caller {
        calls: caller.calls,
        ..Caller::NEW
    };
    state.told = Some((who, told));
}

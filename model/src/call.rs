//! The steps of one call, as they stand in `guard.rs` and `claim.rs` of idem-diesel. Between any two of them everybody else may move.

use idem_core::answer::End;

use crate::caller::{Caller, Payload, Phase, Told, Who};
use crate::database::{Database, Published, Row, RowState, Tick, Transaction, Writes};
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
    /// A new key's row is inserted with the answer; the row of a takeover gets it.
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
    /// With a result, and with a COMMIT of its own, which it must not do. If it also begins anew, that is another transaction, and what
    /// follows is the same.
    CommitsItself,
    /// With an error, behind a COMMIT of its own.
    CommitsItselfAndErrs,
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
        caller.phase = Phase::Lock;
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
            Phase::TakeOver { .. }
            | Phase::Mark
            | Phase::Run {
                next: Step::Store, ..
            } => !state.is_row_taken(who),
            Phase::Wait => !self.has_lock() || state.database.is_free_for(who),
            _ => true,
        }
    }

    /// The next statement of a call that can advance.
    pub(crate) fn advance(&self, state: &mut State, who: Who) {
        let caller = *state.caller(who);
        let phase = match caller.phase {
            Phase::Wait => {
                state.database.try_lock(who);
                Phase::Lock
            }
            Phase::Lock => {
                if self.mutant() != Some(Mutant::ReadBeforeLock) {
                    state.database.try_lock(who);
                }
                match caller.kept {
                    Some(seen) => Phase::Decide { seen },
                    None => Phase::Read,
                }
            }
            Phase::Read => {
                let newest = state.database.newest();
                let came_before_mark = newest.is_some_and(Published::is_unknown);
                state.caller_mut(who).came_before_mark = came_before_mark;
                Phase::Decide {
                    seen: state.database.row,
                }
            }
            Phase::Decide { seen } => return self.decide(state, who, seen),
            Phase::TakeOver { attempt, seen } => {
                if !self.may_take_over(&state.database, attempt, seen) {
                    return look_again(state, who);
                }
                let now = state.database.now;
                let row = Row::pending(who.payload(), attempt, now);
                self.won(state, who, attempt, Some(row))
            }
            Phase::Run { transaction, next } => return self.run(state, who, transaction, next),
            Phase::Mark => {
                let receipt = who.receipt(caller.calls);
                state.database.mark(who.payload(), receipt);
                return end_call(state, who, Told::RecordLost);
            }
            Phase::Answer(receipt) => return end_call(state, who, Told::Executed(receipt)),
            Phase::Idle => unreachable!("whoever is idle cannot advance"),
        };
        state.caller_mut(who).phase = phase;
    }

    /// The deadline is over before the lock was free. The row is looked at once more.
    pub(crate) fn stop_waiting(state: &mut State, who: Who) {
        let caller = state.caller_mut(who);
        caller.is_out_of_time = true;
        caller.phase = Phase::Lock;
    }

    /// One look has read the row: its time, and what follows. What is committed is told with or without the lock.
    fn decide(&self, state: &mut State, who: Who, seen: Option<Row>) {
        if self.mutant() == Some(Mutant::ReadBeforeLock) {
            state.database.try_lock(who);
        }
        let is_mine = !self.has_lock() || state.database.is_locked_by(who);
        let now = state.database.now;
        match self.policy().next(seen.as_ref(), who, now, self.mutant()) {
            Next::Replay(end, receipt) => {
                end_call(state, who, Told::Replayed { receipt, end });
            }
            Next::Reject(told) => end_call(state, who, told),
            Next::Execute | Next::TakeOver { .. } if !is_mine => self.contended(state, who, seen),
            Next::Execute => state.caller_mut(who).phase = self.won(state, who, 1, None),
            Next::TakeOver { attempt } => {
                let seen = seen.map_or(who.payload(), |row| row.payload);
                state.caller_mut(who).phase = Phase::TakeOver { attempt, seen };
            }
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

    fn won(&self, state: &State, who: Who, attempt: u32, row: Option<Row>) -> Phase {
        let transaction = Transaction {
            is_open: true,
            row,
            writes: Writes::NONE,
            savepoint: None,
            attempt,
            receipt: who.receipt(state.caller(who).calls),
            by: who,
            end: None,
            came_before_mark: state.caller(who).came_before_mark,
            claimed_at: row.map(|_| state.database.now),
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
        let done = match step {
            Step::Savepoint => {
                transaction.savepoint = Some(transaction.writes);
                Ok(())
            }
            Step::Guard => {
                transaction.writes.guard = true;
                Ok(())
            }
            Step::Body => unreachable!("a body ends in one of several ways"),
            Step::Close => close(&mut transaction),
            Step::Store if transaction.is_open => store(&state.database, &mut transaction),
            Step::Store if self.stores_apart(&transaction) => {
                store_apart(&mut state.database, &transaction)
            }
            Step::Store => Err(Told::RecordLost),
            Step::Commit => {
                // Outside of a transaction it does nothing.
                if transaction.is_open {
                    commit(&mut state.database, &mut transaction);
                }
                Ok(())
            }
        };
        match done {
            Ok(()) => state.caller_mut(who).phase = self.after(who, Some(step), transaction),
            Err(Told::RecordLost) => self.lost(state, who),
            Err(told) => end_call(state, who, told),
        }
    }

    /// The body has ended its transaction by itself.
    fn lost(&self, state: &mut State, who: Who) {
        if self.mutant() == Some(Mutant::NoMark) {
            return end_call(state, who, Told::RecordLost);
        }
        state.caller_mut(who).phase = Phase::Mark;
    }

    /// Whether a mutant stores an answer outside of the transaction of its effects.
    fn stores_apart(&self, transaction: &Transaction) -> bool {
        match self.mutant() {
            Some(Mutant::StoreAfterCommit) => true,
            Some(Mutant::StoreWithoutTransactionCheck) => transaction.attempt == 1,
            _ => false,
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
                commit(&mut state.database, &mut transaction);
                transaction.end = Some(End::Completed);
            }
            BodyEnd::CommitsItselfAndErrs => {
                commit(&mut state.database, &mut transaction);
                if self.mutant() == Some(Mutant::ReleaseWithoutCheck) {
                    return end_call(state, who, Told::Released);
                }
                return self.lost(state, who);
            }
        }
        state.caller_mut(who).phase = self.after(who, Some(Step::Body), transaction);
    }
}

/// COMMIT. What the call does from here on is outside of any transaction, and its savepoint is gone.
fn commit(database: &mut Database, transaction: &mut Transaction) {
    database.publish(transaction);
    database.unlock(transaction.by);
    transaction.is_open = false;
    transaction.row = None;
    transaction.savepoint = None;
}

/// RELEASE or ROLLBACK TO, which fails without a savepoint.
fn close(transaction: &mut Transaction) -> Result<(), Told> {
    let before = transaction.savepoint.take().ok_or(Told::RecordLost)?;
    if transaction.end == Some(End::Failed) {
        transaction.writes = before;
    }
    Ok(())
}

/// The row of a takeover gets the answer. A new key's row is inserted with it, which fails if there is one.
fn store(database: &Database, transaction: &mut Transaction) -> Result<(), Told> {
    let now = database.now;
    if transaction.row.is_none() && database.row.is_some() {
        return Err(Told::Conflict);
    }
    transaction.row = Some(answered(transaction, now)?);
    transaction.claimed_at.get_or_insert(now);
    transaction.stored_at = Some(now);
    Ok(())
}

/// What a mutant does outside of the transaction of the effects: the same, in a transaction of its own.
fn store_apart(database: &mut Database, transaction: &Transaction) -> Result<(), Told> {
    let is_new = transaction.attempt == 1;
    match database.row {
        Some(_) if is_new => return Err(Told::Conflict),
        Some(row) if row.state == RowState::Pending && row.attempt == transaction.attempt => {}
        None if is_new => {}
        _ => return Err(Told::RecordLost),
    }
    database.row = Some(answered(transaction, database.now)?);
    Ok(())
}

/// The row with the answer of an execution whose body has ended.
fn answered(transaction: &Transaction, now: Tick) -> Result<Row, Told> {
    let end = transaction.end.ok_or(Told::Unexpected)?;
    let row = Row::pending(transaction.by.payload(), transaction.attempt, now);
    Ok(row.ended(end, transaction.receipt, now))
}

/// The row was not taken over, so it is read again, unless that was the last time.
fn look_again(state: &mut State, who: Who) {
    let caller = state.caller_mut(who);
    caller.reads += 1;
    caller.phase = Phase::Read;
    if caller.reads == MAX_READS {
        end_call(state, who, Told::RecordHidden);
    }
}

/// A call is over, and its caller is told so.
pub(crate) fn end_call(state: &mut State, who: Who, told: Told) {
    hang_up(state, who);
    state.told = Some((who, told));
}

/// A call is over, and nobody is told. What is left of its transaction is rolled back.
pub(crate) fn hang_up(state: &mut State, who: Who) {
    state.database.unlock(who);
    let caller = state.caller_mut(who);
    *caller = Caller {
        calls: caller.calls,
        ..Caller::NEW
    };
}

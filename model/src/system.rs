//! Everything together: a state, and what can happen next in it.

use std::sync::Arc;

use stateright::{Model, Property};

use crate::call::{BodyEnd, Step, hang_up};
use crate::caller::{Caller, Phase, Told, Who};
use crate::database::{Database, Holder, LAST_TICK, RowState, Vanished};
use crate::mutant::Mutant;
use crate::policy::Policy;
use crate::promise::{PROMISES, PROMISES_OF_THE_LOCK};
use crate::witness::{WITNESSES, WITNESSES_OF_THE_LOCK, WITNESSES_WITHOUT_LOCK};

/// How many bodies commit by themselves: one, and one that has read the key before the first was marked.
const MAX_BODIES: usize = 2;

/// What the model is told to check.
#[derive(Debug, Clone)]
pub struct Protocol {
    policy: Arc<Policy>,
    mutant: Option<Mutant>,
    locking: Locking,
}

/// Whether calls use the lock of their key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Locking {
    WithLock,
    UniqueKeyAlone,
}

/// A state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// The database.
    pub database: Database,
    /// The callers, in the order of [`Who::ALL`].
    pub callers: [Caller; 3],
    /// What somebody was told just now.
    pub told: Option<(Who, Told)>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            database: Database::default(),
            callers: [Caller::NEW; 3],
            told: None,
        }
    }
}

impl State {
    /// One of the callers.
    pub fn caller(&self, who: Who) -> &Caller {
        let [patient, other, retrying] = &self.callers;
        match who {
            Who::Patient => patient,
            Who::Other => other,
            Who::Retrying => retrying,
        }
    }

    pub(crate) fn caller_mut(&mut self, who: Who) -> &mut Caller {
        let [patient, other, retrying] = &mut self.callers;
        match who {
            Who::Patient => patient,
            Who::Other => other,
            Who::Retrying => retrying,
        }
    }

    /// The same, and what was told last is past.
    pub(crate) fn before_next_step(&self) -> Self {
        Self {
            told: None,
            ..self.clone()
        }
    }

    /// Whether a transaction that is not this caller's has inserted, changed or deleted the row and is still open.
    pub(crate) fn is_row_taken(&self, who: Who) -> bool {
        let by_another =
            |another: &Who| *another != who && self.caller(*another).own_row().is_some();
        self.database.is_deleting || self.is_row_vanished() || Who::ALL.iter().any(by_another)
    }

    fn is_row_vanished(&self) -> bool {
        let vanished = self.database.vanished.as_ref();
        vanished.is_some_and(|vanished| vanished.transaction.is_some())
    }

    /// Whether any open transaction has its own version of the row.
    fn is_row_changing(&self) -> bool {
        let by_caller = self.callers.iter().any(|caller| caller.own_row().is_some());
        by_caller || self.is_row_vanished() || self.database.is_deleting
    }

    /// Whether the server would keep something for this caller if its client died.
    fn holds_something(&self, who: Who) -> bool {
        self.database.is_locked_by(who) || self.caller(who).own_row().is_some()
    }

    /// The client of a call dies. Its session stays on the server, with all that it holds, until the server notices.
    fn crash(&mut self, who: Who) {
        let caller = *self.caller(who);
        let (transaction, may_commit) = match caller.phase {
            Phase::Run { transaction, next } if transaction.row.is_some() => {
                (Some(transaction), next == Step::Commit)
            }
            _ => (None, false),
        };
        if self.database.is_locked_by(who) {
            self.database.lock = Some(Holder::Vanished);
        }
        self.database.vanished = Some(Vanished {
            transaction,
            may_commit,
        });
        hang_up(self, who);
    }

    /// The server ends a session whose client is gone.
    fn end_vanished(&mut self) -> Option<Vanished> {
        if self.database.lock == Some(Holder::Vanished) {
            self.database.lock = None;
        }
        self.database.vanished.take()
    }

    /// Whether nobody has a transaction open, and no call is on its way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.database.has_only_callers() && !self.callers.iter().any(Caller::is_calling)
    }
}

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A caller calls.
    Start(Who),
    /// The next statement of a call.
    Advance(Who),
    /// A body ends.
    EndBody(Who, BodyEnd),
    /// A call has waited as long as it may.
    StopWaiting(Who),
    /// A client dies.
    Crash(Who),
    /// A call is dropped: its transaction is rolled back at once.
    Drop(Who),
    /// The server rolls back what a dead client left.
    RollBackVanished,
    /// The COMMIT of a client that died behind it arrives.
    CommitVanished,
    /// Time passes.
    Tick,
    /// The purge deletes the row.
    PurgeDeletes,
    /// The purge commits.
    PurgeCommits,
    /// The purge fails.
    PurgeFails,
    /// The answer of an expired row is blanked.
    Blank,
}

impl Protocol {
    /// The protocol of the library.
    pub fn as_built() -> Self {
        Self {
            policy: Arc::default(),
            mutant: None,
            locking: Locking::WithLock,
        }
    }

    /// The protocol with a mistake in it.
    pub fn with(mutant: Mutant) -> Self {
        let right = match mutant {
            Mutant::TakeoverByAttemptAlone => Self::without_lock(),
            _ => Self::as_built(),
        };
        Self {
            mutant: Some(mutant),
            ..right
        }
    }

    /// The protocol without the lock of the key, for bodies that leave their transaction alone.
    pub fn without_lock() -> Self {
        Self {
            locking: Locking::UniqueKeyAlone,
            ..Self::as_built()
        }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn mutant(&self) -> Option<Mutant> {
        self.mutant
    }

    pub(crate) fn has_lock(&self) -> bool {
        self.locking == Locking::WithLock
    }

    /// What can happen without a new call, a fault or time: those who are busy go on.
    fn goes_on(&self, state: &State, actions: &mut Vec<Action>) {
        for who in Who::ALL {
            if self.can_advance(state, who) {
                actions.push(Action::Advance(who));
            }
            match state.caller(who).phase {
                Phase::Wait => actions.push(Action::StopWaiting(who)),
                Phase::Run {
                    next: Step::Body, ..
                } => {
                    let ends = [BodyEnd::Completes, BodyEnd::Errs];
                    actions.extend(ends.map(|end| Action::EndBody(who, end)));
                    if who.may_fail() {
                        actions.push(Action::EndBody(who, BodyEnd::Fails));
                    }
                }
                _ => {}
            }
        }
        if let Some(vanished) = &state.database.vanished {
            actions.push(Action::RollBackVanished);
            if vanished.may_commit {
                actions.push(Action::CommitVanished);
            }
        }
        if state.database.is_deleting {
            actions.extend([Action::PurgeCommits, Action::PurgeFails]);
        }
    }

    /// What goes wrong with a call.
    fn goes_wrong(&self, state: &State, who: Who, actions: &mut Vec<Action>) {
        let caller = state.caller(who);
        if !caller.is_calling() {
            return;
        }
        actions.push(Action::Drop(who));
        // For a call that holds nothing, to die is to be dropped.
        if state.holds_something(who) {
            actions.push(Action::Crash(who));
        }
        // Without the lock, nothing keeps such a body from committing what was executed and stored while it ran.
        let may_commit = self.has_lock() && state.database.committed_by_bodies() < MAX_BODIES;
        if caller.next_step() == Some(Step::Body) && may_commit {
            let ends = [BodyEnd::CommitsItself, BodyEnd::CommitsItselfAndErrs];
            actions.extend(ends.map(|end| Action::EndBody(who, end)));
        }
    }

    /// What time and operators do.
    fn grows_old(&self, state: &State, actions: &mut Vec<Action>) {
        let database = &state.database;
        if database.now < LAST_TICK {
            actions.push(Action::Tick);
        }
        // What another transaction is changing is skipped.
        let Some(row) = database.row.filter(|_| !state.is_row_changing()) else {
            return;
        };
        let may_go = match self.mutant {
            Some(Mutant::PurgeAtExpiry) => {
                row.state != RowState::Pending && row.expires_at <= database.now
            }
            Some(Mutant::PurgePending) => row.forget_at <= database.now,
            _ => row.state != RowState::Pending && row.forget_at <= database.now,
        };
        if may_go {
            actions.push(Action::PurgeDeletes);
        }
        let has_answer = matches!(row.state, RowState::Ended(..));
        if has_answer && row.expires_at <= database.now {
            actions.push(Action::Blank);
        }
    }

    /// The state after an action.
    pub(crate) fn after_action(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.before_next_step();
        match action {
            Action::Start(who) => Self::start(&mut state, who),
            Action::Advance(who) => self.advance(&mut state, who),
            Action::EndBody(who, end) => self.end_body(&mut state, who, end),
            Action::StopWaiting(who) => Self::stop_waiting(&mut state, who),
            Action::Crash(who) => state.crash(who),
            Action::Drop(who) => hang_up(&mut state, who),
            Action::RollBackVanished => {
                state.end_vanished();
            }
            Action::CommitVanished => {
                let transaction = state.end_vanished().and_then(|left| left.transaction);
                state.database.publish(&transaction?);
            }
            Action::Tick => state.database.now += 1,
            Action::PurgeDeletes => state.database.is_deleting = true,
            Action::PurgeCommits => {
                state.database.is_deleting = false;
                state.database.row = None;
            }
            Action::PurgeFails => state.database.is_deleting = false,
            Action::Blank => state.database.row.as_mut()?.state = RowState::Tombstone,
        }
        Some(state)
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if let Some(who) = Who::ALL
            .into_iter()
            .find(|who| state.caller(*who).is_private())
        {
            actions.push(Action::Advance(who));
            return self.goes_wrong(state, who, actions);
        }
        for who in Who::ALL {
            let caller = state.caller(who);
            if !caller.is_calling() && caller.calls < who.calls() {
                actions.push(Action::Start(who));
            }
        }
        self.goes_on(state, actions);
        for who in Who::ALL {
            self.goes_wrong(state, who, actions);
        }
        self.grows_old(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        self.after_action(last, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let always = |(name, condition)| Property::always(name, condition);
        let sometimes = |(name, condition)| Property::sometimes(name, condition);
        let mut properties = Vec::from(PROMISES.map(always));
        if self.has_lock() {
            properties.extend(PROMISES_OF_THE_LOCK.map(always));
        }
        // A mutant is stopped at the first promise that it breaks, so what it never reaches says nothing.
        if self.mutant.is_none() {
            properties.extend(WITNESSES.map(sometimes));
            if self.has_lock() {
                properties.extend(WITNESSES_OF_THE_LOCK.map(sometimes));
            } else {
                properties.extend(WITNESSES_WITHOUT_LOCK.map(sometimes));
            }
        }
        properties
    }
}

//! Visits every state and says what came of it.

use std::fmt;
use std::num::NonZero;
use std::thread::available_parallelism;

use stateright::{Checker, Expectation, HasDiscoveries, Model as _, Path};

use crate::mutant::Mutant;
use crate::system::{Action, Protocol, State};

/// What came of one protocol.
#[derive(Debug)]
pub struct Report {
    /// How many states there are.
    pub states: usize,
    /// How long the longest shortest way to one of them is.
    pub depth: usize,
    /// The promises that a state breaks, each with the way to that state.
    pub broken: Vec<Counterexample>,
    /// What has happened in no state, though it can.
    pub unseen: Vec<&'static str>,
}

/// The shortest way that was found to a state that breaks a promise.
#[derive(Debug)]
pub struct Counterexample {
    /// The promise.
    pub promise: &'static str,
    /// What happened, in order.
    pub actions: Vec<String>,
}

impl Report {
    /// Visits every state, on all processors.
    pub fn of(protocol: Protocol) -> Self {
        Self::until(
            protocol,
            HasDiscoveries::All,
            available_parallelism().map_or(1, NonZero::get),
        )
    }

    /// Visits states in the order of their distance until a promise is broken.
    pub fn of_mutant(mutant: Mutant) -> Self {
        // With several threads the first counterexample need not be the shortest.
        Self::until(Protocol::with(mutant), HasDiscoveries::AnyFailures, 1)
    }

    fn until(protocol: Protocol, end: HasDiscoveries, threads: usize) -> Self {
        let checker = protocol
            .checker()
            .threads(threads)
            .finish_when(end)
            .spawn_bfs()
            .join();
        let mut broken = Vec::new();
        let mut unseen = Vec::new();
        for property in checker.model().properties() {
            let discovery = checker.discovery(property.name);
            match (property.expectation, discovery) {
                (Expectation::Sometimes, None) => unseen.push(property.name),
                (Expectation::Sometimes, Some(_)) | (_, None) => {}
                (_, Some(path)) => broken.push(Counterexample {
                    promise: property.name,
                    actions: tell(path),
                }),
            }
        }
        Self {
            states: checker.unique_state_count(),
            depth: checker.max_depth(),
            broken,
            unseen,
        }
    }
}

/// A step of a call says little without the phase that it ends.
fn tell(path: Path<State, Action>) -> Vec<String> {
    let steps = path.into_vec().into_iter();
    let told = steps.filter_map(|(state, action)| {
        let action = action?;
        Some(match action {
            Action::Advance(who) => match state.caller(who).next_step() {
                Some(step) => format!("{who:?}: {step:?}"),
                None => format!("{who:?}: {:?}", state.caller(who).phase),
            },
            action => format!("{action:?}"),
        })
    });
    told.collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} states, depth {}", self.states, self.depth)?;
        for Counterexample { promise, actions } in &self.broken {
            write!(f, "; not so after {} steps: {promise}", actions.len())?;
        }
        for witness in &self.unseen {
            write!(f, "; never: {witness}")?;
        }
        Ok(())
    }
}

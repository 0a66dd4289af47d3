//! What a check found.

use std::error::Error as StdError;
use std::fmt;

/// A way in which a handler is called.
///
/// ```
/// use idem_diesel::testing::Scenario;
///
/// assert_eq!(Scenario::Race.to_string(), "racing calls");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scenario {
    /// One call of a new key. What it changes is what every other scenario may change.
    OneCall,
    /// The same call again, on the same connection.
    SecondCall,
    /// The same call again on another connection, because the answer never arrived.
    LostAnswer,
    /// Another request under the key of the first.
    OtherRequest,
    /// A call whose transaction is rolled back after it answered, as by a crash before COMMIT; then its retry.
    RolledBack,
    /// The same call on many connections at once.
    Race,
    /// A call that is dropped at each await, as when a client hangs up; then its retry. Async handlers only.
    DroppedCalls,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneCall => "one call",
            Self::SecondCall => "second call",
            Self::LostAnswer => "lost answer",
            Self::OtherRequest => "other request",
            Self::RolledBack => "rolled back",
            Self::Race => "racing calls",
            Self::DroppedCalls => "dropped calls",
        })
    }
}

/// What held, and what was not tried. Its text has one line for each scenario.
///
/// ```
/// use idem_diesel::testing::{Report, Scenario};
///
/// assert!(!Report::default().has(Scenario::Race));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    held: Vec<(Scenario, String)>,
    not_run: Vec<(Scenario, &'static str)>,
}

impl Report {
    pub(super) fn held(&mut self, scenario: Scenario, how: String) {
        self.held.push((scenario, how));
    }

    pub(super) fn not_run(&mut self, scenario: Scenario, why: &'static str) {
        self.not_run.push((scenario, why));
    }

    /// Whether this scenario was run, and held.
    pub fn has(&self, scenario: Scenario) -> bool {
        self.held.iter().any(|(held, _)| *held == scenario)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self
            .held
            .iter()
            .map(|(held, how)| format!("{:<15}{how}", held.to_string()));
        let not_run = self
            .not_run
            .iter()
            .map(|(missing, why)| format!("{:<15}not run: {why}", missing.to_string()));
        let lines: Vec<_> = held.chain(not_run).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// The first promise that did not hold, in words.
///
/// ```text
/// the second call changed `payments`: 2 new rows where one call leaves 1
/// hint: nothing is recorded under the key: is the handler marked `#[idempotent]`, or does it call `begin`?
/// ```
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::testing::{Check, Scenario};
/// use idem_diesel::{Error, Intent};
///
/// let connect = || SqliteConnection::establish(":memory:").expect("in memory");
/// let nothing = |_: &mut SqliteConnection, _: &Intent, (): &()| Ok::<_, Error>(());
/// let broken = Check::new(connect, ["payments"]).run(nothing).unwrap_err();
/// assert_eq!(broken.to_string(), "there is no table `payments`");
/// assert_eq!(broken.scenario(), Scenario::OneCall);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    scenario: Scenario,
    sentence: String,
    hint: Option<&'static str>,
}

impl Broken {
    pub(super) fn new(scenario: Scenario, sentence: impl Into<String>) -> Self {
        Self {
            scenario,
            sentence: sentence.into(),
            hint: None,
        }
    }

    pub(super) fn hint(self, hint: &'static str) -> Self {
        Self {
            hint: Some(hint),
            ..self
        }
    }

    /// The scenario in which it was found.
    pub fn scenario(&self) -> Scenario {
        self.scenario
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)?;
        match self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl StdError for Broken {}

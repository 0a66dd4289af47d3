//! What was measured, and the file that keeps it between runs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::servers::ServerSettings;
use crate::spread::Spread;

/// One figure, with what it was measured against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measurement {
    pub(crate) what: String,
    pub(crate) against: String,
    pub(crate) unit: Unit,
    pub(crate) target: Option<Target>,
    pub(crate) spread: Spread,
    pub(crate) rounds: usize,
    /// The figures that the ratio is made of, as medians, to know of what size they are. They depend on the machine.
    pub(crate) sizes: String,
}

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// One rate or time divided by another.
    Ratio,
    Microseconds,
    Milliseconds,
    Seconds,
    /// Bytes of the write-ahead log for each call.
    WalBytes,
    /// Instructions of the client for each call.
    Instructions,
}

/// What the median must be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

/// The measurements of one command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) machine: Machine,
    pub(crate) servers: Vec<ServerSettings>,
    pub(crate) measurements: Vec<Measurement>,
}

/// All groups, each from the last run that measured it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) groups: Vec<Group>,
}

impl Measurement {
    /// Whether the median is where it must be; `None`: nothing was asked for.
    pub(crate) fn is_reached(&self) -> Option<bool> {
        self.target.map(|target| match target {
            Target::AtLeast(least) => self.spread.median >= least,
            Target::AtMost(most) => self.spread.median <= most,
        })
    }
}

impl Results {
    /// Reads the file; no file is no results.
    pub(crate) fn load(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(path)?;
        serde_json::from_str(&text).with_context(|| {
            format!(
                "{} is not what this program writes; remove it",
                path.display()
            )
        })
    }

    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Puts a group in the place of its older one, or at the end.
    pub(crate) fn merge(&mut self, group: Group) {
        match self.groups.iter_mut().find(|old| old.name == group.name) {
            Some(old) => *old = group,
            None => self.groups.push(group),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, what: &str) -> Group {
        Group {
            name: name.to_owned(),
            machine: Machine::default(),
            servers: Vec::new(),
            measurements: vec![measurement(what, Some(Target::AtLeast(0.5)), 0.5)],
        }
    }

    fn measurement(what: &str, target: Option<Target>, median: f64) -> Measurement {
        Measurement {
            what: what.to_owned(),
            against: String::new(),
            unit: Unit::Ratio,
            target,
            spread: Spread::of([median]).unwrap(),
            rounds: 1,
            sizes: String::new(),
        }
    }

    #[test]
    fn a_group_replaces_its_older_one_and_keeps_its_place() {
        let mut results = Results::default();
        for (name, what) in [("a", "old"), ("b", "kept"), ("a", "new")] {
            results.merge(group(name, what));
        }
        let expected = vec![group("a", "new"), group("b", "kept")];
        assert_eq!(results.groups, expected);
    }

    #[test]
    fn the_file_gives_back_what_was_saved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        assert_eq!(Results::load(&path).unwrap(), Results::default());
        let results = Results {
            groups: vec![group("a", "first call")],
        };
        results.save(&path).unwrap();
        assert_eq!(Results::load(&path).unwrap(), results);
        fs::write(&path, "{").unwrap();
        assert!(Results::load(&path).is_err());
    }

    #[test]
    fn a_target_is_reached_by_the_median_and_on_the_line() {
        #[track_caller]
        fn check(target: Option<Target>, median: f64, expected: Option<bool>) {
            assert_eq!(measurement("", target, median).is_reached(), expected);
        }
        check(None, 1.0, None);
        check(Some(Target::AtLeast(0.5)), 0.5, Some(true));
        check(Some(Target::AtLeast(0.5)), 0.4, Some(false));
        check(Some(Target::AtMost(0.5)), 0.5, Some(true));
        check(Some(Target::AtMost(0.5)), 0.6, Some(false));
    }
}

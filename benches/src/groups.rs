//! The groups of measurements: each is one question, asked in one run.

pub(crate) mod build_time;
pub(crate) mod consumer;
pub(crate) mod first_call;
pub(crate) mod hashing;
pub(crate) mod instructions;
pub(crate) mod purge;
mod rates;
pub(crate) mod relay;
pub(crate) mod replay;
pub(crate) mod sqlite;
pub(crate) mod stored_keys;
pub(crate) mod sync_postgres;

use std::time::Duration;

use anyhow::Result;

use crate::plots::curves::Curves;
use crate::results::{Measurement, Target, Unit};
use crate::spread::Spread;

/// What a group has found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) measurements: Vec<Measurement>,
    /// Drawn, and not kept otherwise.
    pub(crate) curves: Vec<Curves>,
}

impl From<Vec<Measurement>> for Findings {
    fn from(measurements: Vec<Measurement>) -> Self {
        Self {
            measurements,
            ..Self::default()
        }
    }
}

/// The ratio of two figures of the same round, which are calls for each second.
fn ratio<const N: usize>(
    rounds: &[[f64; N]],
    what: impl Into<String>,
    against: impl Into<String>,
    target: Option<Target>,
    of: impl Fn(&[f64; N]) -> (f64, f64),
) -> Result<Measurement> {
    ratio_of("calls/s", rounds, what, against, target, of)
}

/// The same for figures of another kind.
fn ratio_of<const N: usize>(
    figures: &str,
    rounds: &[[f64; N]],
    what: impl Into<String>,
    against: impl Into<String>,
    target: Option<Target>,
    of: impl Fn(&[f64; N]) -> (f64, f64),
) -> Result<Measurement> {
    let median_of = |side: &dyn Fn((f64, f64)) -> f64| {
        Spread::of(rounds.iter().map(|round| side(of(round)))).map(|spread| spread.median)
    };
    let (ours, theirs) = (median_of(&|pair| pair.0)?, median_of(&|pair| pair.1)?);
    Ok(Measurement {
        what: what.into(),
        against: against.into(),
        unit: Unit::Ratio,
        target,
        spread: Spread::of(rounds.iter().map(|round| {
            let (ours, theirs) = of(round);
            ours / theirs
        }))?,
        rounds: rounds.len(),
        sizes: format!("{ours:.0} and {theirs:.0} {figures}"),
    })
}

/// A figure that is measured against nothing.
fn figure(
    what: impl Into<String>,
    unit: Unit,
    target: Option<Target>,
    figures: &[f64],
) -> Result<Measurement> {
    Ok(Measurement {
        what: what.into(),
        against: String::new(),
        unit,
        target,
        spread: Spread::of(figures.iter().copied())?,
        rounds: figures.len(),
        sizes: String::new(),
    })
}

/// Calls for each second.
fn rate(calls: u32, took: Duration) -> f64 {
    f64::from(calls) / took.as_secs_f64()
}

fn connections(clients: u32) -> String {
    match clients {
        1 => "1 connection".to_owned(),
        several => format!("{several} connections"),
    }
}

fn in_words(count: u32) -> String {
    if count.is_multiple_of(1_000_000) {
        format!("{} million", count / 1_000_000)
    } else {
        count.to_string()
    }
}

//! The middle of some figures, and how far they are apart.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// Five numbers that sum up the figures of all rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    /// The median of the lower half; the middle figure of an odd number is in both halves.
    pub(crate) lower_quartile: f64,
    pub(crate) median: f64,
    pub(crate) upper_quartile: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Sums up at least one figure.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Result<Self> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let half = sorted.len().div_ceil(2);
        let lower = sorted.get(..half).unwrap_or_default();
        let upper = sorted.get(sorted.len() - half..).unwrap_or_default();
        let five = || {
            Some(Self {
                min: *sorted.first()?,
                lower_quartile: median(lower)?,
                median: median(&sorted)?,
                upper_quartile: median(upper)?,
                max: *sorted.last()?,
            })
        };
        five().context("there is no figure")
    }
}

fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*sorted.get(middle - 1)?, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(figures: &[f64], expected: [f64; 5]) {
        let spread = Spread::of(figures.iter().copied()).unwrap();
        let [min, lower_quartile, median, upper_quartile, max] = expected;
        let expected = Spread {
            min,
            lower_quartile,
            median,
            upper_quartile,
            max,
        };
        assert_eq!(spread, expected);
    }

    #[test]
    fn five_numbers_of_figures_in_any_order() {
        check(&[3.0], [3.0; 5]);
        check(&[4.0, 2.0], [2.0, 2.0, 3.0, 4.0, 4.0]);
        check(&[5.0, 1.0, 3.0], [1.0, 2.0, 3.0, 4.0, 5.0]);
        check(&[4.0, 1.0, 3.0, 2.0], [1.0, 1.5, 2.5, 3.5, 4.0]);
        check(
            &[7.0, 1.0, 6.0, 2.0, 5.0, 3.0, 4.0],
            [1.0, 2.5, 4.0, 5.5, 7.0],
        );
    }

    #[test]
    fn no_figure_is_an_error() {
        assert!(Spread::of([]).is_err());
    }
}

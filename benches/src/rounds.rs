//! Rounds: every side once, side by side in time, and the next round in the opposite order.
//!
//! A machine gets slower and faster while it is measured. What happens to all sides of a round alike leaves their ratio as it is.

use anyhow::Result;

/// Runs all sides once to warm up, then `rounds` times for figures, which are in the order of `sides`.
pub(crate) fn alternate<S: Copy, T: Copy + Default, const N: usize>(
    rounds: u32,
    sides: [S; N],
    mut run: impl FnMut(S) -> Result<T>,
) -> Result<Vec<[T; N]>> {
    round(0, sides, &mut run)?;
    (1..=rounds)
        .map(|number| round(number, sides, &mut run))
        .collect()
}

/// Runs all sides once, in the order that is this round's turn.
pub(crate) fn round<S, T: Copy + Default, const N: usize>(
    number: u32,
    sides: [S; N],
    mut run: impl FnMut(S) -> Result<T>,
) -> Result<[T; N]> {
    let mut figures = [T::default(); N];
    let mut turns: Vec<(S, &mut T)> = sides.into_iter().zip(&mut figures).collect();
    if !number.is_multiple_of(2) {
        turns.reverse();
    }
    for (side, figure) in turns {
        *figure = run(side)?;
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_reversed_each_round_and_the_figures_stay_with_their_sides() {
        let mut order = String::new();
        let rounds = alternate(2, ['a', 'b', 'c'], |side| {
            order.push(side);
            Ok(u32::from(side))
        })
        .unwrap();
        assert_eq!(order, "abccbaabc");
        assert_eq!(rounds, [[97, 98, 99]; 2]);
    }

    #[test]
    fn a_failure_ends_the_rounds() {
        let mut runs = 0;
        let rounds = alternate(7, [false, true], |fails| {
            runs += 1;
            anyhow::ensure!(!fails, "broken");
            Ok(1.0)
        });
        assert_eq!((rounds.is_err(), runs), (true, 2));
    }
}

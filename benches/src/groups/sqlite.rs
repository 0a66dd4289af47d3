//! The first call on a SQLite file, against the same two statements in an immediate transaction.

use anyhow::Result;

use super::{rate, ratio};
use crate::calls::sqlite::{Call, SqliteShop, Synchronous};
use crate::effort::Effort;
use crate::places;
use crate::results::{Measurement, Target};
use crate::rounds::alternate;
use crate::shop::Work;

pub(crate) fn measure(effort: Effort) -> Result<Vec<Measurement>> {
    Ok(vec![
        first_call(effort, Synchronous::Full, 1500, 0.70)?,
        first_call(effort, Synchronous::Normal, 10_000, 0.45)?,
    ])
}

fn first_call(
    effort: Effort,
    synchronous: Synchronous,
    calls: u32,
    target: f64,
) -> Result<Measurement> {
    let calls = effort.calls(calls);
    let mut shop = SqliteShop::create(&places::data()?, synchronous)?;
    let rounds = alternate(effort.rounds(), [Call::Bare, Call::First], |call| {
        let list = (0..calls)
            .map(|number| Work::new(0, number))
            .collect::<Result<Vec<Work>>>()?;
        Ok(rate(calls, shop.run(call, &list)?))
    })?;
    let word = match synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    ratio(
        &rounds,
        format!("first call, SQLite file, synchronous={word}"),
        "bare immediate transaction",
        Some(Target::AtLeast(target)),
        |&[bare, first]| (first, bare),
    )
}

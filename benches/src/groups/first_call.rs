//! The first call on async PostgreSQL, against the same two statements in a transaction, and against the article's flow.

use anyhow::Result;
use support::postgres::Server;

use super::rates::FromEmpty;
use super::{connections, ratio};
use crate::calls::asynchronous::Call;
use crate::effort::Effort;
use crate::results::{Measurement, Target, Unit};
use crate::rounds::alternate;
use crate::servers::Servers;
use crate::shop::CLIENTS;
use crate::spread::Spread;

/// Calls of one connection in one round, when there is one, and when there are several.
const CALLS_ALONE: u32 = 2000;
const CALLS_OF_EACH: u32 = 800;

/// Where each call waits for the disk.
const DURABLE_CALLS: u32 = 800;

pub(crate) fn measure(servers: &mut Servers, effort: Effort) -> Result<Vec<Measurement>> {
    let server = servers.cpu_bound()?;
    let mut measurements = cpu_bound(server, effort, 1, CALLS_ALONE)?;
    measurements.extend(cpu_bound(server, effort, CLIENTS, CALLS_OF_EACH)?);
    let server = servers.durable()?;
    measurements.push(added_latency(server, effort)?);
    measurements.push(durable(server, effort)?);
    Ok(measurements)
}

fn cpu_bound(
    server: &Server,
    effort: Effort,
    clients: u32,
    calls: u32,
) -> Result<Vec<Measurement>> {
    let mut shop = FromEmpty::open(server, clients, effort.calls(calls))?;
    let sides = [Call::Bare, Call::First, Call::Article];
    let rounds = alternate(effort.rounds(), sides, |call| shop.rate(call))?;
    let what = format!("first call, CPU-bound, {}", connections(clients));
    Ok(vec![
        ratio(
            &rounds,
            &what,
            "bare transaction",
            Some(Target::AtLeast(0.65)),
            |&[bare, first, _]| (first, bare),
        )?,
        ratio(
            &rounds,
            &what,
            "the article's flow",
            Some(Target::AtLeast(1.25)),
            |&[_, first, article]| (first, article),
        )?,
    ])
}

/// What a call takes longer than the bare transaction, as a share of one durable write.
fn added_latency(server: &Server, effort: Effort) -> Result<Measurement> {
    let mut shop = FromEmpty::open(server, 1, effort.calls(DURABLE_CALLS))?;
    let sides = [Call::Write, Call::Bare, Call::First];
    let rounds = alternate(effort.rounds(), sides, |call| Ok(1e6 / shop.rate(call)?))?;
    let median = |figures: &dyn Fn(&[f64; 3]) -> f64| {
        Spread::of(rounds.iter().map(figures)).map(|spread| spread.median)
    };
    Ok(Measurement {
        what: "latency that a first call adds, durable, 1 connection".to_owned(),
        against: "one durable write: UPDATE by primary key, autocommit".to_owned(),
        unit: Unit::Ratio,
        target: Some(Target::AtMost(0.15)),
        spread: Spread::of(
            rounds
                .iter()
                .map(|[write, bare, first]| (first - bare) / write),
        )?,
        rounds: rounds.len(),
        sizes: format!(
            "first call {:.0}, bare {:.0}, write {:.0} µs",
            median(&|[_, _, first]| *first)?,
            median(&|[_, bare, _]| *bare)?,
            median(&|[write, _, _]| *write)?,
        ),
    })
}

fn durable(server: &Server, effort: Effort) -> Result<Measurement> {
    let mut shop = FromEmpty::open(server, CLIENTS, effort.calls(DURABLE_CALLS))?;
    let rounds = alternate(effort.rounds(), [Call::Bare, Call::First], |call| {
        shop.rate(call)
    })?;
    ratio(
        &rounds,
        format!("first call, durable, {}", connections(CLIENTS)),
        "bare transaction",
        None,
        |&[bare, first]| (first, bare),
    )
}

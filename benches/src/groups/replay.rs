//! A replay against one SELECT of the same row by its primary key.

use anyhow::Result;
use support::postgres::Server;

use super::rates::Stored;
use super::{connections, ratio};
use crate::calls::asynchronous::Call;
use crate::effort::Effort;
use crate::results::{Measurement, Target};
use crate::rounds::alternate;
use crate::servers::Servers;
use crate::shop::CLIENTS;

/// Stored keys of one connection, each replayed once in a round.
const KEYS_ALONE: u32 = 4000;
const KEYS_OF_EACH: u32 = 1500;

pub(crate) fn measure(servers: &mut Servers, effort: Effort) -> Result<Vec<Measurement>> {
    let server = servers.cpu_bound()?;
    let mut measurements = Vec::new();
    for (clients, keys) in [(1, KEYS_ALONE), (CLIENTS, KEYS_OF_EACH)] {
        let keys = effort.calls(keys);
        for call in [Call::Replay, Call::ReplayReadFirst] {
            measurements.push(replay(server, effort, clients, keys, call)?);
        }
    }
    Ok(measurements)
}

fn replay(
    server: &Server,
    effort: Effort,
    clients: u32,
    keys: u32,
    replay: Call,
) -> Result<Measurement> {
    let mut shop = Stored::make(server, Call::First, clients, keys)?;
    let rounds = alternate(effort.rounds(), [Call::Select, replay], |call| {
        shop.rate(call)
    })?;
    let (with, target) = match replay {
        Call::ReplayReadFirst => (" with read_first", 0.80),
        _ => ("", 0.55),
    };
    ratio(
        &rounds,
        format!("replay{with}, CPU-bound, {}", connections(clients)),
        "SELECT of the row",
        Some(Target::AtLeast(target)),
        |&[select, replay]| (replay, select),
    )
}

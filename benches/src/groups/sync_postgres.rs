//! The first call on sync PostgreSQL, against the same two statements in a transaction.

use anyhow::Result;
use diesel::{Connection, PgConnection};
use support::postgres::Server;

use super::{connections, rate, ratio};
use crate::calls::blocking::{self, Call};
use crate::effort::Effort;
use crate::results::{Measurement, Target};
use crate::rounds::alternate;
use crate::servers::Servers;
use crate::shop::database::ShopDatabase;
use crate::shop::{CLIENTS, Work};

/// Calls of one connection in one round, when there is one, and when there are several.
const CALLS_ALONE: u32 = 2000;
const CALLS_OF_EACH: u32 = 800;

pub(crate) fn measure(servers: &mut Servers, effort: Effort) -> Result<Vec<Measurement>> {
    let server = servers.cpu_bound()?;
    Ok(vec![
        first_call(server, effort, 1, CALLS_ALONE)?,
        first_call(server, effort, CLIENTS, CALLS_OF_EACH)?,
    ])
}

fn first_call(server: &Server, effort: Effort, clients: u32, calls: u32) -> Result<Measurement> {
    let calls = effort.calls(calls);
    let mut database = ShopDatabase::create(server)?;
    let mut threads: Vec<PgConnection> = (0..clients)
        .map(|_| PgConnection::establish(database.url()))
        .collect::<Result<_, _>>()?;
    let rounds = alternate(effort.rounds(), [Call::Bare, Call::First], |call| {
        database.reset()?;
        database.checkpoint()?;
        let lists = Work::lists(clients, calls)?;
        let took = blocking::run(&mut threads, call, &lists)?;
        database.expect(call.effects(clients * calls))?;
        Ok(rate(clients * calls, took))
    })?;
    ratio(
        &rounds,
        format!("first call, sync, CPU-bound, {}", connections(clients)),
        "bare sync transaction",
        Some(Target::AtLeast(0.55)),
        |&[bare, first]| (first, bare),
    )
}

//! A consumer's call on async PostgreSQL, against the same two statements in a transaction; and a duplicate, against one SELECT of its row.

use anyhow::Result;
use support::postgres::Server;

use super::rates::{FromEmpty, Stored};
use super::{connections, rate, ratio};
use crate::calls::asynchronous::Call;
use crate::calls::sqlite::{self, SqliteShop, Synchronous};
use crate::effort::Effort;
use crate::places;
use crate::results::{Measurement, Target};
use crate::rounds::alternate;
use crate::servers::Servers;
use crate::shop::{CLIENTS, Work};

/// Messages of one connection in one round, when there is one, and when there are several.
const MESSAGES_ALONE: u32 = 2000;
const MESSAGES_OF_EACH: u32 = 800;

/// The same for duplicates.
const DUPLICATES_ALONE: u32 = 4000;
const DUPLICATES_OF_EACH: u32 = 1500;

const SQLITE_MESSAGES: u32 = 10_000;

pub(crate) fn measure(servers: &mut Servers, effort: Effort) -> Result<Vec<Measurement>> {
    let server = servers.cpu_bound()?;
    Ok(vec![
        new_message(server, effort, 1, MESSAGES_ALONE)?,
        new_message(server, effort, CLIENTS, MESSAGES_OF_EACH)?,
        duplicate(server, effort, 1, DUPLICATES_ALONE)?,
        duplicate(server, effort, CLIENTS, DUPLICATES_OF_EACH)?,
        on_sqlite(effort)?,
    ])
}

fn new_message(
    server: &Server,
    effort: Effort,
    clients: u32,
    messages: u32,
) -> Result<Measurement> {
    let mut shop = FromEmpty::open(server, clients, effort.calls(messages))?;
    let sides = [Call::Bare, Call::Consume];
    let rounds = alternate(effort.rounds(), sides, |call| shop.rate(call))?;
    ratio(
        &rounds,
        format!("consumer, new message, CPU-bound, {}", connections(clients)),
        "bare transaction",
        Some(Target::AtLeast(0.65)),
        |&[bare, consume]| (consume, bare),
    )
}

fn duplicate(server: &Server, effort: Effort, clients: u32, messages: u32) -> Result<Measurement> {
    let mut shop = Stored::make(server, Call::Consume, clients, effort.calls(messages))?;
    let sides = [Call::SelectMessage, Call::Duplicate];
    let rounds = alternate(effort.rounds(), sides, |call| shop.rate(call))?;
    ratio(
        &rounds,
        format!("consumer, duplicate, CPU-bound, {}", connections(clients)),
        "SELECT of the row",
        None,
        |&[select, duplicate]| (duplicate, select),
    )
}

fn on_sqlite(effort: Effort) -> Result<Measurement> {
    let calls = effort.calls(SQLITE_MESSAGES);
    let mut shop = SqliteShop::create(&places::data()?, Synchronous::Normal)?;
    let sides = [sqlite::Call::Bare, sqlite::Call::Consume];
    let rounds = alternate(effort.rounds(), sides, |call| {
        let list = (0..calls)
            .map(|number| Work::new(0, number))
            .collect::<Result<Vec<Work>>>()?;
        Ok(rate(calls, shop.run(call, &list)?))
    })?;
    ratio(
        &rounds,
        "consumer, new message, SQLite file, synchronous=NORMAL",
        "bare immediate transaction",
        None,
        |&[bare, consume]| (consume, bare),
    )
}

//! Calls for each second on async PostgreSQL: from empty tables, and of what is stored.

use std::sync::Arc;

use anyhow::Result;
use support::postgres::Server;

use super::rate;
use crate::calls::asynchronous::Call;
use crate::calls::clients::Clients;
use crate::shop::Work;
use crate::shop::database::{Effects, ShopDatabase};

/// A database, its clients, and how much each does in a round.
pub(super) struct FromEmpty {
    database: ShopDatabase,
    clients: Clients,
    count: u32,
    calls: u32,
}

impl FromEmpty {
    pub(super) fn open(server: &Server, clients: u32, calls: u32) -> Result<Self> {
        let database = ShopDatabase::create(server)?;
        Ok(Self {
            clients: Clients::connect(database.url(), clients)?,
            database,
            count: clients,
            calls,
        })
    }

    /// Calls for each second, from empty tables.
    pub(super) fn rate(&mut self, call: Call) -> Result<f64> {
        self.database.reset()?;
        self.database.checkpoint()?;
        let lists = Work::lists(self.count, self.calls)?;
        let took = self.clients.run(call, &lists)?;
        let calls = self.count * self.calls;
        self.database.expect(call.effects(calls))?;
        Ok(rate(calls, took))
    }
}

/// A database in which each piece of work was done once.
pub(super) struct Stored {
    database: ShopDatabase,
    clients: Clients,
    lists: Vec<Arc<[Work]>>,
    calls: u32,
    effects: Effects,
}

impl Stored {
    pub(super) fn make(server: &Server, by: Call, clients: u32, calls: u32) -> Result<Self> {
        let mut database = ShopDatabase::create(server)?;
        let lists = Work::lists(clients, calls)?;
        let calls = clients * calls;
        let mut clients = Clients::connect(database.url(), clients)?;
        clients.run(by, &lists)?;
        let effects = by.effects(calls);
        database.expect(effects)?;
        database.settle()?;
        Ok(Self {
            database,
            clients,
            lists,
            calls,
            effects,
        })
    }

    /// Calls for each second. They must leave everything as it was.
    pub(super) fn rate(&mut self, call: Call) -> Result<f64> {
        let took = self.clients.run(call, &self.lists)?;
        self.database.expect(self.effects)?;
        Ok(rate(self.calls, took))
    }
}

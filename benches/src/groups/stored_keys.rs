//! The first call beside many stored keys, against an empty table; and the log that each call writes.
//!
//! Two states of the server differ a lot, because the first change of a page after a checkpoint puts the whole page into the log.
//! A server that has run for a while has logged its pages: that is the first state. Right after a checkpoint each call is likely
//! to change pages for the first time: that is the second one, and it lasts until most pages were changed once.

use anyhow::{Result, ensure};
use support::postgres::Server;

use super::{connections, figure, in_words, rate, ratio};
use crate::calls::asynchronous::Call;
use crate::calls::clients::Clients;
use crate::effort::Effort;
use crate::results::{Measurement, Target, Unit};
use crate::rounds::alternate;
use crate::servers::Servers;
use crate::shop::database::{Effects, ShopDatabase};
use crate::shop::{CLIENTS, Work};

/// How many keys are stored unless the command says otherwise.
pub(crate) const KEYS: u32 = 1_000_000;

const CALLS_OF_EACH: u32 = 500;

/// Rows of one statement of the filling. After it, nearly every page was changed since the last checkpoint.
const ROWS_AT_ONCE: u32 = 1_000_000;

pub(crate) fn measure(
    servers: &mut Servers,
    effort: Effort,
    keys: u32,
) -> Result<Vec<Measurement>> {
    let server = servers.cpu_bound()?;
    let calls = effort.calls(CALLS_OF_EACH);
    let mut empty = Shop::open(server, calls)?;
    let mut full = Shop::open(server, calls)?;
    let keys = effort.rows(keys);
    full.fill(keys)?;

    let mut measurements = Vec::new();
    for state in [Pages::Logged, Pages::AfterCheckpoint] {
        let sides = [Side::Bare, Side::Empty, Side::Full];
        let rounds = alternate(effort.rounds(), sides, |side| match side {
            Side::Bare => empty.run(Call::Bare, state),
            Side::Empty => empty.run(Call::First, state),
            Side::Full => full.run(Call::First, state),
        })?;
        measurements.extend(measurements_of(&rounds, keys, state)?);
    }
    // Once, because counting many rows takes long: each call was a row.
    full.expect_records(keys)?;
    Ok(measurements)
}

#[derive(Debug, Clone, Copy)]
enum Side {
    Bare,
    Empty,
    Full,
}

/// What the server has done with its pages when a round begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pages {
    Logged,
    AfterCheckpoint,
}

#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    rate: f64,
    wal_bytes: f64,
}

fn measurements_of(rounds: &[[Figures; 3]], keys: u32, state: Pages) -> Result<Vec<Measurement>> {
    let (after, target) = match state {
        Pages::Logged => ("", Some(Target::AtLeast(0.80))),
        Pages::AfterCheckpoint => (", after a checkpoint", None),
    };
    let stored = format!("{} stored keys", in_words(keys));
    let rates: Vec<[f64; 3]> = rounds
        .iter()
        .map(|round| round.map(|side| side.rate))
        .collect();
    let mut measurements = vec![ratio(
        &rates,
        format!("first call, {stored}, {}{after}", connections(CLIENTS)),
        "empty table",
        target,
        |&[_, empty, full]| (full, empty),
    )?];
    let wal = |what: &str, side: fn(&[Figures; 3]) -> Figures| {
        let bytes: Vec<f64> = rounds.iter().map(|round| side(round).wal_bytes).collect();
        figure(
            format!("log of a {what}{after}"),
            Unit::WalBytes,
            None,
            &bytes,
        )
    };
    measurements.push(wal("bare transaction", |[bare, _, _]| *bare)?);
    measurements.push(wal("first call, empty table", |[_, empty, _]| *empty)?);
    measurements.push(wal(&format!("first call, {stored}"), |[_, _, full]| *full)?);
    Ok(measurements)
}

struct Shop {
    database: ShopDatabase,
    clients: Clients,
    calls: u32,
    filled: u32,
    called: u32,
}

impl Shop {
    fn open(server: &Server, calls: u32) -> Result<Self> {
        let database = ShopDatabase::create(server)?;
        Ok(Self {
            clients: Clients::connect(database.url(), CLIENTS)?,
            database,
            calls,
            filled: 0,
            called: 0,
        })
    }

    /// Fills in the random order of the keys. The records end in the order of their times.
    fn fill(&mut self, keys: u32) -> Result<()> {
        while self.filled < keys {
            let rows = ROWS_AT_ONCE.min(keys - self.filled);
            self.database.checkpoint()?;
            self.database
                .store_keys(self.filled + 1..=self.filled + rows, "clock_timestamp()")?;
            self.filled += rows;
        }
        self.database.vacuum()
    }

    /// Rate and log of the calls. The business tables are empty before, and the records too unless rows were filled in.
    fn run(&mut self, call: Call, pages: Pages) -> Result<Figures> {
        if self.filled == 0 {
            self.database.reset()?;
        } else {
            self.database.reset_business()?;
        }
        if pages == Pages::AfterCheckpoint {
            self.database.checkpoint()?;
        }
        let lists = Work::lists(CLIENTS, self.calls)?;
        let calls = CLIENTS * self.calls;
        let wal_before = self.database.wal_bytes()?;
        let took = self.clients.run(call, &lists)?;
        let wal_bytes = self.database.wal_bytes()? - wal_before;
        self.called += calls;
        if self.filled == 0 {
            self.database.expect(call.effects(calls))?;
        } else {
            self.database.expect_orders(calls)?;
        }
        Ok(Figures {
            rate: rate(calls, took),
            wal_bytes: f64::from(u32::try_from(wal_bytes)?) / f64::from(calls),
        })
    }

    fn expect_records(&mut self, keys: u32) -> Result<()> {
        let Effects { records, .. } = self.database.effects()?;
        ensure!(
            records == i64::from(keys + self.called),
            "{records} records, but {keys} were filled in and {} called",
            self.called
        );
        Ok(())
    }
}

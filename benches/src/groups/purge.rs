//! A purge at its default pace while clients call, against the same calls alone.
//!
//! The purge works in windows of a few seconds: one of a pair has it, the other has not, until nothing is left to purge. The sum
//! of its windows is how long it takes. Autovacuum is on, because a purge lives with it; it works in windows of both kinds.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use diesel::connection::SimpleConnection;
use diesel_async::{AsyncConnection, AsyncPgConnection};
use idem_diesel::retention::{Ended, Purge, Purged, purge};

use super::{connections, figure, in_words, rate, ratio};
use crate::calls::asynchronous::Call;
use crate::calls::clients::Clients;
use crate::effort::Effort;
use crate::results::{Measurement, Target, Unit};
use crate::rounds::round;
use crate::servers::Servers;
use crate::shop::CLIENTS;
use crate::shop::database::{Effects, ShopDatabase};

/// Half of them lose their answers, half of them are removed.
pub(crate) const ROWS: u32 = 1_000_000;

/// More than the target, so that a slow purge is reported and an endless one is not waited for.
const MOST_PAIRS: u32 = 240;

pub(crate) fn measure(servers: &mut Servers, effort: Effort) -> Result<Vec<Measurement>> {
    let rows = effort.rows(ROWS);
    let mut shop = Shop::open(servers, rows, effort.window())?;
    // Warm-up: statements are prepared, pages are in memory.
    shop.call_alone()?;
    let mut rounds = Vec::new();
    for number in 0..MOST_PAIRS {
        let pair = round(number, [Side::Alone, Side::Purge], |side| match side {
            Side::Alone => shop.call_alone(),
            Side::Purge => shop.call_beside_purge(),
        })?;
        // The window in which the purge ends is only partly one with a purge.
        if !shop.is_complete || rounds.is_empty() {
            rounds.push(pair);
        }
        if shop.is_complete {
            break;
        }
    }
    shop.expect_everything_purged(rows)?;
    Ok(vec![
        ratio(
            &rounds,
            format!("first calls beside a purge, {}", connections(CLIENTS)),
            "the same without a purge",
            Some(Target::AtLeast(0.85)),
            |&[alone, purge]| (purge, alone),
        )?,
        figure(
            format!(
                "purge of {} rows at the default pace beside these calls",
                in_words(rows)
            ),
            Unit::Seconds,
            Some(Target::AtMost(600.0)),
            &[shop.purge_took.as_secs_f64()],
        )?,
    ])
}

#[derive(Debug, Clone, Copy)]
enum Side {
    Alone,
    Purge,
}

struct Shop {
    database: ShopDatabase,
    clients: Clients,
    window: Duration,
    called: u32,
    blanked: u64,
    forgotten: u64,
    purge_took: Duration,
    is_complete: bool,
}

impl Shop {
    fn open(servers: &mut Servers, rows: u32, window: Duration) -> Result<Self> {
        let mut database = ShopDatabase::create(servers.cpu_bound()?)?;
        database
            .admin
            .batch_execute("ALTER TABLE api_idempotency RESET (autovacuum_enabled)")?;
        let half = rows / 2;
        for (numbers, hours) in [(1..=half, 104), (half + 1..=rows, 56)] {
            // In the eight hours before the row may go, or before its answer may.
            let ended_at = format!(
                "now() - interval '{hours} hours' + interval '8 hours' * (number - {}) / {half}",
                numbers.start()
            );
            database.store_keys(numbers, &ended_at)?;
        }
        database.settle()?;
        Ok(Self {
            clients: Clients::connect(database.url(), CLIENTS)?,
            database,
            window,
            called: 0,
            blanked: 0,
            forgotten: 0,
            purge_took: Duration::ZERO,
            is_complete: false,
        })
    }

    /// Calls for each second in a window.
    fn call_alone(&mut self) -> Result<f64> {
        let (calls, took) = self.clients.run_for(Call::First, self.window)?;
        self.called += calls;
        Ok(rate(calls, took))
    }

    /// The same while a purge runs for as long.
    fn call_beside_purge(&mut self) -> Result<f64> {
        let url = self.database.url().to_owned();
        let options = Purge::new().time_limit(self.window);
        let purging = self.clients.runtime.spawn(async move {
            let mut db = AsyncPgConnection::establish(&url).await?;
            let started_at = Instant::now();
            let purged = purge(&mut db, &options).await?;
            Ok::<(Purged, Duration), anyhow::Error>((purged, started_at.elapsed()))
        });
        let rate = self.call_alone()?;
        let (purged, took) = self.clients.runtime.block_on(purging)??;
        self.blanked += purged.blanked;
        self.forgotten += purged.forgotten;
        self.purge_took += took;
        self.is_complete = purged.ended == Ended::Complete;
        Ok(rate)
    }

    fn expect_everything_purged(&mut self, rows: u32) -> Result<()> {
        ensure!(
            self.is_complete,
            "the purge is not done after {:?}",
            self.purge_took
        );
        let half = u64::from(rows / 2);
        ensure!(
            (self.blanked, self.forgotten) == (half, half),
            "{} blanked and {} forgotten of {rows} rows",
            self.blanked,
            self.forgotten
        );
        let found = self.database.effects().context("after the purge")?;
        let expected = Effects {
            records: i64::from(self.called) + i64::from(rows / 2),
            ..Effects::of_orders(self.called)
        };
        ensure!(found == expected, "{found:?} and not {expected:?}");
        Ok(())
    }
}

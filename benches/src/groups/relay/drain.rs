//! How fast relays empty an outbox: with a million delivered events in it against none, when the
//! server knows nothing of it against when it was just looked at, and two relays against one.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use idem_relay::Summary;
use support::postgres::Server;
use tokio::runtime::Runtime;

use crate::calls::publisher::{Counting, relay};
use crate::effort::Effort;
use crate::groups::{in_words, rate, ratio_of};
use crate::results::{Measurement, Target};
use crate::rounds::alternate;
use crate::shop::database::ShopDatabase;

/// Undelivered events of one round, and the aggregates that take turns in them.
const EVENTS: u32 = 20_000;
const AGGREGATES: u32 = 2000;

/// Delivered events that nobody has removed yet. Each round adds those that it delivers.
pub(super) const DELIVERED: u32 = 1_000_000;

/// What a round trip to a broker may take.
const ROUND_TRIP: Duration = Duration::from_millis(1);

const EVENTS_PER_SECOND: &str = "events/s";

pub(super) fn measure(server: &Server, effort: Effort) -> Result<Vec<Measurement>> {
    let mut empty = Outbox::create(server, effort, Statistics::Fresh)?;
    let mut measurements = vec![
        beside_delivered(server, effort, &mut empty)?,
        without_statistics(server, effort, &mut empty)?,
    ];
    for takes in [ROUND_TRIP, Duration::ZERO] {
        measurements.push(two_relays(effort, &mut empty, takes)?);
    }
    Ok(measurements)
}

fn beside_delivered(server: &Server, effort: Effort, empty: &mut Outbox) -> Result<Measurement> {
    let mut full = Outbox::create(server, effort, Statistics::Fresh)?;
    let delivered = effort.rows(DELIVERED);
    full.fill(delivered)?;
    let rounds = alternate(effort.rounds(), [false, true], |is_full| {
        let outbox = if is_full { &mut full } else { &mut *empty };
        outbox.rate(1, Duration::ZERO)
    })?;
    ratio_of(
        EVENTS_PER_SECOND,
        &rounds,
        format!(
            "relay, {} delivered events in the outbox",
            in_words(delivered)
        ),
        "empty outbox",
        Some(Target::AtLeast(0.90)),
        |&[empty, full]| (full, empty),
    )
}

/// An outbox fills faster than statistics follow, above all when the broker is away.
fn without_statistics(server: &Server, effort: Effort, known: &mut Outbox) -> Result<Measurement> {
    let mut unknown = Outbox::create(server, effort, Statistics::None)?;
    let rounds = alternate(effort.rounds(), [true, false], |is_known| {
        let outbox = if is_known { &mut *known } else { &mut unknown };
        outbox.rate(1, Duration::ZERO)
    })?;
    ratio_of(
        EVENTS_PER_SECOND,
        &rounds,
        "relay, an outbox that was never analyzed",
        "just analyzed",
        Some(Target::AtLeast(0.90)),
        |&[known, unknown]| (unknown, known),
    )
}

fn two_relays(effort: Effort, outbox: &mut Outbox, takes: Duration) -> Result<Measurement> {
    let rounds = alternate(effort.rounds(), [1, 2], |relays| outbox.rate(relays, takes))?;
    let (publisher, target) = if takes.is_zero() {
        ("no time".to_owned(), None)
    } else {
        (
            format!("{} ms", takes.as_millis()),
            Some(Target::AtLeast(1.0)),
        )
    };
    ratio_of(
        EVENTS_PER_SECOND,
        &rounds,
        format!("two relays, a publisher that takes {publisher} for each event"),
        "one relay",
        target,
        |&[one, two]| (two, one),
    )
}

/// What the server's planner knows of the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Statistics {
    None,
    Fresh,
}

/// A database whose outbox is filled and emptied in turn.
struct Outbox {
    database: ShopDatabase,
    runtime: Runtime,
    events: u32,
    aggregates: u32,
    statistics: Statistics,
    /// What stays in it.
    delivered: u32,
}

impl Outbox {
    fn create(server: &Server, effort: Effort, statistics: Statistics) -> Result<Self> {
        let events = effort.rows(EVENTS);
        Ok(Self {
            database: ShopDatabase::create(server)?,
            runtime: tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()?,
            events,
            aggregates: AGGREGATES.min(events),
            statistics,
            delivered: 0,
        })
    }

    fn fill(&mut self, delivered: u32) -> Result<()> {
        self.database.store_delivered(delivered, self.aggregates)?;
        self.delivered += delivered;
        Ok(())
    }

    /// Events for each second that so many relays publish, each with a connection of its own, until nothing is left.
    fn rate(&mut self, relays: u32, takes: Duration) -> Result<f64> {
        if self.delivered == 0 {
            self.database.reset_outbox()?;
        }
        self.database.enqueue(self.events, self.aggregates)?;
        match self.statistics {
            Statistics::None => self.database.read_outbox()?,
            Statistics::Fresh => self.database.settle_outbox()?,
        }
        let publisher = Counting::new(takes);
        let (summary, took) = self.drain(relays, &publisher)?;
        ensure!(
            (summary.published, publisher.taken()) == (self.events.into(), self.events),
            "{summary:?}, and {} were taken of {}",
            publisher.taken(),
            self.events
        );
        if self.delivered > 0 {
            self.delivered += self.events;
        }
        let expected = self.delivered.max(self.events);
        let found = self.database.delivered()?;
        ensure!(
            found == i64::from(expected),
            "{found} events are delivered and not {expected}"
        );
        Ok(rate(self.events, took))
    }

    fn drain(&mut self, relays: u32, publisher: &Counting) -> Result<(Summary, Duration)> {
        let url = self.database.url();
        self.runtime.block_on(async {
            let started_at = Instant::now();
            let draining: Vec<_> = (1..=relays)
                .map(|number| {
                    let relay = relay(url, publisher).name(format!("relay-{number}"));
                    tokio::spawn(async move { relay.drain().await })
                })
                .collect();
            let mut sum = Summary::default();
            for drained in draining {
                let summary = drained.await??;
                sum.published += summary.published;
                sum.fenced += summary.fenced;
            }
            Ok((sum, started_at.elapsed()))
        })
    }
}

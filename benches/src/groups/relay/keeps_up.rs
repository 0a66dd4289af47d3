//! Whether one relay keeps up with clients that commit events as fast as they can.
//!
//! The lag is how long the oldest undelivered event has waited. If the relay is slower than the clients, the lag grows with the time: in the last third of it to
//! half as much again as in the middle third, however little slower the relay is. The first third is for warming up. When the clients stop, what is left must be
//! delivered soon. Autovacuum is on, because a relay lives with it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use diesel::{Connection, PgConnection};
use idem_diesel::outbox::{Backlog, backlog};
use support::postgres::Server;
use tokio::sync::oneshot;

use crate::calls::asynchronous::Call;
use crate::calls::clients::Clients;
use crate::calls::publisher::{Counting, relay};
use crate::effort::Effort;
use crate::groups::{Findings, connections, figure, rate};
use crate::plots::curves::{Curves, Panel};
use crate::results::{Measurement, Target, Unit};
use crate::shop::CLIENTS;
use crate::shop::database::ShopDatabase;
use crate::spread::Spread;

/// How often the lag is looked at while the clients call.
const SAMPLES: u32 = 80;

/// A run is long, and each is judged by itself.
const MOST_RUNS: u32 = 3;

/// How much higher the highest lag of the last third may be: half-way to that of a relay that is too slow.
const MOST_GROWTH: f64 = 1.25;

/// How soon the last event must be published.
const SOON_MS: f64 = 1000.0;

/// Lags below this count as this much: between a few milliseconds there is no trend.
const SHORTEST_LAG_MS: f64 = 100.0;

/// Between one look and the next when the clients have stopped.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// More than the target, so that a slow relay is reported and an endless one is not waited for.
const LONGEST_DRAIN: Duration = Duration::from_secs(30);

pub(super) fn measure(server: &Server, effort: Effort) -> Result<Findings> {
    let mut findings = Findings::default();
    for writers in [Writers::Handlers, Writers::OnlyEvents] {
        let mut shop = Shop::open(server, effort)?;
        let runs = (0..effort.rounds().min(MOST_RUNS))
            .map(|_| shop.run(writers.call()))
            .collect::<Result<Vec<Run>>>()?;
        findings.measurements.extend(judge(&runs, writers)?);
        findings.curves.push(curves(&runs, writers));
    }
    Ok(findings)
}

/// What the clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writers {
    /// What applications do: a handler changes something and publishes that it has. Its commit wakes the relay.
    Handlers,
    /// Nothing else, so as many events as there can be. The relay looks by itself, because plain transactions wake nobody.
    OnlyEvents,
}

impl Writers {
    fn call(self) -> Call {
        match self {
            Self::Handlers => Call::Publish,
            Self::OnlyEvents => Call::PublishAlone,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Handlers => "handlers that publish",
            Self::OnlyEvents => "transactions that only publish",
        }
    }

    /// Of the picture.
    fn name(self) -> &'static str {
        match self {
            Self::Handlers => "relay-lag",
            Self::OnlyEvents => "relay-lag-only-events",
        }
    }

    /// More events than an application has are only told.
    fn target(self, target: Target) -> Option<Target> {
        (self == Self::Handlers).then_some(target)
    }
}

/// What was seen while clients and a relay worked beside each other.
struct Run {
    samples: Vec<Sample>,
    wrote_for: Duration,
    events_per_second: f64,
    drained_ms: f64,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Duration,
    lag_ms: f64,
    backlog: f64,
}

impl Run {
    /// The samples of the `number`th third of the time, counted from 0.
    fn third(&self, number: u32) -> impl Iterator<Item = Sample> {
        let third = self.wrote_for / 3;
        let (from, until) = (third * number, third * (number + 1));
        let samples = self.samples.iter().copied();
        samples.filter(move |sample| from <= sample.at && sample.at < until)
    }

    fn highest_lag_ms(&self, third: u32) -> Result<f64> {
        let lags = Spread::of(self.third(third).map(|sample| sample.lag_ms));
        Ok(lags.context("no sample in this third")?.max)
    }

    /// The highest lag of the last third against that of the middle one.
    fn growth(&self) -> Result<f64> {
        let [middle, last] = [1, 2].map(|third| self.highest_lag_ms(third));
        Ok(last?.max(SHORTEST_LAG_MS) / middle?.max(SHORTEST_LAG_MS))
    }

    /// The middle of all lags behind the first third.
    fn usual_lag_ms(&self) -> Result<f64> {
        let samples = self.third(1).chain(self.third(2));
        Ok(Spread::of(samples.map(|sample| sample.lag_ms))?.median)
    }

    fn highest_backlog(&self) -> Result<f64> {
        Ok(Spread::of(self.samples.iter().map(|sample| sample.backlog))?.max)
    }
}

fn judge(runs: &[Run], writers: Writers) -> Result<Vec<Measurement>> {
    let each = |of: fn(&Run) -> Result<f64>| runs.iter().map(of).collect::<Result<Vec<f64>>>();
    let median =
        |of: fn(&Run) -> Result<f64>| Ok::<f64, anyhow::Error>(Spread::of(each(of)?)?.median);
    let beside = format!(
        "one relay beside {}, {}",
        writers.words(),
        connections(CLIENTS)
    );
    let highest = Measurement {
        against: "highest lag of the middle third".to_owned(),
        sizes: format!(
            "{:.0} and {:.0} ms; {:.0} events/s, at most {:.0} waiting",
            median(|run| run.highest_lag_ms(2))?,
            median(|run| run.highest_lag_ms(1))?,
            median(|run| Ok(run.events_per_second))?,
            median(Run::highest_backlog)?,
        ),
        ..figure(
            format!("{beside}: highest lag of the last third"),
            Unit::Ratio,
            writers.target(Target::AtMost(MOST_GROWTH)),
            &each(Run::growth)?,
        )?
    };
    Ok(vec![
        highest,
        figure(
            format!("{beside}: median lag"),
            Unit::Milliseconds,
            None,
            &each(Run::usual_lag_ms)?,
        )?,
        figure(
            format!("{beside}: until all is published when they stop"),
            Unit::Milliseconds,
            writers.target(Target::AtMost(SOON_MS)),
            &each(|run| Ok(run.drained_ms))?,
        )?,
    ])
}

fn curves(runs: &[Run], writers: Writers) -> Curves {
    let lines = |of: fn(&Sample) -> f64| {
        let line = |run: &Run| {
            let points = run.samples.iter();
            points
                .map(|sample| (sample.at.as_secs_f64(), of(sample)))
                .collect()
        };
        runs.iter().map(line).collect()
    };
    Curves {
        name: writers.name().to_owned(),
        title: format!(
            "one relay beside {}, {}: each run a line",
            writers.words(),
            connections(CLIENTS)
        ),
        panels: vec![
            Panel {
                axis: "lag, ms".to_owned(),
                lines: lines(|sample| sample.lag_ms),
            },
            Panel {
                axis: "undelivered events".to_owned(),
                lines: lines(|sample| sample.backlog),
            },
        ],
    }
}

struct Shop {
    database: ShopDatabase,
    clients: Clients,
    time: Duration,
}

impl Shop {
    fn open(server: &Server, effort: Effort) -> Result<Self> {
        let mut database = ShopDatabase::create(server)?;
        database.allow_autovacuum_of_outbox()?;
        Ok(Self {
            clients: Clients::connect(database.url(), CLIENTS)?,
            database,
            time: effort.long_window(),
        })
    }

    fn run(&mut self, call: Call) -> Result<Run> {
        self.database.reset()?;
        self.database.reset_outbox()?;
        self.database.checkpoint()?;
        let publisher = Counting::new(Duration::ZERO);
        let relay = relay(self.database.url(), &publisher);
        let (stop, stopped) = oneshot::channel::<()>();
        let relaying = self
            .clients
            .runtime
            .spawn(async move { relay.run(stopped).await });

        let mut db = PgConnection::establish(self.database.url())?;
        let is_over = AtomicBool::new(false);
        let (called, samples) = thread::scope(|scope| {
            let watching = scope.spawn(|| watch(&mut db, self.time / SAMPLES, &is_over));
            let called = self.clients.run_for(call, self.time);
            is_over.store(true, Ordering::Relaxed);
            let samples = watching.join().map_err(|_| anyhow!("the watch panicked"))?;
            Ok::<_, anyhow::Error>((called?, samples?))
        })?;
        let (calls, wrote_for) = called;
        let drained = until_taken(calls, &publisher);

        drop(stop);
        let summary = self.clients.runtime.block_on(relaying)?;
        let (taken, delivered) = (publisher.taken(), self.database.delivered()?);
        // If it took too long, the relay was stopped on its way.
        ensure!(
            u64::from(taken) == summary.published && i64::from(taken) == delivered,
            "{summary:?}, but {taken} events were taken and {delivered} are delivered"
        );
        ensure!(
            taken == calls || drained >= LONGEST_DRAIN,
            "{taken} of {calls} events are published"
        );
        self.database.expect(call.effects(calls))?;
        Ok(Run {
            samples,
            wrote_for,
            events_per_second: rate(calls, wrote_for),
            drained_ms: millis(drained),
        })
    }
}

/// Looks at the outbox from time to time until it is over.
fn watch(db: &mut PgConnection, every: Duration, is_over: &AtomicBool) -> Result<Vec<Sample>> {
    let started_at = Instant::now();
    let mut samples = Vec::new();
    let mut next = every;
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(next.saturating_sub(started_at.elapsed()));
        next += every;
        let at = started_at.elapsed();
        let seen: Backlog = backlog(db)?;
        samples.push(Sample {
            at,
            lag_ms: millis(seen.oldest.unwrap_or_default()),
            backlog: f64::from(u32::try_from(seen.pending)?),
        });
    }
    Ok(samples)
}

/// How long it takes until so many events are published, or [`LONGEST_DRAIN`]. The database is not asked: that would slow the relay down.
fn until_taken(events: u32, publisher: &Counting) -> Duration {
    let started_at = Instant::now();
    while publisher.taken() < events && started_at.elapsed() < LONGEST_DRAIN {
        thread::sleep(LOOK_EVERY);
    }
    started_at.elapsed()
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of 12 s whose lag after so many seconds is what `lag_ms` says.
    fn run(lag_ms: impl Fn(u32) -> f64) -> Run {
        let sample = |second: u32| Sample {
            at: Duration::from_secs(second.into()),
            lag_ms: lag_ms(second),
            backlog: 1.0,
        };
        Run {
            samples: (0..12).map(sample).collect(),
            wrote_for: Duration::from_secs(12),
            events_per_second: 1.0,
            drained_ms: 1.0,
        }
    }

    #[test]
    fn a_lag_that_grows_with_the_time_is_found_and_one_that_stays_is_not() {
        #[track_caller]
        fn check(lag_ms: impl Fn(u32) -> f64, expected: f64) {
            let growth = run(lag_ms).growth().unwrap();
            assert!((growth - expected).abs() < 0.1, "{growth}");
        }
        check(|_| 500.0, 1.0);
        // A slow relay, whether much or little.
        check(|second| f64::from(second) * 800.0, 1.5);
        check(|second| f64::from(second) * 100.0, 1.5);
        // Warming up does not count, and milliseconds do not.
        check(|second| if second < 4 { 9000.0 } else { 500.0 }, 1.0);
        check(f64::from, 1.0);
    }
}

//! The relay: START READING HERE. What happens to an event between its commit and the broker.
//!
//! 1. **Lease.** One statement takes at most [`batch`](Relay::batch) events that are due: the oldest first, and of each aggregate only those from its first undelivered event on.
//!    Each gets a new fence, an attempt is counted, and until the [`lease`](Relay::lease) is over no other relay takes it. Nothing stays open in the database while events are published.
//! 2. **Suspect** what was leased before and never settled: its relay died, perhaps of it. It is published alone, and all others are given back first, so that what was only leased together
//!    with a killer is not blamed for it. What was tried too often is dead before it is published once more.
//! 3. **Publish.** Events of one aggregate one after the other, aggregates beside each other, at most [`concurrency`](Relay::concurrency) at once and each within
//!    [`publish_timeout`](Relay::publish_timeout). No publishing begins that could outlive the lease. Behind an event that failed, those of its aggregate are left alone.
//! 4. **Settle.** One statement says what became of each: delivered, due again after a pause, dead, or not tried. It changes only rows whose fence is still the one of step 1; the
//!    others were *fenced*: their lease was over, and somebody else has them.
//! 5. **Again**, at once; and when nothing was due, when a commit in this process wakes it, or after [`poll_every`](Relay::poll_every). Looking is the truth; waking only makes it quick.
//!
//! A broker that cannot be reached is no event's fault: what was leased is given back uncounted, and the relay rests, longer each time. So an outage makes nothing dead.
//!
//! # What is guaranteed
//!
//! * An event whose transaction committed is published at least once, or is dead with a reason and waits for a person. No age, no crash and no late commit lets one pass by: there is no cursor that could
//!   move on, each row says for itself what became of it.
//! * An event of a transaction that rolled back, also to a savepoint, is never published.
//! * Of one aggregate, no event is published for the first time before all earlier ones have been delivered, whatever number of relays run; with [`Dead::Skip`] a dead one does not count.
//! * An event that fails, is malformed, or kills its relay does not hold up other aggregates for longer than its own attempts take.
//!
//! # What is not
//!
//! * Once: a relay that dies between step 3 and 4 leaves an event that is published again, under the same id. So does one that is suspended for longer than its lease: it may then publish an
//!   event again after later ones of the same aggregate. Consumers with an [inbox](idem_diesel::inbox) see neither.
//! * Order between aggregates, and between events that were published outside of this library's functions.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures_util::FutureExt;
use futures_util::future::{self, Either};
use futures_util::stream::{self, StreamExt};
use idem_diesel::Error;
use idem_diesel::limits::DEFAULT_MAX_ATTEMPTS;
use idem_diesel::outbox::{self, Backlog, Dead, Lease, Leased, OutboxEvent, Settled, Settlement};
use tokio::sync::Notify;
use tracing::Instrument;

use crate::connect::{CONNECTED_WITHIN, Connect};
use crate::publisher::{Kind, PublishError, Publisher};
use crate::wake::Wake;

/// How many events are leased together, unless a relay says otherwise.
pub const DEFAULT_BATCH: u32 = 100;

/// The most that can be.
pub const MAX_BATCH: u32 = 10_000;

/// How long a lease lasts, unless a relay says otherwise.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(60);

/// How long one event may take, unless a relay says otherwise.
pub const DEFAULT_PUBLISH_TIMEOUT: Duration = Duration::from_secs(10);

/// How many aggregates are published beside each other, unless a relay says otherwise.
pub const DEFAULT_CONCURRENCY: usize = 32;

/// How often a relay looks although nobody woke it, unless it says otherwise.
pub const DEFAULT_POLL_EVERY: Duration = Duration::from_secs(1);

/// The pause after a first failure, and the longest one: each is up to twice the one before, at random.
pub const DEFAULT_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

/// The rests of a relay whose broker or database cannot be reached: the first, and the longest.
pub const OUTAGE_PAUSES: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(15));

/// How often the backlog is counted for the metrics.
pub const OBSERVE_EVERY: Duration = Duration::from_secs(10);

/// What a relay has done.
///
/// ```
/// let nothing = idem_relay::Summary::default();
/// assert_eq!(nothing.published + nothing.retried + nothing.dead + nothing.fenced, 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Events that were published and settled.
    pub published: u64,
    /// Attempts that failed and will be repeated.
    pub retried: u64,
    /// Events that were given up.
    pub dead: u64,
    /// Events whose lease was over, or taken, when they were to be settled.
    pub fenced: u64,
}

/// Publishes the events of one database's outbox.
///
/// Several relays may run beside each other, in one process or many; each needs one connection. On SQLite one is as fast as many.
///
/// ```
/// use diesel::SqliteConnection;
/// use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
/// use diesel_async::{AsyncConnection, RunQueryDsl};
/// use idem_diesel::outbox::{self, OutboxEvent};
/// use idem_diesel::Event;
/// use idem_relay::{PublishError, Publisher, Relay};
/// use serde::Serialize;
///
/// #[derive(Serialize, Event)]
/// #[event(type = "order.placed", aggregate_type = "order")]
/// struct OrderPlaced {
///     #[event(aggregate_id)]
///     order_id: i64,
/// }
///
/// struct Print;
///
/// impl Publisher for Print {
///     async fn publish(&self, event: &OutboxEvent) -> Result<(), PublishError> {
///         println!("{}: {}", event.event_type, event.payload);
///         Ok(())
///     }
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("shop.db").display().to_string();
/// let connect = move || {
///     let path = path.clone();
///     async move { SyncConnectionWrapper::<SqliteConnection>::establish(&path).await }
/// };
/// # let mut db = { let path = folder.path().join("shop.db").display().to_string(); SyncConnectionWrapper::<SqliteConnection>::establish(&path).await? };
/// # idem_diesel::ensure_schema(&mut db).await?;
/// db.transaction(async |db| outbox::publish(db, &OrderPlaced { order_id: 7 }).await).await?;
///
/// let relay = Relay::new(connect, Print);
/// assert_eq!(relay.drain().await?.published, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Relay<S, P> {
    source: S,
    publisher: P,
    name: String,
    batch: u32,
    lease: Duration,
    publish_timeout: Duration,
    concurrency: usize,
    max_attempts: u32,
    pauses: (Duration, Duration),
    poll_every: Duration,
    dead: Dead,
    wake: Arc<Notify>,
}

impl<S: Connect, P: Publisher> Relay<S, P> {
    /// A relay with the defaults of this module, named after its process.
    pub fn new(source: S, publisher: P) -> Self {
        Self {
            source,
            publisher,
            name: format!("relay-{}", std::process::id()),
            batch: DEFAULT_BATCH,
            lease: DEFAULT_LEASE,
            publish_timeout: DEFAULT_PUBLISH_TIMEOUT,
            concurrency: DEFAULT_CONCURRENCY,
            max_attempts: DEFAULT_MAX_ATTEMPTS,
            pauses: DEFAULT_PAUSES,
            poll_every: DEFAULT_POLL_EVERY,
            dead: Dead::Block,
            wake: Arc::default(),
        }
    }

    /// What an operator reads in `outbox_deliveries.owner`.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        let name = name.into();
        Self { name, ..self }
    }

    /// How many events are leased together: 1 to [`MAX_BATCH`].
    #[must_use]
    pub fn batch(self, events: u32) -> Self {
        let batch = events.clamp(1, MAX_BATCH);
        Self { batch, ..self }
    }

    /// How long they are leased, at least for twice the time that one event may take. After that another relay may publish them again.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// How long one event may take. An attempt that takes longer has failed.
    #[must_use]
    pub fn publish_timeout(self, publish_timeout: Duration) -> Self {
        Self {
            publish_timeout,
            ..self
        }
    }

    /// How many aggregates are published beside each other; at least one.
    #[must_use]
    pub fn concurrency(self, aggregates: usize) -> Self {
        let concurrency = aggregates.max(1);
        Self {
            concurrency,
            ..self
        }
    }

    /// After how many failed attempts an event is dead; at least one.
    #[must_use]
    pub fn max_attempts(self, attempts: u32) -> Self {
        let max_attempts = attempts.max(1);
        Self {
            max_attempts,
            ..self
        }
    }

    /// The pause after a first failed attempt at an event, and the longest one.
    #[must_use]
    pub fn pauses(self, first: Duration, longest: Duration) -> Self {
        let pauses = (first, longest.max(first));
        Self { pauses, ..self }
    }

    /// How often the relay looks although nobody woke it.
    #[must_use]
    pub fn poll_every(self, poll_every: Duration) -> Self {
        Self { poll_every, ..self }
    }

    /// What a dead event does to those behind it in its aggregate.
    #[must_use]
    pub fn dead(self, dead: Dead) -> Self {
        Self { dead, ..self }
    }

    /// What makes this relay look at once.
    pub fn wake(&self) -> Wake {
        Wake::new(Arc::clone(&self.wake))
    }

    /// Publishes until `shutdown` is done: then no further event is begun, those that are being published are finished and settled, and the rest is given back.
    ///
    /// Nothing ends it but `shutdown`: while the database or the broker cannot be reached it says so through `tracing`, rests, and goes on.
    ///
    /// # Cancellation
    ///
    /// A dropped future loses nothing. What it had published and not yet settled is published again when its lease is over.
    pub async fn run(&self, shutdown: impl Future) -> Summary {
        let stop = Stop::default();
        let wake = self.wake();
        let _wake_up = outbox::on_publish(move || wake.wake());
        // It is large, and it is somebody's to spawn.
        let working = Box::pin(self.work(&stop));
        let stopping = std::pin::pin!(async {
            shutdown.await;
            stop.stop();
        });
        match future::select(working, stopping).await {
            Either::Left((summary, _)) => summary,
            Either::Right(((), working)) => working.await,
        }
    }

    /// Publishes what is due now, and returns. What failed rests, and is not waited for.
    ///
    /// # Errors
    ///
    /// An [`Outage`] of the database or of the publisher. Everything that was not settled is due again, at the latest when its lease is over.
    ///
    /// # Cancellation
    ///
    /// As for [`run`](Self::run).
    pub async fn drain(&self) -> Result<Summary, Outage> {
        let stop = Stop::default();
        let mut summary = Summary::default();
        let mut db = self.connected().await?;
        while self.pass(&mut db, &stop, &mut summary).await? != Pass::Nothing {}
        Ok(summary)
    }

    async fn connected(&self) -> Result<S::Connection, Outage> {
        match tokio::time::timeout(CONNECTED_WITHIN, self.source.connect()).await {
            Ok(connected) => connected.map_err(Outage::Connection),
            Err(_) => Err(Outage::Silent),
        }
    }

    async fn work(&self, stop: &Stop) -> Summary {
        let mut summary = Summary::default();
        let mut connection = None;
        let mut outages = rests(OUTAGE_PAUSES);
        let mut observed: Option<Instant> = None;
        while !stop.is_stopped() {
            let (worked, db) = self.once(connection.take(), stop, &mut summary).await;
            connection = db;
            let is_observation_due = observed.is_none_or(|at| at.elapsed() >= OBSERVE_EVERY);
            if is_observation_due && let Some(db) = &mut connection {
                if let Ok(backlog) =
                    tokio::time::timeout(CONNECTED_WITHIN, outbox::backlog(db)).await
                {
                    observe(backlog);
                }
                observed = Some(Instant::now());
            }
            let outage = match worked {
                Ok(Pass::Some) => continue,
                Ok(Pass::Nothing) => {
                    outages = rests(OUTAGE_PAUSES);
                    None
                }
                Err(outage) => {
                    tracing::warn!(error = shown(&outage), "a relay cannot work: events wait");
                    if !matches!(outage, Outage::Publisher(_)) {
                        connection = None;
                    }
                    outages.next()
                }
            };
            tokio::select! {
                () = stop.stopped() => {}
                // Whoever wakes it knows nothing of what is out of reach.
                () = self.wake.notified(), if outage.is_none() => {}
                () = tokio::time::sleep(outage.unwrap_or(self.poll_every)) => {}
            }
        }
        summary
    }

    async fn once(
        &self,
        connection: Option<S::Connection>,
        stop: &Stop,
        summary: &mut Summary,
    ) -> (Result<Pass, Outage>, Option<S::Connection>) {
        let mut db = match connection {
            Some(db) => db,
            None => match self.connected().await {
                Ok(db) => db,
                Err(error) => return (Err(error), None),
            },
        };
        let pass = self.pass(&mut db, stop, summary).await;
        (pass, Some(db))
    }

    /// Steps 1 to 4.
    async fn pass(
        &self,
        db: &mut S::Connection,
        stop: &Stop,
        summary: &mut Summary,
    ) -> Result<Pass, Outage> {
        let lease = self.lease.max(self.publish_timeout * 2);
        // Counted from before the statement: by this clock it is never over later than by the database's.
        let until = Instant::now() + lease;
        let terms = Lease {
            owner: self.name.clone(),
            duration: lease,
            at_most: self.batch,
            dead: self.dead,
        };
        // A database that does not answer is given up, and with it the connection.
        let leased = match before(until, outbox::lease(db, &terms)).await {
            Some(leased) => leased?,
            None => return Err(Outage::Silent),
        };
        if leased.is_empty() {
            return Ok(Pass::Nothing);
        }
        let leased = self.one_suspect(db, leased, until, summary).await?;
        let batch = Batch {
            until,
            stop,
            unavailable: AtomicBool::new(false),
        };
        let (settled, unavailable) = self.publish(leased, &batch).await;
        self.settle(db, &settled, until, summary).await?;
        match unavailable {
            Some(error) => Err(Outage::Publisher(error)),
            None => Ok(Pass::Some),
        }
    }

    /// An event whose lease nobody settled may be what ended its relay, or may only have been leased together with that. So it is published alone: the others are given back
    /// before, and if this relay ends, too, they are not to blame for it.
    async fn one_suspect(
        &self,
        db: &mut S::Connection,
        mut leased: Vec<Leased>,
        until: Instant,
        summary: &mut Summary,
    ) -> Result<Vec<Leased>, Outage> {
        let Some(suspect) = leased.iter().find(|leased| leased.unsettled > 0) else {
            return Ok(leased);
        };
        // What comes before it in its aggregate goes first, suspected or not.
        let aggregate = aggregate(suspect);
        let is_of_it = |leased: &Leased| self::aggregate(leased) == aggregate;
        let Some(place) = leased.iter().position(is_of_it) else {
            unreachable!("I14: an event is of its own aggregate")
        };
        let first = leased.remove(place);
        let untried = |leased: &Leased| {
            let pause = Duration::ZERO;
            leased.settlement(Settled::Untried { pause })
        };
        let given_back: Vec<_> = leased.iter().map(untried).collect();
        if !given_back.is_empty() {
            self.settle(db, &given_back, until, summary).await?;
        }
        Ok(vec![first])
    }

    /// Steps 2 and 3: what became of each event, and why the publisher could not be reached if it could not.
    async fn publish(
        &self,
        leased: Vec<Leased>,
        batch: &Batch<'_>,
    ) -> (Vec<Settlement>, Option<PublishError>) {
        let mut aggregates: Vec<Vec<Leased>> = Vec::new();
        let mut places: HashMap<Aggregate, usize> = HashMap::new();
        for leased in leased {
            let place = *places.entry(aggregate(&leased)).or_insert_with(|| {
                aggregates.push(Vec::new());
                aggregates.len() - 1
            });
            if let Some(events) = aggregates.get_mut(place) {
                events.push(leased);
            }
        }
        let mut settlements = Vec::new();
        let mut unavailable = None;
        let mut publishing = stream::iter(aggregates)
            .map(|events| self.publish_in_order(events, batch))
            .buffer_unordered(self.concurrency);
        while let Some((settled, error)) = publishing.next().await {
            settlements.extend(settled);
            unavailable = unavailable.or(error);
        }
        (settlements, unavailable)
    }

    /// The events of one aggregate, in their order, until one fails.
    async fn publish_in_order(
        &self,
        events: Vec<Leased>,
        batch: &Batch<'_>,
    ) -> (Vec<Settlement>, Option<PublishError>) {
        let mut settlements = Vec::with_capacity(events.len());
        let mut unavailable = None;
        let mut goes_on = true;
        for leased in events {
            if !goes_on || !batch.may_begin(self.publish_timeout) {
                let pause = Duration::ZERO;
                settlements.push(leased.settlement(Settled::Untried { pause }));
                continue;
            }
            let outcome = match self.publish_one(&leased).await {
                Ok(()) => Settled::Delivered,
                Err(error) if error.is_unavailable() => {
                    batch.unavailable.store(true, Ordering::Relaxed);
                    unavailable = Some(error);
                    let pause = Duration::ZERO;
                    Settled::Untried { pause }
                }
                Err(error) => self.failed(&leased, &error),
            };
            goes_on = match outcome {
                Settled::Delivered => true,
                Settled::Dead { .. } => self.dead == Dead::Skip,
                Settled::Retry { .. } | Settled::Untried { .. } => false,
            };
            settlements.push(leased.settlement(outcome));
        }
        (settlements, unavailable)
    }

    fn failed(&self, leased: &Leased, error: &PublishError) -> Settled {
        let text = shown(error);
        let id = leased.id();
        if error.is_rejected() || leased.attempt >= self.max_attempts {
            tracing::error!(%id, attempt = leased.attempt, error = text, "an event is dead");
            return Settled::Dead { error: text };
        }
        let Kind::Failed { not_before } = error.kind() else {
            return Settled::Dead { error: text };
        };
        tracing::warn!(%id, attempt = leased.attempt, error = text, "an event was not published");
        // The pause of the attempt that comes next is the last of so many.
        let attempt = usize::try_from(leased.attempt).unwrap_or(usize::MAX);
        let pause = rests(self.pauses)
            .take(attempt.min(MAX_DOUBLINGS))
            .last()
            .unwrap_or(self.pauses.1);
        Settled::Retry {
            pause: pause.max(not_before.unwrap_or_default()),
            error: text,
        }
    }

    async fn publish_one(&self, leased: &Leased) -> Result<(), PublishError> {
        let Ok(event) = &leased.event else {
            return Err(PublishError::rejected("its row in outbox_events is gone"));
        };
        // It was counted when it was leased, so an attempt too many means that none of those before came to an end.
        if leased.attempt > self.max_attempts {
            let why = leased.last_error.as_deref();
            let why = why.unwrap_or("no attempt came to an end: did it kill its relay?");
            return Err(PublishError::rejected(why));
        }
        let span = tracing::info_span!(
            "publish",
            id = %event.id,
            event_type = event.event_type,
            aggregate_type = event.aggregate_type,
            aggregate_id = event.aggregate_id,
            attempt = leased.attempt,
            traceparent = event.traceparent,
        );
        let publishing = AssertUnwindSafe(self.publisher.publish(event)).catch_unwind();
        let publishing = tokio::time::timeout(self.publish_timeout, publishing).instrument(span);
        match publishing.await {
            Ok(Ok(published)) => {
                if published.is_ok() {
                    metrics::histogram!("idem_outbox_lag_seconds").record(age(event));
                }
                published
            }
            Ok(Err(panic)) => Err(PublishError::failed(format!(
                "the publisher panicked: {}",
                message(&*panic)
            ))),
            Err(_) => Err(PublishError::failed(format!(
                "it was not published within {:?}",
                self.publish_timeout
            ))),
        }
    }

    /// Step 4. A database that does not answer is asked again until the lease is over: after that another relay publishes the events once more.
    async fn settle(
        &self,
        db: &mut S::Connection,
        settlements: &[Settlement],
        until: Instant,
        summary: &mut Summary,
    ) -> Result<(), Outage> {
        let mut pauses = rests(OUTAGE_PAUSES);
        let settled = loop {
            let outage = match before(until, outbox::settle(db, settlements)).await {
                Some(Ok(settled)) => break settled,
                Some(Err(error)) => Outage::Database(error),
                None => return Err(Outage::Silent),
            };
            let pause = pauses.next().unwrap_or(OUTAGE_PAUSES.1);
            if Instant::now() + pause >= until {
                return Err(outage);
            }
            tracing::warn!(
                error = shown(&outage),
                "published events are not settled yet"
            );
            tokio::time::sleep(pause).await;
            if let Some(Ok(new)) = before(until, self.connected()).await {
                *db = new;
            }
        };
        let settled: std::collections::HashSet<_> = settled.into_iter().collect();
        let mut now = Summary::default();
        for settlement in settlements {
            if !settled.contains(&settlement.id()) {
                tracing::warn!(id = %settlement.id(), "an event was fenced: its lease was over");
                now.fenced += 1;
                continue;
            }
            match settlement.outcome() {
                Settled::Delivered => now.published += 1,
                Settled::Retry { .. } => now.retried += 1,
                Settled::Dead { .. } => now.dead += 1,
                Settled::Untried { .. } => {}
            }
        }
        metrics::counter!("idem_outbox_published").increment(now.published);
        metrics::counter!("idem_outbox_retried").increment(now.retried);
        metrics::counter!("idem_outbox_dead").increment(now.dead);
        metrics::counter!("idem_outbox_fenced").increment(now.fenced);
        summary.published += now.published;
        summary.retried += now.retried;
        summary.dead += now.dead;
        summary.fenced += now.fenced;
        Ok(())
    }
}

/// Tenant, type and id of the aggregate that an event belongs to.
type Aggregate = (String, String, String);

fn aggregate(leased: &Leased) -> Aggregate {
    match &leased.event {
        Ok(event) => (
            event.tenant.clone(),
            event.aggregate_type.clone(),
            event.aggregate_id.clone(),
        ),
        // What has lost its event is nobody's follower any more.
        Err(id) => (id.to_string(), String::new(), String::new()),
    }
}

/// What a future gives, unless it takes until then.
async fn before<T>(end: Instant, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout_at(end.into(), future).await.ok()
}

/// What one pass came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Nothing,
    Some,
}

/// What keeps a relay from working. No event is to blame, and none is lost.
///
/// ```
/// use std::error::Error;
/// use idem_relay::PublishError;
/// use idem_relay::relay::Outage;
///
/// let outage = Outage::Publisher(PublishError::unavailable("connection refused"));
/// assert_eq!(outage.to_string(), "the publisher cannot be reached");
/// assert_eq!(outage.source().map(ToString::to_string), Some("connection refused".to_owned()));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Outage {
    /// There is no connection to the database.
    Connection(Box<dyn StdError + Send + Sync>),
    /// The database refused a statement of the relay.
    Database(Error),
    /// The database did not answer in time.
    Silent,
    /// The publisher's other side cannot be reached.
    Publisher(PublishError),
}

impl From<Error> for Outage {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connection(_) => "there is no connection to the database",
            Self::Database(_) => "the database refused a statement",
            Self::Silent => "the database does not answer",
            Self::Publisher(_) => "the publisher cannot be reached",
        })
    }
}

impl StdError for Outage {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Connection(error) => Some(&**error),
            Self::Database(error) => Some(error),
            Self::Publisher(error) => Some(error),
            Self::Silent => None,
        }
    }
}

/// What the aggregates of one batch share.
struct Batch<'s> {
    until: Instant,
    stop: &'s Stop,
    unavailable: AtomicBool,
}

impl Batch<'_> {
    /// Whether a further event may be begun that takes so long.
    fn may_begin(&self, takes: Duration) -> bool {
        !self.stop.is_stopped()
            && !self.unavailable.load(Ordering::Relaxed)
            && Instant::now() + takes < self.until
    }
}

/// Whether the relay is to end.
#[derive(Debug, Default)]
struct Stop {
    is_stopped: AtomicBool,
    changed: Notify,
}

impl Stop {
    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        // One is waiting at most, and one that comes later finds it.
        self.changed.notify_one();
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    async fn stopped(&self) {
        self.changed.notified().await;
    }
}

/// After so many doublings every pause is the longest.
const MAX_DOUBLINGS: usize = 32;

/// Jittered pauses without end, from the first to the longest.
pub(crate) fn rests((first, longest): (Duration, Duration)) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(first)
        .with_max_delay(longest)
        .with_jitter()
        .without_max_times()
        .build()
}

fn observe(backlog: Result<Backlog, Error>) {
    match backlog {
        Ok(backlog) => {
            let oldest = backlog.oldest.unwrap_or_default();
            #[expect(
                clippy::cast_precision_loss,
                reason = "a gauge needs no more than the 52 bits of its type"
            )]
            metrics::gauge!("idem_outbox_pending").set(backlog.pending as f64);
            metrics::gauge!("idem_outbox_oldest_seconds").set(oldest.as_secs_f64());
        }
        Err(error) => tracing::warn!(error = shown(&error), "the backlog was not counted"),
    }
}

/// How long ago it was published into the outbox, in seconds: by two clocks, so it is never less than nothing.
fn age(event: &OutboxEvent) -> f64 {
    let age = SystemTime::now().duration_since(event.created_at);
    age.unwrap_or_default().as_secs_f64()
}

/// An error with its causes, in one line.
pub(crate) fn shown(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// What a panic says.
pub(crate) fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

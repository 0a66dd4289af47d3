//! The relay's side: lease, settle, and how much is left.

use std::time::{Duration, SystemTime};

use super::{EventId, malformed};
use crate::connection::{Flavor, IdempotentConnection, Run};
use crate::error::Error;
use crate::inbox::shown;
use crate::store;
use crate::transaction::alone;

/// An event as it is published.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutboxEvent {
    /// Its id, the same on every delivery.
    pub id: EventId,
    /// Whose call caused it; empty when it was published outside of a call.
    pub tenant: String,
    /// What happened.
    pub event_type: String,
    /// To what kind of thing.
    pub aggregate_type: String,
    /// To which one.
    pub aggregate_id: String,
    /// The event as JSON.
    pub payload: String,
    /// The operation of the causing call.
    pub operation: Option<String>,
    /// Its key.
    pub idempotency_key: Option<String>,
    /// The W3C `traceparent` of the span in which it was published.
    pub traceparent: Option<String>,
    /// When it was published, by the database's clock.
    pub created_at: SystemTime,
}

/// An event that is leased, and under which number.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leased {
    /// The event. Without one the row of its delivery is all that is left: nothing can be published.
    pub event: Result<OutboxEvent, EventId>,
    /// Whose it is; empty when it was published outside of a call.
    pub tenant: String,
    /// Its place in the order of its aggregate.
    pub position: i64,
    /// The number of the lease. A settlement under an older one settles nothing.
    pub fence: i64,
    /// Which attempt this is, counted from 1. It was counted when the lease was taken.
    pub attempt: u32,
    /// How many leases before this one nobody settled: it may be what ended their relays.
    pub unsettled: u32,
    /// How the last attempt failed.
    pub last_error: Option<String>,
}

impl Leased {
    /// The id of the event.
    pub fn id(&self) -> EventId {
        match &self.event {
            Ok(event) => event.id,
            Err(id) => *id,
        }
    }

    /// The settlement of it.
    pub fn settlement(&self, outcome: Settled) -> Settlement {
        Settlement {
            tenant: self.tenant.clone(),
            id: self.id(),
            fence: self.fence,
            outcome,
        }
    }

    pub(super) fn from_text(text: &str) -> Result<Self, Error> {
        type Delivery = (
            String,
            String,
            String,
            String,
            String,
            i64,
            i64,
            u32,
            u32,
            Option<String>,
        );
        type Event = (
            Option<String>,
            Option<String>,
            Option<String>,
            Option<String>,
            i64,
        );
        let mut parts = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
        let mut next = || parts.next().and_then(Result::ok).ok_or_else(malformed);
        let (
            id,
            tenant,
            aggregate_type,
            aggregate_id,
            event_type,
            position,
            fence,
            attempt,
            unsettled,
            last_error,
        ): Delivery = serde_json::from_value(next()?).map_err(|_| malformed())?;
        let event: Option<Event> = serde_json::from_value(next()?).map_err(|_| malformed())?;
        let id: EventId = id.parse()?;
        let event = event.map(
            |(payload, operation, idempotency_key, traceparent, created_at)| OutboxEvent {
                id,
                tenant: tenant.clone(),
                event_type,
                aggregate_type,
                aggregate_id,
                payload: payload.unwrap_or_default(),
                operation,
                idempotency_key,
                traceparent,
                created_at: time(created_at),
            },
        );
        Ok(Self {
            event: event.ok_or(id),
            tenant,
            position,
            fence,
            attempt,
            unsettled,
            last_error,
        })
    }
}

/// What a dead event does to those behind it in its aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dead {
    /// They wait until a person has looked: nothing is ever published out of order.
    #[default]
    Block,
    /// They go on without it.
    Skip,
}

/// How events are leased.
///
/// ```
/// use std::time::Duration;
/// use idem_diesel::outbox::{Dead, Lease};
///
/// let lease = Lease { owner: "relay-1".to_owned(), duration: Duration::from_secs(30), at_most: 100, dead: Dead::Block };
/// assert_eq!(lease.dead, Dead::default());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Who leases, for a person to read.
    pub owner: String,
    /// For how long. Whoever has not settled by then is fenced, and another relay may publish the event again.
    pub duration: Duration,
    /// The most events.
    pub at_most: u32,
    /// What dead events do to those behind them.
    pub dead: Dead,
}

/// Leases events that are due, in the order of their positions, and counts the attempt.
///
/// Events of one aggregate are leased by one relay at a time, and only from the first undelivered one on.
///
/// ```
/// # use diesel::prelude::*;
/// # use idem_diesel::*;
/// # #[derive(serde::Serialize)]
/// # struct Paid;
/// # impl Event for Paid {
/// #     fn event_type(&self) -> &'static str { "order.paid" }
/// #     fn aggregate_type(&self) -> &'static str { "order" }
/// #     fn aggregate_id(&self) -> String { "7".to_owned() }
/// # }
/// use std::time::Duration;
/// use idem_diesel::outbox::{Dead, Lease, Settled, lease, settle};
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # ensure_schema(&mut db)?;
/// # db.transaction(|db| outbox::publish(db, &Paid))?;
/// let terms = Lease { owner: "relay-1".to_owned(), duration: Duration::from_secs(30), at_most: 100, dead: Dead::Block };
/// let leased = lease(&mut db, &terms)?;
/// assert_eq!((leased.len(), leased[0].attempt), (1, 1));
/// assert!(lease(&mut db, &terms)?.is_empty());
///
/// let delivered = leased[0].settlement(Settled::Delivered);
/// assert_eq!(settle(&mut db, &[delivered.clone()])?, [leased[0].id()]);
/// // Settled once is settled: the number of the lease is spent.
/// assert!(settle(&mut db, &[delivered])?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// What the database says; nothing is leased then.
///
/// # Cancellation
///
/// One statement: what was leased by a dropped future is due again when the lease is over.
///
/// # SQL
///
/// ```sql
/// WITH due AS (SELECT … FOR UPDATE SKIP LOCKED) UPDATE outbox_deliveries SET owner = …, fence = fence + 1, … RETURNING …
/// ```
pub fn lease<'c, C: IdempotentConnection>(
    db: &'c mut C,
    terms: &Lease,
) -> Run<'c, C, Result<Vec<Leased>, Error>> {
    let statement = store::Lease {
        owner: terms.owner.clone(),
        millis: millis(terms.duration),
        at_most: terms.at_most.into(),
        dead_blocks: i64::from(terms.dead == Dead::Block),
    };
    C::Flavor::run(async move {
        let texts = alone(db, statement).await?;
        let leased = texts.iter().map(|text| Leased::from_text(text));
        let mut leased = leased.collect::<Result<Vec<_>, _>>()?;
        leased.sort_by_key(|leased| leased.position);
        Ok(leased)
    })
}

/// What became of a leased event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// The broker has it.
    Delivered,
    /// It is due again after a pause.
    Retry {
        /// How long it rests.
        pause: Duration,
        /// Why.
        error: String,
    },
    /// It is given up.
    Dead {
        /// Why.
        error: String,
    },
    /// It was not tried, through no fault of its own: the attempt does not count. Whether it is suspected stays as it is.
    Untried {
        /// How long it rests.
        pause: Duration,
    },
}

/// What became of one leased event; [`Leased::settlement`] makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    tenant: String,
    id: EventId,
    fence: i64,
    outcome: Settled,
}

impl Settlement {
    /// The event.
    pub fn id(&self) -> EventId {
        self.id
    }

    /// What became of it.
    pub fn outcome(&self) -> &Settled {
        &self.outcome
    }

    fn to_json(&self) -> serde_json::Value {
        let (state, pause, untried, error) = match &self.outcome {
            Settled::Delivered => ("delivered", Duration::ZERO, 0, None),
            Settled::Retry { pause, error } => ("pending", *pause, 0, Some(shown(error))),
            Settled::Dead { error } => ("dead", Duration::ZERO, 0, Some(shown(error))),
            Settled::Untried { pause } => ("pending", *pause, 1, None),
        };
        let id = self.id.to_string();
        serde_json::json!([
            self.tenant,
            id,
            self.fence,
            state,
            millis(pause),
            untried,
            error
        ])
    }
}

/// Settles leased events, in one statement, and gives the ids of those that were: what is missing is fenced, because its lease was over and is somebody else's, or because it was
/// settled before.
///
/// # Errors
///
/// What the database says; nothing is settled then, and everything is due again when the leases are over.
///
/// # Cancellation
///
/// One statement: all of it or nothing.
///
/// # SQL
///
/// ```sql
/// UPDATE outbox_deliveries SET state = …, … WHERE event_id = … AND fence = … AND state = 'pending' AND owner IS NOT NULL
/// ```
pub fn settle<'c, C: IdempotentConnection>(
    db: &'c mut C,
    settlements: &[Settlement],
) -> Run<'c, C, Result<Vec<EventId>, Error>> {
    let settlements: Vec<_> = settlements.iter().map(Settlement::to_json).collect();
    let statement = store::Settle {
        settlements: serde_json::Value::from(settlements).to_string(),
    };
    C::Flavor::run(async move {
        let ids = alone(db, statement).await?;
        ids.iter().map(|id| id.parse()).collect()
    })
}

/// How much there is to publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backlog {
    /// How many events wait, leased ones included.
    pub pending: u64,
    /// How many are dead.
    pub dead: u64,
    /// How long the oldest waiting one has been waiting, by the database's clock.
    pub oldest: Option<Duration>,
}

/// Counts the events that are not delivered. Its cost grows with their number, not with that of the delivered ones.
///
/// # Errors
///
/// What the database says.
///
/// # Cancellation
///
/// It only reads.
pub fn backlog<C: IdempotentConnection>(db: &mut C) -> Run<'_, C, Result<Backlog, Error>> {
    C::Flavor::run(async move {
        let text = alone(db, store::Backlog).await?.pop().unwrap_or_default();
        let (pending, dead, oldest, now): (u64, u64, Option<i64>, i64) =
            serde_json::from_str(&text).map_err(|_| malformed())?;
        let age =
            |since: i64| Duration::from_micros(now.saturating_sub(since).try_into().unwrap_or(0));
        Ok(Backlog {
            pending,
            dead,
            oldest: oldest.map(age),
        })
    })
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn time(micros: i64) -> SystemTime {
    let since = Duration::from_micros(micros.unsigned_abs());
    SystemTime::UNIX_EPOCH + since
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_without_its_event_is_still_one() {
        let text = r#"["0191e3a0-7b5c-7c00-8000-000000000000", "", "order", "7", "order.paid", 3, 2, 1, 0, null]null"#;
        let leased = Leased::from_text(text).unwrap();
        assert_eq!(leased.event, Err(leased.id()));
        assert_eq!((leased.position, leased.fence, leased.attempt), (3, 2, 1));
        assert!(Leased::from_text("[]").is_err() && Leased::from_text("").is_err());
    }
}

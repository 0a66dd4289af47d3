//! The publishing side: what a handler calls.

use idem_core::invalid::{Invalid, checked_name};
use idem_core::{ErrorKind, Event};

use super::{EventId, trace};
use crate::connection::{Flavor, IdempotentConnection, Run};
use crate::driver::Driver;
use crate::error::Error;
use crate::migrations::explain;
use crate::running::Place;
use crate::store::{self, Enqueue, EventKey, InsertEvent, RemoveEvent};

/// How often a unique event is looked for that was delivered between two statements.
const MAX_LOOKS: u32 = 8;

/// What [`publish_unique`] did.
///
/// ```
/// # use idem_diesel::outbox::{Enqueued, EventId};
/// let id: EventId = "0191e3a0-7b5c-7c00-8000-000000000000".parse()?;
/// assert!(Enqueued::New(id).is_new());
/// assert_eq!(Enqueued::New(id).id(), Enqueued::Existing(id).id());
/// # Ok::<(), idem_diesel::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// The event was enqueued under this id.
    New(EventId),
    /// An event of its type and key is undelivered: this is its id, and nothing was enqueued.
    Existing(EventId),
}

impl Enqueued {
    /// The id of the event that is enqueued now.
    pub const fn id(&self) -> EventId {
        match self {
            Self::New(id) | Self::Existing(id) => *id,
        }
    }

    /// Whether this call enqueued it.
    pub const fn is_new(&self) -> bool {
        matches!(self, Self::New(_))
    }
}

/// Publishes an event once the transaction around it commits.
///
/// The connection must be in a transaction: that of a handler of this library, whose tenant, operation and key the event then carries, or one of Diesel's own.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::{Error, Event, outbox};
/// use serde::Serialize;
///
/// #[derive(Serialize, Event)]
/// #[event(type = "order.placed", aggregate_type = "order")]
/// struct OrderPlaced {
///     #[event(aggregate_id)]
///     order_id: i64,
/// }
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # idem_diesel::ensure_schema(&mut db)?;
/// let event = OrderPlaced { order_id: 7 };
/// let failed = db.transaction(|db| {
///     outbox::publish(db, &event)?;
///     Err::<(), Error>(diesel::result::Error::RollbackTransaction.into())
/// });
/// assert!(failed.is_err());
/// assert_eq!(outbox::backlog(&mut db)?.pending, 0);
///
/// db.transaction(|db| outbox::publish(db, &event))?;
/// assert_eq!(outbox::backlog(&mut db)?.pending, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`NotInTransaction`](ErrorKind::NotInTransaction); [`Invalid`](ErrorKind::Invalid) for names that are none or an event that has no JSON; or what the database says. The
/// transaction around it decides what becomes of the rest.
///
/// # Cancellation
///
/// A future dropped half-way may have written one of the two rows: roll the transaction back, as dropping a handler of this library does.
///
/// # SQL
///
/// ```sql
/// INSERT INTO outbox_deliveries (…) SELECT …; INSERT INTO outbox_events (…) VALUES (…)
/// ```
pub fn publish<'c, C: IdempotentConnection>(
    db: &'c mut C,
    event: &(impl Event + ?Sized),
) -> Run<'c, C, Result<EventId, Error>> {
    let draft = Draft::of(event);
    C::Flavor::run(async move {
        let db = db.inner();
        let draft = draft?.in_transaction(db)?;
        let enqueued = draft.enqueue(db, String::new()).await;
        explained(db, enqueued).await.map(|enqueued| enqueued.id())
    })
}

/// [`publish`], unless an event of the same tenant and type with this key is undelivered: then nothing is enqueued, and the first one's id is given.
///
/// The second article's unique job: a recalculation that is asked for ten times while it waits runs once. A transaction that is just enqueuing the same is waited for.
///
/// ```
/// # use diesel::prelude::*;
/// # use idem_diesel::{Error, Event, outbox};
/// # use serde::Serialize;
/// #[derive(Serialize, Event)]
/// #[event(type = "totals.recalculate", aggregate_type = "customer")]
/// struct Recalculate {
///     #[event(aggregate_id)]
///     customer: i64,
/// }
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # idem_diesel::ensure_schema(&mut db)?;
/// let job = Recalculate { customer: 7 };
/// let [first, second] = db.transaction(|db| {
///     Ok::<_, Error>([outbox::publish_unique(db, &job, "7")?, outbox::publish_unique(db, &job, "7")?])
/// })?;
/// assert!(first.is_new() && !second.is_new());
/// assert_eq!(first.id(), second.id());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As for [`publish`]; [`Invalid`](ErrorKind::Invalid) also for a key that is empty, longer than 255 bytes or has control characters; and
/// [`Conflict`](ErrorKind::Conflict) when a snapshot hides the event that is in the way.
///
/// # Cancellation
///
/// As for [`publish`].
pub fn publish_unique<'c, C: IdempotentConnection>(
    db: &'c mut C,
    event: &(impl Event + ?Sized),
    key: &str,
) -> Run<'c, C, Result<Enqueued, Error>> {
    let draft = Draft::of(event);
    let key = checked_name("unique key", key).map(str::to_owned);
    C::Flavor::run(async move {
        let db = db.inner();
        let draft = draft?.in_transaction(db)?;
        let enqueued = draft.enqueue(db, key?).await;
        explained(db, enqueued).await
    })
}

/// Publishes an event through change data capture: it is inserted and deleted in the same transaction, and Debezium reads it from the log. No relay ever sees it.
///
/// # Errors
///
/// As for [`publish`], and [`Unsupported`](ErrorKind::Unsupported) on SQLite, which has no log that a connector could read.
///
/// # Cancellation
///
/// As for [`publish`].
///
/// # SQL
///
/// ```sql
/// INSERT INTO outbox_events (…) VALUES (…); DELETE FROM outbox_events WHERE tenant_id = … AND id = …
/// ```
pub fn publish_captured<'c, C: IdempotentConnection>(
    db: &'c mut C,
    event: &(impl Event + ?Sized),
) -> Run<'c, C, Result<EventId, Error>> {
    let draft = Draft::of(event);
    C::Flavor::run(async move {
        let db = db.inner();
        let draft = draft?.in_transaction(db)?;
        let captured = draft.capture(db).await;
        explained(db, captured).await
    })
}

async fn explained<D: Driver, T>(db: &mut D, result: Result<T, Error>) -> Result<T, Error> {
    match result {
        Ok(value) => Ok(value),
        Err(error) => Err(explain(db, error).await),
    }
}

/// An event, before anything was sent for it.
struct Draft {
    id: EventId,
    aggregate_type: String,
    aggregate_id: String,
    event_type: String,
    payload: String,
    traceparent: String,
}

impl Draft {
    fn of(event: &(impl Event + ?Sized)) -> Result<Self, Error> {
        let name = |what, text: &str| -> Result<String, Invalid> {
            checked_name(what, text).map(str::to_owned)
        };
        Ok(Self {
            id: EventId::new(),
            aggregate_type: name("aggregate type", event.aggregate_type())?,
            aggregate_id: name("aggregate id", &event.aggregate_id())?,
            event_type: name("event type", event.event_type())?,
            payload: serde_json::to_string(event)
                .map_err(|error| idem_core::Error::new(ErrorKind::Invalid).with_source(error))?,
            traceparent: trace::current(),
        })
    }

    /// Only what is in a transaction can be published in it.
    fn in_transaction<D: Driver>(self, db: &mut D) -> Result<Caused, Error> {
        if db.status().transaction_depth()?.is_none() {
            return Err(ErrorKind::NotInTransaction.into());
        }
        let cause = Place::of(db).publish();
        let cause = cause.as_ref().map(store::RowKey::texts);
        let [tenant, operation, idempotency_key] = cause.unwrap_or_default().map(str::to_owned);
        Ok(Caused {
            key: EventKey::new(tenant, self.id.0),
            operation,
            idempotency_key,
            draft: self,
        })
    }
}

/// An event and the call that caused it.
struct Caused {
    draft: Draft,
    key: EventKey,
    operation: String,
    idempotency_key: String,
}

impl Caused {
    async fn enqueue<D: Driver>(&self, db: &mut D, unique_key: String) -> Result<Enqueued, Error> {
        let Draft {
            aggregate_type,
            aggregate_id,
            event_type,
            ..
        } = &self.draft;
        let [lock, _] = store::locks(&[&self.key.tenant_id, aggregate_type, aggregate_id]);
        for _ in 0..MAX_LOOKS {
            let enqueue = Enqueue {
                key: self.key.clone(),
                aggregate_type: aggregate_type.clone(),
                aggregate_id: aggregate_id.clone(),
                event_type: event_type.clone(),
                unique_key: unique_key.clone(),
                lock: i64::from(lock),
            };
            if !db.texts(enqueue).await?.is_empty() {
                self.insert(db).await?;
                return Ok(Enqueued::New(self.draft.id));
            }
            let enqueued = store::Enqueued {
                tenant_id: self.key.tenant_id.clone(),
                event_type: event_type.clone(),
                unique_key: unique_key.clone(),
            };
            if let Some(id) = db.texts(enqueued).await?.pop().flatten() {
                return Ok(Enqueued::Existing(id.parse()?));
            }
        }
        // A snapshot that is older than the event in the way.
        Err(ErrorKind::Conflict.into())
    }

    async fn insert<D: Driver>(&self, db: &mut D) -> Result<(), Error> {
        let draft = &self.draft;
        let insert = InsertEvent {
            key: self.key.clone(),
            aggregate_type: draft.aggregate_type.clone(),
            aggregate_id: draft.aggregate_id.clone(),
            event_type: draft.event_type.clone(),
            payload: draft.payload.clone(),
            operation: self.operation.clone(),
            idempotency_key: self.idempotency_key.clone(),
            traceparent: draft.traceparent.clone(),
        };
        db.execute(insert).await?;
        Ok(())
    }

    async fn capture<D: Driver>(&self, db: &mut D) -> Result<EventId, Error> {
        use crate::dialect::Dialect as _;
        if !D::Dialect::HAS_CAPTURE {
            let what = "change data capture on SQLite";
            return Err(ErrorKind::Unsupported { what }.into());
        }
        self.insert(db).await?;
        let key = self.key.clone();
        db.execute(RemoveEvent { key }).await?;
        Ok(self.draft.id)
    }
}

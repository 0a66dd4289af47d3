//! The outbox: an event is published if, and only if, the transaction in which it happened commits.
//!
//! [`publish`] writes the event in the handler's own transaction: one row in `outbox_events`, in the columns of Debezium's outbox event router, and one in
//! `outbox_deliveries`, which says how far it has got. A relay (`idem-relay`) publishes it afterwards, at least once. What a rollback takes back, also of a savepoint, was never published.
//!
//! # Order
//!
//! Events of one aggregate are published in the order of their commits. On PostgreSQL, transactions that publish for the same aggregate therefore come one after the other,
//! from [`publish`] to their commit; most do that already, because they change the aggregate's row. Publishing for several aggregates in different orders can
//! deadlock, like any other lock, and is a [`Conflict`](ErrorKind::Conflict) then. Between aggregates there is no order.
//!
//! # Unique jobs
//!
//! [`publish_unique`] enqueues nothing while an event of its type with the same key is undelivered: the second enqueue gives the first one's id. Dead is undelivered, too.
//!
//! # Change data capture
//!
//! With Debezium there is no relay: it reads the log of the database. [`publish_captured`] inserts the event and deletes it in the same transaction, so that the log has it and the table
//! stays empty. The connector needs `plugin.name=pgoutput`, the table in `table.include.list`, and the router:
//!
//! ```properties
//! connector.class=io.debezium.connector.postgresql.PostgresConnector
//! plugin.name=pgoutput
//! table.include.list=public.outbox_events
//! tombstones.on.delete=false
//! transforms=outbox
//! transforms.outbox.type=io.debezium.transforms.outbox.EventRouter
//! transforms.outbox.table.fields.additional.placement=type:header:eventType,tenant_id:header:tenant,operation:header,idempotency_key:header,traceparent:header
//! ```
//!
//! The other defaults fit: `id`, `aggregatetype`, `aggregateid` and `payload` are where the router looks for them
//! (<https://debezium.io/documentation/reference/stable/transformations/outbox-event-router.html>). It takes INSERTs alone and passes DELETEs by. `id` arrives as a header: it is the message
//! id of the [inbox](crate::inbox) on the other side.
//!
//! # For relays
//!
//! [`lease`], [`settle`] and [`backlog`] are the statements of a relay, each for itself and each with its own transaction. `idem-relay` is the loop around them; its documentation tells the protocol.

mod dead;
mod delivery;
#[cfg(feature = "async-postgres")]
mod notify;
mod publish;
mod trace;

pub use crate::wake::{WakeUp, on_publish};
pub use dead::{DeadEvent, dead, drop_dead, redrive};
pub use delivery::{
    Backlog, Dead, Lease, Leased, OutboxEvent, Settled, Settlement, backlog, lease, settle,
};
#[cfg(feature = "async-postgres")]
pub use notify::{listen, notify};
pub use publish::{Enqueued, publish, publish_captured, publish_unique};
pub use trace::carry_trace_context;

use idem_core::{ErrorKind, Invalid};
use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::error::Error;

/// The id of an event: a UUID of version 7, so that ids are in the order of time.
///
/// Its text is the message id under which the other side knows the event, on every delivery.
///
/// ```
/// use idem_diesel::outbox::EventId;
///
/// let id: EventId = "0191e3a0-7b5c-7c00-8000-000000000000".parse()?;
/// assert_eq!(id.to_string(), "0191e3a0-7b5c-7c00-8000-000000000000");
/// # Ok::<(), idem_diesel::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(Uuid);

impl EventId {
    fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// The id as a message id.
    ///
    /// ```
    /// # use idem_diesel::outbox::EventId;
    /// let id: EventId = "0191e3a0-7b5c-7c00-8000-000000000000".parse()?;
    /// assert_eq!(id.message_id()?.as_str(), id.to_string());
    /// # Ok::<(), idem_diesel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// None in practice: every UUID is a message id.
    pub fn message_id(&self) -> Result<idem_core::MessageId, Invalid> {
        idem_core::MessageId::new(self.to_string())
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for EventId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Uuid::parse_str(text).map(Self).map_err(|error| {
            idem_core::Error::new(ErrorKind::Invalid)
                .with_source(error)
                .into()
        })
    }
}

/// A row that this version cannot have written.
fn malformed() -> Error {
    let problem = "a row of outbox_deliveries or outbox_events is malformed".to_owned();
    ErrorKind::SchemaWrong { problem }.into()
}

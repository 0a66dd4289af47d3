//! What carries an event to the outside.

#[cfg(feature = "http")]
mod http;
#[cfg(feature = "jetstream")]
mod jetstream;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "http")]
mod signature;

#[cfg(feature = "http")]
pub use http::{DEFAULT_REQUEST_TIMEOUT, HttpPublisher, LONGEST_RETRY_AFTER, MAX_ANSWER_BYTES};
#[cfg(feature = "jetstream")]
pub use jetstream::JetStreamPublisher;
#[cfg(feature = "rabbitmq")]
pub use rabbitmq::{MAX_CHANNELS, RabbitMqPublisher};
#[cfg(feature = "rabbitmq")]
pub(crate) use rabbitmq::{amqp_name, amqp_uri};
#[cfg(feature = "http")]
pub use signature::WebhookSecret;

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use idem_diesel::outbox::OutboxEvent;

/// How long a broker may take to acknowledge an event, unless a publisher says otherwise: with [`ANSWERS_WITHIN`] less than what a relay allows, so that the error says which of the two it was.
#[cfg(any(feature = "jetstream", feature = "rabbitmq"))]
pub const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(5);

/// How long a broker that did not acknowledge is given to show that it is there at all. If it is, the failure is the event's own matter; if not, nobody's.
#[cfg(any(feature = "jetstream", feature = "rabbitmq"))]
pub const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Carries events to a broker, or wherever they go.
///
/// `Ok` means that the other side has it durably: what was only sent is not published. A relay calls it concurrently for events of different aggregates, and one after the
/// other for those of one. It may call it again for an event that was published, so the other side must know an event by its id.
///
/// ```
/// use idem_diesel::outbox::OutboxEvent;
/// use idem_relay::{PublishError, Publisher};
///
/// /// Only says what it would publish.
/// struct DryRun;
///
/// impl Publisher for DryRun {
///     async fn publish(&self, event: &OutboxEvent) -> Result<(), PublishError> {
///         println!("{} {}: {}", event.id, event.event_type, event.payload);
///         Ok(())
///     }
/// }
///
/// fn is_publisher(_: impl Publisher) -> bool { true }
/// assert!(is_publisher(DryRun));
/// ```
///
/// # Cancellation
///
/// A relay drops the future when it takes longer than the relay waits, and when the lease is over. The event may have been published then.
pub trait Publisher: Send + Sync {
    /// Publishes one event.
    ///
    /// # Errors
    ///
    /// Which of the three kinds it is decides what becomes of the event: see [`PublishError`].
    fn publish(&self, event: &OutboxEvent)
    -> impl Future<Output = Result<(), PublishError>> + Send;
}

impl<P: Publisher + ?Sized> Publisher for Arc<P> {
    async fn publish(&self, event: &OutboxEvent) -> Result<(), PublishError> {
        (**self).publish(event).await
    }
}

/// Why an event was not published.
///
/// ```
/// use idem_relay::PublishError;
///
/// let down = PublishError::unavailable("connection refused");
/// assert!(down.is_unavailable());
/// assert_eq!(PublishError::rejected("the payload is over the limit").to_string(), "the payload is over the limit");
/// ```
#[derive(Debug)]
pub struct PublishError {
    kind: Kind,
    source: Box<dyn StdError + Send + Sync>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Unavailable,
    Failed { not_before: Option<Duration> },
    Rejected,
}

impl PublishError {
    /// The other side cannot be reached: no event is to blame. The relay rests and tries again, and no attempt is counted.
    pub fn unavailable(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Kind::Unavailable, source)
    }

    /// This attempt failed and another one may not. The relay tries again after a pause, as often as it allows.
    pub fn failed(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Kind::Failed { not_before: None }, source)
    }

    /// [`failed`](Self::failed), and the other side has said how long to wait.
    pub fn failed_until(
        not_before: Duration,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        let not_before = Some(not_before);
        Self::new(Kind::Failed { not_before }, source)
    }

    /// The other side will never take this event: it is dead.
    pub fn rejected(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Kind::Rejected, source)
    }

    fn new(kind: Kind, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let source = source.into();
        Self { kind, source }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether no event is to blame.
    pub fn is_unavailable(&self) -> bool {
        self.kind == Kind::Unavailable
    }

    /// Whether the event will never be taken.
    pub fn is_rejected(&self) -> bool {
        self.kind == Kind::Rejected
    }
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl StdError for PublishError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.source()
    }
}

#[cfg(test)]
#[cfg(any(feature = "jetstream", feature = "rabbitmq", feature = "http"))]
mod tests {
    use diesel::SqliteConnection;
    use diesel_async::AsyncConnection;
    use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
    use idem_diesel::Event;
    use idem_diesel::outbox::{self, Dead, Lease, OutboxEvent};
    use serde::Serialize;

    use std::time::Duration;

    #[derive(Serialize)]
    struct OrderPaid {
        cents: i64,
    }

    impl Event for OrderPaid {
        fn event_type(&self) -> &'static str {
            "order.paid"
        }

        fn aggregate_type(&self) -> &'static str {
            "order"
        }

        fn aggregate_id(&self) -> String {
            "7".to_owned()
        }
    }

    /// An event as a relay leases it: only the outbox makes one.
    pub(super) fn event() -> OutboxEvent {
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        runtime.block_on(async {
            let db = SyncConnectionWrapper::<SqliteConnection>::establish(":memory:");
            let mut db = db.await.unwrap();
            idem_diesel::ensure_schema(&mut db).await.unwrap();
            let event = OrderPaid { cents: 500 };
            db.transaction(async |db| outbox::publish(db, &event).await)
                .await
                .unwrap();
            let terms = Lease {
                owner: "test".to_owned(),
                duration: Duration::from_secs(60),
                at_most: 1,
                dead: Dead::Block,
            };
            let leased = outbox::lease(&mut db, &terms).await.unwrap().pop();
            leased.unwrap().event.unwrap()
        })
    }
}

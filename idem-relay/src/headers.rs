//! What travels beside the payload: the same names with every broker, so that a consumer need not know which one it was.
//!
//! The id of the event is not among them. It is where each protocol has a place for it: the header `Nats-Msg-Id` of JetStream, the property `message_id` of AMQP, and the header
//! `webhook-id` of Standard Webhooks.
//!
//! ```
//! use idem_diesel::inbox::DeliveryCount;
//! use idem_diesel::{MessageId, Retention, Subscription};
//! use idem_relay::consume::Received;
//! use idem_relay::headers;
//!
//! const BILLING: Subscription = Subscription::new("billing", Retention::literal("7d"));
//!
//! let message = Received::new(&BILLING, MessageId::new("evt-17")?, "{}", DeliveryCount::First)
//!     .with_header(headers::EVENT_TYPE, "order.paid");
//! assert_eq!(message.event_type(), Some("order.paid"));
//! # Ok::<(), idem_diesel::Invalid>(())
//! ```

#[cfg(any(feature = "jetstream", feature = "rabbitmq", feature = "http"))]
use idem_diesel::outbox::OutboxEvent;

/// What happened. RabbitMQ has it in the property `type` as well.
pub const EVENT_TYPE: &str = "idem-event-type";

/// To what kind of thing.
pub const AGGREGATE_TYPE: &str = "idem-aggregate-type";

/// To which one.
pub const AGGREGATE_ID: &str = "idem-aggregate-id";

/// Whose call caused it. Absent when it was published outside of a call.
pub const TENANT: &str = "idem-tenant";

/// The operation of the causing call.
pub const OPERATION: &str = "idem-operation";

/// The key of the causing call. It is not called `Idempotency-Key`, because it is not the key of this message: one call may cause several events.
pub const IDEMPOTENCY_KEY: &str = "idem-idempotency-key";

/// The trace in which the event was published (<https://www.w3.org/TR/trace-context/>).
pub const TRACEPARENT: &str = "traceparent";

/// What an outsider may know of an event: nothing of the call that caused it. Whoever knows a tenant and a key could ask for the answer of that call.
#[cfg(any(feature = "jetstream", feature = "rabbitmq", feature = "http"))]
pub(crate) fn for_outsiders(event: &OutboxEvent) -> impl Iterator<Item = (&'static str, &str)> {
    let always = [
        (EVENT_TYPE, Some(event.event_type.as_str())),
        (AGGREGATE_TYPE, Some(event.aggregate_type.as_str())),
        (AGGREGATE_ID, Some(event.aggregate_id.as_str())),
        (TRACEPARENT, event.traceparent.as_deref()),
    ];
    always.into_iter().filter_map(present)
}

/// All of it.
#[cfg(any(feature = "jetstream", feature = "rabbitmq"))]
pub(crate) fn of(event: &OutboxEvent) -> impl Iterator<Item = (&'static str, &str)> {
    let cause = [
        (TENANT, Some(event.tenant.as_str())),
        (OPERATION, event.operation.as_deref()),
        (IDEMPOTENCY_KEY, event.idempotency_key.as_deref()),
    ];
    for_outsiders(event).chain(cause.into_iter().filter_map(present))
}

#[cfg(any(feature = "jetstream", feature = "rabbitmq", feature = "http"))]
fn present<'e>((name, value): (&'static str, Option<&'e str>)) -> Option<(&'static str, &'e str)> {
    let value = value.filter(|value| !value.is_empty())?;
    Some((name, value))
}

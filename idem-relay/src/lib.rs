//! Publishes the outbox of `idem-diesel`, at least once and in order, and runs its inbox behind a broker.
//!
//! * A [`Relay`] takes events from the outbox to a [`Publisher`]. The module [`relay`] tells its protocol in numbered steps, with what is guaranteed and what is not.
//! * Publishers for NATS JetStream (feature `jetstream`), RabbitMQ (`rabbitmq`) and HTTP with a Standard Webhooks signature (`http`) are in [`publisher`].
//! * Consume loops for the two brokers are in [`consume`]: they acknowledge after COMMIT, retry with pauses, and park what keeps failing.
//!
//! Metrics, through the crate `metrics`: counters `idem_outbox_published`, `idem_outbox_retried`, `idem_outbox_fenced` and `idem_outbox_dead`; gauges `idem_outbox_pending` and
//! `idem_outbox_oldest_seconds`; a histogram `idem_outbox_lag_seconds`, from the publishing in the outbox to the broker's answer. Spans, through `tracing`: `publish` for each attempt, with the event's
//! `traceparent`.

mod connect;
pub mod consume;
pub mod headers;
mod misconfigured;
#[cfg(feature = "postgres")]
mod notify;
pub mod publisher;
pub mod relay;
mod wake;

pub use connect::{CONNECTED_WITHIN, Connect};
pub use consume::{ConsumeLoop, Handler, HandlerError, Received};
pub use misconfigured::Misconfigured;
#[cfg(feature = "postgres")]
pub use notify::{NOTIFY_EVERY, listen, notify_after_publish};
pub use publisher::{PublishError, Publisher};
pub use relay::{Relay, Summary};
pub use wake::Wake;

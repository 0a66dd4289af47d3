//! RabbitMQ.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use idem_diesel::outbox::OutboxEvent;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::uri::AMQPUri;
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Error, ErrorKind,
};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use super::{ACKNOWLEDGED_WITHIN, ANSWERS_WITHIN, PublishError, Publisher};
use crate::headers;
use crate::misconfigured::Misconfigured;
use crate::relay::shown;

/// How many events may be on their way to one exchange at once: each has a channel to itself, and a broker allows some two thousand on a connection.
pub const MAX_CHANNELS: usize = 64;

/// Written to disk before it is confirmed.
const PERSISTENT: u8 = 2;

/// Publishes to an exchange of RabbitMQ, with the event type as the routing key.
///
/// An event is published when the broker has confirmed it: every queue that it was routed to has it, on disk. The id of the event is the property `message_id`, its type the property `type`, and the other
/// [headers](crate::headers) go with it. An event that no queue takes is a failure, and not lost.
///
/// It connects with the first event, and again after a lost connection.
///
/// ```
/// use idem_relay::publisher::RabbitMqPublisher;
///
/// let publisher = RabbitMqPublisher::new("amqp://shop:secret@localhost:5672/%2f", "events")?;
/// assert!(!format!("{publisher:?}").contains("secret"));
/// assert!(RabbitMqPublisher::new("http://localhost", "events").is_err());
/// # Ok::<(), idem_relay::Misconfigured>(())
/// ```
///
/// For `amqps` turn on a TLS of lapin: `lapin = { version = "4", default-features = false, features = ["rustls", "rustls--ring"] }`.
///
/// # What its errors mean
///
/// * Unavailable: the broker cannot be reached, it blocks publishers because its disk or memory is full, or it does not answer at all.
/// * Rejected: the payload is larger than its `max_message_size`.
/// * Failed: everything else. No queue takes the event, a queue refused it, there is no such exchange, or no confirmation comes although the broker answers.
pub struct RabbitMqPublisher {
    uri: AMQPUri,
    exchange: ShortString,
    acknowledged_within: Duration,
    connection: AsyncMutex<Option<Arc<Connection>>>,
    /// Channels that no event is using.
    idle: Mutex<Vec<Channel>>,
    channels: Semaphore,
}

impl RabbitMqPublisher {
    /// A publisher for an exchange, which must exist; the empty name is the default exchange, where the routing key is the name of a queue.
    ///
    /// # Errors
    ///
    /// [`Misconfigured`] when the URL is not one of AMQP, or the name is longer than 255 bytes.
    pub fn new(url: &str, exchange: &str) -> Result<Self, Misconfigured> {
        Ok(Self {
            uri: amqp_uri(url)?,
            exchange: amqp_name("exchange", exchange)?,
            acknowledged_within: ACKNOWLEDGED_WITHIN,
            connection: AsyncMutex::new(None),
            idle: Mutex::default(),
            channels: Semaphore::new(MAX_CHANNELS),
        })
    }

    /// A confirmation that takes longer than this is a failure, and so is a connection; [`ACKNOWLEDGED_WITHIN`] unless it is said.
    #[must_use]
    pub fn acknowledged_within(self, acknowledged_within: Duration) -> Self {
        Self {
            acknowledged_within,
            ..self
        }
    }

    /// A channel with confirmations, for one event at a time.
    ///
    /// An event that no queue takes comes back before its confirmation, and nothing says which confirmation that is: the client gives it to whichever arrives next. And an event
    /// that the broker refuses closes its channel, with all that was on the way in it.
    async fn channel(&self) -> Result<Channel, Unpublished> {
        while let Some(channel) = self.idle_channel() {
            if channel.status().connected() {
                return Ok(channel);
            }
        }
        let connection = self.connection().await?;
        let channel = connection.create_channel().await;
        let channel = channel.map_err(Unpublished::NotConnected)?;
        let confirms = channel.confirm_select(ConfirmSelectOptions::default());
        confirms.await.map_err(Unpublished::NotConnected)?;
        Ok(channel)
    }

    fn idle_channel(&self) -> Option<Channel> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.pop()
    }

    fn keep(&self, channel: Channel) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(channel);
    }

    async fn connection(&self) -> Result<Arc<Connection>, Unpublished> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = kept.as_ref().filter(|kept| kept.status().connected()) {
            if connection.status().blocked() {
                return Err(Unpublished::Blocked);
            }
            return Ok(Arc::clone(connection));
        }
        *kept = None;
        let connecting = Connection::connect_uri(self.uri.clone(), ConnectionProperties::default());
        let connection = connecting.await.map_err(Unpublished::NotConnected)?;
        Ok(Arc::clone(kept.insert(Arc::new(connection))))
    }

    /// Whether the broker opens a channel. If it does not, the connection is given up, whatever its state.
    async fn broker_answers(&self) -> bool {
        let probe = async { self.connection().await.ok()?.create_channel().await.ok() };
        let probed = tokio::time::timeout(ANSWERS_WITHIN, probe).await;
        let answers = matches!(probed, Ok(Some(_)));
        if !answers && let Ok(mut kept) = self.connection.try_lock() {
            *kept = None;
        }
        answers
    }

    async fn send(&self, event: &OutboxEvent) -> Result<(), Unpublished> {
        let routing_key = short(&event.event_type)?;
        let properties = properties(event)?;
        let channel = self.channel().await?;
        let mandatory = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let payload = event.payload.as_bytes();
        let sent = channel
            .basic_publish(
                self.exchange.clone(),
                routing_key,
                mandatory,
                payload,
                properties,
            )
            .await;
        let confirmation = match sent {
            Ok(confirmation) => confirmation.await,
            Err(error) => Err(error),
        };
        let confirmation = confirmation.map_err(Unpublished::Refused)?;
        self.keep(channel);
        match confirmation {
            Confirmation::Ack(None) => Ok(()),
            Confirmation::Ack(Some(returned)) | Confirmation::Nack(Some(returned)) => Err(
                Unpublished::Returned(returned.reply_code, returned.reply_text),
            ),
            Confirmation::Nack(None) => Err(Unpublished::Nack),
            Confirmation::NotRequested => {
                unreachable!("every channel is made with confirmations")
            }
        }
    }
}

impl Publisher for RabbitMqPublisher {
    async fn publish(&self, event: &OutboxEvent) -> Result<(), PublishError> {
        let Ok(_permit) = self.channels.acquire().await else {
            unreachable!("nobody closes the semaphore");
        };
        let sending = self.send(event);
        if let Ok(sent) = tokio::time::timeout(self.acknowledged_within, sending).await {
            return sent.map_err(|unpublished| unpublished.into_error(event, &self.exchange));
        }
        let why = format!("no confirmation within {:?}", self.acknowledged_within);
        Err(if self.broker_answers().await {
            PublishError::failed(why)
        } else {
            PublishError::unavailable(why)
        })
    }
}

impl fmt::Debug for RabbitMqPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitMqPublisher")
            .field("exchange", &self.exchange.as_str())
            .finish_non_exhaustive()
    }
}

/// Why there is no confirmation.
#[derive(Debug)]
enum Unpublished {
    NotConnected(Error),
    Blocked,
    TooLong,
    Refused(Error),
    /// A reply code, and what the broker says about it.
    Returned(u16, ShortString),
    Nack,
}

impl Unpublished {
    fn into_error(self, event: &OutboxEvent, exchange: &ShortString) -> PublishError {
        let exchange = exchange.as_str();
        match self {
            Self::NotConnected(error) => PublishError::unavailable(error),
            Self::Blocked => PublishError::unavailable(
                "the broker blocks publishers: its memory or its disk is full",
            ),
            Self::TooLong => PublishError::rejected(format!(
                "the event type has {} bytes, and a routing key at most 255",
                event.event_type.len()
            )),
            Self::Returned(code, text) => PublishError::failed(format!(
                "no queue of the exchange {exchange:?} takes the routing key {:?} ({code} {text})",
                event.event_type
            )),
            Self::Nack => PublishError::failed("a queue refused the event"),
            Self::Refused(error) => refused(error),
        }
    }
}

/// The broker answers what it cannot take by closing the channel, and what it does not understand by closing the connection.
fn refused(error: Error) -> PublishError {
    let ErrorKind::ProtocolError(protocol) = error.kind() else {
        return PublishError::unavailable(error);
    };
    match protocol.kind() {
        // "message size … is larger than configured max size …" (RabbitMQ 3.8 and later).
        AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED | AMQPSoftError::CONTENTTOOLARGE) => {
            PublishError::rejected(shown(&error))
        }
        AMQPErrorKind::Hard(AMQPHardError::CONNECTIONFORCED | AMQPHardError::INTERNALERROR) => {
            PublishError::unavailable(error)
        }
        _ => PublishError::failed(shown(&error)),
    }
}

fn properties(event: &OutboxEvent) -> Result<BasicProperties, Unpublished> {
    let mut table = FieldTable::default();
    for (name, value) in headers::of(event) {
        table.insert(short(name)?, AMQPValue::LongString(value.into()));
    }
    Ok(BasicProperties::default()
        .with_message_id(short(&event.id.to_string())?)
        .with_type(short(&event.event_type)?)
        .with_content_type(short("application/json")?)
        .with_delivery_mode(PERSISTENT)
        .with_headers(table))
}

fn short(text: &str) -> Result<ShortString, Unpublished> {
    ShortString::try_new(text).map_err(|_| Unpublished::TooLong)
}

/// The URL of a broker. The error does not repeat it: there is a password in it.
pub(crate) fn amqp_uri(url: &str) -> Result<AMQPUri, Misconfigured> {
    url.parse().map_err(|_| {
        Misconfigured::new("this is not a URL of AMQP: amqp://user:password@host/vhost")
    })
}

/// A name as AMQP has them.
pub(crate) fn amqp_name(what: &str, name: &str) -> Result<ShortString, Misconfigured> {
    ShortString::try_new(name).map_err(|_| {
        let bytes = name.len();
        Misconfigured::new(format!(
            "the name of the {what} has {bytes} bytes, at most 255 fit"
        ))
    })
}

#[cfg(test)]
mod tests {
    use lapin::protocol::AMQPError;

    use super::*;
    use crate::publisher::Kind;
    use crate::publisher::tests::event;

    #[track_caller]
    fn check(kind: AMQPErrorKind, expected: Kind) {
        let error = AMQPError::new(kind, "because".into());
        assert_eq!(
            refused(ErrorKind::ProtocolError(error).into()).kind(),
            expected
        );
    }

    #[test]
    fn only_what_an_event_is_to_blame_for_rejects_it() {
        let failed = Kind::Failed { not_before: None };
        check(AMQPSoftError::PRECONDITIONFAILED.into(), Kind::Rejected);
        check(AMQPSoftError::NOTFOUND.into(), failed);
        check(AMQPSoftError::ACCESSREFUSED.into(), failed);
        check(AMQPHardError::CONNECTIONFORCED.into(), Kind::Unavailable);
        check(AMQPHardError::FRAMEERROR.into(), failed);
        let lost = refused(ErrorKind::MissingHeartbeatError.into());
        assert!(lost.is_unavailable());
    }

    #[test]
    fn what_does_not_fit_is_an_error_and_no_panic() {
        let mut event = event();
        event.event_type = "e".repeat(256);
        let error = properties(&event)
            .unwrap_err()
            .into_error(&event, &"".into());
        assert_eq!(error.kind(), Kind::Rejected);
        assert!(amqp_name("exchange", &"e".repeat(256)).is_err());
    }
}

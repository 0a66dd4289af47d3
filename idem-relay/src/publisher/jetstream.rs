//! NATS JetStream.

use std::fmt;
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::connection::State;
use async_nats::jetstream::context::{PublishError as NatsError, PublishErrorKind};
use async_nats::jetstream::{Context, ErrorCode};
use async_nats::{HeaderMap, HeaderValue};
use idem_diesel::outbox::OutboxEvent;

use super::{ACKNOWLEDGED_WITHIN, ANSWERS_WITHIN, PublishError, Publisher};
use crate::headers;
use crate::misconfigured::Misconfigured;
use crate::relay::shown;

/// Publishes to NATS JetStream, under the subject `<prefix>.<event type>`.
///
/// An event is published when its stream has acknowledged it. The id of the event is its `Nats-Msg-Id`, so the stream drops what it has had within its `duplicate_window`; that is 2 minutes unless
/// the stream says otherwise, and no reason for a consumer to go without an inbox. The other [headers](crate::headers) go with it.
///
/// ```
/// use async_nats::jetstream::Context;
/// use idem_relay::Misconfigured;
/// use idem_relay::publisher::JetStreamPublisher;
///
/// fn publisher(jetstream: Context) -> Result<JetStreamPublisher, Misconfigured> {
///     JetStreamPublisher::new(jetstream, "shop.events")
/// }
/// ```
///
/// # What its errors mean
///
/// * Unavailable: the connection is down, or the server does not answer at all.
/// * Rejected: the payload with its headers is larger than the server's `max_payload` or the stream's `max_msg_size`, or the event type cannot be a part of a subject.
/// * Failed: everything else. No stream has the subject, the stream is full, or it does not acknowledge although the server answers.
#[derive(Clone)]
pub struct JetStreamPublisher {
    context: Context,
    prefix: String,
}

impl JetStreamPublisher {
    /// A publisher for the streams that have the subjects `<prefix>.>`.
    ///
    /// # Errors
    ///
    /// [`Misconfigured`] when the prefix is not a subject without wildcards.
    pub fn new(mut context: Context, prefix: impl Into<String>) -> Result<Self, Misconfigured> {
        let prefix = prefix.into();
        if !is_subject(&prefix) {
            let why = format!("{prefix:?} is not a subject that an event could be published under");
            return Err(Misconfigured::new(why));
        }
        context.set_timeout(ACKNOWLEDGED_WITHIN);
        Ok(Self { context, prefix })
    }

    /// An acknowledgement that takes longer than this is a failure; [`ACKNOWLEDGED_WITHIN`] unless it is said.
    #[must_use]
    pub fn acknowledged_within(mut self, acknowledged_within: Duration) -> Self {
        self.context.set_timeout(acknowledged_within);
        self
    }

    fn subject(&self, event: &OutboxEvent) -> Result<String, PublishError> {
        let event_type = &event.event_type;
        if is_subject(event_type) {
            return Ok(format!("{}.{event_type}", self.prefix));
        }
        let why = format!("the event type {event_type:?} cannot be a part of a subject");
        Err(PublishError::rejected(why))
    }

    /// What went wrong, and whether it is this event's matter.
    async fn explain(&self, error: NatsError, subject: &str) -> PublishError {
        match error.kind() {
            PublishErrorKind::MaxPayloadExceeded => PublishError::rejected(shown(&error)),
            PublishErrorKind::StreamNotFound => {
                PublishError::failed(format!("no stream has the subject {subject}"))
            }
            PublishErrorKind::BrokenPipe | PublishErrorKind::MaxAckPending => {
                PublishError::unavailable(error)
            }
            PublishErrorKind::TimedOut if !self.server_answers().await => {
                PublishError::unavailable(error)
            }
            _ if is_too_large_for_stream(&error) => PublishError::rejected(shown(&error)),
            _ => PublishError::failed(shown(&error)),
        }
    }

    /// Whether the server is there. It answers a request to a subject that nobody has by saying so.
    async fn server_answers(&self) -> bool {
        let client = self.context.client();
        let nobody = client.new_inbox();
        let request = client.request(nobody, "".into());
        match tokio::time::timeout(ANSWERS_WITHIN, request).await {
            Ok(Ok(_)) => true,
            Ok(Err(error)) => error.kind() == RequestErrorKind::NoResponders,
            Err(_) => false,
        }
    }
}

impl Publisher for JetStreamPublisher {
    async fn publish(&self, event: &OutboxEvent) -> Result<(), PublishError> {
        let subject = self.subject(event)?;
        let headers = headers_of(event);
        // The client would keep it and send it once it is connected again: long after the relay has given the event back, and behind later ones of its aggregate.
        if self.context.client().connection_state() != State::Connected {
            return Err(PublishError::unavailable("the connection to NATS is down"));
        }
        let payload = event.payload.clone().into();
        let sent = self
            .context
            .publish_with_headers(subject.clone(), headers, payload)
            .await;
        let acknowledged = match sent {
            Ok(acknowledgement) => acknowledgement.await,
            Err(error) => Err(error),
        };
        match acknowledged {
            // Also what the stream has had before: that is what the id is for.
            Ok(_) => Ok(()),
            Err(error) => Err(self.explain(error, &subject).await),
        }
    }
}

impl fmt::Debug for JetStreamPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JetStreamPublisher")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// The id, and of the others what a header can carry: everything but line breaks.
fn headers_of(event: &OutboxEvent) -> HeaderMap {
    let mut map = HeaderMap::new();
    map.insert(
        async_nats::header::NATS_MESSAGE_ID,
        event.id.to_string().as_str(),
    );
    for (name, value) in headers::of(event) {
        if let Ok(value) = value.parse::<HeaderValue>() {
            map.insert(name, value);
        }
    }
    map
}

/// Whether a text is one or several tokens of a subject, none of them a wildcard.
fn is_subject(text: &str) -> bool {
    let is_token = |token: &str| {
        let is_allowed = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '*' | '>');
        !token.is_empty() && token.chars().all(is_allowed)
    };
    text.split('.').all(is_token)
}

fn is_too_large_for_stream(error: &NatsError) -> bool {
    let source = std::error::Error::source(error);
    let refused = source.and_then(|source| source.downcast_ref::<async_nats::jetstream::Error>());
    refused.is_some_and(|refused| {
        matches!(
            refused.error_code(),
            ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM | ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publisher::tests::event;

    #[test]
    fn a_subject_has_no_empty_tokens_blanks_or_wildcards() {
        for good in [
            "order",
            "order.paid",
            "order-paid_2",
            "bestelling.betaald.€",
        ] {
            assert!(is_subject(good), "{good}");
        }
        for bad in [
            "", ".", "order.", ".paid", "a..b", "a b", "a\tb", "a\r\nb", "*", "a.>", "a*",
        ] {
            assert!(!is_subject(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_header_that_cannot_be_carried_is_left_out() {
        let mut event = event();
        event.aggregate_id = "7\r\nNats-Msg-Id: forged".to_owned();
        let headers = headers_of(&event);
        assert!(headers.get(headers::AGGREGATE_ID).is_none());
        let id = headers.get(async_nats::header::NATS_MESSAGE_ID).unwrap();
        assert_eq!(id.as_str(), event.id.to_string());
        assert_eq!(
            headers.get(headers::EVENT_TYPE).unwrap().as_str(),
            "order.paid"
        );
    }
}

//! Messages of a NATS JetStream consumer.

use std::future::Future;
use std::time::Duration;

use async_nats::jetstream::consumer::pull::Stream;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer};
use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt;
use futures_util::future::{self, Either};
use idem_diesel::inbox::DeliveryCount;

use super::work::{Delivered, Settlement, Worker};
use super::{ConsumeLoop, Handler, Stop, until};
use crate::connect::CONNECTED_WITHIN;
use crate::connect::Connect;
use crate::misconfigured::Misconfigured;
use crate::relay::{OUTAGE_PAUSES, rests, shown};

/// How many messages are fetched together. One that waited here for its turn could come to the end of its `ack_wait`, and be delivered again without having been tried.
const FETCHED_TOGETHER: usize = 1;

/// How often the server says that it is there while it has no message; after twice as long without a word the loop starts over.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// How long one request for messages lasts.
const EXPIRES: Duration = Duration::from_secs(30);

/// How often, in parts of its `ack_wait`, the server hears that a message is still in work.
const PROGRESS_PER_ACK_WAIT: u32 = 3;

/// The server's own `ack_wait`, which a consumer that does not say one has.
const DEFAULT_ACK_WAIT: Duration = Duration::from_secs(30);

impl<S: Connect, H: Handler<S::Connection>> ConsumeLoop<S, H> {
    /// Handles the messages of a pull consumer until `shutdown` is done: then the message in work is finished and acknowledged.
    ///
    /// The id of a message is its header `Nats-Msg-Id`. While it is in work the server is told so, so that a long one is not delivered a second time. Leave `max_deliver` of the consumer unlimited: a message that
    /// has used it up would be neither parked nor delivered.
    ///
    /// Nothing else ends it: while the database or the server cannot be reached it says so through `tracing`, rests, and goes on.
    ///
    /// ```
    /// use async_nats::jetstream::consumer::PullConsumer;
    /// use idem_relay::consume::Handler;
    /// use idem_relay::{Connect, ConsumeLoop, Misconfigured};
    ///
    /// async fn bill<S: Connect, H: Handler<S::Connection>>(
    ///     consume: ConsumeLoop<S, H>,
    ///     consumer: PullConsumer,
    ///     shutdown: impl Future<Output = ()>,
    /// ) -> Result<(), Misconfigured> {
    ///     consume.run_jetstream(consumer, shutdown).await
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Misconfigured`] when the consumer acknowledges by itself: its `ack_policy` must be `explicit`.
    ///
    /// # Cancellation
    ///
    /// A dropped future loses nothing: the message in work comes again, and if it was committed it is a duplicate then.
    pub async fn run_jetstream(
        &self,
        consumer: PullConsumer,
        shutdown: impl Future,
    ) -> Result<(), Misconfigured> {
        let config = &consumer.cached_info().config;
        if config.ack_policy != AckPolicy::Explicit {
            return Err(Misconfigured::new(
                "the consumer acknowledges by itself: its ack_policy must be explicit",
            ));
        }
        let ack_wait = Some(config.ack_wait).filter(|wait| !wait.is_zero());
        let progress_every = ack_wait.unwrap_or(DEFAULT_ACK_WAIT) / PROGRESS_PER_ACK_WAIT;
        // A client's future has many states, and its callers should not have to carry them about.
        until(shutdown, |stop| {
            Box::pin(self.pull(consumer, progress_every, stop))
        })
        .await;
        Ok(())
    }

    async fn pull(&self, consumer: PullConsumer, progress_every: Duration, mut stop: Stop) {
        let mut worker = Worker::new(self, stop.clone());
        let mut rest = rests(OUTAGE_PAUSES);
        while !stop.is_stopped() {
            match stop.or(messages(&consumer)).await {
                Some(Ok(mut messages)) => {
                    let mut has_some = false;
                    while worker.ready().await
                        && let Some(message) = next(&mut messages, &mut stop).await
                    {
                        has_some = true;
                        deliver(&mut worker, message, progress_every).await;
                    }
                    if has_some {
                        rest = rests(OUTAGE_PAUSES);
                    }
                }
                Some(Err(error)) => tracing::warn!(error, "no messages from JetStream"),
                None => return,
            }
            stop.rest(rest.next().unwrap_or(OUTAGE_PAUSES.1)).await;
        }
    }
}

async fn messages(consumer: &PullConsumer) -> Result<Stream, String> {
    let messages = consumer
        .stream()
        .max_messages_per_batch(FETCHED_TOGETHER)
        .expires(EXPIRES)
        .heartbeat(HEARTBEAT)
        .messages();
    match tokio::time::timeout(CONNECTED_WITHIN, messages).await {
        Ok(messages) => messages.map_err(|error| shown(&error)),
        Err(_) => Err(format!("no answer within {CONNECTED_WITHIN:?}")),
    }
}

/// The next message, unless the loop ends or starts over.
async fn next(messages: &mut Stream, stop: &mut Stop) -> Option<Message> {
    match stop.or(messages.next()).await?? {
        Ok(message) => Some(message),
        Err(error) => {
            tracing::warn!(error = shown(&error), "no messages from JetStream");
            None
        }
    }
}

async fn deliver<S: Connect, H: Handler<S::Connection>>(
    worker: &mut Worker<'_, S, H>,
    message: Message,
    progress_every: Duration,
) {
    let settling = std::pin::pin!(worker.settle(delivered(&message)));
    let in_work = std::pin::pin!(async {
        loop {
            tokio::time::sleep(progress_every).await;
            tell(&message, AckKind::Progress).await;
        }
    });
    let settlement = match future::select(settling, in_work).await {
        Either::Left((settlement, _)) => settlement,
        Either::Right((never, _)) => never,
    };
    let answer = match settlement {
        Settlement::Acknowledge => AckKind::Ack,
        Settlement::Again { pause, .. } => AckKind::Nak(Some(pause)),
        Settlement::End => AckKind::Term,
    };
    tell(&message, answer).await;
}

/// What the server does not hear is a redelivery, which the inbox turns away.
async fn tell(message: &Message, answer: AckKind) {
    let telling = async {
        message.ack_with(answer).await?;
        message.context.client().flush().await?;
        Ok::<(), async_nats::Error>(())
    };
    match tokio::time::timeout(CONNECTED_WITHIN, telling).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(error = shown(&*error), "JetStream was not told"),
        Err(_) => tracing::warn!("JetStream was not told within {CONNECTED_WITHIN:?}"),
    }
}

fn delivered(message: &Message) -> Delivered {
    let headers = message.headers.as_ref();
    let id = headers.and_then(|headers| headers.get(async_nats::header::NATS_MESSAGE_ID));
    let all = headers.into_iter().flat_map(async_nats::HeaderMap::iter);
    let all =
        all.filter_map(|(name, values)| Some((name.to_string(), values.first()?.to_string())));
    let count = message.info().ok().map(|info| info.delivered);
    let count = count.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    Delivered {
        id: id.map(ToString::to_string),
        payload: message.payload.to_vec(),
        headers: all.collect(),
        count: DeliveryCount::Again.or(count),
    }
}

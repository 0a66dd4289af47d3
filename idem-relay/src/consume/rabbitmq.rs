//! Messages of a queue of RabbitMQ.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{self, Either};
use futures_util::stream::FuturesUnordered;
use idem_diesel::inbox::DeliveryCount;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions, BasicRejectOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::uri::AMQPUri;
use lapin::{Acker, Channel, Connection, ConnectionProperties, Consumer};

use super::work::{Delivered, Reason, Settlement, Worker};
use super::{ConsumeLoop, Handler, Stop, until};
use crate::connect::CONNECTED_WITHIN;
use crate::connect::Connect;
use crate::headers;
use crate::misconfigured::Misconfigured;
use crate::publisher::{amqp_name, amqp_uri};
use crate::relay::{OUTAGE_PAUSES, rests, shown};

/// How many messages a loop has at once, unless it is said: the one in work, those that wait for their turn, and those that rest after a failure.
pub const DEFAULT_PREFETCH: u16 = 32;

/// How long the broker is given to hear the last acknowledgements.
const CLOSED_WITHIN: Duration = Duration::from_secs(5);

/// How often a quorum queue has delivered a message before.
const DELIVERY_COUNT: &str = "x-delivery-count";

/// The reply code of a connection that is closed because there is nothing left to do.
const DONE: u16 = 200;

/// A queue, and where it is.
///
/// ```
/// use idem_relay::consume::RabbitMqQueue;
///
/// let queue = RabbitMqQueue::new("amqp://shop:secret@localhost:5672/%2f", "billing")?.prefetch(8);
/// assert!(!format!("{queue:?}").contains("secret"));
/// # Ok::<(), idem_relay::Misconfigured>(())
/// ```
#[derive(Clone)]
pub struct RabbitMqQueue {
    uri: AMQPUri,
    name: ShortString,
    prefetch: u16,
}

impl RabbitMqQueue {
    /// A queue, which must exist.
    ///
    /// # Errors
    ///
    /// [`Misconfigured`] when the URL is not one of AMQP, or the name is longer than 255 bytes.
    pub fn new(url: &str, name: &str) -> Result<Self, Misconfigured> {
        Ok(Self {
            uri: amqp_uri(url)?,
            name: amqp_name("queue", name)?,
            prefetch: DEFAULT_PREFETCH,
        })
    }

    /// How many messages a loop has at once; at least one. When so many rest after a failure, the loop waits until the first of them goes back.
    #[must_use]
    pub fn prefetch(self, messages: u16) -> Self {
        let prefetch = messages.max(1);
        Self { prefetch, ..self }
    }
}

impl std::fmt::Debug for RabbitMqQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RabbitMqQueue")
            .field("name", &self.name.as_str())
            .field("prefetch", &self.prefetch)
            .finish_non_exhaustive()
    }
}

impl<S: Connect, H: Handler<S::Connection>> ConsumeLoop<S, H> {
    /// Handles the messages of a queue until `shutdown` is done: then the message in work is finished and acknowledged.
    ///
    /// The id of a message is its property `message_id`. A message whose attempt failed is kept for its pause and then given back to the queue, while those behind it go on. A quorum queue
    /// has a limit of deliveries of its own (20 in RabbitMQ 4): set it higher than the attempts of the subscription, or it drops a message before it is parked.
    ///
    /// Nothing else ends it: while the database or the broker cannot be reached it says so through `tracing`, rests, and goes on.
    ///
    /// ```
    /// use idem_relay::consume::{Handler, RabbitMqQueue};
    /// use idem_relay::{Connect, ConsumeLoop, Misconfigured};
    ///
    /// async fn bill<S: Connect, H: Handler<S::Connection>>(
    ///     consume: ConsumeLoop<S, H>,
    ///     shutdown: impl Future<Output = ()>,
    /// ) -> Result<(), Misconfigured> {
    ///     let queue = RabbitMqQueue::new("amqp://localhost", "billing")?;
    ///     consume.run_rabbitmq(&queue, shutdown).await;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Cancellation
    ///
    /// A dropped future loses nothing: the message in work comes again, and if it was committed it is a duplicate then.
    pub async fn run_rabbitmq(&self, queue: &RabbitMqQueue, shutdown: impl Future) {
        // A client's future has many states, and its callers should not have to carry them about.
        until(shutdown, |stop| Box::pin(self.subscribe(queue, stop))).await;
    }

    async fn subscribe(&self, queue: &RabbitMqQueue, mut stop: Stop) {
        let mut worker = Worker::new(self, stop.clone());
        let mut rest = rests(OUTAGE_PAUSES);
        while worker.ready().await {
            let subscribing = tokio::time::timeout(CONNECTED_WITHIN, Subscribed::to(queue));
            match stop.or(subscribing).await {
                None => return,
                Some(Ok(Ok(mut subscribed))) => {
                    if subscribed.work(&mut worker, &mut stop).await {
                        rest = rests(OUTAGE_PAUSES);
                    }
                    subscribed.close().await;
                }
                Some(Ok(Err(error))) => {
                    tracing::warn!(error = shown(&error), "no messages from RabbitMQ");
                }
                Some(Err(_)) => {
                    tracing::warn!("no messages from RabbitMQ within {CONNECTED_WITHIN:?}");
                }
            }
            stop.rest(rest.next().unwrap_or(OUTAGE_PAUSES.1)).await;
        }
    }
}

/// A consumer, and what it stands on. When it is gone, the queue has back what was not acknowledged.
struct Subscribed {
    connection: Connection,
    _channel: Channel,
    consumer: Consumer,
}

impl Subscribed {
    async fn to(queue: &RabbitMqQueue) -> Result<Self, lapin::Error> {
        let connecting =
            Connection::connect_uri(queue.uri.clone(), ConnectionProperties::default());
        let connection = connecting.await?;
        let channel = connection.create_channel().await?;
        let qos = BasicQosOptions::default();
        channel.basic_qos(queue.prefetch, qos).await?;
        let (name, tag) = (queue.name.clone(), ShortString::default());
        let (options, arguments) = (BasicConsumeOptions::default(), FieldTable::default());
        let consumer = channel.basic_consume(name, tag, options, arguments).await?;
        Ok(Self {
            connection,
            _channel: channel,
            consumer,
        })
    }

    /// Handles what is delivered until the loop ends or must connect again, and says whether there was something.
    async fn work<S: Connect, H: Handler<S::Connection>>(
        &mut self,
        worker: &mut Worker<'_, S, H>,
        stop: &mut Stop,
    ) -> bool {
        let mut has_some = false;
        // Not more than the prefetch: the broker sends no more until it has had an answer for one of them.
        let mut resting = FuturesUnordered::new();
        loop {
            if !beside(&mut resting, worker.ready()).await {
                return has_some;
            }
            let delivery = beside(&mut resting, self.consumer.next());
            let Some(delivery) = stop.or(delivery).await else {
                return has_some;
            };
            let delivery = match delivery {
                Some(Ok(delivery)) => delivery,
                Some(Err(error)) => {
                    tracing::warn!(error = shown(&error), "no messages from RabbitMQ");
                    return has_some;
                }
                None => {
                    tracing::warn!("the queue has ended the subscription");
                    return has_some;
                }
            };
            has_some = true;
            let acker = delivery.acker.clone();
            match beside(&mut resting, worker.settle(delivered(delivery))).await {
                Settlement::Acknowledge => {
                    told(acker.ack(BasicAckOptions::default()).await);
                }
                Settlement::End => {
                    told(acker.reject(BasicRejectOptions { requeue: false }).await);
                }
                Settlement::Again { pause, reason } => {
                    resting.push(give_back(acker, pause, reason));
                }
            }
        }
    }

    async fn close(self) {
        let closing = self.connection.close(DONE, ShortString::default());
        // The broker closes it by itself, if it is there at all.
        let _ = tokio::time::timeout(CLOSED_WITHIN, closing).await;
    }
}

/// Waits, while messages whose rest is over go back.
async fn beside<R, W>(resting: &mut FuturesUnordered<R>, wanted: W) -> W::Output
where
    R: Future<Output = ()>,
    W: Future,
{
    let mut wanted = pin!(wanted);
    loop {
        if resting.is_empty() {
            return wanted.await;
        }
        match future::select(wanted, resting.next()).await {
            Either::Left((output, _)) => return output,
            Either::Right((_, waiting)) => wanted = waiting,
        }
    }
}

/// Since RabbitMQ 4.3 a quorum queue counts what `basic.reject` gives back as a failed delivery, and what `basic.nack` gives back not. Before, both were counted.
async fn give_back(acker: Acker, pause: Duration, reason: Reason) {
    tokio::time::sleep(pause).await;
    told(match reason {
        Reason::Failed => acker.reject(BasicRejectOptions { requeue: true }).await,
        Reason::Untried => {
            let again = BasicNackOptions {
                requeue: true,
                ..BasicNackOptions::default()
            };
            acker.nack(again).await
        }
    });
}

/// What the broker does not hear is a redelivery, which the inbox turns away.
fn told(result: Result<bool, lapin::Error>) {
    match result {
        Ok(true) => {}
        Ok(false) => tracing::warn!("RabbitMQ was not told: the channel is closed"),
        Err(error) => tracing::warn!(error = shown(&error), "RabbitMQ was not told"),
    }
}

fn delivered(delivery: Delivery) -> Delivered {
    let properties = &delivery.properties;
    let text = |name: &Option<ShortString>| name.as_ref().map(ToString::to_string);
    let table = properties.headers().as_ref();
    let exact = table.and_then(|table| number(table.inner().get(DELIVERY_COUNT)?));
    let exact = exact.map(|before| before.saturating_add(1));
    let entries = table.into_iter().flat_map(|table| table.inner().iter());
    let mut headers: Vec<_> = entries
        .filter_map(|(name, value)| Some((name.to_string(), string(value)?)))
        .collect();
    // Of publishers that know the protocol's own property alone.
    if let Some(event_type) = text(properties.kind()) {
        headers.push((headers::EVENT_TYPE.to_owned(), event_type));
    }
    let count = if delivery.redelivered {
        DeliveryCount::Again
    } else {
        DeliveryCount::First
    };
    Delivered {
        id: text(properties.message_id()),
        headers,
        count: count.or(exact),
        payload: delivery.data,
    }
}

fn string(value: &AMQPValue) -> Option<String> {
    match value {
        AMQPValue::LongString(text) => String::from_utf8(text.as_bytes().to_vec()).ok(),
        AMQPValue::ShortString(text) => Some(text.to_string()),
        _ => None,
    }
}

fn number(value: &AMQPValue) -> Option<u32> {
    let number = match value {
        AMQPValue::ShortShortInt(number) => i64::from(*number),
        AMQPValue::ShortShortUInt(number) => i64::from(*number),
        AMQPValue::ShortInt(number) => i64::from(*number),
        AMQPValue::ShortUInt(number) => i64::from(*number),
        AMQPValue::LongInt(number) => i64::from(*number),
        AMQPValue::LongUInt(number) => i64::from(*number),
        AMQPValue::LongLongInt(number) => *number,
        _ => return None,
    };
    u32::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use lapin::BasicProperties;

    use super::*;

    fn delivery(redelivered: bool, count: Option<AMQPValue>) -> Delivery {
        let mut delivery = Delivery::mock(1, "".into(), "".into(), redelivered, b"{}".to_vec());
        let mut table = FieldTable::default();
        if let Some(count) = count {
            table.insert(DELIVERY_COUNT.into(), count);
        }
        table.insert("idem-tenant".into(), AMQPValue::LongString("acme".into()));
        table.insert("binary".into(), AMQPValue::LongString(vec![0xff].into()));
        delivery.properties = BasicProperties::default()
            .with_message_id("evt-17".into())
            .with_type("order.paid".into())
            .with_headers(table);
        delivery
    }

    #[test]
    fn the_count_is_exact_where_the_queue_counts() {
        let count = |redelivered, count| delivered(delivery(redelivered, count)).count;
        assert_eq!(count(false, None), DeliveryCount::First);
        assert_eq!(count(true, None), DeliveryCount::Again);
        assert_eq!(
            count(true, Some(AMQPValue::LongLongInt(2))),
            DeliveryCount::Exact(3)
        );
        // Nonsense is no number.
        assert_eq!(
            count(true, Some(AMQPValue::LongLongInt(-1))),
            DeliveryCount::Again
        );
    }

    #[test]
    fn properties_and_headers_arrive_as_text() {
        let delivered = delivered(delivery(false, None));
        assert_eq!(delivered.id.as_deref(), Some("evt-17"));
        let expected = [("idem-tenant", "acme"), (headers::EVENT_TYPE, "order.paid")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(delivered.headers, expected);
    }
}

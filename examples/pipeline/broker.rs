//! What carries an event from the relay to the consumer.

use std::fmt;

use anyhow::Context;
use async_nats::jetstream;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use idem_relay::consume::RabbitMqQueue;
use lapin::options::{
    ExchangeDeclareOptions, ExchangeDeleteOptions, QueueBindOptions, QueueDeclareOptions,
    QueueDeleteOptions,
};
use lapin::types::FieldTable;

/// What carries an event.
#[derive(Debug, Clone)]
pub(crate) enum Broker {
    /// Nothing: the relay calls the consumer.
    InProcess,
    /// NATS JetStream, by its URL.
    Nats(String),
    /// RabbitMQ, by its URL.
    Amqp(String),
}

impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InProcess => "without a broker",
            Self::Nats(_) => "through NATS JetStream",
            Self::Amqp(_) => "through RabbitMQ",
        })
    }
}

/// The same as arguments of this program.
impl Broker {
    pub(crate) fn arguments(&self) -> Vec<&str> {
        match self {
            Self::InProcess => vec![],
            Self::Nats(url) => vec!["--nats", url],
            Self::Amqp(url) => vec!["--amqp", url],
        }
    }
}

/// The context of JetStream.
pub(crate) async fn jetstream(url: &str) -> anyhow::Result<jetstream::Context> {
    let client = async_nats::connect(url)
        .await
        .context("the server of --nats")?;
    Ok(jetstream::new(client))
}

/// A stream of its own and a consumer on it.
pub(crate) async fn make_stream(
    context: &jetstream::Context,
    name: &str,
) -> anyhow::Result<PullConsumer> {
    let stream = context
        .create_stream(jetstream::stream::Config {
            name: name.to_owned(),
            subjects: vec![format!("{name}.>")],
            ..Default::default()
        })
        .await?;
    let consumer = stream
        .create_consumer(pull::Config {
            durable_name: Some("warehouse".to_owned()),
            ack_policy: AckPolicy::Explicit,
            ..Default::default()
        })
        .await?;
    Ok(consumer)
}

/// An exchange of its own and a queue bound to it.
pub(crate) async fn make_queue(url: &str, name: &str) -> anyhow::Result<RabbitMqQueue> {
    let channel = channel(url).await?;
    let (durable_exchange, mut durable_queue) = (
        ExchangeDeclareOptions {
            durable: true,
            ..Default::default()
        },
        QueueDeclareOptions::default(),
    );
    durable_queue.durable = true;
    channel
        .exchange_declare(
            name.into(),
            lapin::ExchangeKind::Topic,
            durable_exchange,
            FieldTable::default(),
        )
        .await?;
    // A quorum queue counts the deliveries of each message.
    let mut quorum = FieldTable::default();
    quorum.insert(
        "x-queue-type".into(),
        lapin::types::AMQPValue::LongString("quorum".into()),
    );
    channel
        .queue_declare(name.into(), durable_queue, quorum)
        .await?;
    channel
        .queue_bind(
            name.into(),
            name.into(),
            "#".into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        )
        .await?;
    Ok(RabbitMqQueue::new(url, name)?)
}

/// Removes both.
pub(crate) async fn remove_queue(url: &str, name: &str) -> anyhow::Result<()> {
    let channel = channel(url).await?;
    channel
        .queue_delete(name.into(), QueueDeleteOptions::default())
        .await?;
    channel
        .exchange_delete(name.into(), ExchangeDeleteOptions::default())
        .await?;
    Ok(())
}

async fn channel(url: &str) -> anyhow::Result<lapin::Channel> {
    let connected = lapin::Connection::connect(url, lapin::ConnectionProperties::default()).await;
    let connection = connected.context("the broker of --amqp")?;
    Ok(connection.create_channel().await?)
}

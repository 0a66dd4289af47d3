//! The relay, in a process of its own. It is killed once, between publishing and settling.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idem_diesel::outbox::OutboxEvent;
use idem_relay::publisher::{JetStreamPublisher, RabbitMqPublisher};
use idem_relay::{PublishError, Publisher, Relay};
use tokio::io::AsyncReadExt;
use tokio::sync::Mutex;

use super::handlers::deliver_twice;
use super::{Database, Db};
use crate::broker::{self, Broker};
use crate::{RelayTask, Setting};

/// A lease is over so soon after its relay was killed.
const LEASE: Duration = Duration::from_secs(2);

/// Runs until its standard input ends.
pub(crate) async fn run(
    database: Database,
    setting: &Setting,
    task: &RelayTask,
) -> anyhow::Result<()> {
    let name = task.place.clone();
    match &setting.broker {
        Broker::InProcess => {
            let db = Mutex::new(database.connect().await?);
            relay(database, InProcess { db }, task).await;
        }
        Broker::Nats(url) => {
            let context = broker::jetstream(url).await?;
            let publisher = JetStreamPublisher::new(context, crate::shop::name_at_broker(&name))?;
            relay(database, publisher, task).await;
        }
        Broker::Amqp(url) => {
            let publisher = RabbitMqPublisher::new(url, &crate::shop::name_at_broker(&name))?;
            relay(database, publisher, task).await;
        }
    }
    Ok(())
}

async fn relay(database: Database, publisher: impl Publisher, task: &RelayTask) {
    let database = Arc::new(database);
    let connect = move || {
        let database = Arc::clone(&database);
        async move { database.connect().await }
    };
    let publisher = StandsStill {
        publisher,
        published: AtomicU32::new(0),
        after: task.stands_still_after,
    };
    let relay = Relay::new(connect, publisher)
        .lease(LEASE)
        .publish_timeout(LEASE / 2)
        .poll_every(Duration::from_millis(50));
    let end_of_input = async {
        let mut input = tokio::io::stdin();
        // Whatever comes is not for us; what counts is that it ends.
        while input.read_u8().await.is_ok() {}
    };
    let summary = relay.run(end_of_input).await;
    println!("relay: published {}", summary.published);
}

/// Publishes by calling the consumer.
struct InProcess {
    db: Mutex<Db>,
}

impl Publisher for InProcess {
    async fn publish(&self, event: &OutboxEvent) -> Result<(), PublishError> {
        let id = event.id.message_id().map_err(PublishError::rejected)?;
        let message = serde_json::from_str(&event.payload).map_err(PublishError::rejected)?;
        let mut db = self.db.lock().await;
        let delivered = deliver_twice(&mut db, &id, &message).await;
        delivered.map(drop).map_err(PublishError::failed)
    }
}

/// Publishes so many events, says so, and then stands still for ever: nothing that it has published is settled.
struct StandsStill<P> {
    publisher: P,
    published: AtomicU32,
    after: Option<u32>,
}

impl<P: Publisher> Publisher for StandsStill<P> {
    async fn publish(&self, event: &OutboxEvent) -> Result<(), PublishError> {
        self.publisher.publish(event).await?;
        let published = self.published.fetch_add(1, Ordering::SeqCst) + 1;
        if self.after == Some(published) {
            println!("published");
            let _ = std::io::stdout().flush();
            // The whole task stands still, and its timeouts with it, until the process is killed.
            loop {
                std::thread::park();
            }
        }
        Ok(())
    }
}

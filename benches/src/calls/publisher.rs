//! A broker of the benchmarks' own, and relays that publish to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use diesel_async::{AsyncConnection, AsyncPgConnection};
use idem_diesel::outbox::OutboxEvent;
use idem_relay::{Connect, PublishError, Publisher, Relay};

/// Counts what it is given.
#[derive(Debug, Clone)]
pub(crate) struct Counting {
    taken: Arc<AtomicU32>,
    /// How long it takes for each event, as a round trip to a broker does.
    takes: Duration,
}

impl Counting {
    pub(crate) fn new(takes: Duration) -> Self {
        Self {
            taken: Arc::default(),
            takes,
        }
    }

    /// How many events it was given so far.
    pub(crate) fn taken(&self) -> u32 {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Publisher for Counting {
    async fn publish(&self, _event: &OutboxEvent) -> Result<(), PublishError> {
        if !self.takes.is_zero() {
            tokio::time::sleep(self.takes).await;
        }
        self.taken.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A relay as it is without settings.
pub(crate) fn relay(url: &str, publisher: &Counting) -> Relay<impl Connect + use<>, Counting> {
    let url = url.to_owned();
    let connect = move || {
        let url = url.clone();
        async move { AsyncPgConnection::establish(&url).await }
    };
    Relay::new(connect, publisher.clone())
}

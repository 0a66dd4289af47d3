//! Consume loops: a message goes from a broker to a handler behind the [inbox](idem_diesel::inbox), and the broker is told after COMMIT.
//!
//! What happens to one delivered message:
//!
//! 1. **Id.** A message without one, or with one that cannot be one, is refused: nobody could tell its second delivery from its first, nor park it. It is logged as an error and ended.
//! 2. **Attempt.** [`inbox::attempt`](idem_diesel::inbox::attempt) says whether it is tried. A first delivery costs nothing here. A later one is counted now, so that a message that kills the
//!    process is counted, too; if that was one too many, it is parked and ended.
//! 3. **Handler.** It marks the message, does the work, and commits.
//! 4. **Acknowledgement**, after the handler returned `Ok`: also for a duplicate, whose handler did not run. A crash before this point means a redelivery, which the mark turns away.
//! 5. **Failure.** The handler's error or panic is noted by [`inbox::failed`](idem_diesel::inbox::failed). If there are attempts left the message comes again after a [pause](ConsumeLoop::pauses), and those behind it
//!    go on; if not it is parked with that error, and ended. A [permanent](HandlerError::permanent) error parks it at once.
//!
//! *Ended* means that the broker will not deliver it again: `TERM` for JetStream, `basic.reject` without requeueing for RabbitMQ, whose dead-letter exchange gets it if the queue has one.
//! *Parked* means that it is in `processed_messages` as dead, with its payload and its last error, where [`inbox::dead`](idem_diesel::inbox::dead) lists it and [`inbox::redrive`](idem_diesel::inbox::redrive) takes it up again.
//!
//! # What counts as an attempt
//!
//! Every run of the handler that fails, at COMMIT as well. Not:
//!
//! * that the database cannot be reached or is [`Busy`](ErrorKind::Busy), or that another copy of the message is being processed ([`InFlight`](ErrorKind::InFlight)). The message is held, and tried when that
//!   is over; no further message is taken meanwhile. After [`HELD_AT_MOST`] it is given back, since another process may have more luck.
//! * a connection that is lost on the first try: it may have been dead before. The handler runs once more, on a new one.
//!
//! The inbox counts, and not the broker: a broker counts every delivery, also those that an outage or a restart ended. What it says is only whether this is the first one. Of a message that was given back
//! untried, the inbox knows as little as of one whose process was killed: it counts one attempt.
//!
//! # What is refused
//!
//! Another message under the id of a processed one ([`Mismatch`](ErrorKind::Mismatch)) cannot be parked, because its id is that of the processed one. It is logged as an error and ended. A message that is parked
//! ([`Parked`](ErrorKind::Parked)) and is delivered all the same is ended, too.
//!
//! # Metrics and spans
//!
//! Counters, each with the label `subscriber`: `idem_inbox_processed`, `idem_inbox_duplicates`, `idem_inbox_failed` (attempts), `idem_inbox_dead` (parked) and `idem_inbox_refused` (ended without being parked). A
//! span `consume` is around each message, with `subscriber`, `message_id`, `delivery` and `traceparent`.

#![cfg_attr(
    not(any(feature = "jetstream", feature = "rabbitmq")),
    expect(dead_code, reason = "without a broker nobody runs a loop")
)]

mod handler;
#[cfg(feature = "jetstream")]
mod jetstream;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
mod received;
mod work;

use std::fmt;
use std::future::Future;
use std::time::Duration;

use futures_util::future::{self, Either};
#[expect(unused_imports, reason = "the documentation names it")]
use idem_diesel::ErrorKind;
use idem_diesel::Subscription;
use tokio::sync::watch;

use crate::connect::Connect;

pub use handler::{Handled, Handler, HandlerError, Handling, handler};
#[cfg(feature = "rabbitmq")]
pub use rabbitmq::{DEFAULT_PREFETCH, RabbitMqQueue};
pub use received::Received;

/// The pause after a first failed attempt, and the longest one, unless a loop says otherwise: each is up to twice the one before, at random.
pub const DEFAULT_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How long a statement of the inbox may take; that of a handler is its own matter.
pub const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// How long a message is held while it cannot be tried.
pub const HELD_AT_MOST: Duration = Duration::from_secs(60);

/// Handles the messages of one subscriber, one after the other, on one connection to the database. Several may run beside each other, in one process or many.
///
/// ```
/// use diesel::SqliteConnection;
/// use diesel_async::AsyncConnection;
/// use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
/// use idem_diesel::{Error, Retention, Subscription, inbox};
/// use idem_relay::ConsumeLoop;
/// use idem_relay::consume::handler;
///
/// type Db = SyncConnectionWrapper<SqliteConnection>;
///
/// const BILLING: Subscription = Subscription::new("billing", Retention::literal("7d"));
///
/// let consume = ConsumeLoop::new(
///     &BILLING,
///     || Db::establish("shop.db"),
///     handler(|db: &mut Db, message| Box::pin(async move {
///         let cents: i64 = message.json()?;
///         let consumed = inbox::consume(db, &BILLING, message.id(), &cents, async |_db| Ok::<_, Error>(()));
///         Ok(consumed.await?)
///     })),
/// );
/// // `consume.run_jetstream(consumer, shutdown).await`, or `consume.run_rabbitmq(&queue, shutdown).await`.
/// # drop(consume);
/// ```
pub struct ConsumeLoop<S, H> {
    subscription: Subscription,
    source: S,
    handler: H,
    pauses: (Duration, Duration),
}

impl<S: Connect, H: Handler<S::Connection>> ConsumeLoop<S, H> {
    /// A loop for a subscriber. One connection of `source` is kept, and replaced after an error or a panic.
    pub fn new(subscription: &Subscription, source: S, handler: H) -> Self {
        Self {
            subscription: *subscription,
            source,
            handler,
            pauses: DEFAULT_PAUSES,
        }
    }

    /// The pause after a first failed attempt at a message, and the longest one.
    #[must_use]
    pub fn pauses(self, first: Duration, longest: Duration) -> Self {
        let pauses = (first, longest.max(first));
        Self { pauses, ..self }
    }
}

impl<S, H> fmt::Debug for ConsumeLoop<S, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumeLoop")
            .field("subscriber", &self.subscription.subscriber())
            .finish_non_exhaustive()
    }
}

/// Whether a loop is to end.
#[derive(Debug, Clone)]
struct Stop(watch::Receiver<bool>);

impl Stop {
    fn is_stopped(&self) -> bool {
        *self.0.borrow()
    }

    async fn stopped(&mut self) {
        // Who could stop it is gone with the loop itself.
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }

    /// What `waited` gives, unless the loop is to end before.
    async fn or<T>(&mut self, waited: impl Future<Output = T>) -> Option<T> {
        let waiting = std::pin::pin!(waited);
        let stopping = std::pin::pin!(self.stopped());
        match future::select(stopping, waiting).await {
            Either::Left(_) => None,
            Either::Right((value, _)) => Some(value),
        }
    }

    /// Rests, unless it is to end; whether it goes on.
    async fn rest(&mut self, pause: Duration) -> bool {
        self.or(tokio::time::sleep(pause)).await.is_some()
    }
}

/// Works until it has ended by itself, or in its own good time after `shutdown`.
async fn until<W: Future>(shutdown: impl Future, work: impl FnOnce(Stop) -> W) -> W::Output {
    let (stop, stopped) = watch::channel(false);
    let working = std::pin::pin!(work(Stop(stopped)));
    let stopping = std::pin::pin!(async {
        shutdown.await;
        // Nobody listens when there is nothing left to end.
        let _ = stop.send(true);
    });
    // The end is looked at first: no message is taken after it.
    match future::select(stopping, working).await {
        Either::Left(((), working)) => working.await,
        Either::Right((output, _)) => output,
    }
}

//! Waking relays of other processes, on PostgreSQL.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use diesel_async::AsyncPgConnection;
use futures_util::future::{self, Either};
use idem_diesel::IdempotentConnection;
use idem_diesel::outbox;
use tokio::sync::Notify;

use crate::connect::Connect;
use crate::relay::{OUTAGE_PAUSES, rests, shown};
use crate::wake::Wake;

/// The shortest time between two notifications: what is published in between is told by the next one.
pub const NOTIFY_EVERY: Duration = Duration::from_millis(20);

/// Wakes a relay whenever another process has published something and called [`notify_after_publish`], until `shutdown` is done.
///
/// It needs a connection of its own, not a pooler's in transaction mode, and makes a new one when that is lost.
///
/// # Cancellation
///
/// It only listens.
pub async fn listen<S>(source: S, wake: Wake, shutdown: impl Future)
where
    S: Connect<Connection: IdempotentConnection<Inner = AsyncPgConnection>>,
{
    let listening = async {
        let mut pauses = rests(OUTAGE_PAUSES);
        loop {
            let lost: Box<dyn std::error::Error + Send + Sync> = match source.connect().await {
                Ok(mut db) => {
                    pauses = rests(OUTAGE_PAUSES);
                    outbox::listen(db.inner(), || wake.wake()).await.into()
                }
                Err(error) => error,
            };
            tracing::warn!(
                error = shown(&*lost),
                "a relay hears nothing, and looks by itself"
            );
            tokio::time::sleep(pauses.next().unwrap_or(OUTAGE_PAUSES.1)).await;
        }
    };
    unless(shutdown, listening).await;
}

/// Tells relays of other processes after each commit of this one that published an event, at most once in [`NOTIFY_EVERY`], until `shutdown` is done.
///
/// # Cancellation
///
/// A notification that is not sent is missed; relays look by themselves.
pub async fn notify_after_publish<S>(source: S, shutdown: impl Future)
where
    S: Connect<Connection: IdempotentConnection<Inner = AsyncPgConnection>>,
{
    let published = Arc::new(Notify::new());
    let hook = Arc::clone(&published);
    let _wake_up = outbox::on_publish(move || hook.notify_one());
    let notifying = async {
        let mut db = None;
        loop {
            published.notified().await;
            let told = match &mut db {
                Some(db) => tell(db).await,
                None => match source.connect().await {
                    Ok(new) => tell(db.insert(new)).await,
                    Err(error) => Err(error),
                },
            };
            if let Err(error) = told {
                tracing::warn!(
                    error = shown(&*error),
                    "relays were not told, and look by themselves"
                );
                db = None;
            }
            tokio::time::sleep(NOTIFY_EVERY).await;
        }
    };
    unless(shutdown, notifying).await;
}

async fn tell<C>(db: &mut C) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    C: IdempotentConnection<Inner = AsyncPgConnection>,
{
    Ok(outbox::notify(db.inner()).await?)
}

/// Runs `endless` until `shutdown` is done.
async fn unless<N>(shutdown: impl Future, endless: impl Future<Output = N>) {
    let (shutdown, endless) = (std::pin::pin!(shutdown), std::pin::pin!(endless));
    match future::select(shutdown, endless).await {
        Either::Left(_) | Either::Right(_) => {}
    }
}

//! The purge as a background task.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use super::run::{run, unless};
use super::{Ended, Purge, Purged};
use crate::connection::IdempotentConnection;
use crate::driver::Driver;

/// The shortest time between two runs of [`purge_periodically`].
///
/// ```
/// use idem_diesel::retention::{DEFAULT_PAUSE, MIN_EVERY};
///
/// assert!(MIN_EVERY > DEFAULT_PAUSE);
/// ```
pub const MIN_EVERY: Duration = Duration::from_secs(1);

/// Purges again and again, on a connection that it takes for each run and gives back after it, until `shutdown` is done.
///
/// It ends within its pauses at once, and in the middle of a batch when that has committed. A run that fails does not end it: the
/// error is an event of [`tracing`], and the next run comes in its time. Gives the sum of all runs. It needs tokio's timer.
///
/// ```
/// use std::time::Duration;
/// use diesel::SqliteConnection;
/// use diesel_async::AsyncConnection;
/// use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
/// use idem_diesel::retention::{Ended, Purge, purge_periodically};
///
/// # tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?.block_on(async {
/// // With a pool of deadpool: `move || { let pool = pool.clone(); async move { pool.get().await } }`.
/// let connect = || async {
///     let mut db = SyncConnectionWrapper::<SqliteConnection>::establish(":memory:").await?;
///     idem_diesel::ensure_schema(&mut db).await?;
///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(db)
/// };
/// let (stop, shutdown) = tokio::sync::oneshot::channel::<()>();
/// let hourly = Duration::from_secs(3600);
/// let purging = tokio::spawn(purge_periodically(connect, Purge::new(), hourly, shutdown));
///
/// drop(stop);
/// let purged = purging.await?;
/// assert_eq!(purged.ended, Ended::Shutdown);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cancellation
///
/// Dropping it is safe, but rolls the batch back that it is in. `shutdown` is the clean way.
pub async fn purge_periodically<C, E, F>(
    mut connect: impl FnMut() -> F,
    options: Purge,
    every: Duration,
    shutdown: impl Future,
) -> Purged
where
    C: IdempotentConnection<Flavor = crate::Async>,
    E: std::fmt::Display,
    F: Future<Output = Result<C, E>>,
{
    let every = every.max(MIN_EVERY);
    let mut shutdown = pin!(shutdown);
    let mut sum = Purged::NOTHING;
    loop {
        let Some(connected) = unless(shutdown.as_mut(), connect()).await else {
            break;
        };
        match connected {
            Ok(mut db) => {
                let mut purged = Purged::NOTHING;
                let done = run(&mut db, &options, shutdown.as_mut(), &mut purged).await;
                sum.add(purged);
                match done {
                    Ok(()) if purged.ended == Ended::Shutdown => break,
                    Ok(()) => {}
                    Err(error) => tracing::error!(%error, "a purge failed"),
                }
            }
            Err(error) => tracing::error!(%error, "a purge got no connection"),
        }
        if unless(shutdown.as_mut(), C::Inner::pause(every))
            .await
            .is_none()
        {
            break;
        }
    }
    sum.ended = Ended::Shutdown;
    sum
}

impl Purged {
    /// Adds the numbers of another run.
    fn add(&mut self, other: Self) {
        self.blanked += other.blanked;
        self.forgotten += other.forgotten;
        self.messages += other.messages;
        self.events += other.events;
    }
}

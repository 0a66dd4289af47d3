//! Waking relays of other processes, on PostgreSQL.

use std::pin::pin;
use std::time::Duration;

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use futures_util::StreamExt;

use crate::driver::Driver;
use crate::error::Error;

/// The channel on which relays are told that there is something to publish.
const CHANNEL: &str = "idem_outbox";

/// How often a connection that hears nothing is asked whether it still lives.
const PROBE_EVERY: Duration = Duration::from_secs(30);

/// Tells all listeners that there is something to publish.
///
/// It is a transaction of its own, outside of the work: NOTIFY inside a transaction takes a lock of the whole server at its commit. One call can stand for many events.
///
/// # Errors
///
/// What the database says. Nothing is lost: relays look by themselves.
///
/// # Cancellation
///
/// One statement: the listeners are told or they are not.
///
/// # SQL
///
/// ```sql
/// NOTIFY idem_outbox
/// ```
pub async fn notify(db: &mut AsyncPgConnection) -> Result<(), Error> {
    Ok(db.batch_execute(&format!("NOTIFY {CHANNEL}")).await?)
}

/// Calls `wake` whenever [`notify`] was called, by whatever process, until the connection is lost. It is called once at the beginning, for what was missed before.
///
/// # Errors
///
/// Always, in the end: why it hears nothing any more.
///
/// # Cancellation
///
/// It only listens. The connection stays subscribed: do not put it back into a pool.
///
/// # SQL
///
/// ```sql
/// LISTEN idem_outbox
/// ```
pub async fn listen(db: &mut AsyncPgConnection, wake: impl Fn()) -> Error {
    if let Err(error) = db.batch_execute(&format!("LISTEN {CHANNEL}")).await {
        return error.into();
    }
    wake();
    loop {
        let heard = {
            let mut notifications = pin!(db.notifications_stream());
            tokio::time::timeout(PROBE_EVERY, notifications.next()).await
        };
        match heard {
            Ok(Some(Ok(_))) => wake(),
            Ok(Some(Err(error))) => return error.into(),
            // Its end is not told, so it is asked.
            Ok(None) | Err(_) => {
                if let Err(error) = db.probe().await {
                    return error.into();
                }
            }
        }
    }
}

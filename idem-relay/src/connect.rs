//! Where connections to the database come from.

use std::error::Error as StdError;
use std::future::Future;
use std::time::Duration;

use idem_diesel::{Async, IdempotentConnection};

/// How long a connection to the database or to a broker may take.
pub const CONNECTED_WITHIN: Duration = Duration::from_secs(30);

/// Makes a connection, or takes one from a pool. A closure is one; what it has captured is cloned into the future that it gives.
///
/// ```
/// use diesel::SqliteConnection;
/// use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
/// use diesel_async::AsyncConnection;
/// use idem_relay::Connect;
///
/// fn source() -> impl Connect<Connection = SyncConnectionWrapper<SqliteConnection>> {
///     let path = "shop.db".to_owned();
///     move || {
///         let path = path.clone();
///         async move { SyncConnectionWrapper::establish(&path).await }
///     }
/// }
///
/// let _relays_reconnect_with_it = source();
/// ```
pub trait Connect: Send + Sync {
    /// What it makes.
    type Connection: IdempotentConnection<Flavor = Async>;

    /// A connection.
    fn connect(
        &self,
    ) -> impl Future<Output = Result<Self::Connection, Box<dyn StdError + Send + Sync>>> + Send;
}

impl<F, C, E, R> Connect for F
where
    F: Fn() -> R + Send + Sync,
    R: Future<Output = Result<C, E>> + Send,
    C: IdempotentConnection<Flavor = Async>,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    type Connection = C;

    async fn connect(&self) -> Result<C, Box<dyn StdError + Send + Sync>> {
        let connecting = self();
        connecting.await.map_err(Into::into)
    }
}

//! What makes a relay look at once.

use std::sync::Arc;

use tokio::sync::Notify;

/// Makes a relay look at once. Waking it many times while it works makes it look once more.
///
/// A relay wakes by itself after each commit of this process that published an event. For commits of other processes there is `listen` on PostgreSQL
/// (feature `postgres`), and for everything else the relay's own look from time to time.
#[derive(Debug, Clone)]
pub struct Wake(Arc<Notify>);

impl Wake {
    pub(crate) fn new(notify: Arc<Notify>) -> Self {
        Self(notify)
    }

    /// Wakes the relay.
    pub fn wake(&self) {
        self.0.notify_one();
    }
}

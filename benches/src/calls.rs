//! One call of each kind, on each kind of connection, and the clients that call.

pub(crate) mod asynchronous;
pub(crate) mod blocking;
pub(crate) mod clients;
pub(crate) mod publisher;
pub(crate) mod sqlite;

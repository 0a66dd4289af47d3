//! One call of each kind, on each kind of connection, and the clients that call.

pub(crate) mod asynchronous;
pub(crate) mod blocking;
pub(crate) mod clients;
pub(crate) mod sqlite;

use idem_diesel::Policy;

/// The policy that looks for a record before it opens a transaction; `None`: the library has none yet.
pub(crate) const READ_FIRST: Option<Policy> = Some(Policy::new().read_first()); // Some(Policy::new().read_first())

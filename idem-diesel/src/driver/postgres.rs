//! What is sent to PostgreSQL to open a transaction and to wait for a key.

use std::time::Duration;

use super::Begin;
use crate::dialect::LOCK_CLASS;

/// BEGIN, with the wait for a key's lock when there is one, as one message.
pub(super) fn begin_text(begin: Begin) -> String {
    const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
    match begin {
        Begin::AtOnce => BEGIN.to_owned(),
        Begin::Waiting { lock, at_most } => format!("{BEGIN}; {}", wait_text(lock, at_most)),
    }
}

/// Waits for a key's lock, at most so long.
///
/// The queue of a lock is served in order, so one wait covers all who are before us, and one bound covers the whole wait. The
/// session's own `lock_timeout` is back before anything else runs.
pub(super) fn wait_text(lock: i64, at_most: Duration) -> String {
    // Zero would mean no bound.
    let milliseconds = at_most.as_millis().max(1);
    format!(
        "SELECT set_config('idem.lock_timeout', current_setting('lock_timeout'), true); \
         SET LOCAL lock_timeout = {milliseconds}; \
         SELECT pg_advisory_xact_lock({LOCK_CLASS}, {lock}); \
         SELECT set_config('lock_timeout', current_setting('idem.lock_timeout'), true)"
    )
}

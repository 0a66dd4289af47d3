//! What is sent to PostgreSQL to open a transaction and to wait for a key: one message each.

use std::fmt::Write as _;
use std::time::Duration;

use idem_core::Isolation;

use super::{Opening, Wait};
use crate::dialect::LOCK_CLASS;

/// BEGIN, with the settings of the transaction and the wait for a key's lock, if there are any.
pub(super) fn begin_text(opening: &Opening, wait: Option<Wait>) -> String {
    let level = match opening.isolation {
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    };
    let mut text = format!("BEGIN ISOLATION LEVEL {level} READ WRITE");
    if let Some(max_idle) = opening.max_idle {
        let milliseconds = max_idle.as_millis().clamp(1, MAX_MILLISECONDS);
        append(
            &mut text,
            format_args!("; SET LOCAL idle_in_transaction_session_timeout = {milliseconds}"),
        );
    }
    push_tenant(&mut text, opening);
    push_locks(&mut text, opening, wait);
    text
}

/// The same inside a transaction that is open already, if there is anything to do.
pub(super) fn settle_in_text(opening: &Opening, wait: Option<Wait>) -> Option<String> {
    let mut text = String::new();
    push_tenant(&mut text, opening);
    push_locks(&mut text, opening, wait);
    (!text.is_empty()).then_some(text)
}

/// A transaction that only waits.
pub(super) fn wait_apart_text(wait: Wait) -> String {
    let mut text = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY".to_owned();
    push_lock_wait(&mut text, Some(wait.at_most));
    push_wait(&mut text, Some(wait));
    text.push_str("; COMMIT");
    text
}

fn push_locks(text: &mut String, opening: &Opening, wait: Option<Wait>) {
    push_lock_wait(text, wait.map(|wait| wait.at_most).or(opening.lock_wait));
    push_wait(text, wait);
}

/// The longest time that a setting of PostgreSQL holds.
const MAX_MILLISECONDS: u128 = i32::MAX as u128;

/// The tenant, transaction-local. It travels as hexadecimal, so that no text of a caller is ever read as SQL.
fn push_tenant(text: &mut String, opening: &Opening) {
    if let Some((setting, tenant)) = &opening.tenant {
        let hex = tenant.bytes().fold(String::new(), |mut hex, byte| {
            append(&mut hex, format_args!("{byte:02x}"));
            hex
        });
        append(
            text,
            format_args!(
                "; SELECT set_config('{setting}', convert_from(decode('{hex}', 'hex'), 'UTF8'), true)"
            ),
        );
    }
}

/// The bound of every lock that the claim waits for. The statement that wins the key puts the session's own bound back, with
/// what the dialect adds to it (`RESTORE_LOCK_TIMEOUT`).
fn push_lock_wait(text: &mut String, lock_wait: Option<Duration>) {
    if let Some(lock_wait) = lock_wait {
        // Zero would mean no bound.
        let milliseconds = lock_wait.as_millis().clamp(1, MAX_MILLISECONDS);
        append(
            text,
            format_args!(
                "; SELECT set_config('idem.lock_timeout', current_setting('lock_timeout'), true); \
                 SET LOCAL lock_timeout = {milliseconds}"
            ),
        );
    }
}

/// The wait for a key's lock, within the bound of locks. The queue of a lock is served in order, so one wait covers all who are before us.
fn push_wait(text: &mut String, wait: Option<Wait>) {
    if let Some(Wait { lock, .. }) = wait {
        append(
            text,
            format_args!("; SELECT pg_advisory_xact_lock({LOCK_CLASS}, {lock})"),
        );
    }
}

fn append(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = text.write_fmt(arguments);
}

//! What is sent to PostgreSQL to open a transaction and to take a key's locks: one message each.

use std::fmt::Write as _;
use std::time::Duration;

use idem_core::Isolation;

use super::{Call, Opening, Wait};
use crate::dialect::{try_locks, wait_for_locks};

/// BEGIN, with the settings of the transaction and the locks of its key, behind the wait for them if there is one.
pub(super) fn begin_text(opening: &Opening, wait: Option<Wait>) -> String {
    let level = match opening.isolation {
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    };
    let mut text = format!("BEGIN ISOLATION LEVEL {level} READ WRITE");
    push_wait(&mut text, opening.call.as_ref(), wait);
    push_settings(&mut text, opening, true);
    text
}

/// The same inside a transaction that is open already, if there is anything to do.
pub(super) fn settle_in_text(opening: &Opening, wait: Option<Wait>) -> Option<String> {
    // What is pushed begins with a semicolon: the first statement is an empty one.
    let mut text = String::new();
    push_wait(&mut text, opening.call.as_ref(), wait);
    push_settings(&mut text, opening, false);
    (!text.is_empty()).then_some(text)
}

/// A transaction that only waits.
pub(super) fn wait_apart_text(call: &Call, wait: Wait) -> String {
    let mut text = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY".to_owned();
    push_wait(&mut text, Some(call), Some(wait));
    text.push_str("; COMMIT");
    text
}

/// Leaves a transaction open in which a statement failed.
#[cfg(feature = "async-postgres")]
pub(super) const ABORT: &str = "BEGIN; SELECT CAST('' AS integer)";

/// Bounds the waits for locks until [`UNBOUND_LOCKS`].
pub(super) fn bound_locks_text(at_most: Duration) -> String {
    let milliseconds = milliseconds(at_most);
    format!(
        "SELECT set_config('idem.lock_timeout', current_setting('lock_timeout'), true), \
                set_config('lock_timeout', '{milliseconds}', true)"
    )
}

/// Puts the session's own bound back.
pub(super) const UNBOUND_LOCKS: &str =
    "SELECT set_config('lock_timeout', current_setting('idem.lock_timeout'), true)";

/// The longest time that a setting of PostgreSQL holds.
const MAX_MILLISECONDS: u128 = i32::MAX as u128;

/// Zero would mean no bound.
fn milliseconds(time: Duration) -> u128 {
    time.as_millis().clamp(1, MAX_MILLISECONDS)
}

/// The settings of a transaction, with as few functions, operators and casts as can be: the server looks each of them up anew.
fn push_settings(text: &mut String, opening: &Opening, is_own: bool) {
    if let Some(max_idle) = opening.max_idle.filter(|_| is_own) {
        let milliseconds = milliseconds(max_idle);
        append(
            text,
            format_args!("; SET LOCAL idle_in_transaction_session_timeout = {milliseconds}"),
        );
    }
    if let Some((setting, tenant)) = &opening.tenant {
        // It travels as hexadecimal, so that no text of a caller is ever read as SQL.
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
    if opening.by_index {
        for plan in ["seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin"] {
            append(text, format_args!("; SET LOCAL enable_{plan} = off"));
        }
    }
    if let Some(claim_within) = opening.claim_within {
        // One bound is enough, and a shorter one of the session's own for locks would take the name from the wait.
        let milliseconds = milliseconds(claim_within);
        append(
            text,
            format_args!(
                "; SELECT set_config('idem.statement_timeout', current_setting('statement_timeout'), true), \
                 set_config('statement_timeout', '{milliseconds}', true), \
                 set_config('idem.lock_timeout', current_setting('lock_timeout'), true), set_config('lock_timeout', '0', true)"
            ),
        );
    }
    if let Some(Call { name, locks }) = &opening.call {
        let locks = try_locks(*locks);
        // Of the session, not of the transaction: it stays if the transaction is committed, whoever commits it.
        append(
            text,
            format_args!("; SELECT set_config('idem.call', concat('{name}-', {locks}), false)"),
        );
    }
}

/// The wait for a key's locks. The queue of a lock is served in order, so one wait covers all who are before us. The session's
/// own bound of locks is put back behind it.
fn push_wait(text: &mut String, call: Option<&Call>, wait: Option<Wait>) {
    let (Some(Call { locks, .. }), Some(wait)) = (call, wait) else {
        return;
    };
    let (bound, wait) = (bound_locks_text(wait.at_most), wait_for_locks(*locks));
    append(
        text,
        format_args!("; {bound}; SELECT {wait}; {UNBOUND_LOCKS}"),
    );
}

fn append(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = text.write_fmt(arguments);
}

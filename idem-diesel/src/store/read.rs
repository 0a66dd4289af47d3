//! The read: what a key holds, the database's time, and whether the key's lock is ours.

use std::time::{Duration, SystemTime};

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment};
use diesel::sql_types::{BigInt, Binary, Integer, Nullable, Text};
use idem_core::answer::{End, StoredAnswer};
use idem_core::{Lease, Record, RecordState, RequestDigest, Writer};

use super::{RowKey, static_statement};
use crate::dialect::Dialect;

/// Reads one row, which is there even when the key has none.
///
/// # SQL
///
/// ```sql
/// SELECT lock, now, begin, … FROM (SELECT 1) AS one LEFT JOIN api_idempotency ON …
/// ```
#[derive(Debug, Clone)]
pub struct Read {
    /// The row.
    pub key: RowKey,
}

static_statement!(Read);

type Columns = (
    Nullable<Text>,
    BigInt,
    BigInt,
    Nullable<Text>,
    Nullable<Text>,
    Nullable<Integer>,
    Nullable<Text>,
    Nullable<BigInt>,
    Nullable<BigInt>,
    Nullable<Text>,
    Nullable<Binary>,
);

/// The columns as Diesel gives them, in the order of [`Read`].
pub(crate) type Row = (
    Option<String>,
    i64,
    i64,
    Option<String>,
    Option<String>,
    Option<i32>,
    Option<String>,
    Option<i64>,
    Option<i64>,
    Option<String>,
    Option<Vec<u8>>,
);

impl Query for Read {
    type SqlType = Columns;
}

impl<Conn> diesel::RunQueryDsl<Conn> for Read {}

impl<DB: Dialect> QueryFragment<DB> for Read {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("SELECT ");
        out.push_sql(DB::LOCKS);
        out.push_sql(", ");
        DB::push_micros(&mut out, DB::NOW);
        out.push_sql(", ");
        DB::push_micros(&mut out, DB::BEGAN_AT);
        out.push_sql(", request_hash, state, attempt, owner, ");
        DB::push_micros(&mut out, "lease_expires_at");
        out.push_sql(", ");
        DB::push_micros(&mut out, "expires_at");
        out.push_sql(", codec, response_body FROM (SELECT 1) AS one LEFT JOIN api_idempotency ON ");
        self.key.push_is_row(&mut out)
    }
}

/// Who has the lock of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyLock {
    /// This transaction, so that nobody else is changing the row.
    Mine,
    /// A call of the key, in another transaction.
    AnotherCalls,
    /// It may be a call of another key whose lock has the same number: the key's second number was free.
    AnotherKeys,
}

impl KeyLock {
    /// From what the transaction has put down of its locks; outside of one that may be anything.
    fn from_text(locks: Option<&str>) -> Self {
        match locks {
            Some("tt" | "tf") => Self::Mine,
            Some("ft") => Self::AnotherKeys,
            _ => Self::AnotherCalls,
        }
    }
}

/// What a key holds.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Who has the key's lock.
    pub lock: KeyLock,
    /// The database's time of the read.
    pub now: SystemTime,
    /// When the transaction of the read began, for a comparison on the server.
    pub began_at: i64,
    /// The row, if there is one.
    pub record: Option<Record>,
}

/// A row that this version cannot have written.
#[derive(Debug)]
pub(crate) struct Malformed(pub &'static str);

impl Found {
    /// The columns as the types of the protocol.
    pub(crate) fn from_row(row: Row) -> Result<Self, Malformed> {
        let (locks, now, began_at, hash, state, attempt, owner, lease_end, expires, codec, body) =
            row;
        let record = match (hash, state, attempt, expires) {
            (Some(hash), Some(state), Some(attempt), Some(expires)) => {
                let lease = match (owner, lease_end) {
                    (Some(owner), Some(end)) => Some(Lease {
                        owner,
                        expires_at: time(end),
                    }),
                    _ => None,
                };
                let answer = |end| match (codec, body) {
                    (Some(codec), Some(body)) => {
                        RecordState::Retained(StoredAnswer::new(end, codec, body))
                    }
                    _ => RecordState::Tombstone,
                };
                let state = match state.as_str() {
                    "pending" => RecordState::Pending {
                        // Calls inside themselves never come here: `running` knows them.
                        writer: Writer::Committed,
                        lease,
                    },
                    "completed" => answer(End::Completed),
                    "failed" => answer(End::Failed),
                    _ => return Err(Malformed("api_idempotency.state has an unknown value")),
                };
                Some(Record {
                    request_hash: RequestDigest::from_hex(&hash).ok_or(Malformed(
                        "api_idempotency.request_hash is not a request hash",
                    ))?,
                    state,
                    attempt: u32::try_from(attempt)
                        .map_err(|_| Malformed("api_idempotency.attempt is negative"))?,
                    expires_at: time(expires),
                })
            }
            _ => None,
        };
        Ok(Self {
            lock: KeyLock::from_text(locks.as_deref()),
            now: time(now),
            began_at,
            record,
        })
    }
}

/// The column `state` of an ended call.
pub(super) fn state_name(end: End) -> &'static str {
    match end {
        End::Completed => "completed",
        End::Failed => "failed",
    }
}

/// A column of microseconds since the Unix epoch.
pub(super) fn time(micros: i64) -> SystemTime {
    let time = match u64::try_from(micros) {
        Ok(after) => SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(after)),
        // Only a number below zero does not fit.
        Err(_) => SystemTime::UNIX_EPOCH.checked_sub(Duration::from_micros(micros.unsigned_abs())),
    };
    // 64 bits of microseconds are within the range of the system's time on every supported platform.
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::KeyLock::{AnotherCalls, AnotherKeys, Mine};
    use super::*;

    const NO_LEASE: (Option<&str>, Option<i64>) = (None, None);
    const NO_ANSWER: (Option<&str>, Option<&[u8]>) = (None, None);

    /// A row with these values in its column `state`, in those of its lease and in those of its answer.
    fn row(
        state: &str,
        (owner, lease_end): (Option<&str>, Option<i64>),
        (codec, body): (Option<&str>, Option<&[u8]>),
    ) -> Row {
        (
            Some("tt".to_owned()),
            0,
            0,
            Some("01".repeat(33)),
            Some(state.to_owned()),
            Some(1),
            owner.map(ToOwned::to_owned),
            lease_end,
            Some(9_000_000),
            codec.map(ToOwned::to_owned),
            body.map(ToOwned::to_owned),
        )
    }

    #[track_caller]
    fn check(row: Row, expected: &RecordState) {
        let record = Found::from_row(row).unwrap().record;
        assert_eq!(record.map(|record| record.state).as_ref(), Some(expected));
    }

    #[test]
    fn a_pending_row_has_the_lease_that_its_owner_took() {
        let pending = |lease| RecordState::Pending {
            writer: Writer::Committed,
            lease,
        };
        let lease = Lease {
            owner: "worker 3".to_owned(),
            expires_at: SystemTime::UNIX_EPOCH + Duration::from_secs(30),
        };
        let leased = row("pending", (Some("worker 3"), Some(30_000_000)), NO_ANSWER);
        check(leased, &pending(Some(lease)));
        check(row("pending", NO_LEASE, NO_ANSWER), &pending(None));
    }

    #[test]
    fn an_end_is_read_as_it_was_written() {
        for end in [End::Completed, End::Failed] {
            let answer = StoredAnswer::json(end, b"7".to_vec());
            let answered = (Some(answer.codec()), Some(answer.body()));
            let answered = row(state_name(end), NO_LEASE, answered);
            check(answered, &RecordState::Retained(answer));
            let blanked = row(state_name(end), NO_LEASE, NO_ANSWER);
            check(blanked, &RecordState::Tombstone);
        }
    }

    #[test]
    fn a_state_of_another_version_is_refused() {
        let unknown = row("paused", NO_LEASE, NO_ANSWER);
        assert!(Found::from_row(unknown).is_err());
    }

    #[test]
    fn who_has_the_lock_shows_in_both_numbers() {
        let numbers = [
            None,
            Some("ff"),
            Some("ft"),
            Some("tf"),
            Some("tt"),
            Some(""),
        ];
        assert_eq!(
            numbers.map(KeyLock::from_text),
            [
                AnotherCalls,
                AnotherCalls,
                AnotherKeys,
                Mine,
                Mine,
                AnotherCalls
            ]
        );
    }

    #[test]
    fn a_time_is_on_its_side_of_the_epoch() {
        let one = Duration::from_micros(1);
        assert_eq!(time(0), SystemTime::UNIX_EPOCH);
        assert_eq!(time(1), SystemTime::UNIX_EPOCH + one);
        assert_eq!(time(-1), SystemTime::UNIX_EPOCH - one);
    }
}

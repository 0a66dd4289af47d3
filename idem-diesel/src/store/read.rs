//! The read: what a key holds, the database's time, and whether the key's lock is ours.

use std::time::{Duration, SystemTime};

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment};
use diesel::sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text};
use idem_core::answer::{End, StoredAnswer};
use idem_core::{Lease, Record, RecordState, RequestDigest, Writer};

use super::{RowKey, static_statement};
use crate::dialect::Dialect;

/// Reads one row, which is there even when the key has none.
///
/// # SQL
///
/// ```sql
/// SELECT mine.lock, now, … FROM (SELECT pg_try_advisory_xact_lock(…) AS lock) AS mine LEFT JOIN api_idempotency ON …
/// ```
#[derive(Debug, Clone)]
pub struct Read {
    /// The row.
    pub key: RowKey,
}

static_statement!(Read);

type Columns = (
    Bool,
    BigInt,
    Nullable<Text>,
    Nullable<Text>,
    Nullable<Integer>,
    Nullable<Text>,
    Nullable<BigInt>,
    Nullable<BigInt>,
    Nullable<Text>,
    Nullable<Binary>,
    Nullable<Bool>,
);

/// The columns as Diesel gives them, in the order of [`Read`].
pub(crate) type Row = (
    bool,
    i64,
    Option<String>,
    Option<String>,
    Option<i32>,
    Option<String>,
    Option<i64>,
    Option<i64>,
    Option<String>,
    Option<Vec<u8>>,
    Option<bool>,
);

impl Query for Read {
    type SqlType = Columns;
}

impl<Conn> diesel::RunQueryDsl<Conn> for Read {}

impl<DB: Dialect> QueryFragment<DB> for Read {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("SELECT mine.taken, ");
        DB::push_micros(&mut out, DB::NOW);
        out.push_sql(", request_hash, state, attempt, owner, ");
        DB::push_micros(&mut out, "lease_expires_at");
        out.push_sql(", ");
        DB::push_micros(&mut out, "expires_at");
        out.push_sql(", codec, response_body, ");
        out.push_sql(DB::IS_OWN_CLAIM);
        out.push_sql(" FROM (SELECT ");
        DB::push_try_lock(&mut out, &self.key.0.lock)?;
        out.push_sql(" AS taken) AS mine LEFT JOIN api_idempotency ON ");
        self.key.push_is_row(&mut out)
    }
}

/// What a key holds.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Whether this transaction holds the key's lock, so that nobody else is changing the row.
    pub is_locked: bool,
    /// The database's time of the read.
    pub now: SystemTime,
    /// The row, if there is one.
    pub record: Option<Record>,
}

/// A row that this version cannot have written.
#[derive(Debug)]
pub(crate) struct Malformed(pub &'static str);

impl Found {
    /// The columns as the types of the protocol. `writer` says whose a pending row is, where the database does not.
    pub(crate) fn from_row(row: Row, writer: Writer) -> Result<Self, Malformed> {
        let (is_locked, now, hash, state, attempt, owner, lease_end, expires, codec, body, is_own) =
            row;
        let writer = match is_own {
            Some(true) => Writer::ThisTransaction,
            Some(false) => Writer::Committed,
            None => writer,
        };
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
                    "pending" => RecordState::Pending { writer, lease },
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
            is_locked,
            now: time(now),
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
    let distance = Duration::from_micros(micros.unsigned_abs());
    let time = if micros < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    };
    // 64 bits of microseconds are within the range of the system's time on every supported platform.
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

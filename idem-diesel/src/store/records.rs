//! The look: rows as an operator reads them, without their answers.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, Integer, Nullable, Text};

use super::RowKey;
use super::read::{Malformed, time};
use crate::admin::{RecordInfo, State};
use crate::dialect::Dialect;

/// Reads what is known of some rows.
///
/// # SQL
///
/// ```sql
/// SELECT tenant_id, operation, idempotency_key, state, … FROM api_idempotency WHERE …
/// ```
#[derive(Debug, Clone)]
pub enum Records {
    /// The row of one key, if there is one.
    Of(RowKey),
    /// The oldest rows that match.
    Matching(Matching),
}

/// What rows must match; what is absent is not looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matching {
    /// The column `tenant_id`.
    pub tenant_id: Option<String>,
    /// The column `operation`.
    pub operation: Option<String>,
    /// The column `state`.
    pub state: Option<State>,
    /// Created at this time or before: so many seconds after now, so a negative number.
    pub seconds_after_now: Option<i64>,
    /// The most rows.
    pub limit: u32,
}

impl QueryId for Records {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Records {
    type SqlType = (
        Text,
        Text,
        Text,
        Text,
        Text,
        Integer,
        Nullable<Text>,
        Nullable<BigInt>,
        BigInt,
        Nullable<BigInt>,
        BigInt,
        BigInt,
        Nullable<Text>,
        Nullable<BigInt>,
    );
}

/// The columns as Diesel gives them, in the order of [`Records`].
pub(crate) type RecordRow = (
    String,
    String,
    String,
    String,
    String,
    i32,
    Option<String>,
    Option<i64>,
    i64,
    Option<i64>,
    i64,
    i64,
    Option<String>,
    Option<i64>,
);

impl<Conn> diesel::RunQueryDsl<Conn> for Records {}

impl<DB: Dialect> QueryFragment<DB> for Records {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(
            "SELECT tenant_id, operation, idempotency_key, request_hash, state, attempt, codec, \
             CAST(length(response_body) AS bigint), ",
        );
        for column in ["created_at", "completed_at", "expires_at", "forget_at"] {
            DB::push_micros(&mut out, column);
            out.push_sql(", ");
        }
        out.push_sql("owner, ");
        DB::push_micros(&mut out, "lease_expires_at");
        out.push_sql(" FROM api_idempotency");
        match self {
            Self::Of(key) => {
                out.push_sql(" WHERE ");
                key.push_is_row(&mut out)
            }
            Self::Matching(matching) => matching.push(&mut out),
        }
    }
}

impl Matching {
    fn push<'b, DB: Dialect>(&'b self, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let mut next = " WHERE ";
        let texts = [
            ("tenant_id = ", self.tenant_id.as_deref()),
            ("operation = ", self.operation.as_deref()),
            ("state = ", self.state.map(State::name)),
        ];
        for (is, text) in texts {
            if let Some(text) = text {
                out.push_sql(std::mem::replace(&mut next, " AND "));
                out.push_sql(is);
                DB::push_text(out, text)?;
            }
        }
        if let Some(seconds) = &self.seconds_after_now {
            out.push_sql(next);
            out.push_sql("created_at <= ");
            DB::push_time_after(out, seconds)?;
        }
        out.push_sql(&format!(
            " ORDER BY created_at, tenant_id, operation, idempotency_key LIMIT {}",
            self.limit
        ));
        Ok(())
    }
}

/// The columns as a person reads them.
pub(crate) fn info(row: RecordRow) -> Result<RecordInfo, Malformed> {
    let (
        tenant_id,
        operation,
        idempotency_key,
        request_hash,
        state,
        attempt,
        codec,
        body_bytes,
        created,
        completed,
        expires,
        forget,
        owner,
        lease_end,
    ) = row;
    Ok(RecordInfo {
        tenant_id,
        operation,
        idempotency_key,
        request_hash,
        state: State::from_name(&state)
            .ok_or(Malformed("api_idempotency.state has an unknown value"))?,
        attempt: u32::try_from(attempt)
            .map_err(|_| Malformed("api_idempotency.attempt is negative"))?,
        codec,
        body_bytes: body_bytes.map(i64::unsigned_abs),
        created_at: time(created),
        completed_at: completed.map(time),
        expires_at: time(expires),
        forget_at: time(forget),
        owner,
        lease_expires_at: lease_end.map(time),
    })
}

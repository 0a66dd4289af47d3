//! The takeover: an ended row becomes the next attempt, if it is still as it was read.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment};

use super::{Horizons, RowKey, static_statement};
use crate::dialect::Dialect;

/// Compares attempt, state, request and expiry, and sets `pending`. No row: somebody else was first, read again.
///
/// # SQL
///
/// ```sql
/// UPDATE api_idempotency SET state = 'pending', attempt = attempt + 1, …
///  WHERE … AND attempt = $n AND state <> 'pending' AND request_hash = $h AND (response_body IS NULL OR expires_at <= now)
/// ```
#[derive(Debug, Clone)]
pub(crate) struct TakeOver {
    /// The row.
    pub key: RowKey,
    /// The attempt that was read.
    pub seen_attempt: i64,
    /// The request hash that was read, in hexadecimal.
    pub seen_request_hash: String,
    /// The request hash of this call, perhaps under a newer scheme.
    pub request_hash: String,
    /// How long the row is kept.
    pub horizons: Horizons,
}

static_statement!(TakeOver);

impl<DB: Dialect> QueryFragment<DB> for TakeOver {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(
            "UPDATE api_idempotency SET state = 'pending', attempt = attempt + 1, status_code = NULL, response_headers = NULL, response_body = NULL, codec = NULL, \
             resource_type = NULL, resource_id = NULL, owner = NULL, lease_expires_at = NULL, completed_at = NULL, \
             request_hash = ",
        );
        DB::push_text(&mut out, &self.request_hash)?;
        out.push_sql(", created_at = ");
        out.push_sql(DB::NOW);
        out.push_sql(", expires_at = ");
        DB::push_time_after(&mut out, &self.horizons.expires)?;
        out.push_sql(", forget_at = ");
        DB::push_time_after(&mut out, &self.horizons.forget)?;
        out.push_sql(" WHERE ");
        self.key.push_is_row(&mut out)?;
        out.push_sql(" AND state <> 'pending' AND attempt = ");
        DB::push_integer(&mut out, &self.seen_attempt)?;
        // Not only the attempt: the row may have been forgotten and made anew since it was read.
        out.push_sql(" AND request_hash = ");
        DB::push_text(&mut out, &self.seen_request_hash)?;
        out.push_sql(" AND (response_body IS NULL OR expires_at <= ");
        out.push_sql(DB::NOW);
        out.push_sql(")");
        Ok(())
    }
}

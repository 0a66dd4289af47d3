//! The end of a call whose key has no row yet: the row is made, with the answer in it.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment};
use idem_core::answer::StoredAnswer;

use super::read::state_name;
use super::{Horizons, RowKey, static_statement};
use crate::dialect::Dialect;

/// Inserts the row with the answer, or fails: because there is one, or because this is not the transaction in which the key was claimed.
///
/// # SQL
///
/// ```sql
/// INSERT INTO api_idempotency (…, state, …)
/// VALUES (…, CASE WHEN transaction_timestamp() = $claimed THEN 'completed' ELSE 'lost' END, …)
/// ```
///
/// The state `lost` violates the constraint `api_idempotency_state`.
#[derive(Debug, Clone)]
pub(crate) struct Insert {
    /// The row.
    pub key: RowKey,
    /// The request hash in hexadecimal.
    pub request_hash: String,
    /// When the transaction began in which the key was claimed, as it was read then.
    pub began_at: i64,
    /// What is stored.
    pub answer: StoredAnswer,
    /// How long the answer is kept, counted from now.
    pub horizons: Horizons,
}

static_statement!(Insert);

impl<DB: Dialect> QueryFragment<DB> for Insert {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(
            "INSERT INTO api_idempotency (tenant_id, operation, idempotency_key, request_hash, state, codec, response_body, \
             created_at, completed_at, expires_at, forget_at) VALUES (",
        );
        self.key.push_values(&mut out)?;
        out.push_sql(", ");
        DB::push_text(&mut out, &self.request_hash)?;
        out.push_sql(", CASE WHEN ");
        DB::push_micros(&mut out, DB::BEGAN_AT);
        out.push_sql(" = ");
        DB::push_integer(&mut out, &self.began_at)?;
        out.push_sql(" THEN ");
        DB::push_text(&mut out, state_name(self.answer.end()))?;
        out.push_sql(" ELSE 'lost' END, ");
        DB::push_text(&mut out, self.answer.codec())?;
        out.push_sql(", ");
        DB::push_bytes(&mut out, self.answer.body())?;
        out.push_sql(", ");
        out.push_sql(DB::BEGAN_AT);
        out.push_sql(", ");
        out.push_sql(DB::NOW);
        out.push_sql(", ");
        DB::push_time_after(&mut out, &self.horizons.expires)?;
        out.push_sql(", ");
        DB::push_time_after(&mut out, &self.horizons.forget)?;
        out.push_sql(")");
        Ok(())
    }
}

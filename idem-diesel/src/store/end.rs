//! The end: the answer goes into the claimed row.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment};
use idem_core::answer::StoredAnswer;

use super::read::state_name;
use super::{Horizons, RowKey, static_statement};
use crate::dialect::Dialect;

/// Stores the answer in the row that this attempt claimed, or fails: one row, or an error.
///
/// # SQL
///
/// ```sql
/// UPDATE api_idempotency SET state = 'completed', response_body = …, expires_at = …
///  WHERE … AND state = 'pending' AND attempt = $n AND xmin = pg_current_xact_id()
/// ```
///
/// On PostgreSQL the update stands in a `WITH`, and the statement violates the constraint `api_idempotency_state` when the
/// update changed nothing.
#[derive(Debug, Clone)]
pub(crate) struct End {
    /// The row.
    pub key: RowKey,
    /// The attempt that claimed it.
    pub attempt: i64,
    /// What is stored.
    pub answer: StoredAnswer,
    /// How long the answer is kept, counted from now.
    pub horizons: Horizons,
    /// 1 when the claim was written under a savepoint, whose transaction id is not the transaction's; otherwise 0.
    pub is_joined: i64,
}

static_statement!(End);

impl<DB: Dialect> QueryFragment<DB> for End {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        DB::push_exactly_one(&mut out, |out| {
            out.push_sql("UPDATE api_idempotency SET state = ");
            DB::push_text(out, state_name(self.answer.end()))?;
            out.push_sql(", codec = ");
            DB::push_text(out, self.answer.codec())?;
            out.push_sql(", response_body = ");
            DB::push_bytes(out, self.answer.body())?;
            out.push_sql(", completed_at = ");
            out.push_sql(DB::NOW);
            out.push_sql(", expires_at = ");
            DB::push_time_after(out, &self.horizons.expires)?;
            out.push_sql(", forget_at = ");
            DB::push_time_after(out, &self.horizons.forget)?;
            out.push_sql(" WHERE ");
            self.key.push_is_row(out)?;
            out.push_sql(" AND state = 'pending' AND attempt = ");
            DB::push_integer(out, &self.attempt)?;
            out.push_sql(" AND (");
            DB::push_integer(out, &self.is_joined)?;
            out.push_sql(" = 1 OR ");
            DB::push_is_own_row(out);
            out.push_sql(")");
            Ok(())
        })
    }
}

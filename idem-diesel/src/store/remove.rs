//! The removal: one row goes, whatever its state, because an operator says so.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};

use super::RowKey;
use crate::dialect::Dialect;

/// Deletes one row if its key's lock is free, so that nothing is removed from under a call that is running.
///
/// # SQL
///
/// ```sql
/// DELETE FROM api_idempotency WHERE … AND pg_try_advisory_xact_lock(…)
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Remove {
    /// The row.
    pub key: RowKey,
}

impl QueryId for Remove {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<DB: Dialect> QueryFragment<DB> for Remove {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("DELETE FROM api_idempotency WHERE ");
        self.key.push_is_row(&mut out)?;
        out.push_sql(" AND ");
        // The locks are numbers in its text.
        out.unsafe_to_cache_prepared();
        DB::push_try_lock(&mut out, self.key.locks());
        Ok(())
    }
}

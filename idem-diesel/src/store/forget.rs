//! The forgetting: rows that may go are deleted.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};

use super::batch::{push_batch, push_is_in_batch};
use crate::dialect::Dialect;

/// Deletes one batch of ended rows at or after `forget_at`.
///
/// # SQL
///
/// ```sql
/// WITH batch AS (SELECT … WHERE forget_at <= now AND state IN ('completed', 'failed') … FOR UPDATE SKIP LOCKED)
/// DELETE FROM api_idempotency WHERE … IN (SELECT … FROM batch)
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forget {
    /// The most rows.
    pub at_most: u32,
}

impl QueryId for Forget {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<DB: Dialect> QueryFragment<DB> for Forget {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        push_batch(&mut out, "forget_at", "", self.at_most);
        out.push_sql("DELETE FROM api_idempotency");
        push_is_in_batch(&mut out);
        Ok(())
    }
}

//! The forgetting: rows that may go are deleted.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};

use super::Batch;
use crate::dialect::Dialect;

/// Deletes ended rows at or after `forget_at`, as many as the batch may have.
///
/// # SQL
///
/// ```sql
/// DELETE FROM api_idempotency WHERE ctid = ANY (ARRAY(SELECT ctid FROM api_idempotency
///     WHERE ctid >= '(0,0)' AND ctid < '(512,0)' AND forget_at <= now AND … LIMIT 1000 FOR UPDATE SKIP LOCKED)) AND …
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Forget(pub Batch);

/// One text for each table.
impl QueryId for Forget {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<DB: Dialect> QueryFragment<DB> for Forget {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let Self(batch) = self;
        let table = batch.aged.table.name;
        out.push_sql(&format!("DELETE FROM {table} WHERE "));
        batch.push_is_row(&mut out, &batch.aged.may_go::<DB>())
    }
}

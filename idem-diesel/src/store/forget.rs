//! The forgetting: rows that may go are deleted.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment};

use super::batch::{Batch, may_go};
use super::static_statement;
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

static_statement!(Forget);

impl<DB: Dialect> QueryFragment<DB> for Forget {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("DELETE FROM api_idempotency WHERE ");
        self.0.push_is_row(&mut out, &may_go::<DB>())
    }
}

//! The blanking: answers that have expired go, and their rows stay as tombstones.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};

use super::Batch;
use crate::dialect::Dialect;

/// Blanks the answers of ended rows at or after `expires_at`, as many as the batch may have. State, request hash and times stay.
///
/// # SQL
///
/// ```sql
/// UPDATE api_idempotency SET response_body = NULL, … WHERE ctid = ANY (ARRAY(SELECT ctid FROM api_idempotency
///     WHERE ctid >= '(0,0)' AND ctid < '(512,0)' AND expires_at <= now AND … AND codec IS NOT NULL LIMIT 1000 FOR UPDATE SKIP LOCKED)) AND …
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Blank(pub Batch);

/// One text for each table.
impl QueryId for Blank {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<DB: Dialect> QueryFragment<DB> for Blank {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let Self(batch) = self;
        let columns = batch.aged.answer.join(" = NULL, ");
        let table = batch.aged.table.name;
        out.push_sql(&format!("UPDATE {table} SET {columns} = NULL WHERE "));
        batch.push_is_row(&mut out, &batch.aged.has_expired::<DB>())
    }
}

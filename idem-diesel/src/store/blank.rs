//! The blanking: answers that have expired go, and their rows stay as tombstones.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment};

use super::batch::{Batch, has_expired};
use super::static_statement;
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

static_statement!(Blank);

impl<DB: Dialect> QueryFragment<DB> for Blank {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(
            "UPDATE api_idempotency SET status_code = NULL, response_headers = NULL, response_body = NULL, codec = NULL WHERE ",
        );
        self.0.push_is_row(&mut out, &has_expired::<DB>())
    }
}

//! The blanking: answers that have expired go, and their rows stay as tombstones.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};

use super::batch::{push_batch, push_is_in_batch};
use crate::dialect::Dialect;

/// Blanks the answers of one batch of ended rows at or after `expires_at`. State, request hash and times stay.
///
/// # SQL
///
/// ```sql
/// WITH batch AS (SELECT … WHERE expires_at <= now AND state IN ('completed', 'failed') AND codec IS NOT NULL … FOR UPDATE SKIP LOCKED)
/// UPDATE api_idempotency SET response_body = NULL, … WHERE … IN (SELECT … FROM batch)
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blank {
    /// The most rows.
    pub at_most: u32,
}

impl QueryId for Blank {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<DB: Dialect> QueryFragment<DB> for Blank {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        // Every stored answer has a codec.
        push_batch(
            &mut out,
            "expires_at",
            " AND codec IS NOT NULL",
            self.at_most,
        );
        out.push_sql(
            "UPDATE api_idempotency SET status_code = NULL, response_headers = NULL, response_body = NULL, codec = NULL",
        );
        push_is_in_batch(&mut out);
        Ok(())
    }
}

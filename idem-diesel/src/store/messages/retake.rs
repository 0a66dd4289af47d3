//! The retake: a message that failed before is processed after all.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment};
use diesel::sql_types::{Nullable, Text};

use super::MessageKey;
use crate::dialect::Dialect;
use crate::store::static_statement;

/// Changes the row of a message from failed to processed, and then gives when its transaction began, like the mark.
///
/// # SQL
///
/// ```sql
/// UPDATE processed_messages SET state = 'processed', … WHERE … AND state = 'failed' RETURNING …
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Retake {
    /// The row.
    pub key: MessageKey,
    /// The hash of the message, in hexadecimal.
    pub request_hash: String,
    /// How long the message is remembered, in seconds.
    pub keep: i64,
}

static_statement!(Retake);

impl Query for Retake {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for Retake {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("UPDATE processed_messages SET state = 'processed', request_hash = ");
        DB::push_text(&mut out, &self.request_hash)?;
        // Whatever it was kept for is done.
        out.push_sql(", payload = NULL, processed_at = ");
        out.push_sql(DB::NOW);
        out.push_sql(", forget_at = ");
        DB::push_time_after(&mut out, &self.keep)?;
        out.push_sql(" WHERE ");
        self.key.push_is_row(&mut out)?;
        out.push_sql(" AND state = 'failed' RETURNING ");
        out.push_sql(DB::CLAIMED_AT);
        Ok(())
    }
}

//! The mark: a message becomes processed by the transaction that is about to process it.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment};
use diesel::sql_types::{Nullable, Text};

use super::MessageKey;
use crate::dialect::Dialect;
use crate::store::static_statement;

/// Inserts the row of a message that has none, and then gives when its transaction began. It waits for a transaction that is inserting the same row; the session's own
/// bound of statements is back behind it.
///
/// # SQL
///
/// ```sql
/// INSERT INTO processed_messages (subscriber_id, message_id, request_hash, forget_at) VALUES (…) ON CONFLICT DO NOTHING RETURNING …
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    /// The row.
    pub key: MessageKey,
    /// The hash of the message, in hexadecimal.
    pub request_hash: String,
    /// How long the message is remembered, in seconds.
    pub keep: i64,
}

static_statement!(Mark);

impl Query for Mark {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for Mark {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(
            "INSERT INTO processed_messages (subscriber_id, message_id, request_hash, forget_at) VALUES (",
        );
        self.key.push_values(&mut out)?;
        out.push_sql(", ");
        DB::push_text(&mut out, &self.request_hash)?;
        out.push_sql(", ");
        DB::push_time_after(&mut out, &self.keep)?;
        out.push_sql(") ON CONFLICT DO NOTHING RETURNING ");
        out.push_sql(DB::CLAIMED_AT);
        Ok(())
    }
}

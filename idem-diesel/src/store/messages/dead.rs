//! The messages that were given up, for an operator.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Nullable, Text};

use super::MessageKey;
use crate::dialect::Dialect;

/// `json_array(message_id, attempts, last_error, payload in hexadecimal)`
fn push_json<DB: Dialect>(out: &mut AstPass<'_, '_, DB>) {
    out.push_sql(DB::JSON_ARRAY);
    out.push_sql("(message_id, attempts, last_error, ");
    out.push_sql(&DB::hex("payload"));
    out.push_sql(")");
}

/// Reads dead messages, the oldest id first.
///
/// # SQL
///
/// ```sql
/// SELECT json_build_array(…) FROM processed_messages WHERE subscriber_id = … AND state = 'dead' ORDER BY message_id LIMIT …
/// ```
pub(crate) struct Dead {
    /// Whose they are.
    pub subscriber: String,
    /// The most rows.
    pub at_most: i64,
}

impl QueryId for Dead {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Dead {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for Dead {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("SELECT CAST(");
        push_json(&mut out);
        out.push_sql(" AS text) FROM processed_messages WHERE subscriber_id = ");
        DB::push_text(&mut out, &self.subscriber)?;
        out.push_sql(" AND state = 'dead' ORDER BY message_id LIMIT ");
        DB::push_integer(&mut out, &self.at_most)
    }
}

/// Makes a dead message one that failed, never tried, and gives it.
///
/// # SQL
///
/// ```sql
/// UPDATE processed_messages SET state = 'failed', attempts = 0 WHERE … AND state = 'dead' RETURNING json_build_array(…)
/// ```
pub(crate) struct Revive {
    /// The row.
    pub key: MessageKey,
}

impl QueryId for Revive {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Revive {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for Revive {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("UPDATE processed_messages SET state = 'failed', attempts = 0 WHERE ");
        self.key.push_is_row(&mut out)?;
        out.push_sql(" AND state = 'dead' RETURNING CAST(");
        push_json(&mut out);
        out.push_sql(" AS text)");
        Ok(())
    }
}

/// Removes a dead message.
///
/// # SQL
///
/// ```sql
/// DELETE FROM processed_messages WHERE … AND state = 'dead' RETURNING message_id
/// ```
pub(crate) struct ForgetDead {
    /// The row.
    pub key: MessageKey,
}

impl QueryId for ForgetDead {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for ForgetDead {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for ForgetDead {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("DELETE FROM processed_messages WHERE ");
        self.key.push_is_row(&mut out)?;
        out.push_sql(" AND state = 'dead' RETURNING message_id");
        Ok(())
    }
}

//! The marks of a batch of messages.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment};
use diesel::sql_types::{Nullable, Text};

use crate::dialect::Dialect;
use crate::store::static_statement;

/// Inserts the rows of those messages that have none, and gives for each of these when the transaction began, a space, and its id.
///
/// They are inserted in the order of their ids, so that two batches never wait for each other in a circle.
///
/// # SQL
///
/// ```sql
/// INSERT INTO processed_messages (…) SELECT … FROM jsonb_array_elements(…) ORDER BY 2 ON CONFLICT DO NOTHING RETURNING …
/// ```
#[derive(Debug, Clone)]
pub(crate) struct MarkAll {
    /// Whose messages they are.
    pub subscriber: &'static str,
    /// `[[id, hash], …]`
    pub messages: String,
    /// How long the messages are remembered, in seconds.
    pub keep: i64,
}

static_statement!(MarkAll);

impl Query for MarkAll {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for MarkAll {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(
            "INSERT INTO processed_messages (subscriber_id, message_id, request_hash, forget_at) SELECT ",
        );
        DB::push_text(&mut out, self.subscriber)?;
        out.push_sql(", each.value ->> 0, each.value ->> 1, ");
        DB::push_time_after(&mut out, &self.keep)?;
        out.push_sql(" FROM ");
        DB::push_each(&mut out, &self.messages)?;
        // Without a condition SQLite takes ON for that of a join.
        out.push_sql(" WHERE true ORDER BY ");
        out.push_sql(DB::FIRST_OF_EACH);
        out.push_sql(" ON CONFLICT DO NOTHING RETURNING ");
        out.push_sql(DB::CLAIMED_AT);
        out.push_sql(" || ' ' || message_id");
        Ok(())
    }
}

/// What a batch says in which nothing is marked: when the transaction began. Like a mark, it puts the session's own bound of statements back.
///
/// # SQL
///
/// ```sql
/// SELECT …
/// ```
#[derive(Debug, Clone)]
pub(crate) struct NoMark;

static_statement!(NoMark);

impl Query for NoMark {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for NoMark {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("SELECT ");
        out.push_sql(DB::CLAIMED_AT);
        Ok(())
    }
}

/// Reads what the rows of messages say: state, hash and id of each.
///
/// # SQL
///
/// ```sql
/// SELECT state || ' ' || coalesce(request_hash, '') || ' ' || message_id FROM processed_messages WHERE … IN (…)
/// ```
#[derive(Debug, Clone)]
pub(crate) struct SeenAll {
    /// Whose messages they are.
    pub subscriber: &'static str,
    /// `[[id, hash], …]`
    pub messages: String,
}

static_statement!(SeenAll);

impl Query for SeenAll {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for SeenAll {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(
            "SELECT state || ' ' || coalesce(request_hash, '') || ' ' || message_id FROM processed_messages WHERE subscriber_id = ",
        );
        DB::push_text(&mut out, self.subscriber)?;
        out.push_sql(" AND message_id IN (SELECT each.value ->> 0 FROM ");
        DB::push_each(&mut out, &self.messages)?;
        out.push_sql(")");
        Ok(())
    }
}

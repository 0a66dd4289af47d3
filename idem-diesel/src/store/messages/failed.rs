//! A message that failed: counted, or given up. Outside of its transaction, which is rolled back.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment};
use diesel::sql_types::{Nullable, Text};

use super::MessageKey;
use crate::dialect::Dialect;
use crate::store::static_statement;

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedState {
    /// It may come again.
    Failed,
    /// It is given up.
    Dead,
}

impl FailedState {
    fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Dead => "dead",
        }
    }
}

/// Notes a failed attempt, and gives how many there were. Nothing is noted, and nothing given, of a message that is processed or dead.
///
/// # SQL
///
/// ```sql
/// INSERT INTO processed_messages (…) VALUES (…) ON CONFLICT (subscriber_id, message_id) DO UPDATE SET attempts = … WHERE state = 'failed' RETURNING attempts
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Failed {
    /// The row.
    pub key: MessageKey,
    /// What becomes of it.
    pub state: FailedState,
    /// How many attempts there were at least, as the broker counts them.
    pub attempts: i64,
    /// How many attempts this adds to those that were noted: 1, or 0 if the attempt was noted before it began.
    pub added: i64,
    /// Why; absent when nobody could say.
    pub error: Option<String>,
    /// What it was, if it is given up.
    pub payload: Option<Vec<u8>>,
    /// The shortest time for which the row stays, in seconds.
    pub keep: i64,
}

static_statement!(Failed);

impl Query for Failed {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for Failed {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(
            "INSERT INTO processed_messages (subscriber_id, message_id, state, attempts, last_error, payload, forget_at) VALUES (",
        );
        self.key.push_values(&mut out)?;
        out.push_sql(", ");
        DB::push_text(&mut out, self.state.name())?;
        out.push_sql(", ");
        DB::push_integer(&mut out, &self.attempts)?;
        out.push_sql(", nullif(");
        DB::push_text(&mut out, self.error.as_deref().unwrap_or_default())?;
        out.push_sql(", ''), ");
        DB::push_optional_bytes(&mut out, self.payload.as_deref())?;
        out.push_sql(", ");
        DB::push_time_after(&mut out, &self.keep)?;
        out.push_sql(
            ") ON CONFLICT (subscriber_id, message_id) DO UPDATE SET state = excluded.state, attempts = ",
        );
        out.push_sql(DB::GREATEST);
        out.push_sql("(excluded.attempts, processed_messages.attempts + ");
        DB::push_integer(&mut out, &self.added)?;
        out.push_sql(
            "), last_error = coalesce(excluded.last_error, processed_messages.last_error), payload = excluded.payload \
             WHERE processed_messages.state = 'failed' RETURNING CAST(attempts AS text)",
        );
        Ok(())
    }
}

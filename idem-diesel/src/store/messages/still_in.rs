//! The last statement of a message's transaction: is it still the one that marked it?

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment};

use crate::dialect::Dialect;
use crate::store::static_statement;

/// Fails if the transaction is not the one that began then, because the body has ended that by itself; and, like every statement, if one before it failed.
///
/// # SQL
///
/// ```sql
/// INSERT INTO processed_messages (…, state) SELECT …, 'lost' WHERE transaction_timestamp() <> …
/// ```
///
/// The state `lost` violates the constraint `processed_messages_state`.
#[derive(Debug, Clone)]
pub(crate) struct StillIn {
    /// When the transaction of the mark began, as it was read then.
    pub began_at: i64,
}

static_statement!(StillIn);

impl<DB: Dialect> QueryFragment<DB> for StillIn {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(
            "INSERT INTO processed_messages (subscriber_id, message_id, state, forget_at) SELECT '', '', 'lost', ",
        );
        out.push_sql(DB::NOW);
        out.push_sql(" WHERE ");
        DB::push_micros(&mut out, DB::BEGAN_AT);
        out.push_sql(" <> ");
        DB::push_integer(&mut out, &self.began_at)
    }
}

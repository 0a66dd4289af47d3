//! The events that were given up, for an operator.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Nullable, Text};

use super::{EventKey, push_delivery};
use crate::dialect::Dialect;

/// Reads dead events in the order of their positions.
///
/// # SQL
///
/// ```sql
/// SELECT … FROM outbox_deliveries WHERE state = 'dead' ORDER BY position LIMIT …
/// ```
pub(crate) struct DeadEvents {
    /// The most rows.
    pub at_most: i64,
}

impl QueryId for DeadEvents {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for DeadEvents {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for DeadEvents {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("SELECT ");
        push_delivery(&mut out);
        out.push_sql(
            " FROM outbox_deliveries WHERE state = 'dead' AND state <> 'delivered' ORDER BY position LIMIT ",
        );
        DB::push_integer(&mut out, &self.at_most)
    }
}

/// Makes a dead event one that waits, never tried.
///
/// # SQL
///
/// ```sql
/// UPDATE outbox_deliveries SET state = 'pending', attempts = 0, due_at = now, settled_at = NULL WHERE … AND state = 'dead' RETURNING event_id
/// ```
pub(crate) struct Redrive {
    /// The row.
    pub key: EventKey,
}

impl QueryId for Redrive {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Redrive {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for Redrive {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("UPDATE outbox_deliveries SET state = 'pending', attempts = 0, due_at = ");
        out.push_sql(DB::NOW);
        out.push_sql(", settled_at = NULL WHERE ");
        self.key.push_is_row("event_id", &mut out)?;
        out.push_sql(" AND state = 'dead' RETURNING CAST(event_id AS text)");
        Ok(())
    }
}

/// Removes the delivery of a dead event.
///
/// # SQL
///
/// ```sql
/// DELETE FROM outbox_deliveries WHERE … AND state = 'dead'
/// ```
pub(crate) struct DropDead {
    /// The row.
    pub key: EventKey,
}

impl QueryId for DropDead {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<DB: Dialect> QueryFragment<DB> for DropDead {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("DELETE FROM outbox_deliveries WHERE ");
        self.key.push_is_row("event_id", &mut out)?;
        out.push_sql(" AND state = 'dead'");
        Ok(())
    }
}

//! The look ahead: how far the next batch of a walk goes.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Nullable, Text};

use super::Aged;
use crate::dialect::Dialect;

/// Finds where the next stretch of the table ends, and whether a row on it is due: one text, `due ` if so and then the place, or none behind the end.
///
/// # SQL
///
/// ```sql
/// SELECT CASE WHEN EXISTS (SELECT 1 FROM api_idempotency WHERE ctid >= '(0,0)' AND ctid < '(512,0)' AND …) THEN 'due ' ELSE '' END || 512
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Look {
    /// The table.
    pub aged: &'static Aged,
    /// The place behind which it begins.
    pub after: String,
    /// The place behind which nothing is looked at.
    pub until: String,
}

/// One text for each table.
impl QueryId for Look {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Look {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for Look {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let is_due = self.aged.is_due::<DB>();
        DB::push_look(
            &mut out,
            &self.aged.table,
            &self.after,
            &self.until,
            &is_due,
        )
    }
}

//! The extent: where a table ends when a walk through it begins.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Nullable, Text};

use super::Table;
use crate::dialect::Dialect;

/// Finds where the table ends, in the order in which it lies on disk. The text may be absent when the table is empty.
///
/// # SQL
///
/// ```sql
/// SELECT pg_relation_size('api_idempotency') / 8192
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Extent(pub &'static Table);

/// One text for each table.
impl QueryId for Extent {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Extent {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for Extent {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let Self(table) = self;
        out.push_sql(&DB::table_end(table));
        Ok(())
    }
}

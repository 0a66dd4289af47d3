//! The lock of a purge: one works on a table at a time.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Nullable, Text};

use super::Table;
use crate::dialect::Dialect;

/// Takes the table's lock until the transaction ends, and gives one text if it did: nothing if another purge has it.
///
/// # SQL
///
/// ```sql
/// SELECT 'taken' WHERE pg_try_advisory_xact_lock(…, …)
/// ```
#[derive(Debug, Clone)]
pub(crate) struct PurgeLock(pub &'static Table);

/// One text for each table.
impl QueryId for PurgeLock {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for PurgeLock {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for PurgeLock {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let Self(table) = self;
        out.push_sql(&DB::take_purge_lock(table));
        Ok(())
    }
}

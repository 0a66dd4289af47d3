//! How much there is to publish.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment};
use diesel::sql_types::{Nullable, Text};

use crate::dialect::Dialect;
use crate::store::static_statement;

/// Counts undelivered events.
///
/// # SQL
///
/// ```sql
/// SELECT json_build_array(how many wait, how many are dead, since when the oldest waits, now)
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Backlog;

static_statement!(Backlog);

impl Query for Backlog {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for Backlog {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("SELECT CAST(");
        out.push_sql(DB::JSON_ARRAY);
        out.push_sql(
            "(count(*), (SELECT count(*) FROM outbox_deliveries WHERE state = 'dead' AND state <> 'delivered'), ",
        );
        DB::push_micros(&mut out, "min(created_at)");
        out.push_sql(", ");
        DB::push_micros(&mut out, DB::NOW);
        out.push_sql(") AS text) FROM outbox_deliveries WHERE state = 'pending'");
        Ok(())
    }
}

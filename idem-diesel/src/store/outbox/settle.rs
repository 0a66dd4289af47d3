//! The settlement: what became of events that were leased.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment};
use diesel::sql_types::{Nullable, Text};

use crate::dialect::Dialect;
use crate::store::static_statement;

/// Settles events whose lease is still the one they were published under, and gives the id of each that was settled.
///
/// # SQL
///
/// ```sql
/// UPDATE outbox_deliveries SET state = …, owner = NULL, … FROM (SELECT … FROM jsonb_array_elements(…)) AS s
///  WHERE … AND fence = s.fence AND state = 'pending' AND owner IS NOT NULL RETURNING event_id
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Settle {
    /// `[[tenant, id, fence, state, pause in milliseconds, attempts to take back, error], …]`
    pub settlements: String,
}

static_statement!(Settle);

impl Query for Settle {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for Settle {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let (now, uuid, [before, after]) = (DB::NOW, DB::UUID, DB::AFTER_MILLIS);
        out.push_sql(&format!(
            "UPDATE outbox_deliveries SET state = s.state, owner = NULL, attempts = attempts - s.untried, unsettled = unsettled * s.untried, due_at = {before}s.pause{after}, \
             last_error = coalesce(s.error, last_error), settled_at = CASE WHEN s.state = 'pending' THEN NULL ELSE {now} END \
             FROM (SELECT each.value ->> 0 AS tenant_id, CAST(each.value ->> 1 AS {uuid}) AS event_id, CAST(each.value ->> 2 AS bigint) AS fence, \
             each.value ->> 3 AS state, CAST(each.value ->> 4 AS bigint) AS pause, CAST(each.value ->> 5 AS integer) AS untried, \
             each.value ->> 6 AS error FROM "
        ));
        DB::push_each(&mut out, &self.settlements)?;
        out.push_sql(
            ") AS s WHERE outbox_deliveries.tenant_id = s.tenant_id AND outbox_deliveries.event_id = s.event_id \
             AND outbox_deliveries.fence = s.fence AND outbox_deliveries.state = 'pending' AND outbox_deliveries.owner IS NOT NULL \
             RETURNING CAST(outbox_deliveries.event_id AS text)",
        );
        Ok(())
    }
}

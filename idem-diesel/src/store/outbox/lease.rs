//! The lease: events that are this relay's to publish, for a while.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment};
use diesel::sql_types::{Nullable, Text};

use super::push_delivery;
use crate::dialect::Dialect;
use crate::store::static_statement;

/// `e` is an earlier event of the aggregate of `of`.
fn is_earlier(of: &str) -> String {
    format!(
        "e.tenant_id = {of}.tenant_id AND e.aggregatetype = {of}.aggregatetype AND e.aggregateid = {of}.aggregateid \
         AND e.position < {of}.position AND e.state <> 'delivered'"
    )
}

/// Leases at most so many events that are due, and gives each with its event.
///
/// An event is left alone while an earlier one of its aggregate is leased, pauses, or (if dead events block) is dead; and while another relay is leasing an earlier one
/// at this moment, which shows in that it is locked and so not among those that are due. Several events of one aggregate may be leased together, by one relay.
///
/// # SQL
///
/// ```sql
/// WITH due AS (SELECT … FROM outbox_deliveries WHERE state = 'pending' AND due_at <= now AND NOT EXISTS (…) ORDER BY position LIMIT … FOR UPDATE SKIP LOCKED),
///      mine AS (SELECT … FROM due WHERE NOT EXISTS (…))
/// UPDATE outbox_deliveries SET owner = …, fence = fence + 1, attempts = attempts + 1, due_at = now + lease FROM mine WHERE … RETURNING …
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    /// The relay.
    pub owner: String,
    /// For how long, in milliseconds.
    pub millis: i64,
    /// The most events.
    pub at_most: i64,
    /// 1 if a dead event holds up those behind it, 0 if not.
    pub dead_blocks: i64,
}

static_statement!(Lease);

impl Query for Lease {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for Lease {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let (now, [before, after]) = (DB::NOW, DB::AFTER_MILLIS);
        // OFFSET keeps PostgreSQL from making a join of all undelivered rows out of it: each event has few earlier ones.
        let none = "LIMIT 1 OFFSET 0)";
        out.push_sql(&format!(
            "WITH due AS MATERIALIZED (SELECT d.tenant_id, d.event_id, d.aggregatetype, d.aggregateid, d.position \
             FROM outbox_deliveries AS d WHERE d.state = 'pending' AND d.due_at <= (SELECT {now}) \
             AND NOT EXISTS (SELECT 1 FROM outbox_deliveries AS e WHERE {} AND (e.state = 'pending' AND e.due_at > (SELECT {now}) OR e.state = 'dead' AND ",
            is_earlier("d")
        ));
        DB::push_integer(&mut out, &self.dead_blocks)?;
        out.push_sql(&format!(" = 1) {none} ORDER BY d.position LIMIT "));
        DB::push_integer(&mut out, &self.at_most)?;
        out.push_sql(DB::SKIP_LOCKED);
        out.push_sql(&format!(
            "), mine AS MATERIALIZED (SELECT due.tenant_id, due.event_id FROM due WHERE NOT EXISTS \
             (SELECT 1 FROM outbox_deliveries AS e WHERE {} AND e.state = 'pending' AND NOT EXISTS \
             (SELECT 1 FROM due AS other WHERE other.tenant_id = e.tenant_id AND other.event_id = e.event_id) {none}) \
             UPDATE outbox_deliveries SET owner = ",
            is_earlier("due")
        ));
        DB::push_text(&mut out, &self.owner)?;
        out.push_sql(", fence = fence + 1, attempts = attempts + 1, unsettled = unsettled + CASE WHEN owner IS NULL THEN 0 ELSE 1 END, due_at = ");
        out.push_sql(before);
        DB::push_integer(&mut out, &self.millis)?;
        out.push_sql(after);
        out.push_sql(
            " FROM mine WHERE outbox_deliveries.tenant_id = mine.tenant_id AND outbox_deliveries.event_id = mine.event_id RETURNING ",
        );
        push_delivery(&mut out);
        Ok(())
    }
}

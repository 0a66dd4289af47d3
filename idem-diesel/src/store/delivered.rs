//! The clearing of the outbox: events that were delivered go, with their deliveries.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment};
use diesel::sql_types::{Nullable, Text};

use super::{DELIVERIES, static_statement};
use crate::dialect::Dialect;

/// Writes the condition that a delivery was settled so long ago. The time is read once for all rows.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "what is bound is borrowed from its statement"
)]
fn push_is_due<'b, DB: Dialect>(
    out: &mut AstPass<'_, 'b, DB>,
    seconds_after_now: &'b i64,
) -> QueryResult<()> {
    out.push_sql("state = 'delivered' AND settled_at <= (SELECT ");
    DB::push_time_after(out, seconds_after_now)?;
    out.push_sql(")");
    Ok(())
}

/// Finds out whether a delivery is due: one text if so.
///
/// # SQL
///
/// ```sql
/// SELECT 'due' WHERE EXISTS (SELECT 1 FROM outbox_deliveries WHERE state = 'delivered' AND settled_at <= …)
/// ```
#[derive(Debug, Clone)]
pub(crate) struct LookForDelivered {
    /// Settled at this time or before: so many seconds after now, so a negative number.
    pub seconds_after_now: i64,
}

static_statement!(LookForDelivered);

impl Query for LookForDelivered {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for LookForDelivered {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let table = DELIVERIES.name;
        out.push_sql(&format!(
            "SELECT 'due' WHERE EXISTS (SELECT 1 FROM {table} WHERE "
        ));
        push_is_due(&mut out, &self.seconds_after_now)?;
        out.push_sql(")");
        Ok(())
    }
}

/// Deletes deliveries, those first that were settled first, and gives tenant and id of each event as a JSON array.
///
/// On PostgreSQL rows that somebody else holds are left out, as in a walk.
///
/// # SQL
///
/// ```sql
/// DELETE FROM outbox_deliveries WHERE ctid = ANY (ARRAY(SELECT ctid FROM outbox_deliveries WHERE state = 'delivered' AND settled_at <= …
///     ORDER BY settled_at LIMIT 1000 FOR UPDATE SKIP LOCKED)) AND … RETURNING …
/// ```
#[derive(Debug, Clone)]
pub(crate) struct ForgetDelivered {
    /// Settled at this time or before: so many seconds after now, so a negative number.
    pub seconds_after_now: i64,
    /// The most rows.
    pub at_most: i64,
}

static_statement!(ForgetDelivered);

impl Query for ForgetDelivered {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for ForgetDelivered {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let table = DELIVERIES.name;
        out.push_sql(&format!("DELETE FROM {table} WHERE "));
        DB::push_is_one_of(&mut out, DELIVERIES, |out| {
            push_is_due(out, &self.seconds_after_now)?;
            out.push_sql(" ORDER BY settled_at LIMIT ");
            DB::push_integer(out, &self.at_most)
        })?;
        // Asked again as in a walk, and so that no index answers it: the rows are at hand.
        out.push_sql(" AND (");
        push_is_due(&mut out, &self.seconds_after_now)?;
        out.push_sql(") IS TRUE");
        let (array, key) = (DB::JSON_ARRAY, DELIVERIES.key.join(", "));
        out.push_sql(&format!(" RETURNING CAST({array}({key}) AS text)"));
        Ok(())
    }
}

/// Deletes the events of deliveries that are gone.
///
/// # SQL
///
/// ```sql
/// DELETE FROM outbox_events WHERE (tenant_id, id) IN (SELECT … FROM jsonb_array_elements(…))
/// ```
#[derive(Debug, Clone)]
pub(crate) struct ForgetEvents {
    /// `[[tenant, id], …]`
    pub keys: String,
}

static_statement!(ForgetEvents);

impl<DB: Dialect> QueryFragment<DB> for ForgetEvents {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let uuid = DB::UUID;
        out.push_sql(&format!(
            "DELETE FROM outbox_events WHERE (tenant_id, id) IN (SELECT each.value ->> 0, CAST(each.value ->> 1 AS {uuid}) FROM "
        ));
        DB::push_each(&mut out, &self.keys)?;
        out.push_sql(")");
        Ok(())
    }
}

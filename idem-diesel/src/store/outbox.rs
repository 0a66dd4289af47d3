//! The statements on `outbox_events` and `outbox_deliveries`.

mod backlog;
mod dead;
mod enqueue;
mod insert_event;
mod lease;
mod settle;

pub(crate) use backlog::Backlog;
pub(crate) use dead::{DeadEvents, DropDead, Redrive};
pub(crate) use enqueue::{Enqueue, Enqueued};
pub(crate) use insert_event::{InsertEvent, RemoveEvent};
pub(crate) use lease::Lease;
pub(crate) use settle::Settle;

use diesel::QueryResult;
use diesel::query_builder::AstPass;
use uuid::Uuid;

use crate::dialect::Dialect;

/// The primary key of an event, and of its delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventKey {
    /// Empty when the event was published outside of a call.
    pub tenant_id: String,
    /// In its usual text.
    pub id: String,
}

impl EventKey {
    pub(crate) fn new(tenant_id: String, id: Uuid) -> Self {
        let id = id.hyphenated().to_string();
        Self { tenant_id, id }
    }

    /// `tenant, id`, as a list of values.
    fn push_values<'b, DB: Dialect>(&'b self, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        DB::push_text(out, &self.tenant_id)?;
        out.push_sql(", ");
        DB::push_uuid(out, &self.id)
    }

    /// The condition that selects the row, whose id is in the column `id`.
    fn push_is_row<'b, DB: Dialect>(
        &'b self,
        id: &str,
        out: &mut AstPass<'_, 'b, DB>,
    ) -> QueryResult<()> {
        out.push_sql("tenant_id = ");
        DB::push_text(out, &self.tenant_id)?;
        out.push_sql(" AND ");
        out.push_sql(id);
        out.push_sql(" = ");
        DB::push_uuid(out, &self.id)
    }
}

/// What stands of a delivery and its event in one row of text: two JSON arrays, one behind the other. The second is `null` if the event is gone.
fn push_delivery<DB: Dialect>(out: &mut AstPass<'_, '_, DB>) {
    let json_array = DB::JSON_ARRAY;
    out.push_sql("CAST(");
    out.push_sql(json_array);
    let columns = [
        "tenant_id",
        "aggregatetype",
        "aggregateid",
        "type",
        "position",
        "fence",
        "attempts",
        "unsettled",
        "last_error",
    ];
    out.push_sql("(CAST(outbox_deliveries.event_id AS text)");
    for column in columns {
        out.push_sql(", outbox_deliveries.");
        out.push_sql(column);
    }
    out.push_sql(") AS text) || ");
    out.push_sql("coalesce((SELECT CAST(");
    out.push_sql(json_array);
    out.push_sql("(e.payload, e.operation, e.idempotency_key, e.traceparent, ");
    DB::push_micros(out, "e.created_at");
    out.push_sql(
        ") AS text) FROM outbox_events AS e WHERE e.tenant_id = outbox_deliveries.tenant_id AND e.id = outbox_deliveries.event_id), 'null')",
    );
}

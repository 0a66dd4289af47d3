//! The event itself: its row in `outbox_events`.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment};

use super::EventKey;
use crate::dialect::Dialect;
use crate::store::static_statement;

/// Inserts an event.
///
/// # SQL
///
/// ```sql
/// INSERT INTO outbox_events (tenant_id, id, aggregatetype, aggregateid, type, payload, operation, idempotency_key, traceparent) VALUES (…)
/// ```
#[derive(Debug, Clone)]
pub(crate) struct InsertEvent {
    /// The row.
    pub key: EventKey,
    /// To what kind of thing it happened.
    pub aggregate_type: String,
    /// To which one.
    pub aggregate_id: String,
    /// What happened.
    pub event_type: String,
    /// The event as JSON.
    pub payload: String,
    /// The operation of the causing call; empty without one, like the two that follow.
    pub operation: String,
    /// Its key.
    pub idempotency_key: String,
    /// The trace it belongs to.
    pub traceparent: String,
}

static_statement!(InsertEvent);

impl<DB: Dialect> QueryFragment<DB> for InsertEvent {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(
            "INSERT INTO outbox_events (tenant_id, id, aggregatetype, aggregateid, type, payload, operation, idempotency_key, traceparent) VALUES (",
        );
        self.key.push_values(&mut out)?;
        let texts = [
            &self.aggregate_type,
            &self.aggregate_id,
            &self.event_type,
            &self.payload,
        ];
        for text in texts {
            out.push_sql(", ");
            DB::push_text(&mut out, text)?;
        }
        for text in [&self.operation, &self.idempotency_key, &self.traceparent] {
            out.push_sql(", nullif(");
            DB::push_text(&mut out, text)?;
            out.push_sql(", '')");
        }
        out.push_sql(")");
        Ok(())
    }
}

/// Removes an event.
///
/// # SQL
///
/// ```sql
/// DELETE FROM outbox_events WHERE tenant_id = … AND id = …
/// ```
#[derive(Debug, Clone)]
pub(crate) struct RemoveEvent {
    /// The row.
    pub key: EventKey,
}

static_statement!(RemoveEvent);

impl<DB: Dialect> QueryFragment<DB> for RemoveEvent {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("DELETE FROM outbox_events WHERE ");
        self.key.push_is_row("id", &mut out)
    }
}

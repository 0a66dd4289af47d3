//! The enqueuing of an event: its row in `outbox_deliveries`.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment};
use diesel::sql_types::{Nullable, Text};

use super::EventKey;
use crate::dialect::Dialect;
use crate::store::static_statement;

/// Enqueues an event and gives its id, unless an undelivered event of its type has the same unique key.
///
/// Its position is taken under a lock that events of its aggregate hold until they commit, so positions are in the order of commits.
///
/// # SQL
///
/// ```sql
/// WITH held AS MATERIALIZED (SELECT pg_advisory_xact_lock(…))
/// INSERT INTO outbox_deliveries (…) SELECT … FROM held ON CONFLICT (tenant_id, type, unique_key) WHERE … DO NOTHING RETURNING event_id
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Enqueue {
    /// The row.
    pub key: EventKey,
    /// To what kind of thing it happened.
    pub aggregate_type: String,
    /// To which one.
    pub aggregate_id: String,
    /// What happened.
    pub event_type: String,
    /// Empty if there is none.
    pub unique_key: String,
    /// The number of its aggregate's lock.
    pub lock: i64,
}

static_statement!(Enqueue);

impl Query for Enqueue {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for Enqueue {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        DB::push_hold_order(&mut out, &self.lock)?;
        out.push_sql(
            "INSERT INTO outbox_deliveries (tenant_id, event_id, aggregatetype, aggregateid, type, unique_key) SELECT ",
        );
        self.key.push_values(&mut out)?;
        for text in [&self.aggregate_type, &self.aggregate_id, &self.event_type] {
            out.push_sql(", ");
            DB::push_text(&mut out, text)?;
        }
        out.push_sql(", nullif(");
        DB::push_text(&mut out, &self.unique_key)?;
        out.push_sql(", '')");
        out.push_sql(DB::FROM_HELD);
        out.push_sql(
            " ON CONFLICT (tenant_id, type, unique_key) WHERE state <> 'delivered' AND unique_key IS NOT NULL \
             DO NOTHING RETURNING CAST(event_id AS text)",
        );
        Ok(())
    }
}

/// Finds the undelivered event of a type that has a unique key.
///
/// # SQL
///
/// ```sql
/// SELECT event_id FROM outbox_deliveries WHERE … AND unique_key = … AND state <> 'delivered'
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Enqueued {
    /// Whose it is.
    pub tenant_id: String,
    /// What happened.
    pub event_type: String,
    /// Its key.
    pub unique_key: String,
}

static_statement!(Enqueued);

impl Query for Enqueued {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for Enqueued {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("SELECT CAST(event_id AS text) FROM outbox_deliveries WHERE tenant_id = ");
        DB::push_text(&mut out, &self.tenant_id)?;
        out.push_sql(" AND type = ");
        DB::push_text(&mut out, &self.event_type)?;
        out.push_sql(" AND unique_key = ");
        DB::push_text(&mut out, &self.unique_key)?;
        out.push_sql(" AND unique_key IS NOT NULL AND state <> 'delivered'");
        Ok(())
    }
}

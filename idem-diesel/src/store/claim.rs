//! The claim by a row: insert the row of a key as `pending`, unless there is one.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment};

use super::{Horizons, RowKey, static_statement};
use crate::dialect::Dialect;

/// Inserts the row as `pending`. No row: there is one already.
///
/// # SQL
///
/// ```sql
/// INSERT INTO api_idempotency (…) VALUES (…, 'pending', …) ON CONFLICT (…) DO NOTHING
/// ```
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    /// The row.
    pub key: RowKey,
    /// The request hash in hexadecimal.
    pub request_hash: String,
    /// How long the row is kept.
    pub horizons: Horizons,
}

static_statement!(Claim);

impl<DB: Dialect> QueryFragment<DB> for Claim {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(
            "INSERT INTO api_idempotency (tenant_id, operation, idempotency_key, request_hash, state, attempt, \
             created_at, expires_at, forget_at) VALUES (",
        );
        self.key.push_values(&mut out)?;
        out.push_sql(", ");
        DB::push_text(&mut out, &self.request_hash)?;
        out.push_sql(", 'pending', 1, ");
        out.push_sql(DB::NOW);
        out.push_sql(", ");
        DB::push_time_after(&mut out, &self.horizons.expires)?;
        out.push_sql(", ");
        DB::push_time_after(&mut out, &self.horizons.forget)?;
        out.push_sql(") ON CONFLICT (tenant_id, operation, idempotency_key) DO NOTHING");
        Ok(())
    }
}

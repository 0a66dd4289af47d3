//! The probe: what is sent where there is nothing to store.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment};

use super::static_statement;
use crate::dialect::Dialect;

/// Fails if a statement of this transaction failed before, where the server takes no further one then.
///
/// # SQL
///
/// ```sql
/// SELECT 1
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct Probe;

static_statement!(Probe);

impl<DB: Dialect> QueryFragment<DB> for Probe {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("SELECT 1");
        Ok(())
    }
}

//! Queries that give one column of text: settings, the state of an entity, what the catalog says.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Nullable, Text};

use crate::dialect::Dialect;

/// A query of one text column.
pub trait TextQuery<DB: Dialect>:
    Query<SqlType = Nullable<Text>> + QueryFragment<DB> + QueryId + Send + 'static
{
}

impl<DB: Dialect, Q> TextQuery<DB> for Q where
    Q: Query<SqlType = Nullable<Text>> + QueryFragment<DB> + QueryId + Send + 'static
{
}

/// Any query of one text column, as it is run.
#[cfg(any(feature = "_pg", feature = "_sqlite"))]
pub(crate) struct Texts<Q>(pub(crate) Q);

#[cfg(any(feature = "_pg", feature = "_sqlite"))]
impl<Q: QueryId> QueryId for Texts<Q> {
    type QueryId = Texts<Q::QueryId>;
    const HAS_STATIC_QUERY_ID: bool = Q::HAS_STATIC_QUERY_ID;
}

#[cfg(any(feature = "_pg", feature = "_sqlite"))]
impl<Q> Query for Texts<Q> {
    type SqlType = Nullable<Text>;
}

#[cfg(any(feature = "_pg", feature = "_sqlite"))]
impl<Q, Conn> diesel::RunQueryDsl<Conn> for Texts<Q> {}

#[cfg(any(feature = "_pg", feature = "_sqlite"))]
impl<DB: Dialect, Q: QueryFragment<DB>> QueryFragment<DB> for Texts<Q> {
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        self.0.walk_ast(out)
    }
}

/// SQL without parameters.
pub(crate) struct Sql(pub(crate) &'static str);

impl QueryId for Sql {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Sql {
    type SqlType = Nullable<Text>;
}

impl<DB: Dialect> QueryFragment<DB> for Sql {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(self.0);
        Ok(())
    }
}

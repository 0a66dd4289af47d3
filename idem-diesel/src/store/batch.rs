//! What both statements of a purge work on: rows of one stretch that are due and that nobody is changing.

use diesel::QueryResult;
use diesel::query_builder::AstPass;

use crate::dialect::Dialect;

/// The rows that a purge may change at once: at most so many of one stretch of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The place behind which the stretch begins.
    pub after: String,
    /// The place where it ends.
    pub upto: String,
    /// The most rows.
    pub at_most: i64,
}

/// The condition that a row may go.
pub(super) fn may_go<DB: Dialect>() -> String {
    is_behind::<DB>("forget_at")
}

/// The condition that a row has an answer that has expired. Every stored answer has a codec.
pub(super) fn has_expired<DB: Dialect>() -> String {
    format!("{} AND codec IS NOT NULL", is_behind::<DB>("expires_at"))
}

/// A row without an answer is never due. Time is read once for all rows.
fn is_behind<DB: Dialect>(horizon: &str) -> String {
    let now = DB::NOW;
    format!("{horizon} <= (SELECT {now}) AND state IN ('completed', 'failed')")
}

impl Batch {
    /// Writes the condition that a row is one of the batch.
    ///
    /// On PostgreSQL its rows are locked, and rows that somebody else holds are left out: nothing is waited for here, and the
    /// statement around it waits for nothing either. What is due is asked twice, because in a partitioned table rows of several
    /// parts may lie at the same place, each in its own.
    pub(super) fn push_is_row<'b, DB: Dialect>(
        &'b self,
        out: &mut AstPass<'_, 'b, DB>,
        is_due: &str,
    ) -> QueryResult<()> {
        DB::push_is_one_of(out, |out| {
            DB::push_is_between(out, &self.after, &self.upto)?;
            out.push_sql(&format!(" AND {is_due} LIMIT "));
            DB::push_integer(out, &self.at_most)
        })?;
        out.push_sql(&format!(" AND {is_due}"));
        Ok(())
    }
}

#[cfg(test)]
#[cfg(feature = "_sqlite")]
mod tests {
    use diesel::debug_query;
    use diesel::query_builder::QueryFragment;
    use diesel::sqlite::Sqlite;

    use super::Batch;
    use crate::store::{Blank, Forget};

    #[track_caller]
    fn check(purge: &impl QueryFragment<Sqlite>, verb: &str, is_due: &str) {
        let sql = debug_query::<Sqlite, _>(purge).to_string();
        assert!(sql.starts_with(verb), "{sql}");
        let is_in_batch = " IN (SELECT tenant_id, operation, idempotency_key FROM api_idempotency WHERE (tenant_id, operation, idempotency_key) > (";
        assert!(sql.contains(is_in_batch), "{sql}");
        assert!(sql.contains(&format!("{is_due} LIMIT ?)")), "{sql}");
    }

    #[test]
    fn a_purge_changes_only_the_rows_of_its_batch() {
        let batch = Batch {
            after: r#"["","",""]"#.to_owned(),
            upto: r#"["a","b","c"]"#.to_owned(),
            at_most: 7,
        };
        let has_ended = " AND state IN ('completed', 'failed')";
        check(
            &Blank(batch.clone()),
            "UPDATE api_idempotency SET ",
            &format!("{has_ended} AND codec IS NOT NULL"),
        );
        check(&Forget(batch), "DELETE FROM api_idempotency ", has_ended);
    }
}

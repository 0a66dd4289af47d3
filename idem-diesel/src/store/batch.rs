//! What both statements of a walk work on: rows of one stretch that are due and that nobody is changing.

use diesel::QueryResult;
use diesel::query_builder::AstPass;

use super::Aged;
use crate::dialect::Dialect;

/// The rows that a walk may change at once: at most so many of one stretch of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The table.
    pub aged: &'static Aged,
    /// The place behind which the stretch begins.
    pub after: String,
    /// The place where it ends.
    pub upto: String,
    /// The most rows.
    pub at_most: i64,
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
        let table = &self.aged.table;
        DB::push_is_one_of(out, table, |out| {
            DB::push_is_between(out, table, &self.after, &self.upto)?;
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
    use crate::store::{Aged, Blank, Forget, MESSAGES, RECORDS};

    fn batch(aged: &'static Aged) -> Batch {
        Batch {
            aged,
            after: r#"["","",""]"#.to_owned(),
            upto: r#"["a","b","c"]"#.to_owned(),
            at_most: 7,
        }
    }

    #[track_caller]
    fn check(purge: &impl QueryFragment<Sqlite>, verb: &str, key: &str, is_due: &str) {
        let sql = debug_query::<Sqlite, _>(purge).to_string();
        assert!(sql.starts_with(verb), "{sql}");
        let is_in_batch = format!(" WHERE ({key}) IN (SELECT {key} FROM ");
        assert!(sql.contains(&is_in_batch), "{sql}");
        assert!(sql.contains(&format!(" WHERE ({key}) > (")), "{sql}");
        assert!(sql.contains(&format!("{is_due} LIMIT ?)")), "{sql}");
    }

    #[test]
    fn a_purge_changes_only_the_rows_of_its_batch() {
        let key = "tenant_id, operation, idempotency_key";
        let has_ended = " AND state IN ('completed', 'failed')";
        check(
            &Blank(batch(RECORDS)),
            "UPDATE api_idempotency SET status_code = NULL, response_headers = NULL, response_body = NULL, codec = NULL WHERE ",
            key,
            &format!("{has_ended} AND codec IS NOT NULL"),
        );
        check(
            &Forget(batch(RECORDS)),
            "DELETE FROM api_idempotency WHERE ",
            key,
            has_ended,
        );
        check(
            &Forget(batch(MESSAGES)),
            "DELETE FROM processed_messages WHERE ",
            "subscriber_id, message_id",
            " AND state IN ('processed')",
        );
    }
}

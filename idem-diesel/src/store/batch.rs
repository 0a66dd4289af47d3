//! What both statements of a purge work on: rows that are due and that nobody is changing.

use diesel::query_builder::AstPass;

use crate::dialect::Dialect;

/// Writes `WITH batch AS (…)`: the keys of at most `at_most` ended rows for which `is_due`, up to now, in the order of the column
/// `horizon`.
///
/// On PostgreSQL their rows are locked, and rows that somebody else holds are left out: nothing is waited for here, and the
/// statement after it waits for nothing either. Time is read once, so that the index serves; the number stands in the text, so
/// that the planner knows it.
pub(super) fn push_batch<DB: Dialect>(
    out: &mut AstPass<'_, '_, DB>,
    horizon: &str,
    is_due: &str,
    at_most: u32,
) {
    let (now, locked) = (DB::NOW, DB::SKIP_LOCKED);
    out.push_sql(&format!(
        "WITH batch AS (SELECT tenant_id, operation, idempotency_key FROM api_idempotency \
         WHERE {horizon} <= (SELECT {now}) AND state IN ('completed', 'failed'){is_due} \
         ORDER BY {horizon} LIMIT {at_most}{locked}) "
    ));
}

/// Writes the condition that a row is in the batch.
pub(super) fn push_is_in_batch<DB: Dialect>(out: &mut AstPass<'_, '_, DB>) {
    out.push_sql(
        " WHERE (tenant_id, operation, idempotency_key) IN \
         (SELECT tenant_id, operation, idempotency_key FROM batch)",
    );
}

#[cfg(test)]
#[cfg(feature = "_sqlite")]
mod tests {
    use diesel::debug_query;
    use diesel::query_builder::QueryFragment;
    use diesel::sqlite::Sqlite;

    use crate::store::{Blank, Forget};

    #[track_caller]
    fn check(purge: &impl QueryFragment<Sqlite>, expected_end_of_batch: &str) {
        let sql = debug_query::<Sqlite, _>(purge).to_string();
        assert!(sql.starts_with("WITH batch AS (SELECT "), "{sql}");
        assert!(sql.contains(expected_end_of_batch), "{sql}");
        let is_in_batch = " IN (SELECT tenant_id, operation, idempotency_key FROM batch)";
        assert!(sql.contains(is_in_batch), "{sql}");
    }

    #[test]
    fn a_purge_changes_only_the_rows_of_its_batch() {
        check(
            &Blank { at_most: 7 },
            " AND codec IS NOT NULL ORDER BY expires_at LIMIT 7) UPDATE ",
        );
        check(
            &Forget { at_most: 7 },
            " ORDER BY forget_at LIMIT 7) DELETE ",
        );
    }
}

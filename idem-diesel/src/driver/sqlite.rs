//! What SQLite does its own way, for the sync connection and for the one inside the async wrapper.

use std::time::Duration;

use diesel::connection::{AnsiTransactionManager, SimpleConnection};
use diesel::{QueryResult, QueryableByName, RunQueryDsl, SqliteConnection, sql_query};

/// A deferred transaction that read first cannot write after another commit, however long it may wait; an immediate one can.
pub(super) fn begin(db: &mut SqliteConnection) -> QueryResult<()> {
    AnsiTransactionManager::begin_transaction_sql(db, "BEGIN IMMEDIATE")
}

#[derive(QueryableByName)]
struct BusyTimeout {
    #[diesel(sql_type = diesel::sql_types::Integer)]
    timeout: i32,
}

/// The busy timeout.
pub(super) fn patience(db: &mut SqliteConnection) -> QueryResult<Option<Duration>> {
    let timeout = sql_query("PRAGMA busy_timeout")
        .get_result::<BusyTimeout>(db)?
        .timeout;
    Ok(Some(Duration::from_millis(
        u64::try_from(timeout).unwrap_or(0),
    )))
}

/// Sets it.
pub(super) fn set_patience(db: &mut SqliteConnection, patience: Duration) -> QueryResult<()> {
    let milliseconds = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
    db.batch_execute(&format!("PRAGMA busy_timeout = {milliseconds}"))
}

//! `SyncConnectionWrapper<SqliteConnection>`: SQLite on tokio's blocking threads.

use std::future::Future;
use std::time::Duration;

use diesel::connection::{SimpleConnection, TransactionManagerStatus};
use diesel::query_builder::{QueryFragment, QueryId};
use diesel::sqlite::Sqlite;
use diesel::{QueryResult, SqliteConnection};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{
    AsyncConnection, AsyncConnectionCore, RunQueryDsl, SimpleAsyncConnection, TransactionManager,
};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::{Driver, Entry, Opening, Wait, reset_status, rollback_text, sqlite};
use crate::store::{Read, Row};
use crate::texts::{TextQuery, Texts};

type Connection = SyncConnectionWrapper<SqliteConnection>;
type Manager = <Connection as AsyncConnection>::TransactionManager;

impl Driver for Connection {
    type Dialect = Sqlite;

    fn status(&mut self) -> &mut TransactionManagerStatus {
        Manager::transaction_manager_status_mut(self)
    }

    fn forget_transactions(&mut self) {
        *self.transaction_state() = diesel::connection::AnsiTransactionManager::default();
    }

    async fn batch(&mut self, sql: &str) -> QueryResult<()> {
        self.batch_execute(sql).await
    }

    async fn begin(&mut self, _: &Opening, _: Option<Wait>) -> QueryResult<()> {
        self.spawn_blocking(sqlite::begin).await
    }

    async fn wait_apart(&mut self, _: Wait) -> QueryResult<()> {
        Ok(())
    }

    async fn settle_in(&mut self, _: &Opening, _: Option<Wait>) -> QueryResult<()> {
        Ok(())
    }

    async fn begin_savepoint(&mut self) -> QueryResult<()> {
        Manager::begin_transaction(self).await
    }

    async fn commit(&mut self) -> QueryResult<()> {
        Manager::commit_transaction(self).await
    }

    async fn rollback(&mut self) -> QueryResult<()> {
        Manager::rollback_transaction(self).await
    }

    fn execute<S>(&mut self, statement: S) -> impl Future<Output = QueryResult<usize>> + Send
    where
        S: QueryFragment<Self::Dialect> + QueryId + Send + 'static,
    {
        self.execute_returning_count(statement)
    }

    async fn read(&mut self, read: Read) -> QueryResult<Row> {
        RunQueryDsl::get_result(read, self).await
    }

    async fn texts<Q>(&mut self, query: Q) -> QueryResult<Vec<Option<String>>>
    where
        Q: TextQuery<Self::Dialect>,
    {
        RunQueryDsl::load(Texts(query), self).await
    }

    async fn set_patience(&mut self, patience: Duration) -> QueryResult<Option<Duration>> {
        self.spawn_blocking(move |db| sqlite::set_patience(db, patience))
            .await
    }

    /// On a multi-thread runtime the rollback is run here: dropping its future waits for it. On a current-thread runtime
    /// that would panic, so the transaction stays open in Diesel's account: every pool takes such a connection for broken.
    fn abandon(&mut self, entry: Entry, patience: Option<Duration>) {
        let cannot_block = Handle::try_current()
            .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::CurrentThread);
        if cannot_block {
            return;
        }
        drop(self.spawn_blocking(move |db| {
            if let Some(patience) = patience {
                sqlite::set_patience(db, patience)?;
            }
            db.batch_execute(&rollback_text(entry))
        }));
        reset_status(self, entry);
    }
}

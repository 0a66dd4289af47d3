//! `SyncConnectionWrapper<SqliteConnection>`: SQLite on tokio's blocking threads.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use diesel::connection::{SimpleConnection, TransactionManagerStatus};
use diesel::query_builder::{QueryFragment, QueryId};
use diesel::sqlite::Sqlite;
use diesel::{QueryResult, SqliteConnection};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{
    AsyncConnection, AsyncConnectionCore, RunQueryDsl, SimpleAsyncConnection, TransactionManager,
};

use super::{Abandon, Abandoned, Call, Driver, Opening, Wait, is_on_one_thread, sqlite};
use crate::connection::Async;
use crate::store::{Read, RecordRow, Records, Row};
use crate::texts::{TextQuery, Texts};

type Connection = SyncConnectionWrapper<SqliteConnection>;
type Manager = <Connection as AsyncConnection>::TransactionManager;

impl Driver for Connection {
    type Dialect = Sqlite;
    type Flavor = Async;

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

    async fn wait_apart(&mut self, _: &Call, _: Wait) -> QueryResult<()> {
        Ok(())
    }

    async fn settle_in(&mut self, _: &Opening, _: Option<Wait>) -> QueryResult<()> {
        Ok(())
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

    async fn records(&mut self, records: Records) -> QueryResult<Vec<RecordRow>> {
        RunQueryDsl::load(records, self).await
    }

    async fn texts<Q>(&mut self, query: Q) -> QueryResult<Vec<Option<String>>>
    where
        Q: TextQuery<Self::Dialect>,
    {
        RunQueryDsl::load(Texts(query), self).await
    }

    async fn pause(time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn patience(&mut self) -> QueryResult<Option<Duration>> {
        self.spawn_blocking(sqlite::patience).await
    }

    async fn set_patience(&mut self, patience: Duration) -> QueryResult<()> {
        self.spawn_blocking(move |db| sqlite::set_patience(db, patience))
            .await
    }

    /// The statement runs on one of tokio's blocking threads, and this waits for it by asking again and again: a runtime of one thread, or a
    /// `LocalSet`, has no other way to wait inside a drop.
    fn abandon(&mut self, abandon: Abandon) -> Abandoned {
        let Abandon {
            rollback, patience, ..
        } = abandon;
        if is_on_one_thread() && std::thread::panicking() {
            // A statement of the body may still be running then: diesel-async cannot wait for it on a runtime of one thread.
            return Abandoned::NotTried;
        }
        let mut ended = pin!(tokio::task::unconstrained(self.spawn_blocking(move |db| {
            let rolled_back = rollback.map_or(Ok(()), |text| db.batch_execute(&text));
            if let Some(patience) = patience {
                sqlite::set_patience(db, patience)?;
            }
            rolled_back
        })));
        loop {
            match ended.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(())) => return Abandoned::Done,
                Poll::Ready(Err(_)) => return Abandoned::Failed,
                Poll::Pending => std::thread::yield_now(),
            }
        }
    }
}

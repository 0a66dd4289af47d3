//! `AsyncPgConnection`.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use diesel::QueryResult;
use diesel::connection::TransactionManagerStatus;
use diesel::pg::Pg;
use diesel::query_builder::{QueryFragment, QueryId};
use diesel_async::{
    AnsiTransactionManager, AsyncConnection, AsyncConnectionCore, AsyncPgConnection, RunQueryDsl,
    SimpleAsyncConnection, TransactionManager,
};

use super::{Abandon, Abandoned, Driver, Opening, Wait, postgres};
use crate::canceller;
use crate::connection::Async;
use crate::store::{Read, RecordRow, Records, Row};
use crate::texts::{TextQuery, Texts};

impl Driver for AsyncPgConnection {
    type Dialect = Pg;
    type Flavor = Async;

    fn status(&mut self) -> &mut TransactionManagerStatus {
        AnsiTransactionManager::transaction_manager_status_mut(self)
    }

    fn is_broken(&mut self) -> bool {
        AnsiTransactionManager::is_broken_transaction_manager(self)
    }

    /// diesel-async notes a serialization failure, and nothing else, here; sync Diesel every error, so there it tells nothing.
    fn met_conflict(&mut self) -> bool {
        let state = self.status().transaction_state();
        let open = state.ok().and_then(|state| state.in_transaction.as_ref());
        open.is_some_and(|open| open.requires_rollback_maybe_up_to_top_level)
    }

    fn forget_transactions(&mut self) {
        // Not only the depth: a drop inside Diesel's own SAVEPOINT or COMMIT leaves a private flag set beside it.
        *self.transaction_state() = AnsiTransactionManager::default();
    }

    async fn batch(&mut self, sql: &str) -> QueryResult<()> {
        self.batch_execute(sql).await
    }

    async fn begin(&mut self, opening: &Opening, wait: Option<Wait>) -> QueryResult<()> {
        let text = postgres::begin_text(opening, wait);
        AnsiTransactionManager::begin_transaction_sql(self, &text).await?;
        canceller::nothing_runs(self);
        Ok(())
    }

    async fn wait_apart(&mut self, wait: Wait) -> QueryResult<()> {
        self.batch_execute(&postgres::wait_apart_text(wait)).await
    }

    async fn settle_in(&mut self, opening: &Opening, wait: Option<Wait>) -> QueryResult<()> {
        match postgres::settle_in_text(opening, wait) {
            Some(text) => self.batch_execute(&text).await,
            None => Ok(()),
        }
    }

    async fn commit(&mut self) -> QueryResult<()> {
        AnsiTransactionManager::commit_transaction(self).await
    }

    async fn rollback(&mut self) -> QueryResult<()> {
        AnsiTransactionManager::rollback_transaction(self).await
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
        Ok(None)
    }

    async fn set_patience(&mut self, _: Duration) -> QueryResult<()> {
        Ok(())
    }

    /// One poll puts the message on the wire, behind whatever is in flight; nobody waits for its answer, and the next
    /// statement of this connection queues behind it.
    fn abandon(&mut self, abandon: Abandon) -> Abandoned {
        let Some(text) = abandon.rollback else {
            return Abandoned::Done;
        };
        let running = abandon
            .may_cancel
            .then(|| canceller::running_statement(self))
            .flatten();
        {
            let mut rollback = pin!(self.batch_execute(&text));
            let _ = rollback
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
        }
        let Some(running) = running else {
            return Abandoned::Done;
        };
        // First marked, then cancelled: the request may arrive when the session is already doing something else.
        self.status().set_in_error();
        running.cancel();
        Abandoned::Broken
    }
}

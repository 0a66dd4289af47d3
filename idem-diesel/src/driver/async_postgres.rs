//! `AsyncPgConnection`.

use std::future::Future;
use std::num::NonZeroU32;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use diesel::QueryResult;
use diesel::connection::{InstrumentationEvent, TransactionDepthChange, TransactionManagerStatus};
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::Error as DieselError;
use diesel_async::{
    AnsiTransactionManager, AsyncConnection, AsyncConnectionCore, AsyncPgConnection, RunQueryDsl,
    SimpleAsyncConnection, TransactionManager,
};
use futures_util::future::{join, join3};

use super::{
    Abandon, Abandoned, Call, Driver, Last, Opening, Refused, Wait, close_text, is_on_one_thread,
    is_same, postgres,
};
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

    /// BEGIN goes first in every case. A read that is not prepared yet waits for that, inside the transaction.
    async fn begin_and_read(
        &mut self,
        opening: &Opening,
        wait: Option<Wait>,
        read: Read,
    ) -> QueryResult<Row> {
        let text = postgres::begin_text(opening, wait);
        count_begin(self)?;
        let shared = &*self;
        let (mut first, mut second) = (shared, shared);
        let (began, row) = join(
            first.batch_execute(&text),
            RunQueryDsl::get_result(read, &mut second),
        )
        .await;
        began?;
        canceller::nothing_runs(self);
        row
    }

    async fn begin_and_texts<Q>(
        &mut self,
        opening: &Opening,
        query: Q,
    ) -> QueryResult<Vec<Option<String>>>
    where
        Q: TextQuery<Self::Dialect>,
    {
        let text = postgres::begin_text(opening, None);
        count_begin(self)?;
        let shared = &*self;
        let (mut first, mut second) = (shared, shared);
        let (began, texts) = join(
            first.batch_execute(&text),
            RunQueryDsl::load(Texts(query), &mut second),
        )
        .await;
        began?;
        canceller::nothing_runs(self);
        texts
    }

    async fn wait_apart(&mut self, call: &Call, wait: Wait) -> QueryResult<()> {
        self.batch_execute(&postgres::wait_apart_text(call, wait))
            .await
    }

    async fn bound_locks(&mut self, at_most: Duration) -> QueryResult<()> {
        self.batch_execute(&postgres::bound_locks_text(at_most))
            .await
    }

    async fn unbound_locks(&mut self) -> QueryResult<()> {
        self.batch_execute(postgres::UNBOUND_LOCKS).await
    }

    async fn settle_in(&mut self, opening: &Opening, wait: Option<Wait>) -> QueryResult<()> {
        match postgres::settle_in_text(opening, wait) {
            Some(text) => self.batch_execute(&text).await,
            None => Ok(()),
        }
    }

    /// Without waiting for its answer: if it fails, so does the end of the savepoint.
    async fn open_body(&mut self) -> QueryResult<()> {
        send_only(self, "SAVEPOINT idem_body");
        Ok(())
    }

    async fn commit(&mut self) -> QueryResult<()> {
        AnsiTransactionManager::commit_transaction(self).await
    }

    const PIPELINES: bool = true;

    /// The order on the wire is that of the statements, also when one of them must be prepared first: COMMIT is a prepared statement, too, and
    /// diesel-async looks for one in its cache only when it has done with the one before. A COMMIT that came too early would
    /// still be found out, because the store asks whether it is in the transaction of its claim.
    async fn store_and_commit<S>(&mut self, last: Last<S>) -> Result<(), Refused>
    where
        S: QueryFragment<Self::Dialect> + QueryId + Send + 'static,
    {
        self.instrumentation()
            .on_connection_event(InstrumentationEvent::commit_transaction(NonZeroU32::MIN));
        let shared = &*self;
        let (mut first, mut second, mut third) = (shared, shared, shared);
        let close = async {
            match last.close {
                Some(end) => first.batch_execute(close_text(end)).await,
                None => Ok(()),
            }
        };
        let store = second.execute_returning_count(last.store);
        let commit = third.execute_returning_count(Commit);
        // All are polled: an answer that nobody takes would hold up those behind it.
        let (closed, stored, committed) = join3(close, store, commit).await;
        self.forget_transactions();
        if closed.is_err() || stored.is_err() || committed.is_err() {
            // COMMIT itself may not have been taken.
            send_only(self, "ROLLBACK");
        }
        closed.map_err(Refused::Close)?;
        let rows = stored.map_err(Refused::Store)?;
        committed.map_err(Refused::Commit)?;
        if last.rows.is_some_and(|expected| expected != rows) {
            return Err(Refused::NothingStored);
        }
        Ok(())
    }

    async fn rollback(&mut self) -> QueryResult<()> {
        AnsiTransactionManager::rollback_transaction(self).await
    }

    /// The next statement of this connection queues behind it. A runtime of one thread may stop running with this call, so there it is waited for.
    async fn leave(&mut self) -> QueryResult<()> {
        if is_on_one_thread() {
            return self.rollback().await;
        }
        send_only(self, "ROLLBACK");
        self.forget_transactions();
        Ok(())
    }

    /// The server says so in its own language, so it is asked to say it again.
    async fn says_aborted(&mut self, error: &DieselError) -> bool {
        let shared = &*self;
        let (mut first, mut second, mut third) = (shared, shared, shared);
        // Sent at once, so that nothing stays open if this is dropped.
        let (_, again, _) = join3(
            first.batch_execute(postgres::ABORT),
            second.batch_execute("SELECT 1"),
            third.batch_execute("ROLLBACK"),
        )
        .await;
        is_same(&again, error)
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

    /// Nobody waits for the answer, and the next statement of this connection queues behind it.
    fn abandon(&mut self, abandon: Abandon) -> Abandoned {
        let Some(text) = abandon.rollback else {
            return Abandoned::Done;
        };
        let running = abandon
            .may_cancel
            .then(|| canceller::running_statement(self))
            .flatten();
        send_only(self, &text);
        let Some(running) = running else {
            return Abandoned::Done;
        };
        // First marked, then cancelled: the request may arrive when the session is already doing something else.
        self.status().set_in_error();
        running.cancel();
        Abandoned::Broken
    }
}

/// Tells Diesel of a BEGIN that is about to be sent, so that its account is right whenever the future is dropped.
fn count_begin(db: &mut AsyncPgConnection) -> QueryResult<()> {
    db.status()
        .transaction_state()?
        .change_transaction_depth(TransactionDepthChange::IncreaseDepth)?;
    db.instrumentation()
        .on_connection_event(InstrumentationEvent::begin_transaction(NonZeroU32::MIN));
    Ok(())
}

/// Sends text without waiting for its answer: one poll puts the message on the wire, behind whatever is in flight.
fn send_only(db: &mut AsyncPgConnection, text: &str) {
    {
        let mut sent = pin!(db.batch_execute(text));
        let _ = sent.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
    canceller::one_is_not_waited_for(db);
}

/// COMMIT as a statement that is prepared.
struct Commit;

impl QueryId for Commit {
    type QueryId = Self;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl QueryFragment<Pg> for Commit {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("COMMIT");
        Ok(())
    }
}

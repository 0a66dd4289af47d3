//! The sync connections of Diesel: every future is ready when it is first polled.

use std::future::Future;
use std::time::Duration;

use diesel::connection::{
    AnsiTransactionManager, Connection, SimpleConnection, TransactionManager,
    TransactionManagerStatus,
};
use diesel::query_builder::{QueryFragment, QueryId};
use diesel::{QueryResult, RunQueryDsl};

#[cfg(feature = "postgres")]
use super::postgres;
#[cfg(feature = "sqlite")]
use super::sqlite;
use super::{Abandon, Abandoned, Call, Driver, Opening, Wait};
use crate::connection::Blocking;
use crate::store::{Read, RecordRow, Records, Row};
use crate::texts::{TextQuery, Texts};

/// What is the same for every sync connection.
macro_rules! blocking_driver {
    ($connection:ty, $backend:ty, begin: $begin:expr, wait_apart: $wait_apart:expr, settle_in: $settle_in:expr, patience: $patience:expr, set_patience: $set_patience:expr, bound_locks: $bound_locks:expr, unbound_locks: $unbound_locks:expr $(,)?) => {
        impl Driver for $connection {
            type Dialect = $backend;
            type Flavor = Blocking;

            fn status(&mut self) -> &mut TransactionManagerStatus {
                AnsiTransactionManager::transaction_manager_status_mut(self)
            }

            fn forget_transactions(&mut self) {
                *self.transaction_state() = AnsiTransactionManager::default();
            }

            async fn batch(&mut self, sql: &str) -> QueryResult<()> {
                self.batch_execute(sql)
            }

            async fn begin(&mut self, opening: &Opening, wait: Option<Wait>) -> QueryResult<()> {
                $begin(self, opening, wait)
            }

            async fn wait_apart(&mut self, call: &Call, wait: Wait) -> QueryResult<()> {
                $wait_apart(self, call, wait)
            }

            async fn settle_in(
                &mut self,
                opening: &Opening,
                wait: Option<Wait>,
            ) -> QueryResult<()> {
                $settle_in(self, opening, wait)
            }

            async fn commit(&mut self) -> QueryResult<()> {
                AnsiTransactionManager::commit_transaction(self)
            }

            async fn rollback(&mut self) -> QueryResult<()> {
                AnsiTransactionManager::rollback_transaction(self)
            }

            fn execute<S>(
                &mut self,
                statement: S,
            ) -> impl Future<Output = QueryResult<usize>> + Send
            where
                S: QueryFragment<Self::Dialect> + QueryId + Send + 'static,
            {
                std::future::ready(self.execute_returning_count(&statement))
            }

            async fn read(&mut self, read: Read) -> QueryResult<Row> {
                read.get_result(self)
            }

            async fn records(&mut self, records: Records) -> QueryResult<Vec<RecordRow>> {
                records.load(self)
            }

            fn texts<Q>(
                &mut self,
                query: Q,
            ) -> impl Future<Output = QueryResult<Vec<Option<String>>>> + Send
            where
                Q: TextQuery<Self::Dialect>,
            {
                std::future::ready(Texts(query).load(self))
            }

            async fn pause(time: Duration) {
                std::thread::sleep(time);
            }

            async fn patience(&mut self) -> QueryResult<Option<Duration>> {
                $patience(self)
            }

            async fn set_patience(&mut self, patience: Duration) -> QueryResult<()> {
                $set_patience(self, patience)
            }

            async fn bound_locks(&mut self, at_most: Duration) -> QueryResult<()> {
                $bound_locks(self, at_most)
            }

            async fn unbound_locks(&mut self) -> QueryResult<()> {
                $unbound_locks(self)
            }

            fn abandon(&mut self, abandon: Abandon) -> Abandoned {
                let Abandon {
                    rollback, patience, ..
                } = abandon;
                let rolled_back = rollback.map_or(Ok(()), |text| self.batch_execute(&text));
                if let Some(patience) = patience {
                    // Nobody is there to be told when even this fails.
                    let _: QueryResult<()> = $set_patience(self, patience);
                }
                match rolled_back {
                    Ok(()) => Abandoned::Done,
                    Err(_) => Abandoned::Failed,
                }
            }
        }
    };
}

#[cfg(feature = "postgres")]
blocking_driver!(
    diesel::PgConnection,
    diesel::pg::Pg,
    begin: |db, opening, wait| {
        AnsiTransactionManager::begin_transaction_sql(db, &postgres::begin_text(opening, wait))
    },
    wait_apart: |db: &mut Self, call, wait| db.batch_execute(&postgres::wait_apart_text(call, wait)),
    settle_in: |db: &mut Self, opening, wait| {
        postgres::settle_in_text(opening, wait).map_or(Ok(()), |text| db.batch_execute(&text))
    },
    patience: |_: &mut Self| Ok(None),
    set_patience: |_: &mut Self, _| Ok(()),
    bound_locks: |db: &mut Self, at_most| db.batch_execute(&postgres::bound_locks_text(at_most)),
    unbound_locks: |db: &mut Self| db.batch_execute(postgres::UNBOUND_LOCKS),
);

#[cfg(feature = "sqlite")]
blocking_driver!(
    diesel::SqliteConnection,
    diesel::sqlite::Sqlite,
    begin: |db, _, _| sqlite::begin(db),
    wait_apart: |_: &mut Self, _, _| Ok(()),
    settle_in: |_: &mut Self, _, _| Ok(()),
    patience: sqlite::patience,
    set_patience: sqlite::set_patience,
    bound_locks: |_: &mut Self, _| Ok(()),
    unbound_locks: |_: &mut Self| Ok(()),
);

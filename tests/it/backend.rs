//! The backends: one body of a test runs on all of them.
//!
//! Every body is async; the sync handlers block a thread of the runtime meanwhile.

use std::future::Future;

use diesel::QueryResult;
use idem_diesel::admin::{self, Filter, RecordInfo};
use idem_diesel::retention::{self, Purge, Purged};
use idem_diesel::{
    Async, Blocking, Error, ErrorKind, Flavor, IdempotencyKey, IdempotentConnection, Intent,
    Operation, Outcome, Retention, Run, Tenant, Verdict,
};

use crate::shop::{
    ChangeOrder, CreateOrder, Decline, Gate, Order, Receipt, Script, ShopError, TABLES,
};

/// A database of one test.
pub enum Place {
    Sqlite(support::sqlite::SqliteFile),
    Postgres(support::postgres::Database),
}

impl Place {
    pub fn url(&self) -> &str {
        match self {
            Self::Sqlite(file) => file.url(),
            Self::Postgres(database) => database.url(),
        }
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// The tables of the library and of the shop.
    fn with_tables(self) -> Self {
        use diesel::connection::SimpleConnection;
        use diesel::{Connection, PgConnection, SqliteConnection};
        match &self {
            Self::Sqlite(file) => {
                let mut db = SqliteConnection::establish(file.url()).unwrap();
                idem_diesel::ensure_schema(&mut db).unwrap();
                db.batch_execute(&TABLES.replace("{auto}", "INTEGER PRIMARY KEY AUTOINCREMENT"))
                    .unwrap();
            }
            Self::Postgres(database) => {
                let mut db = PgConnection::establish(database.url()).unwrap();
                idem_diesel::ensure_schema(&mut db).unwrap();
                db.batch_execute(&TABLES.replace("{auto}", "BIGSERIAL PRIMARY KEY"))
                    .unwrap();
            }
        }
        self
    }

    /// One number, seen by a session of its own.
    #[track_caller]
    pub fn number(&self, sql: &str) -> i64 {
        use diesel::dsl::sql as expression;
        use diesel::sql_types::BigInt;
        use diesel::{Connection, PgConnection, RunQueryDsl, SqliteConnection};
        let query = diesel::select(expression::<BigInt>(&format!("CAST(({sql}) AS bigint)")));
        match self {
            Self::Sqlite(file) => {
                query.get_result(&mut SqliteConnection::establish(file.url()).unwrap())
            }
            Self::Postgres(database) => {
                query.get_result(&mut PgConnection::establish(database.url()).unwrap())
            }
        }
        .unwrap()
    }

    /// One text, seen by a session of its own; absent when there is no row.
    #[track_caller]
    pub fn text(&self, sql: &str) -> Option<String> {
        use diesel::dsl::sql as expression;
        use diesel::sql_types::{Nullable, Text};
        use diesel::{Connection, PgConnection, RunQueryDsl, SqliteConnection};
        let query = diesel::select(expression::<Nullable<Text>>(&format!("({sql})")));
        match self {
            Self::Sqlite(file) => {
                query.get_result(&mut SqliteConnection::establish(file.url()).unwrap())
            }
            Self::Postgres(database) => {
                query.get_result(&mut PgConnection::establish(database.url()).unwrap())
            }
        }
        .unwrap()
    }

    /// Runs statements in a session of its own.
    #[track_caller]
    pub fn run(&self, sql: &str) {
        use diesel::connection::SimpleConnection;
        use diesel::{Connection, PgConnection, SqliteConnection};
        match self {
            Self::Sqlite(file) => SqliteConnection::establish(file.url())
                .unwrap()
                .batch_execute(sql),
            Self::Postgres(database) => PgConnection::establish(database.url())
                .unwrap()
                .batch_execute(sql),
        }
        .unwrap();
    }

    /// Rows of `effects`.
    #[track_caller]
    pub fn effects(&self) -> i64 {
        self.number("SELECT count(*) FROM effects")
    }

    /// Rows of `api_idempotency`.
    #[track_caller]
    pub fn records(&self) -> i64 {
        self.number("SELECT count(*) FROM api_idempotency")
    }

    /// Makes every record so many seconds older.
    pub fn age_records(&self, seconds: u32) {
        let times = ["created_at", "completed_at", "expires_at", "forget_at"];
        let older = times.map(|time| match self {
            Self::Sqlite(_) => {
                format!("{time} = strftime('%Y-%m-%d %H:%M:%f', {time}, '-{seconds} seconds')")
            }
            Self::Postgres(_) => format!("{time} = {time} - interval '{seconds} seconds'"),
        });
        self.run(&format!("UPDATE api_idempotency SET {}", older.join(", ")));
    }
}

/// Ends a session of a PostgreSQL server, and waits until it has ended.
pub fn terminate(url: &str, session: &str) {
    use diesel::connection::SimpleConnection;
    use diesel::{Connection, PgConnection};
    PgConnection::establish(url)
        .unwrap()
        .batch_execute(&format!("SELECT pg_terminate_backend({session}, 10000)"))
        .unwrap();
}

/// An intent of the tests' one tenant.
pub fn intent(key: &str) -> Intent {
    Intent::new(
        Tenant::of("acme", "alice").unwrap(),
        IdempotencyKey::new(key).unwrap(),
    )
}

/// What the library said; a panic when it said nothing.
#[track_caller]
pub fn kind<T: std::fmt::Debug>(result: Result<T, ShopError>) -> ErrorKind {
    match result {
        Ok(answer) => panic!("expected an error of the library, not {answer:?}"),
        Err(error) => match error.kind() {
            Some(kind) => kind.clone(),
            None => panic!("expected an error of the library, not {error:?}"),
        },
    }
}

/// The operation of the guard's tests.
pub const PERFORM: Operation = Operation::new("tests.perform", Retention::literal("48h"));

/// Waits for what a function of the library gives on a connection of this flavor.
pub trait Wait: Flavor + crate::upserts::Forms {
    fn wait<'a, T: Send + 'a>(run: Self::Run<'a, T>) -> impl Future<Output = T> + Send;
}

impl Wait for Blocking {
    fn wait<'a, T: Send + 'a>(run: T) -> impl Future<Output = T> + Send {
        std::future::ready(run)
    }
}

impl Wait for Async {
    fn wait<'a, T: Send + 'a>(run: Self::Run<'a, T>) -> impl Future<Output = T> + Send {
        run
    }
}

/// What a function of the library gives on any connection. On a sync one it has blocked the thread meanwhile.
pub async fn on<'a, C, T>(run: Run<'a, C, T>) -> T
where
    C: IdempotentConnection<Flavor: Wait>,
    T: Send + 'a,
{
    <C::Flavor as Wait>::wait(run).await
}

/// A kind of connection, with the shop's handlers for it.
pub trait Backend: Sized + Send + Sync + 'static {
    type Conn: IdempotentConnection<Flavor: Wait> + Send + 'static;

    fn is_postgres() -> bool;

    /// A fresh database with all tables.
    fn place() -> Place;

    fn connect(place: &Place) -> impl Future<Output = Self::Conn> + Send {
        Self::connect_to(place.url())
    }

    fn connect_to(url: &str) -> impl Future<Output = Self::Conn> + Send;

    /// Runs statements on this connection.
    fn sql(conn: &mut Self::Conn, sql: &str) -> impl Future<Output = QueryResult<()>> + Send;

    /// Opens a transaction through Diesel, as an application does.
    fn begin(conn: &mut Self::Conn) -> impl Future<Output = QueryResult<()>> + Send;

    /// Commits it.
    fn commit(conn: &mut Self::Conn) -> impl Future<Output = QueryResult<()>> + Send;

    /// Rolls it back.
    fn rollback(conn: &mut Self::Conn) -> impl Future<Output = QueryResult<()>> + Send;

    /// Opens Diesel's test transaction.
    fn begin_test(conn: &mut Self::Conn) -> impl Future<Output = QueryResult<()>> + Send;

    /// One text of this session.
    fn text(conn: &mut Self::Conn, sql: &str) -> impl Future<Output = QueryResult<String>> + Send;

    /// Attribute: inserts an order.
    fn create_order(
        conn: &mut Self::Conn,
        intent: &Intent,
        cmd: &CreateOrder,
    ) -> impl Future<Output = Result<Outcome<Order>, ShopError>> + Send;

    /// Attribute: pays an order, which must be pending.
    fn pay_order(
        conn: &mut Self::Conn,
        intent: &Intent,
        cmd: &ChangeOrder,
        gate: &Gate,
    ) -> impl Future<Output = Result<Outcome<Receipt>, ShopError>> + Send;

    /// Attribute: cancels an order, which must be pending.
    fn cancel_order(
        conn: &mut Self::Conn,
        intent: &Intent,
        cmd: &ChangeOrder,
    ) -> impl Future<Output = Result<Outcome<Receipt>, ShopError>> + Send;

    /// Attribute: ships or refunds an order, as the body finds out.
    fn advance_order(
        conn: &mut Self::Conn,
        intent: &Intent,
        cmd: &ChangeOrder,
    ) -> impl Future<Output = Result<Outcome<Receipt>, ShopError>> + Send;

    /// Attribute: takes money, or declines for good.
    fn charge(
        conn: &mut Self::Conn,
        intent: &Intent,
        cmd: &CreateOrder,
    ) -> impl Future<Output = Result<Outcome<Verdict<i64, Decline>>, ShopError>> + Send;

    /// Guard: does what `script` says.
    fn perform(
        conn: &mut Self::Conn,
        intent: Option<&Intent>,
        operation: &Operation,
        script: &Script,
        gate: &Gate,
    ) -> impl Future<Output = Result<Outcome<String>, ShopError>> + Send;

    /// `retention::purge`.
    fn purge(
        conn: &mut Self::Conn,
        options: &Purge,
    ) -> impl Future<Output = Result<Purged, Error>> + Send;

    /// `admin::find`.
    fn find(
        conn: &mut Self::Conn,
        intent: &Intent,
        operation: &str,
    ) -> impl Future<Output = Result<Option<RecordInfo>, Error>> + Send;

    /// `admin::list`.
    fn list(
        conn: &mut Self::Conn,
        filter: &Filter,
    ) -> impl Future<Output = Result<Vec<RecordInfo>, Error>> + Send;

    /// `admin::forget`.
    fn forget(
        conn: &mut Self::Conn,
        intent: &Intent,
        operation: &str,
    ) -> impl Future<Output = Result<bool, Error>> + Send;
}

/// Waits for ever, where that is possible.
macro_rules! hang {
    ([async]) => {
        std::future::pending::<()>().await
    };
    ([]) => {
        panic!("a sync body cannot be dropped while it waits")
    };
}

/// Calls a handler; a sync one blocks, so the runtime gets another thread meanwhile.
macro_rules! call {
    ([async], $call:expr) => {
        $call.await
    };
    ([], $call:expr) => {
        tokio::task::block_in_place(|| $call)
    };
}

/// The handlers of one kind of connection, and the backend that calls them.
macro_rules! backend {
    ($backend:ident in $module:ident: $conn:ty, $place:expr, $is_postgres:literal, $connect:path, [$($asyncness:ident)?], [$($wait:tt)*], $dsl:path, $simple:path, $manager:path) => {
        pub struct $backend;

        mod $module {
            use diesel::{ExpressionMethods, QueryDsl};
            use idem_diesel::{
                ApplyTransition, Claimed, Intent, Operation, Outcome, StateMachine, Verdict, begin, idempotent,
            };
            use $dsl;

            use crate::shop::*;

            type Conn = $conn;

            #[idempotent(scope = "orders.create", ttl = "48h")]
            pub $($asyncness)? fn create_order(
                db: &mut Conn,
                intent: &Intent,
                cmd: &CreateOrder,
            ) -> Result<Outcome<Order>, ShopError> {
                let id = diesel::insert_into(orders::table)
                    .values((
                        orders::account_id.eq(cmd.account_id),
                        orders::amount_cents.eq(cmd.amount_cents),
                        orders::status.eq(OrderStatus::Pending),
                    ))
                    .returning(orders::id)
                    .get_result(db)
                    $($wait)*?;
                Ok(Order { id, amount_cents: cmd.amount_cents }.into())
            }

            #[idempotent(
                scope = "orders.pay",
                ttl = "48h",
                transition(OrderStatus::Pending => OrderStatus::Paid, id = cmd.order_id)
            )]
            pub $($asyncness)? fn pay_order(
                db: &mut Conn,
                intent: &Intent,
                cmd: &ChangeOrder,
                #[idempotent(skip)] gate: &Gate,
            ) -> Result<Outcome<Receipt>, ShopError> {
                gate.pass();
                let (account_id, amount_cents): (i64, i64) = orders::table
                    .find(cmd.order_id)
                    .select((orders::account_id, orders::amount_cents))
                    .get_result(db)
                    $($wait)*?;
                diesel::update(accounts::table.find(account_id))
                    .set(accounts::balance_cents.eq(accounts::balance_cents - amount_cents))
                    .execute(db)
                    $($wait)*?;
                diesel::insert_into(payments::table)
                    .values((
                        payments::order_id.eq(cmd.order_id),
                        payments::amount_cents.eq(amount_cents),
                    ))
                    .execute(db)
                    $($wait)*?;
                Ok(receipt(db, cmd.order_id) $($wait)*?.into())
            }

            #[idempotent(
                scope = "orders.cancel",
                ttl = "48h",
                transition(OrderStatus::Pending => OrderStatus::Cancelled, id = cmd.order_id)
            )]
            pub $($asyncness)? fn cancel_order(
                db: &mut Conn,
                intent: &Intent,
                cmd: &ChangeOrder,
            ) -> Result<Outcome<Receipt>, ShopError> {
                Ok(receipt(db, cmd.order_id) $($wait)*?.into())
            }

            #[idempotent(scope = "orders.advance", ttl = "48h")]
            pub $($asyncness)? fn advance_order(
                db: &mut Conn,
                intent: &Intent,
                cmd: &ChangeOrder,
            ) -> Result<Outcome<Receipt>, ShopError> {
                let status: OrderStatus = orders::table
                    .find(cmd.order_id)
                    .select(orders::status)
                    .get_result(db)
                    $($wait)*?;
                let next = match status {
                    OrderStatus::Paid => OrderStatus::Shipped,
                    _ => OrderStatus::Refunded,
                };
                next.from(status).apply(db, cmd.order_id) $($wait)*?;
                Ok(receipt(db, cmd.order_id) $($wait)*?.into())
            }

            #[idempotent(scope = "cards.charge", ttl = "48h")]
            pub $($asyncness)? fn charge(
                db: &mut Conn,
                intent: &Intent,
                cmd: &CreateOrder,
            ) -> Result<Outcome<Verdict<i64, Decline>>, ShopError> {
                diesel::update(accounts::table.find(cmd.account_id))
                    .set(accounts::balance_cents.eq(accounts::balance_cents - cmd.amount_cents))
                    .execute(db)
                    $($wait)*?;
                let verdict = if cmd.amount_cents > 5000 {
                    Verdict::Failed(Decline::TooExpensive { limit_cents: 5000 })
                } else {
                    Verdict::Completed(cmd.amount_cents)
                };
                Ok(verdict.into())
            }

            $($asyncness)? fn receipt(db: &mut Conn, order_id: i64) -> Result<Receipt, ShopError> {
                let (account_id, status): (i64, OrderStatus) = orders::table
                    .find(order_id)
                    .select((orders::account_id, orders::status))
                    .get_result(db)
                    $($wait)*?;
                let balance_cents = accounts::table
                    .find(account_id)
                    .select(accounts::balance_cents)
                    .get_result(db)
                    $($wait)*?;
                Ok(Receipt {
                    order_id,
                    status: status.name().to_owned(),
                    balance_cents,
                })
            }

            pub $($asyncness)? fn perform(
                db: &mut Conn,
                intent: Option<&Intent>,
                operation: &Operation,
                script: &Script,
                gate: &Gate,
            ) -> Result<Outcome<String>, ShopError> {
                match begin(db, intent, operation, script) $($wait)*? {
                    Claimed::Replay(replay) => replay.answer(),
                    Claimed::Execute(mut execution) => {
                        if let Some(order_id) = script.pays {
                            let pay = OrderStatus::Paid.from(OrderStatus::Pending);
                            if let Err(refused) = execution.transition(pay, order_id) $($wait)* {
                                return execution.finish(Err(refused.into())) $($wait)*;
                            }
                        }
                        let result = body(execution.connection(), script, gate) $($wait)*;
                        if script.ending == Ending::Hang {
                            hang!([$($asyncness)?]);
                        }
                        execution.finish(result) $($wait)*
                    }
                }
            }

            $($asyncness)? fn body(
                db: &mut Conn,
                script: &Script,
                gate: &Gate,
            ) -> Result<Outcome<String>, ShopError> {
                gate.pass();
                for statement in &script.statements {
                    let done = {
                        use $simple;
                        db.batch_execute(statement) $($wait)*
                    };
                    if !script.swallows {
                        done?;
                    }
                }
                match script.ending {
                    Ending::Panic => panic!("the body panics, as the test told it"),
                    Ending::Error => Err(ShopError::No),
                    Ending::Answer | Ending::Hang => Ok("done".to_owned().into()),
                }
            }

            pub $($asyncness)? fn sql(db: &mut Conn, sql: &str) -> diesel::QueryResult<()> {
                use $simple;
                db.batch_execute(sql) $($wait)*
            }

            pub $($asyncness)? fn text(db: &mut Conn, sql: &str) -> diesel::QueryResult<String> {
                diesel::select(diesel::dsl::sql::<diesel::sql_types::Text>(&format!("({sql})")))
                    .get_result(db)
                    $($wait)*
            }

            pub $($asyncness)? fn begin_transaction(db: &mut Conn) -> diesel::QueryResult<()> {
                use $connect as Connect;
                use $manager as Manager;
                <<Conn as Connect>::TransactionManager as Manager<Conn>>::begin_transaction(db) $($wait)*
            }

            pub $($asyncness)? fn commit(db: &mut Conn) -> diesel::QueryResult<()> {
                use $connect as Connect;
                use $manager as Manager;
                <<Conn as Connect>::TransactionManager as Manager<Conn>>::commit_transaction(db) $($wait)*
            }

            pub $($asyncness)? fn rollback(db: &mut Conn) -> diesel::QueryResult<()> {
                use $connect as Connect;
                use $manager as Manager;
                <<Conn as Connect>::TransactionManager as Manager<Conn>>::rollback_transaction(db) $($wait)*
            }

            pub $($asyncness)? fn begin_test(db: &mut Conn) -> diesel::QueryResult<()> {
                use $connect as Connect;
                Connect::begin_test_transaction(db) $($wait)*
            }

            pub $($asyncness)? fn connect(url: &str) -> Conn {
                use $connect as Connect;
                <Conn as Connect>::establish(url) $($wait)* .unwrap()
            }
        }

        impl Backend for $backend {
            type Conn = $conn;

            fn is_postgres() -> bool {
                $is_postgres
            }

            fn place() -> Place {
                $place.with_tables()
            }

            async fn connect_to(url: &str) -> Self::Conn {
                call!([$($asyncness)?], $module::connect(url))
            }

            async fn sql(conn: &mut Self::Conn, sql: &str) -> QueryResult<()> {
                call!([$($asyncness)?], $module::sql(conn, sql))
            }

            async fn begin(conn: &mut Self::Conn) -> QueryResult<()> {
                call!([$($asyncness)?], $module::begin_transaction(conn))
            }

            async fn commit(conn: &mut Self::Conn) -> QueryResult<()> {
                call!([$($asyncness)?], $module::commit(conn))
            }

            async fn rollback(conn: &mut Self::Conn) -> QueryResult<()> {
                call!([$($asyncness)?], $module::rollback(conn))
            }

            async fn begin_test(conn: &mut Self::Conn) -> QueryResult<()> {
                call!([$($asyncness)?], $module::begin_test(conn))
            }

            async fn text(conn: &mut Self::Conn, sql: &str) -> QueryResult<String> {
                call!([$($asyncness)?], $module::text(conn, sql))
            }

            async fn create_order(
                conn: &mut Self::Conn,
                intent: &Intent,
                cmd: &CreateOrder,
            ) -> Result<Outcome<Order>, ShopError> {
                call!([$($asyncness)?], $module::create_order(conn, intent, cmd))
            }

            async fn pay_order(
                conn: &mut Self::Conn,
                intent: &Intent,
                cmd: &ChangeOrder,
                gate: &Gate,
            ) -> Result<Outcome<Receipt>, ShopError> {
                call!([$($asyncness)?], $module::pay_order(conn, intent, cmd, gate))
            }

            async fn cancel_order(
                conn: &mut Self::Conn,
                intent: &Intent,
                cmd: &ChangeOrder,
            ) -> Result<Outcome<Receipt>, ShopError> {
                call!([$($asyncness)?], $module::cancel_order(conn, intent, cmd))
            }

            async fn advance_order(
                conn: &mut Self::Conn,
                intent: &Intent,
                cmd: &ChangeOrder,
            ) -> Result<Outcome<Receipt>, ShopError> {
                call!([$($asyncness)?], $module::advance_order(conn, intent, cmd))
            }

            async fn charge(
                conn: &mut Self::Conn,
                intent: &Intent,
                cmd: &CreateOrder,
            ) -> Result<Outcome<Verdict<i64, Decline>>, ShopError> {
                call!([$($asyncness)?], $module::charge(conn, intent, cmd))
            }

            async fn perform(
                conn: &mut Self::Conn,
                intent: Option<&Intent>,
                operation: &Operation,
                script: &Script,
                gate: &Gate,
            ) -> Result<Outcome<String>, ShopError> {
                call!([$($asyncness)?], $module::perform(conn, intent, operation, script, gate))
            }

            async fn purge(conn: &mut Self::Conn, options: &Purge) -> Result<Purged, Error> {
                call!([$($asyncness)?], retention::purge(conn, options))
            }

            async fn find(
                conn: &mut Self::Conn,
                intent: &Intent,
                operation: &str,
            ) -> Result<Option<RecordInfo>, Error> {
                call!([$($asyncness)?], admin::find(conn, intent, operation))
            }

            async fn list(
                conn: &mut Self::Conn,
                filter: &Filter,
            ) -> Result<Vec<RecordInfo>, Error> {
                call!([$($asyncness)?], admin::list(conn, filter))
            }

            async fn forget(
                conn: &mut Self::Conn,
                intent: &Intent,
                operation: &str,
            ) -> Result<bool, Error> {
                call!([$($asyncness)?], admin::forget(conn, intent, operation))
            }
        }
    };
}

backend!(
    SqliteSync in sqlite_sync: diesel::SqliteConnection,
    Place::Sqlite(support::sqlite::fresh_file()),
    false,
    diesel::Connection, [], [], diesel::RunQueryDsl, diesel::connection::SimpleConnection,
    diesel::connection::TransactionManager
);
backend!(
    PgSync in pg_sync: diesel::PgConnection,
    Place::Postgres(support::postgres::fresh_database()),
    true,
    diesel::Connection, [], [], diesel::RunQueryDsl, diesel::connection::SimpleConnection,
    diesel::connection::TransactionManager
);
backend!(
    SqliteAsync in sqlite_async: diesel_async::sync_connection_wrapper::SyncConnectionWrapper<diesel::SqliteConnection>,
    Place::Sqlite(support::sqlite::fresh_file()),
    false,
    diesel_async::AsyncConnection, [async], [.await], diesel_async::RunQueryDsl, diesel_async::SimpleAsyncConnection,
    diesel_async::TransactionManager
);
backend!(
    PgAsync in pg_async: diesel_async::AsyncPgConnection,
    Place::Postgres(support::postgres::fresh_database()),
    true,
    diesel_async::AsyncConnection, [async], [.await], diesel_async::RunQueryDsl, diesel_async::SimpleAsyncConnection,
    diesel_async::TransactionManager
);

/// Runs a test's future.
pub fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap()
        .block_on(test);
}

/// Makes tests of one body that is generic over its backend: one on each, and those on PostgreSQL once more through pgbouncer.
macro_rules! on_every_backend {
    ($($(#[$attribute:meta])* async fn $name:ident<$backend:ident: Backend>() $body:block)+) => {$(
        $(#[$attribute])*
        pub mod $name {
            #[allow(unused_imports, reason = "not every body needs every name of its file")]
            use super::*;
            use crate::backend::Backend;

            pub async fn body<$backend: Backend>() $body

            #[test]
            fn sqlite_sync() {
                crate::backend::run(body::<crate::backend::SqliteSync>());
            }

            #[test]
            fn sqlite_async() {
                crate::backend::run(body::<crate::backend::SqliteAsync>());
            }

            #[test]
            fn pg_sync() {
                crate::backend::run(body::<crate::backend::PgSync>());
            }

            #[test]
            fn pg_async() {
                crate::backend::run(body::<crate::backend::PgAsync>());
            }

            #[test]
            fn pg_sync_through_pgbouncer() {
                use crate::pgbouncer::{Through, run};
                run(module_path!(), body::<Through<crate::backend::PgSync>>());
            }

            #[test]
            fn pg_async_through_pgbouncer() {
                use crate::pgbouncer::{Through, run};
                run(module_path!(), body::<Through<crate::backend::PgAsync>>());
            }
        }
    )+};
}
pub(crate) use on_every_backend;

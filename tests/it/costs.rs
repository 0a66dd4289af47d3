//! What a call costs the database, beside the same statements in a transaction without it: how often it waits, which transaction ids it takes,
//! and what it writes to the log.

mod conversation;
mod waits;
mod writes;

use idem_diesel::{Intent, Outcome, Policy, Verdict};

use crate::shop::{CreateOrder, Decline, Order, ShopError};

/// What every call here asks for.
const CMD: CreateOrder = CreateOrder {
    account_id: 1,
    amount_cents: 5,
};

const READ_FIRST: Policy = Policy::new().read_first();

/// A kind of connection to PostgreSQL, with what is compared on it.
trait Client {
    const NAME: &str;
    type Conn;

    async fn connect(url: &str) -> Self::Conn;

    /// The two statements in a transaction of Diesel's, without a key.
    async fn sell(conn: &mut Self::Conn) -> diesel::QueryResult<Order>;

    /// The same two statements, once for a key.
    async fn sell_once(conn: &mut Self::Conn, intent: &Intent)
    -> Result<Outcome<Order>, ShopError>;

    /// The same operation, looking for a replay before it opens a transaction.
    async fn sell_once_read_first(
        conn: &mut Self::Conn,
        intent: &Intent,
    ) -> Result<Outcome<Order>, ShopError>;

    /// An operation whose answer may be a final failure, so that its body has a savepoint around it.
    async fn try_to_sell(
        conn: &mut Self::Conn,
        intent: &Intent,
        declines: bool,
    ) -> Result<Outcome<Verdict<Order, Decline>>, ShopError>;
}

/// Waits for a call of an async client; a sync one has waited by itself.
macro_rules! call {
    ([async], $call:expr) => {
        $call.await
    };
    ([], $call:expr) => {
        $call
    };
}

/// A client, and its handlers.
macro_rules! client {
    ($client:ident in $module:ident: $conn:ty, $connect:path, [$($asyncness:ident)?], [$($wait:tt)*], $dsl:path) => {
        struct $client;

        mod $module {
            use diesel::{ExpressionMethods, QueryResult};
            use idem_diesel::{Intent, Outcome, Verdict, idempotent};
            use $connect as Connect;
            use $dsl;

            use super::READ_FIRST;
            use crate::shop::*;

            type Conn = $conn;

            pub $($asyncness)? fn connect(url: &str) -> Conn {
                <Conn as Connect>::establish(url) $($wait)* .unwrap()
            }

            /// What all of them do.
            pub $($asyncness)? fn body(db: &mut Conn, cmd: &CreateOrder) -> QueryResult<Order> {
                let id = diesel::insert_into(orders::table)
                    .values((
                        orders::account_id.eq(cmd.account_id),
                        orders::amount_cents.eq(cmd.amount_cents),
                        orders::status.eq(OrderStatus::Pending),
                    ))
                    .returning(orders::id)
                    .get_result(db)
                    $($wait)*?;
                // Another insert: Diesel prepares an update anew each time.
                diesel::insert_into(payments::table)
                    .values((
                        payments::order_id.eq(id),
                        payments::amount_cents.eq(cmd.amount_cents),
                    ))
                    .execute(db)
                    $($wait)*?;
                Ok(Order { id, amount_cents: cmd.amount_cents })
            }

            pub $($asyncness)? fn sell(db: &mut Conn, cmd: &CreateOrder) -> QueryResult<Order> {
                db.transaction($($asyncness)? |db| body(db, cmd) $($wait)*) $($wait)*
            }

            #[idempotent(scope = "orders.create", ttl = "48h")]
            pub $($asyncness)? fn sell_once(
                db: &mut Conn,
                intent: &Intent,
                cmd: &CreateOrder,
            ) -> Result<Outcome<Order>, ShopError> {
                Ok(body(db, cmd) $($wait)*?.into())
            }

            #[idempotent(scope = "orders.create", ttl = "48h", policy = READ_FIRST)]
            pub $($asyncness)? fn sell_once_read_first(
                db: &mut Conn,
                intent: &Intent,
                cmd: &CreateOrder,
            ) -> Result<Outcome<Order>, ShopError> {
                Ok(body(db, cmd) $($wait)*?.into())
            }

            #[idempotent(scope = "orders.try", ttl = "48h")]
            pub $($asyncness)? fn try_to_sell(
                db: &mut Conn,
                intent: &Intent,
                cmd: &CreateOrder,
                declines: bool,
            ) -> Result<Outcome<Verdict<Order, Decline>>, ShopError> {
                let order = body(db, cmd) $($wait)*?;
                let verdict = if declines {
                    Verdict::Failed(Decline::TooExpensive { limit_cents: 1 })
                } else {
                    Verdict::Completed(order)
                };
                Ok(verdict.into())
            }
        }

        impl Client for $client {
            const NAME: &str = stringify!($module);
            type Conn = $conn;

            async fn connect(url: &str) -> Self::Conn {
                call!([$($asyncness)?], $module::connect(url))
            }

            async fn sell(conn: &mut Self::Conn) -> diesel::QueryResult<Order> {
                call!([$($asyncness)?], $module::sell(conn, &CMD))
            }

            async fn sell_once(
                conn: &mut Self::Conn,
                intent: &Intent,
            ) -> Result<Outcome<Order>, ShopError> {
                call!([$($asyncness)?], $module::sell_once(conn, intent, &CMD))
            }

            async fn sell_once_read_first(
                conn: &mut Self::Conn,
                intent: &Intent,
            ) -> Result<Outcome<Order>, ShopError> {
                call!([$($asyncness)?], $module::sell_once_read_first(conn, intent, &CMD))
            }

            async fn try_to_sell(
                conn: &mut Self::Conn,
                intent: &Intent,
                declines: bool,
            ) -> Result<Outcome<Verdict<Order, Decline>>, ShopError> {
                call!([$($asyncness)?], $module::try_to_sell(conn, intent, &CMD, declines))
            }
        }
    };
}

client!(SyncPg in sync: diesel::PgConnection, diesel::Connection, [], [], diesel::RunQueryDsl);
client!(
    AsyncPg in asynchronous: diesel_async::AsyncPgConnection, diesel_async::AsyncConnection,
    [async], [.await], diesel_async::RunQueryDsl
);

/// Runs a test's future, and what it spawns, on the one worker of a runtime: what is sent without waiting in between leaves together.
fn run(test: impl Future<Output = ()> + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(runtime.spawn(test))
        .unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()));
}

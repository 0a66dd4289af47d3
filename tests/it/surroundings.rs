//! The backends once more, in surroundings that change nothing of what a call promises.

use std::future::Future;
use std::marker::PhantomData;

use diesel::QueryResult;
use idem_diesel::admin::{Filter, RecordInfo};
use idem_diesel::retention::{Purge, Purged};
use idem_diesel::{Error, Intent, Operation, Outcome, Verdict};

use crate::backend::{Backend, Place};
use crate::shop::{ChangeOrder, CreateOrder, Decline, Gate, Order, Receipt, Script, ShopError};

/// What is done to a fresh database of the backend `B`, and how it is connected to.
pub trait Surroundings<B: Backend>: Send + Sync + 'static {
    fn prepare(place: &Place);

    fn connect_to(url: &str) -> impl Future<Output = B::Conn> + Send;
}

/// The backend `B` in the surroundings `S`.
pub struct In<S, B>(PhantomData<(S, B)>);

impl<S: Surroundings<B>, B: Backend> Backend for In<S, B> {
    type Conn = B::Conn;

    fn is_postgres() -> bool {
        B::is_postgres()
    }

    fn place() -> Place {
        let place = B::place();
        S::prepare(&place);
        place
    }

    fn connect_to(url: &str) -> impl Future<Output = Self::Conn> + Send {
        S::connect_to(url)
    }

    fn sql(conn: &mut Self::Conn, sql: &str) -> impl Future<Output = QueryResult<()>> + Send {
        B::sql(conn, sql)
    }

    fn begin(conn: &mut Self::Conn) -> impl Future<Output = QueryResult<()>> + Send {
        B::begin(conn)
    }

    fn commit(conn: &mut Self::Conn) -> impl Future<Output = QueryResult<()>> + Send {
        B::commit(conn)
    }

    fn rollback(conn: &mut Self::Conn) -> impl Future<Output = QueryResult<()>> + Send {
        B::rollback(conn)
    }

    fn begin_test(conn: &mut Self::Conn) -> impl Future<Output = QueryResult<()>> + Send {
        B::begin_test(conn)
    }

    fn text(conn: &mut Self::Conn, sql: &str) -> impl Future<Output = QueryResult<String>> + Send {
        B::text(conn, sql)
    }

    fn create_order(
        conn: &mut Self::Conn,
        intent: &Intent,
        cmd: &CreateOrder,
    ) -> impl Future<Output = Result<Outcome<Order>, ShopError>> + Send {
        B::create_order(conn, intent, cmd)
    }

    fn pay_order(
        conn: &mut Self::Conn,
        intent: &Intent,
        cmd: &ChangeOrder,
        gate: &Gate,
    ) -> impl Future<Output = Result<Outcome<Receipt>, ShopError>> + Send {
        B::pay_order(conn, intent, cmd, gate)
    }

    fn cancel_order(
        conn: &mut Self::Conn,
        intent: &Intent,
        cmd: &ChangeOrder,
    ) -> impl Future<Output = Result<Outcome<Receipt>, ShopError>> + Send {
        B::cancel_order(conn, intent, cmd)
    }

    fn advance_order(
        conn: &mut Self::Conn,
        intent: &Intent,
        cmd: &ChangeOrder,
    ) -> impl Future<Output = Result<Outcome<Receipt>, ShopError>> + Send {
        B::advance_order(conn, intent, cmd)
    }

    fn charge(
        conn: &mut Self::Conn,
        intent: &Intent,
        cmd: &CreateOrder,
    ) -> impl Future<Output = Result<Outcome<Verdict<i64, Decline>>, ShopError>> + Send {
        B::charge(conn, intent, cmd)
    }

    fn perform(
        conn: &mut Self::Conn,
        intent: Option<&Intent>,
        operation: &Operation,
        script: &Script,
        gate: &Gate,
    ) -> impl Future<Output = Result<Outcome<String>, ShopError>> + Send {
        B::perform(conn, intent, operation, script, gate)
    }

    fn purge(
        conn: &mut Self::Conn,
        options: &Purge,
    ) -> impl Future<Output = Result<Purged, Error>> + Send {
        B::purge(conn, options)
    }

    fn find(
        conn: &mut Self::Conn,
        intent: &Intent,
        operation: &str,
    ) -> impl Future<Output = Result<Option<RecordInfo>, Error>> + Send {
        B::find(conn, intent, operation)
    }

    fn list(
        conn: &mut Self::Conn,
        filter: &Filter,
    ) -> impl Future<Output = Result<Vec<RecordInfo>, Error>> + Send {
        B::list(conn, filter)
    }

    fn forget(
        conn: &mut Self::Conn,
        intent: &Intent,
        operation: &str,
    ) -> impl Future<Output = Result<bool, Error>> + Send {
        B::forget(conn, intent, operation)
    }
}

/// Tests of other files, by their names, on PostgreSQL in these surroundings, sync and async.
macro_rules! once_more {
    (in $surroundings:ident: $($file:ident { $($name:ident),+ $(,)? })+) => {
        $(mod $file {$(
            mod $name {
                use crate::backend::{PgAsync, PgSync, run};
                use crate::surroundings::In;
                use super::super::$surroundings;

                #[test]
                fn pg_sync() {
                    run(crate::$file::$name::body::<In<$surroundings, PgSync>>());
                }

                #[test]
                fn pg_async() {
                    run(crate::$file::$name::body::<In<$surroundings, PgAsync>>());
                }
            }
        )+})+
    };
}
pub(crate) use once_more;

/// Tests of bodies that are generic over their backend, on PostgreSQL in these surroundings, sync and async.
macro_rules! on_postgres {
    (in $surroundings:ident: $($(#[$attribute:meta])* async fn $name:ident<$backend:ident: Backend>() $body:block)+) => {$(
        $(#[$attribute])*
        mod $name {
            #[allow(unused_imports, reason = "not every body needs every name of its file")]
            use super::*;
            use crate::backend::{Backend, PgAsync, PgSync, run};
            use crate::surroundings::In;

            async fn body<$backend: Backend>() $body

            #[test]
            fn pg_sync() {
                run(body::<In<$surroundings, PgSync>>());
            }

            #[test]
            fn pg_async() {
                run(body::<In<$surroundings, PgAsync>>());
            }
        }
    )+};
}
pub(crate) use on_postgres;

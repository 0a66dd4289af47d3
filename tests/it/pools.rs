//! The guards of r2d2, bb8 and deadpool: the same handlers, and a pool of one connection after a dropped call.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use diesel::connection::SimpleConnection;
use diesel::r2d2::{ConnectionManager, Pool as R2d2Pool, PooledConnection};
use diesel::{PgConnection, SqliteConnection};
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, bb8, deadpool};
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use idem_diesel::{
    Async, BoundIntent, Error, IdempotentConnection, Intent, Operation, Outcome, Retention,
    idempotent,
};

use crate::backend::{Backend, PgSync, Place, SqliteSync, intent, run};

const EFFECT: &str = "INSERT INTO effects (name) VALUES ('e')";

#[idempotent(scope = "tests.pooled", ttl = "48h")]
fn on_r2d2_sqlite(
    db: &mut PooledConnection<ConnectionManager<SqliteConnection>>,
    intent: &Intent,
) -> Result<Outcome<i32>, Error> {
    db.batch_execute(EFFECT)?;
    Ok(7.into())
}

#[idempotent(scope = "tests.pooled", ttl = "48h")]
fn on_r2d2_postgres(
    db: &mut PooledConnection<ConnectionManager<PgConnection>>,
    intent: &Intent,
) -> Result<Outcome<i32>, Error> {
    db.batch_execute(EFFECT)?;
    Ok(7.into())
}

#[test]
fn r2d2() {
    let place = SqliteSync::place();
    let pool = R2d2Pool::builder()
        .max_size(1)
        .build(ConnectionManager::new(place.url()))
        .unwrap();
    for is_replayed in [false, true] {
        let outcome = on_r2d2_sqlite(&mut pool.get().unwrap(), &intent("k")).unwrap();
        assert_eq!(outcome.is_replayed(), is_replayed);
    }
    assert_eq!((place.effects(), place.records()), (1, 1));

    let place = PgSync::place();
    let pool = R2d2Pool::builder()
        .max_size(1)
        .build(ConnectionManager::new(place.url()))
        .unwrap();
    for is_replayed in [false, true] {
        let outcome = on_r2d2_postgres(&mut pool.get().unwrap(), &intent("k")).unwrap();
        assert_eq!(outcome.is_replayed(), is_replayed);
    }
    assert_eq!((place.effects(), place.records()), (1, 1));
}

/// The attribute on a generic connection, with the documented bound.
#[idempotent(scope = "tests.pooled", ttl = "48h")]
async fn on_any<C>(db: &mut C, intent: &Intent, hangs: bool) -> Result<Outcome<i32>, Error>
where
    C: IdempotentConnection<Flavor = Async> + AsyncConnection,
{
    db.batch_execute(EFFECT).await?;
    if hangs {
        std::future::pending::<()>().await;
    }
    Ok(7.into())
}

/// Calls, drops a call in its body, and calls again, each on a connection that the pool of one gives.
async fn on_a_pool_of_one<C, F>(place: &Place, get: impl Fn() -> F)
where
    C: IdempotentConnection<Flavor = Async> + AsyncConnection,
    F: Future<Output = C>,
{
    for is_replayed in [false, true] {
        let outcome = on_any(&mut get().await, &intent("k"), false).await.unwrap();
        assert_eq!(outcome.is_replayed(), is_replayed);
    }
    {
        let mut db = get().await;
        let key = intent("dropped");
        let mut call = pin!(on_any(&mut db, &key, true));
        // Until the body hangs: the connection answers within the time of many turns of the runtime.
        for _ in 0..10_000 {
            assert!(
                call.as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()))
                    .is_pending()
            );
            tokio::task::yield_now().await;
        }
    }
    assert_eq!((place.effects(), place.records()), (1, 1));
    let outcome = on_any(&mut get().await, &intent("dropped"), false)
        .await
        .unwrap();
    assert!(!outcome.is_replayed());
    assert_eq!((place.effects(), place.records()), (2, 2));
}

async fn bb8_and_deadpool<C>(place: Place)
where
    C: AsyncConnection + diesel_async::pooled_connection::PoolableConnection + Send + 'static,
    AsyncDieselConnectionManager<C>:
        ::bb8::ManageConnection<Connection = C> + ::deadpool::managed::Manager<Type = C>,
    for<'p> ::bb8::PooledConnection<'p, AsyncDieselConnectionManager<C>>:
        IdempotentConnection<Flavor = Async> + AsyncConnection,
    ::deadpool::managed::Object<AsyncDieselConnectionManager<C>>:
        IdempotentConnection<Flavor = Async> + AsyncConnection,
    <AsyncDieselConnectionManager<C> as ::bb8::ManageConnection>::Error: std::fmt::Debug,
    <AsyncDieselConnectionManager<C> as ::deadpool::managed::Manager>::Error: std::fmt::Debug,
{
    let manager = || AsyncDieselConnectionManager::<C>::new(place.url());
    let pool: bb8::Pool<C> = ::bb8::Pool::builder()
        .max_size(1)
        .build(manager())
        .await
        .unwrap();
    on_a_pool_of_one(&place, async || pool.get().await.unwrap()).await;
    drop(pool);
    place.run("DELETE FROM effects; DELETE FROM api_idempotency");
    let pool: deadpool::Pool<C> = ::deadpool::managed::Pool::builder(manager())
        .max_size(1)
        .build()
        .unwrap();
    on_a_pool_of_one(&place, async || pool.get().await.unwrap()).await;
}

#[test]
fn bb8_and_deadpool_on_postgres() {
    run(bb8_and_deadpool::<AsyncPgConnection>(PgSync::place()));
}

#[test]
fn bb8_and_deadpool_on_sqlite() {
    run(bb8_and_deadpool::<SyncConnectionWrapper<SqliteConnection>>(
        SqliteSync::place(),
    ));
}

/// The closure, on an async connection.
#[test]
fn the_closure_form_replays() {
    const CLOSURE: Operation = Operation::new("tests.closure", Retention::literal("48h"));
    run(async {
        let place = PgSync::place();
        let mut db = AsyncPgConnection::establish(place.url()).await.unwrap();
        for is_replayed in [false, true] {
            let body = async |db: &mut AsyncPgConnection, intent: &BoundIntent| {
                db.batch_execute(EFFECT).await?;
                Ok::<_, Error>(Outcome::from(intent.downstream("card").to_string()))
            };
            let outcome = idem_diesel::idempotent(&mut db, &intent("k"), &CLOSURE, &1, body)
                .await
                .unwrap();
            assert_eq!(outcome.is_replayed(), is_replayed);
        }
        assert_eq!((place.effects(), place.records()), (1, 1));
    });
}

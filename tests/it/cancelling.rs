//! What a dropped call leaves running on PostgreSQL, and how soon its key is free.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use diesel::connection::{InstrumentationEvent, SimpleConnection};
use diesel::{Connection, ConnectionError, PgConnection};
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig};
use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use idem_diesel::{
    Canceller, Error, ErrorKind, IdempotentConnection, Intent, Outcome, Policy, idempotent,
};

use crate::backend::{Backend, PgAsync, PgSync, Place, intent, run};

const NO_WAIT: Policy = Policy::new().wait(None);

/// Writes an effect, then runs `then`, then hangs if told to, and says that it does.
#[idempotent(scope = "tests.cancelled", ttl = "48h")]
async fn work<C>(
    db: &mut C,
    intent: &Intent,
    #[idempotent(skip)] then: &str,
    #[idempotent(skip)] hangs: Option<&AtomicBool>,
) -> Result<Outcome<i32>, Error>
where
    C: IdempotentConnection<Flavor = idem_diesel::Async> + AsyncConnection,
{
    db.batch_execute("INSERT INTO effects (name) VALUES ('e')")
        .await?;
    db.batch_execute(then).await?;
    if let Some(hangs) = hangs {
        hangs.store(true, Ordering::Relaxed);
        std::future::pending::<()>().await;
    }
    Ok(7.into())
}

/// The same operation from a session that does not wait for anybody.
#[idempotent(scope = "tests.cancelled", ttl = "48h", policy = NO_WAIT)]
fn work_at_once(db: &mut PgConnection, intent: &Intent) -> Result<Outcome<i32>, Error> {
    db.batch_execute("INSERT INTO effects (name) VALUES ('e')")?;
    Ok(7.into())
}

/// Runs a call until `is_there`, then drops it.
async fn drop_when(is_there: impl Fn() -> bool, call: impl Future) {
    run_until(is_there, pin!(call)).await;
}

/// Runs a call until `is_there`.
async fn run_until(is_there: impl Fn() -> bool, call: Pin<&mut impl Future>) {
    let there = async {
        while !is_there() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = call => panic!("the call ended too early"),
        () = there => {}
    }
}

/// Whether a session of this database is in a state.
fn session(place: &Place, state: &str) -> impl Fn() -> bool {
    let sessions = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND pid <> pg_backend_pid() AND {state}"
    );
    move || place.number(&sessions) > 0
}

const SLEEPING: &str = "state = 'active' AND query LIKE '%pg_sleep%'";
const SLEEP: &str = "SELECT pg_sleep(60)";

/// Calls from another session, which waits for nobody, until the key is free. It takes at most `bound`.
async fn free_within(place: &Place, key: &Intent, bound: Duration) -> Duration {
    let mut other = PgConnection::establish(place.url()).unwrap();
    let started = Instant::now();
    loop {
        match work_at_once(&mut other, key) {
            Ok(outcome) => {
                assert!(!outcome.is_replayed());
                return started.elapsed();
            }
            Err(error) => assert!(matches!(error.kind(), ErrorKind::InFlight { .. })),
        }
        assert!(started.elapsed() < bound, "the key is still taken");
        tokio::task::yield_now().await;
    }
}

/// A handler that waits for something else than the database is dropped: the key is free within 50 ms, which one of ten drops must
/// show, because a machine may be busy, and the connection serves the next call.
#[test]
fn an_idle_call_frees_its_key_at_once() {
    run(async {
        let place = PgAsync::place();
        let mut db = PgAsync::connect(&place).await;
        let mut quickest = Duration::MAX;
        for round in 0..10 {
            let key = intent(&format!("k{round}"));
            let hangs = AtomicBool::new(false);
            drop_when(
                || hangs.load(Ordering::Relaxed),
                work(&mut db, &key, "SELECT 1", Some(&hangs)),
            )
            .await;
            quickest = quickest.min(free_within(&place, &key, Duration::from_secs(5)).await);
            assert!(
                work(&mut db, &key, "SELECT 1", None)
                    .await
                    .unwrap()
                    .is_replayed()
            );
        }
        assert!(quickest < Duration::from_millis(50), "{quickest:?}");
        assert_eq!((place.effects(), place.records()), (10, 10));
    });
}

/// With a statement in flight the connection is broken and the statement cancelled.
#[test]
fn a_running_statement_is_cancelled() {
    run(async {
        let place = PgAsync::place();
        let mut db = PgAsync::connect(&place).await;
        Canceller::new(tokio_postgres::NoTls).watch(&mut db);
        let key = intent("k");
        let hangs = AtomicBool::new(false);
        drop_when(
            session(&place, SLEEPING),
            work(&mut db, &key, SLEEP, Some(&hangs)),
        )
        .await;
        free_within(&place, &key, Duration::from_secs(10)).await;
        let refused = work(&mut db, &intent("other"), "SELECT 1", None)
            .await
            .unwrap_err();
        assert_eq!(refused.kind(), &ErrorKind::ConnectionLost);
        assert_eq!((place.effects(), place.records()), (1, 1));
    });
}

/// The claim itself may be what runs: a duplicate that waits is dropped.
#[test]
fn a_waiting_claim_is_cancelled() {
    run(async {
        let place = PgAsync::place();
        let mut first = PgAsync::connect(&place).await;
        let mut second = PgAsync::connect(&place).await;
        Canceller::new(tokio_postgres::NoTls).watch(&mut second);
        let key = intent("k");
        let hangs = AtomicBool::new(false);
        {
            let mut holder = pin!(work(&mut first, &key, "SELECT 1", Some(&hangs)));
            run_until(|| hangs.load(Ordering::Relaxed), holder.as_mut()).await;
            drop_when(
                session(&place, "wait_event = 'advisory'"),
                work(&mut second, &key, "SELECT 1", None),
            )
            .await;
            let waiters = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' \
                           AND datname = current_database()";
            let started = Instant::now();
            while place.number(waiters) > 0 {
                assert!(started.elapsed() < Duration::from_secs(3), "it still waits");
                tokio::task::yield_now().await;
            }
        }
        free_within(&place, &key, Duration::from_secs(5)).await;
    });
}

/// A canceller leaves the connection of an idle call alone, whether or not the body dropped a statement of its own before.
#[test]
fn an_idle_call_keeps_its_watched_connection() {
    run(async {
        let place = PgAsync::place();
        let mut db = PgAsync::connect(&place).await;
        Canceller::new(tokio_postgres::NoTls).watch(&mut db);
        // Before the call a statement was dropped; the server has long ended it when the call begins.
        let _ = tokio::time::timeout(
            Duration::from_millis(5),
            db.batch_execute("SELECT pg_sleep(0.05)"),
        )
        .await;
        let key = intent("k");
        let hangs = AtomicBool::new(false);
        drop_when(
            || hangs.load(Ordering::Relaxed),
            work(&mut db, &key, "SELECT 1", Some(&hangs)),
        )
        .await;
        assert!(
            !work(&mut db, &key, "SELECT 1", None)
                .await
                .unwrap()
                .is_replayed()
        );
        assert!(Canceller::is_watching(&mut db));
    });
}

/// COMMIT is not cancelled: its effects may be there already.
#[test]
fn a_commit_on_its_way_is_not_cancelled() {
    run(async {
        let place = PgAsync::place();
        place.run(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$; \
             CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED \
                 FOR EACH ROW EXECUTE FUNCTION slow()",
        );
        let mut db = PgAsync::connect(&place).await;
        Canceller::new(tokio_postgres::NoTls).watch(&mut db);
        let key = intent("k");
        drop_when(
            session(&place, "wait_event = 'PgSleep'"),
            work(&mut db, &key, "SELECT 1", None),
        )
        .await;
        assert!(
            work(&mut db, &key, "SELECT 1", None)
                .await
                .unwrap()
                .is_replayed()
        );
        assert_eq!((place.effects(), place.records()), (1, 1));
    });
}

/// A pool of one connection gives another one after a call was cancelled.
#[test]
fn a_pool_replaces_a_connection_whose_statement_was_cancelled() {
    run(async {
        let place = PgAsync::place();
        let canceller = Canceller::new(tokio_postgres::NoTls);
        let mut config = ManagerConfig::default();
        config.custom_setup = Box::new(move |url| {
            let canceller = canceller.clone();
            Box::pin(async move {
                let mut db = AsyncPgConnection::establish(url).await?;
                canceller.watch(&mut db);
                Ok::<_, ConnectionError>(db)
            })
        });
        let manager =
            AsyncDieselConnectionManager::<AsyncPgConnection>::new_with_config(place.url(), config);
        let pool = ::deadpool::managed::Pool::builder(manager)
            .max_size(1)
            .build()
            .unwrap();
        let key = intent("k");
        let hangs = AtomicBool::new(false);
        {
            let mut db: ::deadpool::managed::Object<_> = pool.get().await.unwrap();
            drop_when(
                session(&place, SLEEPING),
                work(&mut db, &key, SLEEP, Some(&hangs)),
            )
            .await;
        }
        let mut db = pool.get().await.unwrap();
        assert!(
            !work(&mut db, &key, "SELECT 1", None)
                .await
                .unwrap()
                .is_replayed()
        );
        assert_eq!((place.effects(), place.records()), (1, 1));
    });
}

/// An application's own instrumentation sees what it saw before.
#[test]
fn a_watched_connection_hands_every_event_on() {
    run(async {
        let place = PgSync::place();
        let mut db = AsyncPgConnection::establish(place.url()).await.unwrap();
        let events = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&events);
        Canceller::new(tokio_postgres::NoTls).watch_with(
            &mut db,
            move |_: InstrumentationEvent<'_>| {
                seen.fetch_add(1, Ordering::Relaxed);
            },
        );
        db.batch_execute("SELECT 1").await.unwrap();
        assert_eq!(events.load(Ordering::Relaxed), 2);
        db.set_instrumentation(|_: InstrumentationEvent<'_>| {});
        assert!(!Canceller::is_watching(&mut db));
    });
}

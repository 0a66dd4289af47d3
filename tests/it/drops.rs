//! Calls that are dropped half-way, as a client that hangs up does: one of two states is left, and the key is usable.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use crate::backend::{Backend, PERFORM, PgAsync, SqliteAsync, intent, run};
use crate::shop::{CreateOrder, Ending, Gate, Script};

/// Polls a future at most `polls` times, then drops it. `None`: it was dropped before it was done.
pub async fn poll_at_most<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            // Without a poll left there is nothing to wait for.
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Case B4: whatever the await at which the call is dropped, the same connection and another one see one effect.
///
/// How often a call is polled until it is done depends on the machine, so all numbers up to a bound are tried; `at_least` of them must
/// drop the call half-way.
pub async fn case_b4_dropped_at_every_await<B: Backend>(at_least: usize) {
    let cmd = CreateOrder {
        account_id: 1,
        amount_cents: 5,
    };
    let mut dropped = 0;
    for polls in 1..=30 {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let key = intent("k");
        match poll_at_most(polls, B::create_order(&mut conn, &key, &cmd)).await {
            Some(done) => assert!(!done.unwrap().is_replayed()),
            None => dropped += 1,
        }
        // Another session first: the dropped call must not hold the key.
        let mut other = B::connect(&place).await;
        let first = B::create_order(&mut other, &key, &cmd).await.unwrap();
        let second = B::create_order(&mut conn, &key, &cmd).await.unwrap();
        assert!(second.is_replayed(), "dropped after {polls} polls");
        assert_eq!(first.get(), second.get());
        assert_eq!(
            (place.number("SELECT count(*) FROM orders"), place.records()),
            (1, 1),
            "dropped after {polls} polls"
        );
    }
    assert!(dropped >= at_least, "dropped {dropped} times");
    println!("dropped after {dropped} numbers of polls");
}

#[test]
fn case_b4_pg_async() {
    // Begin, claim, body, store and commit wait for the server once each, at least.
    run(case_b4_dropped_at_every_await::<PgAsync>(5));
}

#[test]
fn case_b4_sqlite_async() {
    run(case_b4_dropped_at_every_await::<SqliteAsync>(1));
}

/// A body that hangs after its writes is dropped; the connection and the key are free at once.
pub async fn a_hanging_body_is_dropped<B: Backend>() {
    let place = B::place();
    let mut conn = B::connect(&place).await;
    let (key, gate) = (intent("k"), Gate::open());
    let hanging = Script::effect("e").ending(Ending::Hang);
    {
        let mut call = pin!(B::perform(&mut conn, Some(&key), &PERFORM, &hanging, &gate));
        // Until the effect is written inside the transaction nothing but the call itself makes progress.
        let is_written = async {
            if B::is_postgres() {
                let idle = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' \
                            AND datname = current_database() AND query LIKE '%effects%'";
                while place.number(idle) == 0 {
                    tokio::task::yield_now().await;
                }
            } else {
                while gate.entered() == 0 {
                    tokio::task::yield_now().await;
                }
            }
        };
        tokio::select! {
            _ = call.as_mut() => panic!("a hanging body does not end"),
            () = is_written => {}
        }
    }
    assert_eq!((place.effects(), place.records()), (0, 0));
    let again = B::perform(&mut conn, Some(&key), &PERFORM, &Script::effect("e"), &gate).await;
    assert!(!again.unwrap().is_replayed());
    assert_eq!((place.effects(), place.records()), (1, 1));
}

#[test]
fn a_hanging_body_is_dropped_pg_async() {
    run(a_hanging_body_is_dropped::<PgAsync>());
}

#[test]
fn a_hanging_body_is_dropped_sqlite_async() {
    run(a_hanging_body_is_dropped::<SqliteAsync>());
}

/// On PostgreSQL this holds on a runtime of one thread, too.
#[test]
fn case_b4_pg_async_on_one_thread() {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(case_b4_dropped_at_every_await::<PgAsync>(5));
}

/// On a runtime of one thread, and inside a `LocalSet`, SQLite rolls back in the drop as well.
#[test]
fn a_dropped_call_frees_sqlite_on_one_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let place = SqliteAsync::place();
        let mut conn = SqliteAsync::connect(&place).await;
        let operation = &PERFORM;
        let key = intent("k");
        let execution = idem_diesel::begin::<_, String>(&mut conn, &key, operation, &1).await;
        drop(execution.unwrap());
        // The write lock is free for others, and the connection is usable.
        let mut other = SqliteAsync::connect(&place).await;
        let cmd = CreateOrder {
            account_id: 1,
            amount_cents: 5,
        };
        let other_key = intent("other");
        let done = SqliteAsync::create_order(&mut other, &other_key, &cmd).await;
        assert!(!done.unwrap().is_replayed());
        let cmd = CreateOrder {
            account_id: 1,
            amount_cents: 5,
        };
        let done = SqliteAsync::create_order(&mut conn, &key, &cmd).await;
        assert!(!done.unwrap().is_replayed());
    });
}

#[test]
fn a_dropped_call_frees_sqlite_inside_a_local_set() {
    run(async {
        let place = SqliteAsync::place();
        let mut conn = SqliteAsync::connect(&place).await;
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let key = intent("k");
                let execution =
                    idem_diesel::begin::<_, String>(&mut conn, &key, &PERFORM, &1).await;
                drop(execution.unwrap());
                let execution =
                    idem_diesel::begin::<_, String>(&mut conn, &key, &PERFORM, &1).await;
                let done = execution.unwrap();
                let idem_diesel::Claimed::Execute(execution) = done else {
                    panic!("the dropped call stored nothing");
                };
                execution
                    .finish(Ok::<_, idem_diesel::Error>("done".to_owned()))
                    .await
                    .unwrap();
            })
            .await;
        assert_eq!(place.records(), 1);
    });
}

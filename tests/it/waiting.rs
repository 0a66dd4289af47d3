//! Two calls of one key at once: who waits, for how long, and what both are told.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use idem_diesel::{ErrorKind, Operation, Outcome, Policy};
use sha2::{Digest, Sha256};
use tokio::task::JoinHandle;

use crate::backend::{
    Backend, PERFORM, PgAsync, PgSync, Place, SqliteAsync, SqliteSync, intent, kind,
    on_every_backend, run,
};
use crate::shop::{Ending, Gate, Script, ShopError};

const IMPATIENT: Operation = PERFORM.with_policy(Policy::new().wait(None));

/// What another caller is told that does not wait: on SQLite there is one writer for all keys.
#[track_caller]
fn assert_turned_away<B: Backend>(kind: &ErrorKind) {
    let is_right = if B::is_postgres() {
        matches!(kind, ErrorKind::InFlight { .. })
    } else {
        matches!(kind, ErrorKind::Busy { .. })
    };
    assert!(is_right, "{kind:?}");
}

/// Starts a call on a connection of its own, which stops at `gate`.
pub async fn start<B: Backend>(
    place: &Place,
    operation: Operation,
    script: Script,
    gate: &Arc<Gate>,
) -> JoinHandle<Result<Outcome<String>, ShopError>> {
    start_key::<B>(place, "k", operation, script, gate).await
}

async fn start_key<B: Backend>(
    place: &Place,
    key: &str,
    operation: Operation,
    script: Script,
    gate: &Arc<Gate>,
) -> JoinHandle<Result<Outcome<String>, ShopError>> {
    let mut conn = B::connect(place).await;
    let (key, gate) = (intent(key), Arc::clone(gate));
    tokio::spawn(async move { B::perform(&mut conn, Some(&key), &operation, &script, &gate).await })
}

/// Waits until a session waits for a key, where that can be seen.
pub fn wait_until_somebody_waits(place: &Place) {
    if place.is_postgres() {
        let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let started = Instant::now();
        tokio::task::block_in_place(|| {
            while place.number(waiting) == 0 {
                assert!(started.elapsed() < Duration::from_secs(60), "nobody waits");
                std::thread::yield_now();
            }
        });
    }
}

on_every_backend! {
    async fn case_a1_a_waiting_call_executes_when_the_first_one_fails<B: Backend>() {
        let place = B::place();
        let gate = Arc::new(Gate::closed());
        let failing = Script::effect("e").ending(Ending::Error);
        let first = start::<B>(&place, PERFORM, failing, &gate).await;
        gate.wait_until_entered();
        let second = start::<B>(&place, PERFORM, Script::effect("e"), &Arc::new(Gate::open())).await;
        wait_until_somebody_waits(&place);
        gate.release();
        assert!(matches!(first.await.unwrap(), Err(ShopError::No)));
        // The scripts differ in their ending only, which is part of the request; nothing of the first is left to compare with.
        assert!(matches!(second.await.unwrap(), Ok(Outcome::Executed(_))));
        assert_eq!((place.effects(), place.records()), (1, 1));
    }

    async fn case_a2_a_waiting_call_replays_when_the_first_one_commits<B: Backend>() {
        let place = B::place();
        for _ in 0..200 {
            place.run("DELETE FROM api_idempotency; DELETE FROM effects");
            let gate = Arc::new(Gate::closed());
            let first = start::<B>(&place, PERFORM, Script::effect("e"), &gate).await;
            gate.wait_until_entered();
            let second = start::<B>(&place, PERFORM, Script::effect("e"), &gate).await;
            wait_until_somebody_waits(&place);
            gate.release();
            assert!(!first.await.unwrap().unwrap().is_replayed());
            assert!(second.await.unwrap().unwrap().is_replayed());
            assert_eq!((place.effects(), place.records(), gate.entered()), (1, 1, 1));
        }
    }

    async fn a_call_that_does_not_wait_is_turned_away_at_once<B: Backend>() {
        let place = B::place();
        let gate = Arc::new(Gate::closed());
        let first = start::<B>(&place, PERFORM, Script::effect("e"), &gate).await;
        gate.wait_until_entered();
        let mut conn = B::connect(&place).await;
        let open = Gate::open();
        let refused = kind(B::perform(&mut conn, Some(&intent("k")), &IMPATIENT, &Script::effect("e"), &open).await);
        assert_turned_away::<B>(&refused);
        // Another request gets the same answer as long as nobody knows what the first one was.
        let refused = kind(B::perform(&mut conn, Some(&intent("k")), &IMPATIENT, &Script::effect("x"), &open).await);
        assert_turned_away::<B>(&refused);
        gate.release();
        first.await.unwrap().unwrap();

        // The connection was left clean, and now the first one is known.
        let refused = kind(B::perform(&mut conn, Some(&intent("k")), &IMPATIENT, &Script::effect("x"), &open).await);
        assert_eq!(refused, ErrorKind::Mismatch);
        let replay = B::perform(&mut conn, Some(&intent("k")), &IMPATIENT, &Script::effect("e"), &open).await;
        assert!(replay.unwrap().is_replayed());
        assert_eq!((place.effects(), open.entered()), (1, 0));
    }

    async fn case_c10_another_request_that_waited_for_the_first_is_a_mismatch<B: Backend>() {
        let place = B::place();
        let gate = Arc::new(Gate::closed());
        let first = start::<B>(&place, PERFORM, Script::effect("e"), &gate).await;
        gate.wait_until_entered();
        let second = start::<B>(&place, PERFORM, Script::effect("x"), &gate).await;
        wait_until_somebody_waits(&place);
        gate.release();
        first.await.unwrap().unwrap();
        assert_eq!(kind(second.await.unwrap()), ErrorKind::Mismatch);
        assert_eq!((place.effects(), place.records(), gate.entered()), (1, 1, 1));
    }

    async fn a_wait_ends_at_its_deadline<B: Backend>() {
        const BRIEF: Duration = Duration::from_millis(200);
        let place = B::place();
        let gate = Arc::new(Gate::closed());
        let first = start::<B>(&place, PERFORM, Script::effect("e"), &gate).await;
        gate.wait_until_entered();
        let started = Instant::now();
        let brief = PERFORM.with_policy(Policy::new().wait(Some(BRIEF)));
        let second = start::<B>(&place, brief, Script::effect("e"), &gate).await;
        let refused = second.await.unwrap().unwrap_err();
        assert!(started.elapsed() >= BRIEF);
        assert_turned_away::<B>(refused.kind().unwrap());
        let error = idem_diesel::Error::find(&refused).unwrap();
        assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
        gate.release();
        first.await.unwrap().unwrap();
        assert_eq!((place.effects(), gate.entered()), (1, 1));
    }

    async fn one_deadline_covers_winners_that_fail_one_after_the_other<B: Backend>() {
        const WAIT: Duration = Duration::from_millis(600);
        let place = B::place();
        let (first_gate, second_gate) = (Arc::new(Gate::closed()), Arc::new(Gate::closed()));
        let failing = Script::effect("e").ending(Ending::Error);
        let first = start::<B>(&place, PERFORM, failing.clone(), &first_gate).await;
        first_gate.wait_until_entered();
        // The next winner is in the queue before the one that counts its time.
        let second = start::<B>(&place, PERFORM, failing, &second_gate).await;
        wait_until_somebody_waits(&place);
        let started = Instant::now();
        let brief = PERFORM.with_policy(Policy::new().wait(Some(WAIT)));
        let third = start::<B>(&place, brief, Script::effect("e"), &Arc::new(Gate::open())).await;
        first_gate.release();
        assert!(matches!(first.await.unwrap(), Err(ShopError::No)));
        if B::is_postgres() {
            second_gate.wait_until_entered();
            // The second winner holds the key for as long as the test likes; the third call has its answer all the same.
            let refused = third.await.unwrap().unwrap_err();
            assert_turned_away::<B>(refused.kind().unwrap());
            assert!(started.elapsed() >= WAIT);
            second_gate.release();
            assert!(matches!(second.await.unwrap(), Err(ShopError::No)));
        } else {
            // SQLite has no queue: either of the two may be next. Both end.
            second_gate.release();
            let _ = (second.await.unwrap(), third.await.unwrap());
        }
        assert!(place.effects() <= 1);
    }

    async fn the_sessions_own_timeouts_are_back_before_the_body_runs<B: Backend>() {
        let (set, get) = if B::is_postgres() {
            ("SET lock_timeout = '12345ms'", "SELECT current_setting('lock_timeout')")
        } else {
            ("PRAGMA busy_timeout = 12345", "SELECT CAST(timeout AS TEXT) FROM pragma_busy_timeout")
        };
        let own = if B::is_postgres() { "12345ms" } else { "12345" };
        let place = B::place();
        let mut conn = B::connect(&place).await;
        B::sql(&mut conn, set).await.unwrap();
        let script = Script::of([format!("INSERT INTO effects {get}")]);
        let gate = Arc::new(Gate::closed());
        let first = start::<B>(&place, PERFORM, Script::effect("e").ending(Ending::Error), &gate).await;
        gate.wait_until_entered();
        let second = tokio::spawn(async move {
            let done = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &script, &Gate::open()).await;
            (done, conn)
        });
        wait_until_somebody_waits(&place);
        gate.release();
        assert!(first.await.unwrap().is_err());
        let (done, mut conn) = second.await.unwrap();
        assert!(!done.unwrap().is_replayed());
        assert_eq!(place.text("SELECT name FROM effects").as_deref(), Some(own));
        assert_eq!(B::text(&mut conn, get).await.unwrap(), own);
    }

    async fn a_row_that_somebody_is_deleting_is_there_until_the_commit<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let gate = Gate::open();
        B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &gate).await.unwrap();
        // An operator deletes the row, and goes to lunch before the commit.
        let mut operator = B::connect(&place).await;
        B::begin(&mut operator).await.unwrap();
        B::sql(&mut operator, "DELETE FROM api_idempotency").await.unwrap();
        for wait in [None, Some(Duration::from_millis(200))] {
            let operation = PERFORM.with_policy(Policy::new().wait(wait));
            let done = B::perform(&mut conn, Some(&intent("k")), &operation, &Script::effect("e"), &gate).await;
            // What was committed last is what counts, and reading it needs no lock.
            assert!(done.unwrap().is_replayed());
        }
        B::rollback(&mut operator).await.unwrap();
        let done = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &gate).await;
        assert!(done.unwrap().is_replayed());
        assert_eq!((place.effects(), gate.entered()), (1, 1));
    }

    async fn the_longest_wait_is_a_wait<B: Backend>() {
        let place = B::place();
        let patient = PERFORM.with_policy(Policy::new().wait(Some(Duration::MAX)));
        let gate = Arc::new(Gate::closed());
        let first = start::<B>(&place, patient, Script::effect("e"), &gate).await;
        gate.wait_until_entered();
        let second = start::<B>(&place, patient, Script::effect("e"), &gate).await;
        wait_until_somebody_waits(&place);
        gate.release();
        first.await.unwrap().unwrap();
        assert!(second.await.unwrap().unwrap().is_replayed());
    }

    async fn fifty_duplicates_at_once_have_one_effect<B: Backend>() {
        let place = B::place();
        let gate = Arc::new(Gate::open());
        let mut calls = Vec::new();
        for _ in 0..50 {
            calls.push(start::<B>(&place, PERFORM, Script::effect("e"), &gate).await);
        }
        let mut executed = 0;
        for call in calls {
            match call.await.unwrap() {
                Ok(outcome) => executed += i32::from(!outcome.is_replayed()),
                Err(error) => assert_turned_away::<B>(error.kind().unwrap()),
            }
        }
        assert_eq!((executed, place.effects(), place.records(), gate.entered()), (1, 1, 1, 1));
    }
}

/// Case A10: a deferred transaction that reads before it writes is told "database is locked" at once, whatever the timeout.
fn case_a10_reading_before_writing_is_never_locked_out<B: Backend>() {
    run(async {
        let place = Arc::new(B::place());
        let reads_first = Script::of([
            "INSERT INTO effects SELECT 'e' || count(*) FROM effects",
            "UPDATE accounts SET balance_cents = balance_cents - 1",
        ]);
        let callers = (0..4).map(|caller| {
            let (place, script) = (Arc::clone(&place), reads_first.clone());
            tokio::spawn(async move {
                let mut conn = B::connect(&place).await;
                for round in 0..200 {
                    // Two callers share a key in each round, so that half of the calls are replays.
                    let key = intent(&format!("{}-{round}", caller / 2));
                    B::perform(&mut conn, Some(&key), &PERFORM, &script, &Gate::open())
                        .await
                        .unwrap();
                }
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.unwrap();
        }
        assert_eq!((place.effects(), place.records()), (400, 400));
        assert_eq!(
            place.number("SELECT balance_cents FROM accounts"),
            10_000 - 400
        );
    });
}

#[test]
fn case_a10_sqlite_sync() {
    case_a10_reading_before_writing_is_never_locked_out::<SqliteSync>();
}

#[test]
fn case_a10_sqlite_async() {
    case_a10_reading_before_writing_is_never_locked_out::<SqliteAsync>();
}

/// Two keys of the tests' tenant and operation whose locks have the same number by accident.
fn colliding_keys() -> [String; 2] {
    let mut seen = HashMap::new();
    for number in 0..1_000_000 {
        let key = format!("k{number}");
        let mut hasher = Sha256::new();
        for part in ["acme/alice", PERFORM.name(), &key] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        let digest = hasher.finalize();
        let lock = digest.first_chunk::<4>().copied();
        if let Some(earlier) = seen.insert(lock, key.clone()) {
            return [earlier, key];
        }
    }
    panic!("a million keys have a million numbers");
}

/// Another key with the same number may delay a call. It is never taken for a call of the same key.
async fn a_collision_of_locks_delays_and_nothing_else<B: Backend>() {
    let [holding, colliding] = colliding_keys();
    let place = B::place();
    let (closed, open) = (Arc::new(Gate::closed()), Arc::new(Gate::open()));
    let script = || Script::effect("e");
    let first = start_key::<B>(&place, &holding, PERFORM, script(), &closed).await;
    closed.wait_until_entered();
    let second = start_key::<B>(&place, &colliding, PERFORM, script(), &open).await;
    wait_until_somebody_waits(&place);
    // Who does not wait at all is not told that its key is in flight.
    let third = start_key::<B>(&place, &colliding, IMPATIENT, script(), &open).await;
    let told = kind(third.await.unwrap());
    assert!(matches!(told, ErrorKind::Busy { .. }), "{told:?}");
    closed.release();
    assert!(!first.await.unwrap().unwrap().is_replayed());
    assert!(!second.await.unwrap().unwrap().is_replayed());
    assert_eq!((place.effects(), place.records()), (2, 2));
}

#[test]
fn a_collision_of_locks_delays_and_nothing_else_pg_sync() {
    run(a_collision_of_locks_delays_and_nothing_else::<PgSync>());
}

#[test]
fn a_collision_of_locks_delays_and_nothing_else_pg_async() {
    run(a_collision_of_locks_delays_and_nothing_else::<PgAsync>());
}

//! Two copies of a message at once: who waits, for how long, and what both are told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use idem_diesel::inbox::{begin_batch, failed};
use idem_diesel::{Consumed, ErrorKind, Isolation, Policy, Subscription};
use tokio::sync::Barrier;

use super::{BILLING, EVENT, MAIL, OTHER, deliver, effect, id, marks, on, rows, start};
use crate::backend::{Backend, Place, on_every_backend};
use crate::shop::{Ending, Gate, Script, ShopError};

/// A wait that is longer than this is a failure.
const AT_MOST: Duration = Duration::from_secs(30);

fn waiting(wait: Option<Duration>) -> Subscription {
    BILLING.with_policy(Policy::new().wait(wait))
}

/// Waits until so many sessions wait for another one's transaction, where that can be seen.
pub fn wait_until_somebody_waits(place: &Place) {
    wait_until_waiting(place, 1);
}

fn wait_until_waiting(place: &Place, sessions: i64) {
    if place.is_postgres() {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let started = Instant::now();
        tokio::task::block_in_place(|| {
            while place.number(waiting) < sessions {
                assert!(started.elapsed() < AT_MOST, "nobody waits");
                std::thread::yield_now();
            }
        });
    }
}

/// What a second copy is told that does not wait any longer: on SQLite there is one writer for all messages.
#[track_caller]
pub fn assert_turned_away<B: Backend>(error: &ShopError) {
    let is_right = if B::is_postgres() {
        matches!(error.kind(), Some(ErrorKind::InFlight { .. }))
    } else {
        matches!(error.kind(), Some(ErrorKind::Busy { .. }))
    };
    assert!(is_right, "{error:?}");
    let error = idem_diesel::Error::find(error).unwrap();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
}

/// The session's own bounds: what sets them, what reads them, and what they are.
struct OwnBounds {
    set: &'static str,
    get: &'static str,
    own: &'static str,
}

impl OwnBounds {
    fn of<B: Backend>(place: &Place) -> Self {
        if B::is_postgres() {
            // Of the database, so that every session has it, also behind a pooler.
            place.run(
                "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = ''12345ms''', current_database()); END $$",
            );
            let get = "SELECT current_setting('statement_timeout')";
            Self {
                set: "SELECT 1",
                get,
                own: "12345ms",
            }
        } else {
            let get = "SELECT CAST(timeout AS TEXT) FROM pragma_busy_timeout";
            Self {
                set: "PRAGMA busy_timeout = 12345",
                get,
                own: "12345",
            }
        }
    }

    fn note(&self) -> Script {
        Script::of([format!("INSERT INTO effects {}", self.get)])
    }
}

on_every_backend! {
    async fn case_f2_the_second_copy_waits_and_is_a_duplicate<B: Backend>() {
        let place = B::place();
        for _ in 0..50 {
            place.run("DELETE FROM processed_messages; DELETE FROM effects");
            let gate = Arc::new(Gate::closed());
            let first = start::<B>(&place, BILLING, EVENT, effect(), &gate).await;
            gate.wait_until_entered();
            let second = start::<B>(&place, BILLING, EVENT, effect(), &gate).await;
            wait_until_somebody_waits(&place);
            gate.release();
            assert_eq!(first.await.unwrap().unwrap(), Consumed::Processed(()));
            assert_eq!(second.await.unwrap().unwrap(), Consumed::Duplicate);
            assert_eq!((place.effects(), marks(&place), gate.entered()), (1, 1, 1));
        }
    }

    async fn case_f2_the_second_copy_runs_when_the_first_one_fails<B: Backend>() {
        let place = B::place();
        let gate = Arc::new(Gate::closed());
        let first = start::<B>(&place, BILLING, EVENT, effect().ending(Ending::Error), &gate).await;
        gate.wait_until_entered();
        let second = start::<B>(&place, BILLING, EVENT, effect(), &gate).await;
        wait_until_somebody_waits(&place);
        gate.release();
        assert!(matches!(first.await.unwrap(), Err(ShopError::No)));
        assert_eq!(second.await.unwrap().unwrap(), Consumed::Processed(()));
        assert_eq!((place.effects(), marks(&place), gate.entered()), (1, 1, 2));
    }

    async fn sixteen_copies_at_once_have_their_effects_once<B: Backend>() {
        let place = B::place();
        let barrier = Arc::new(Barrier::new(16));
        let mut deliveries = Vec::new();
        for _ in 0..16 {
            let mut conn = B::connect(&place).await;
            let barrier = Arc::clone(&barrier);
            deliveries.push(tokio::spawn(async move {
                barrier.wait().await;
                deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &Gate::open()).await
            }));
        }
        let mut processed = 0;
        for delivery in deliveries {
            processed += i32::from(!delivery.await.unwrap().unwrap().is_duplicate());
        }
        assert_eq!((processed, place.effects(), marks(&place)), (1, 1, 1));
    }

    async fn case_f1_another_subscriber_does_not_wait<B: Backend>() {
        if !B::is_postgres() {
            // SQLite has one writer.
            return;
        }
        let place = B::place();
        let gate = Arc::new(Gate::closed());
        let first = start::<B>(&place, BILLING, EVENT, effect(), &gate).await;
        gate.wait_until_entered();
        let mut conn = B::connect(&place).await;
        let done = deliver::<B>(&mut conn, &MAIL, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(done.unwrap(), Consumed::Processed(()));
        gate.release();
        assert_eq!(first.await.unwrap().unwrap(), Consumed::Processed(()));
        assert_eq!((place.effects(), marks(&place)), (2, 2));
    }

    async fn a_copy_that_has_waited_long_enough_is_turned_away_by_name<B: Backend>() {
        let place = B::place();
        let gate = Arc::new(Gate::closed());
        let first = start::<B>(&place, BILLING, EVENT, effect(), &gate).await;
        gate.wait_until_entered();
        let mut conn = B::connect(&place).await;
        for wait in [Some(Duration::from_millis(200)), Some(Duration::from_millis(20)), None] {
            let started = Instant::now();
            let refused = deliver::<B>(&mut conn, &waiting(wait), EVENT, &effect(), &gate).await.unwrap_err();
            assert!(started.elapsed() >= wait.unwrap_or_default() && started.elapsed() < AT_MOST, "{wait:?}");
            assert_turned_away::<B>(&refused);
            assert!(refused.to_string().starts_with("billing: "), "{refused}");
            // The connection was left clean.
            assert_eq!(B::text(&mut conn, "SELECT 'usable'").await.unwrap(), "usable");
        }
        // Whether the content is another one, nobody knows as long as the first one runs.
        let refused = deliver::<B>(&mut conn, &waiting(None), OTHER, &effect(), &gate).await.unwrap_err();
        assert_turned_away::<B>(&refused);
        gate.release();
        assert_eq!(first.await.unwrap().unwrap(), Consumed::Processed(()));
        let again = deliver::<B>(&mut conn, &waiting(None), EVENT, &effect(), &gate).await;
        assert_eq!(again.unwrap(), Consumed::Duplicate);
        assert_eq!((place.effects(), gate.entered()), (1, 1));
    }

    async fn a_batch_that_has_waited_long_enough_is_turned_away_by_name<B: Backend>() {
        let place = B::place();
        let gate = Arc::new(Gate::closed());
        let first = start::<B>(&place, BILLING, EVENT, effect(), &gate).await;
        gate.wait_until_entered();
        let mut conn = B::connect(&place).await;
        let messages = [(id("evt-1"), 1), (id("evt-17"), 10)];
        for wait in [Some(Duration::from_millis(200)), None] {
            let started = Instant::now();
            let db = &mut conn;
            let (subscription, messages) = (waiting(wait), &messages);
            let batch = on!(B::Conn, begin_batch(db, &subscription, messages));
            assert!(started.elapsed() >= wait.unwrap_or_default() && started.elapsed() < AT_MOST, "{wait:?}");
            assert_turned_away::<B>(&batch.map(drop).unwrap_err().into());
        }
        gate.release();
        assert_eq!(first.await.unwrap().unwrap(), Consumed::Processed(()));
        assert_eq!((place.effects(), rows(&place)), (1, 1));
    }

    async fn a_batch_waits_no_longer_for_a_failed_message_than_for_a_new_one<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        for message_id in ["evt-17", "evt-18"] {
            let (db, message_id) = (&mut conn, id(message_id));
            on!(B::Conn, failed(db, &BILLING, &message_id, 1, "no", b"")).unwrap();
        }
        let gate = Arc::new(Gate::closed());
        let first = start::<B>(&place, BILLING, ("evt-18", 10), effect(), &gate).await;
        gate.wait_until_entered();
        let wait = Duration::from_millis(200);
        let started = Instant::now();
        // Something is marked and something taken up before it comes to the one that it has to wait for.
        let messages = [(id("evt-16"), 10), (id("evt-17"), 10), (id("evt-18"), 10)];
        let (db, subscription, messages) = (&mut conn, waiting(Some(wait)), &messages);
        let batch = on!(B::Conn, begin_batch(db, &subscription, messages));
        assert_turned_away::<B>(&batch.map(drop).unwrap_err().into());
        assert!(started.elapsed() >= wait && started.elapsed() < AT_MOST);
        gate.release();
        assert_eq!(first.await.unwrap().unwrap(), Consumed::Processed(()));
        assert_eq!((place.effects(), marks(&place), rows(&place)), (1, 1, 2));
    }

    async fn a_bound_of_locks_of_the_sessions_own_does_not_take_the_name_from_a_wait<B: Backend>() {
        if !B::is_postgres() {
            return;
        }
        let place = B::place();
        place.run("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET lock_timeout = ''100ms''', current_database()); END $$");
        let gate = Arc::new(Gate::closed());
        let first = start::<B>(&place, BILLING, EVENT, effect(), &gate).await;
        gate.wait_until_entered();
        let mut conn = B::connect(&place).await;
        let wait = Duration::from_millis(400);
        let started = Instant::now();
        let refused = deliver::<B>(&mut conn, &waiting(Some(wait)), EVENT, &effect(), &gate).await.unwrap_err();
        assert_turned_away::<B>(&refused);
        assert!(started.elapsed() >= wait);
        gate.release();
        assert_eq!(first.await.unwrap().unwrap(), Consumed::Processed(()));
    }

    async fn the_sessions_own_bounds_are_back_in_the_body_and_after_every_end<B: Backend>() {
        let place = B::place();
        let bounds = OwnBounds::of::<B>(&place);
        let mut conn = B::connect(&place).await;
        B::sql(&mut conn, bounds.set).await.unwrap();
        let (script, open) = (bounds.note(), Gate::open());
        for (message, is_processed) in [(EVENT, true), (EVENT, false), (OTHER, false)] {
            let done = deliver::<B>(&mut conn, &BILLING, message, &script, &open).await;
            assert_eq!(matches!(done, Ok(Consumed::Processed(()))), is_processed, "{done:?}");
            assert_eq!(B::text(&mut conn, bounds.get).await.unwrap(), bounds.own);
        }
        assert_eq!(place.text("SELECT name FROM effects").as_deref(), Some(bounds.own));

        // A copy that is turned away, and one that runs after a wait.
        let gate = Arc::new(Gate::closed());
        let failing = effect().ending(Ending::Error);
        let first = start::<B>(&place, BILLING, ("evt-18", 1), failing, &gate).await;
        gate.wait_until_entered();
        let brief = waiting(Some(Duration::from_millis(50)));
        let refused = deliver::<B>(&mut conn, &brief, ("evt-18", 1), &script, &open).await.unwrap_err();
        assert_turned_away::<B>(&refused);
        assert_eq!(B::text(&mut conn, bounds.get).await.unwrap(), bounds.own);
        let second = tokio::spawn(async move {
            let done = deliver::<B>(&mut conn, &BILLING, ("evt-18", 1), &script, &open).await;
            (done, B::text(&mut conn, bounds.get).await)
        });
        wait_until_somebody_waits(&place);
        gate.release();
        assert!(first.await.unwrap().is_err());
        let (done, after) = second.await.unwrap();
        assert_eq!(done.unwrap(), Consumed::Processed(()));
        assert_eq!(after.unwrap(), bounds.own);
        assert_eq!(place.number(&format!("SELECT count(*) FROM effects WHERE name = '{}'", bounds.own)), 2);
    }

    async fn the_sessions_own_bounds_are_back_where_a_failed_message_is_taken_up<B: Backend>() {
        let place = B::place();
        let bounds = OwnBounds::of::<B>(&place);
        let mut conn = B::connect(&place).await;
        B::sql(&mut conn, bounds.set).await.unwrap();
        let db = &mut conn;
        on!(B::Conn, failed(db, &BILLING, &id("evt-17"), 1, "no", b"")).unwrap();
        assert_eq!(B::text(&mut conn, bounds.get).await.unwrap(), bounds.own);
        let done = deliver::<B>(&mut conn, &BILLING, EVENT, &bounds.note(), &Gate::open()).await;
        assert_eq!(done.unwrap(), Consumed::Processed(()));
        assert_eq!(place.text("SELECT name FROM effects").as_deref(), Some(bounds.own));
    }

    async fn the_sessions_own_bounds_are_back_in_every_batch<B: Backend>() {
        let place = B::place();
        let bounds = OwnBounds::of::<B>(&place);
        let mut conn = B::connect(&place).await;
        B::sql(&mut conn, bounds.set).await.unwrap();
        for message_id in ["evt-2", "evt-3"] {
            let (db, message_id) = (&mut conn, id(message_id));
            on!(B::Conn, failed(db, &BILLING, &message_id, 1, "no", b"")).unwrap();
        }
        let messages = ["evt-1", "evt-2", "evt-3"].map(|message_id| (id(message_id), 1));
        // The second time nothing in it is new.
        for _ in 0..2 {
            let (db, messages) = (&mut conn, &messages);
            let batch = on!(B::Conn, begin_batch(db, &BILLING, messages)).unwrap();
            let mut consumption = batch.into_consumption();
            assert_eq!(B::text(consumption.connection(), bounds.get).await.unwrap(), bounds.own);
            on!(B::Conn, consumption.finish(Ok::<_, ShopError>(()))).unwrap();
            assert_eq!(B::text(&mut conn, bounds.get).await.unwrap(), bounds.own);
        }
    }

    async fn case_c10_vi_another_content_that_waited_for_the_first_is_refused<B: Backend>() {
        let place = B::place();
        let gate = Arc::new(Gate::closed());
        let first = start::<B>(&place, BILLING, EVENT, effect(), &gate).await;
        gate.wait_until_entered();
        let second = start::<B>(&place, BILLING, OTHER, effect(), &gate).await;
        wait_until_somebody_waits(&place);
        gate.release();
        assert_eq!(first.await.unwrap().unwrap(), Consumed::Processed(()));
        let refused = second.await.unwrap().unwrap_err();
        assert_eq!(refused.kind(), Some(&ErrorKind::Mismatch));
        let mut conn = B::connect(&place).await;
        let again = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &gate).await;
        assert_eq!(again.unwrap(), Consumed::Duplicate);
        assert_eq!((place.effects(), marks(&place), gate.entered()), (1, 1, 1));
    }

    async fn case_a4_a_copy_under_a_stricter_isolation_level_is_a_duplicate<B: Backend>() {
        for level in [Isolation::RepeatableRead, Isolation::Serializable] {
            let place = B::place();
            let strict = BILLING.with_policy(Policy::new().isolation(level));
            let gate = Arc::new(Gate::closed());
            let first = start::<B>(&place, strict, EVENT, effect(), &gate).await;
            gate.wait_until_entered();
            let second = start::<B>(&place, strict, EVENT, effect(), &gate).await;
            wait_until_somebody_waits(&place);
            gate.release();
            assert_eq!(first.await.unwrap().unwrap(), Consumed::Processed(()), "{level:?}");
            assert_eq!(second.await.unwrap().unwrap(), Consumed::Duplicate, "{level:?}");
            assert_eq!((place.effects(), marks(&place), gate.entered()), (1, 1, 1), "{level:?}");
        }
    }

    async fn a_row_that_somebody_is_deleting_counts_until_the_commit<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &Gate::open()).await.unwrap();
        if !B::is_postgres() {
            // SQLite has one writer.
            return;
        }
        let mut operator = B::connect(&place).await;
        B::begin(&mut operator).await.unwrap();
        B::sql(&mut operator, "DELETE FROM processed_messages").await.unwrap();
        // Until it is known how that ends, the message is neither new nor a duplicate.
        let brief = waiting(Some(Duration::from_millis(50)));
        let told = deliver::<B>(&mut conn, &brief, EVENT, &effect(), &Gate::open()).await;
        match told {
            Ok(told) => assert_eq!(told, Consumed::Duplicate),
            Err(refused) => assert_turned_away::<B>(&refused),
        }
        B::rollback(&mut operator).await.unwrap();
        let again = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(again.unwrap(), Consumed::Duplicate);
        assert_eq!((place.effects(), marks(&place)), (1, 1));
    }
}

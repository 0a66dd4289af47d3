//! Messages that keep failing: how their attempts are counted, and what becomes of those that are given up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use idem_diesel::fault::{Fault, Pace, Point, arm};
use idem_diesel::inbox::{
    Attempt, DeadMessage, DeliveryCount, Fate, attempt, dead, failed, forget_dead, give_up, redrive,
};
use idem_diesel::{Consumed, ErrorKind, Policy, Retention, Subscription, retention};

use super::races::{assert_turned_away, wait_until_somebody_waits};
use super::{BILLING, EVENT, MAIL, OTHER, deliver, effect, id, marks, on, rows, start};
use crate::backend::{Backend, Place, kind, on_every_backend};
use crate::shop::{Ending, Gate};

/// Neither text nor free of the byte that no text of PostgreSQL has.
const PAYLOAD: &[u8] = b"\xff\x00\xfe {\"a\":1} '";

const THRICE: Subscription = BILLING.with_max_attempts(3);

async fn attempted<B: Backend>(conn: &mut B::Conn, count: DeliveryCount) -> Attempt {
    on!(
        B::Conn,
        attempt(conn, &THRICE, &id("evt-17"), count, PAYLOAD)
    )
    .unwrap()
}

async fn has_failed<B: Backend>(conn: &mut B::Conn, number: u32, error: &str) -> Fate {
    on!(
        B::Conn,
        failed(conn, &THRICE, &id("evt-17"), number, error, PAYLOAD)
    )
    .unwrap()
}

async fn gave_up<B: Backend>(
    conn: &mut B::Conn,
    subscription: &Subscription,
    message_id: &str,
    error: &str,
) {
    let message_id = id(message_id);
    on!(
        B::Conn,
        give_up(conn, subscription, &message_id, 1, error, PAYLOAD)
    )
    .unwrap();
}

async fn dead_of<B: Backend>(
    conn: &mut B::Conn,
    subscriber: &str,
    at_most: u32,
) -> Vec<DeadMessage> {
    on!(B::Conn, dead(conn, subscriber, at_most)).unwrap()
}

async fn only_dead<B: Backend>(conn: &mut B::Conn) -> DeadMessage {
    let [message] = <[_; 1]>::try_from(dead_of::<B>(conn, "billing", 10).await).unwrap();
    message
}

/// Makes every row so many hours older.
fn age_rows(place: &Place, hours: u32) {
    let times = ["processed_at", "forget_at"];
    let older = times.map(|time| {
        if place.is_postgres() {
            format!("{time} = {time} - interval '{hours} hours'")
        } else {
            format!("{time} = strftime('%Y-%m-%d %H:%M:%f', {time}, '-{hours} hours')")
        }
    });
    place.run(&format!(
        "UPDATE processed_messages SET {}",
        older.join(", ")
    ));
}

on_every_backend! {
    async fn a_first_delivery_writes_nothing<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        for (count, number) in [
            (DeliveryCount::First, 1),
            (DeliveryCount::Exact(1), 1),
            (DeliveryCount::Exact(0), 1),
            // A broker that counts is believed, until its count is too high.
            (DeliveryCount::Exact(3), 3),
        ] {
            assert_eq!(attempted::<B>(&mut conn, count).await, Attempt::Go { number });
        }
        assert_eq!(rows(&place), 0);
    }

    async fn a_broker_that_counts_is_believed<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        assert_eq!(attempted::<B>(&mut conn, DeliveryCount::Exact(4)).await, Attempt::GivenUp);
        let message = only_dead::<B>(&mut conn).await;
        assert_eq!((message.attempts, message.last_error, &message.payload[..]), (3, None, PAYLOAD));
        assert_eq!(message.id, id("evt-17"));
    }

    async fn a_count_beyond_all_bounds_is_too_high_and_nothing_else<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        assert_eq!(attempted::<B>(&mut conn, DeliveryCount::Exact(u32::MAX)).await, Attempt::GivenUp);
        assert!(only_dead::<B>(&mut conn).await.attempts >= 3);
        assert_eq!(rows(&place), 1);
    }

    async fn attempts_that_were_killed_count_when_the_broker_only_says_again<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        // Nobody says how any of these ended.
        assert_eq!(attempted::<B>(&mut conn, DeliveryCount::First).await, Attempt::Go { number: 1 });
        assert_eq!(attempted::<B>(&mut conn, DeliveryCount::Again).await, Attempt::Go { number: 2 });
        assert_eq!(attempted::<B>(&mut conn, DeliveryCount::Again).await, Attempt::Go { number: 3 });
        assert_eq!(attempted::<B>(&mut conn, DeliveryCount::Again).await, Attempt::GivenUp);
        let message = only_dead::<B>(&mut conn).await;
        assert_eq!((message.attempts, message.last_error, &message.payload[..]), (3, None, PAYLOAD));
    }

    async fn an_attempt_counts_once_whether_it_was_killed_or_failed<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        assert_eq!(attempted::<B>(&mut conn, DeliveryCount::First).await, Attempt::Go { number: 1 });
        assert_eq!(has_failed::<B>(&mut conn, 1, "first").await, Fate::Again);
        assert_eq!(attempted::<B>(&mut conn, DeliveryCount::Again).await, Attempt::Go { number: 2 });
        assert_eq!(has_failed::<B>(&mut conn, 2, "second").await, Fate::Again);
        // The third one is killed.
        assert_eq!(attempted::<B>(&mut conn, DeliveryCount::Again).await, Attempt::Go { number: 3 });
        assert_eq!(attempted::<B>(&mut conn, DeliveryCount::Again).await, Attempt::GivenUp);
        // What is known of the last failure stays known.
        let message = only_dead::<B>(&mut conn).await;
        assert_eq!((message.attempts, message.last_error.as_deref()), (3, Some("second")));
        assert_eq!(message.payload, PAYLOAD);
    }

    async fn the_last_failure_makes_a_message_dead_and_its_next_delivery_is_refused<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let failing = effect().ending(Ending::Error);
        for (number, fate) in [(1, Fate::Again), (2, Fate::Again), (3, Fate::Dead)] {
            assert!(deliver::<B>(&mut conn, &THRICE, EVENT, &failing, &Gate::open()).await.is_err());
            assert_eq!(has_failed::<B>(&mut conn, number, &format!("no\0 {number}")).await, fate);
            let dead = "SELECT count(*) FROM processed_messages WHERE state = 'dead'";
            assert_eq!(place.number(dead), i64::from(fate == Fate::Dead));
        }
        // The payload is kept of what is dead alone.
        let message = only_dead::<B>(&mut conn).await;
        assert_eq!((message.attempts, message.last_error.as_deref()), (3, Some("no  3")));
        assert_eq!(message.payload, PAYLOAD);

        let gate = Gate::open();
        for message in [EVENT, OTHER] {
            let refused = deliver::<B>(&mut conn, &THRICE, message, &effect(), &gate).await;
            assert_eq!(kind(refused), ErrorKind::Parked);
        }
        // It is not given up twice: the handler's own mark says what it is.
        assert_eq!(attempted::<B>(&mut conn, DeliveryCount::Exact(4)).await, Attempt::Go { number: 4 });
        assert_eq!(only_dead::<B>(&mut conn).await, message);
        assert_eq!((place.effects(), rows(&place), gate.entered()), (0, 1, 0));
        // To another subscriber it is a message like any other.
        let done = deliver::<B>(&mut conn, &MAIL, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(done.unwrap(), Consumed::Processed(()));
    }

    async fn a_payload_is_kept_of_what_is_dead_alone<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        assert_eq!(has_failed::<B>(&mut conn, 1, "no").await, Fate::Again);
        assert_eq!(place.number("SELECT count(payload) FROM processed_messages"), 0);
        assert_eq!(has_failed::<B>(&mut conn, 3, "no").await, Fate::Dead);
        assert_eq!(place.number("SELECT count(payload) FROM processed_messages"), 1);
        // Once it has its effects, nobody needs it any more.
        let db = &mut conn;
        on!(B::Conn, redrive(db, "billing", &id("evt-17"))).unwrap().unwrap();
        let done = deliver::<B>(&mut conn, &THRICE, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(done.unwrap(), Consumed::Processed(()));
        assert_eq!(place.number("SELECT count(payload) FROM processed_messages"), 0);
    }

    async fn a_message_that_failed_before_is_processed_after_all<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        assert_eq!(has_failed::<B>(&mut conn, 1, "no").await, Fate::Again);
        assert_eq!((marks(&place), rows(&place)), (0, 1));
        // A further failure leaves it failed.
        let failing = effect().ending(Ending::Error);
        assert!(deliver::<B>(&mut conn, &THRICE, EVENT, &failing, &Gate::open()).await.is_err());
        assert_eq!((place.effects(), marks(&place), rows(&place)), (0, 0, 1));
        let done = deliver::<B>(&mut conn, &THRICE, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(done.unwrap(), Consumed::Processed(()));
        assert_eq!((place.effects(), marks(&place), rows(&place)), (1, 1, 1));
        let again = deliver::<B>(&mut conn, &THRICE, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(again.unwrap(), Consumed::Duplicate);
        // Its content is known from now on.
        let refused = deliver::<B>(&mut conn, &THRICE, OTHER, &effect(), &Gate::open()).await;
        assert_eq!(kind(refused), ErrorKind::Mismatch);
        assert_eq!(place.effects(), 1);
    }

    async fn a_message_that_failed_before_is_processed_once_by_two_copies<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        assert_eq!(has_failed::<B>(&mut conn, 1, "no").await, Fate::Again);
        let gate = Arc::new(Gate::closed());
        let first = start::<B>(&place, THRICE, EVENT, effect(), &gate).await;
        gate.wait_until_entered();
        let second = start::<B>(&place, THRICE, EVENT, effect(), &gate).await;
        wait_until_somebody_waits(&place);
        gate.release();
        assert_eq!(first.await.unwrap().unwrap(), Consumed::Processed(()));
        assert_eq!(second.await.unwrap().unwrap(), Consumed::Duplicate);
        assert_eq!((place.effects(), marks(&place), gate.entered()), (1, 1, 1));
    }

    async fn a_failed_message_that_two_copies_have_looked_at_is_processed_once<B: Backend>() {
        if !B::is_postgres() {
            // SQLite has one writer.
            return;
        }
        let place = B::place();
        let mut conn = B::connect(&place).await;
        // A subscriber of this test's own, because the hooks are known by its name.
        let name = format!("two copies {}", std::any::type_name::<B>());
        let subscription = Subscription::new(name.leak(), Retention::literal("7d"));
        let db = &mut conn;
        on!(B::Conn, failed(db, &subscription, &id("evt-17"), 1, "no", b"")).unwrap();
        // Both know that the message has a row before either of them takes it up.
        let both = Arc::new(std::sync::Barrier::new(2));
        let armed = arm(subscription.subscriber(), Pace::Together, move |point| {
            if point == Point::AfterRead {
                tokio::task::block_in_place(|| both.wait());
            }
            Fault::None
        });
        let gate = Arc::new(Gate::closed());
        let mut copies = Vec::new();
        for _ in 0..2 {
            copies.push(start::<B>(&place, subscription, EVENT, effect(), &gate).await);
        }
        gate.wait_until_entered();
        wait_until_somebody_waits(&place);
        gate.release();
        let mut processed = 0;
        for copy in copies {
            processed += i32::from(!copy.await.unwrap().unwrap().is_duplicate());
        }
        drop(armed);
        assert_eq!((processed, place.effects(), marks(&place), gate.entered()), (1, 1, 1, 1));
    }

    async fn a_message_that_becomes_dead_while_a_copy_waits_is_not_processed<B: Backend>() {
        if !B::is_postgres() {
            // SQLite has one writer.
            return;
        }
        let place = B::place();
        let mut conn = B::connect(&place).await;
        assert_eq!(has_failed::<B>(&mut conn, 1, "no").await, Fate::Again);
        let mut operator = B::connect(&place).await;
        B::begin(&mut operator).await.unwrap();
        B::sql(&mut operator, "UPDATE processed_messages SET state = 'dead'").await.unwrap();
        let gate = Arc::new(Gate::open());
        let waiting = start::<B>(&place, THRICE, EVENT, effect(), &gate).await;
        wait_until_somebody_waits(&place);
        B::commit(&mut operator).await.unwrap();
        assert_eq!(kind(waiting.await.unwrap()), ErrorKind::Parked);
        assert_eq!((place.effects(), marks(&place), gate.entered()), (0, 0, 0));
    }

    async fn a_processed_message_is_never_made_dead<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        deliver::<B>(&mut conn, &THRICE, EVENT, &effect(), &Gate::open()).await.unwrap();
        let row = || place.text("SELECT state || attempts || coalesce(last_error, '-') || forget_at FROM processed_messages");
        let before = row();
        gave_up::<B>(&mut conn, &THRICE, "evt-17", "too late").await;
        has_failed::<B>(&mut conn, 1, "too late").await;
        has_failed::<B>(&mut conn, 3, "too late").await;
        // The copy is to be looked at, and is a duplicate.
        for count in [DeliveryCount::Again, DeliveryCount::Exact(3), DeliveryCount::Exact(4)] {
            assert!(matches!(attempted::<B>(&mut conn, count).await, Attempt::Go { .. }), "{count:?}");
        }
        let db = &mut conn;
        assert_eq!(on!(B::Conn, redrive(db, "billing", &id("evt-17"))).unwrap(), None);
        let db = &mut conn;
        assert!(!on!(B::Conn, forget_dead(db, "billing", &id("evt-17"))).unwrap());
        assert!(dead_of::<B>(&mut conn, "billing", 10).await.is_empty());
        assert_eq!(row(), before);
        let again = deliver::<B>(&mut conn, &THRICE, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(again.unwrap(), Consumed::Duplicate);
        assert_eq!(place.effects(), 1);
    }

    async fn dead_messages_are_listed_in_order_for_their_subscriber_alone<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        for message_id in ["b", "a", "c", "B", "é"] {
            gave_up::<B>(&mut conn, &BILLING, message_id, message_id).await;
        }
        gave_up::<B>(&mut conn, &MAIL, "a", "of the other").await;
        assert_eq!(has_failed::<B>(&mut conn, 1, "only failed").await, Fate::Again);
        let ids = |messages: &[DeadMessage]| -> Vec<String> {
            messages.iter().map(|message| message.id.to_string()).collect()
        };
        let all = dead_of::<B>(&mut conn, "billing", 10).await;
        assert_eq!(ids(&all), ["B", "a", "b", "c", "é"]);
        for message in &all {
            assert_eq!(message.last_error.as_deref(), Some(message.id.as_str()));
            assert_eq!((message.attempts, &message.payload[..]), (1, PAYLOAD));
        }
        assert_eq!(ids(&dead_of::<B>(&mut conn, "billing", 2).await), ["B", "a"]);
        assert_eq!(ids(&dead_of::<B>(&mut conn, "billing", 0).await), [""; 0]);
        assert_eq!(dead_of::<B>(&mut conn, "mail", u32::MAX).await.len(), 1);
        assert!(dead_of::<B>(&mut conn, "nobody", 10).await.is_empty());
    }

    async fn an_empty_payload_and_an_empty_error_come_back<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let db = &mut conn;
        on!(B::Conn, give_up(db, &BILLING, &id("evt-17"), 1, "", b"")).unwrap();
        let message = only_dead::<B>(&mut conn).await;
        assert_eq!((message.last_error, message.payload.len()), (None, 0));
        assert_eq!(rows(&place), 1);
    }

    async fn a_redriven_message_is_tried_again_from_the_first_attempt_on<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        assert_eq!(has_failed::<B>(&mut conn, 3, "no such mailbox").await, Fate::Dead);
        let before = only_dead::<B>(&mut conn).await;
        let db = &mut conn;
        let mut given = on!(B::Conn, redrive(db, "billing", &id("evt-17"))).unwrap().unwrap();
        // It is given as it was, but as one that was never tried.
        assert_eq!((given.attempts, before.attempts), (0, 3));
        given.attempts = before.attempts;
        assert_eq!(given, before);
        assert!(dead_of::<B>(&mut conn, "billing", 10).await.is_empty());
        for whose in ["billing", "mail"] {
            let db = &mut conn;
            assert_eq!(on!(B::Conn, redrive(db, whose, &id("evt-17"))).unwrap(), None);
        }
        // It fails once more, and has as many attempts as a new one.
        for (number, fate) in [(1, Fate::Again), (2, Fate::Again), (3, Fate::Dead)] {
            assert_eq!(has_failed::<B>(&mut conn, number, "still no").await, fate);
        }
        let message = only_dead::<B>(&mut conn).await;
        assert_eq!((message.attempts, message.last_error.as_deref()), (3, Some("still no")));
        let db = &mut conn;
        on!(B::Conn, redrive(db, "billing", &id("evt-17"))).unwrap().unwrap();
        let done = deliver::<B>(&mut conn, &THRICE, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(done.unwrap(), Consumed::Processed(()));
        assert_eq!((place.effects(), marks(&place), rows(&place)), (1, 1, 1));
    }

    async fn a_forgotten_dead_message_is_as_new<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        gave_up::<B>(&mut conn, &BILLING, "evt-17", "no").await;
        for is_there in [true, false] {
            let db = &mut conn;
            assert_eq!(on!(B::Conn, forget_dead(db, "billing", &id("evt-17"))).unwrap(), is_there);
        }
        assert_eq!(rows(&place), 0);
        let done = deliver::<B>(&mut conn, &BILLING, OTHER, &effect(), &Gate::open()).await;
        assert_eq!(done.unwrap(), Consumed::Processed(()));
    }

    async fn counting_does_not_wait_for_ever_for_a_copy_that_runs<B: Backend>() {
        let place = B::place();
        let gate = Arc::new(Gate::closed());
        let first = start::<B>(&place, THRICE, EVENT, effect(), &gate).await;
        gate.wait_until_entered();
        let mut conn = B::connect(&place).await;
        let wait = Duration::from_millis(200);
        let brief = THRICE.with_policy(Policy::new().wait(Some(wait)));
        // The first copy is at the gate until all of these have ended.
        let started = Instant::now();
        let db = &mut conn;
        let told = on!(B::Conn, attempt(db, &brief, &id("evt-17"), DeliveryCount::Again, b"")).unwrap_err();
        assert_turned_away::<B>(&told.into());
        let db = &mut conn;
        let told = on!(B::Conn, failed(db, &brief, &id("evt-17"), 1, "no", b"")).unwrap_err();
        assert_turned_away::<B>(&told.into());
        assert!(started.elapsed() >= 2 * wait);
        gate.release();
        assert_eq!(first.await.unwrap().unwrap(), Consumed::Processed(()));
        assert_eq!((place.effects(), marks(&place), rows(&place)), (1, 1, 1));
        // Nothing is left on the connection.
        let again = deliver::<B>(&mut conn, &THRICE, EVENT, &effect(), &gate).await;
        assert_eq!(again.unwrap(), Consumed::Duplicate);
    }

    async fn a_missing_table_is_named_by_everything_that_counts<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        place.run("DROP TABLE processed_messages");
        let missing = ErrorKind::TableMissing { table: "processed_messages" };
        let db = &mut conn;
        let told = on!(B::Conn, attempt(db, &THRICE, &id("evt-17"), DeliveryCount::Again, b"")).unwrap_err();
        assert_eq!(told.kind(), &missing);
        let db = &mut conn;
        let told = on!(B::Conn, failed(db, &THRICE, &id("evt-17"), 1, "no", b"")).unwrap_err();
        assert_eq!(told.kind(), &missing);
        let db = &mut conn;
        let told = on!(B::Conn, dead(db, "billing", 1)).unwrap_err();
        assert_eq!(told.kind(), &missing);
        let db = &mut conn;
        let told = on!(B::Conn, redrive(db, "billing", &id("evt-17"))).unwrap_err();
        assert_eq!(told.kind(), &missing);
        let db = &mut conn;
        let told = on!(B::Conn, forget_dead(db, "billing", &id("evt-17"))).unwrap_err();
        assert_eq!(told.kind(), &missing);
    }

    async fn case_k5_a_message_outlives_what_the_broker_may_still_deliver<B: Backend>() {
        const DAY: Subscription =
            Subscription::new("day", Retention::literal("25h")).redelivered_for(Retention::literal("24h"));
        let place = B::place();
        let mut conn = B::connect(&place).await;
        deliver::<B>(&mut conn, &DAY, EVENT, &effect(), &Gate::open()).await.unwrap();
        age_rows(&place, 24);
        B::purge(&mut conn, &retention::Purge::default()).await.unwrap();
        let again = deliver::<B>(&mut conn, &DAY, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(again.unwrap(), Consumed::Duplicate);
        assert_eq!((place.effects(), marks(&place)), (1, 1));
        // Two hours later nobody delivers it again, and it is forgotten.
        age_rows(&place, 2);
        B::purge(&mut conn, &retention::Purge::default()).await.unwrap();
        assert_eq!(rows(&place), 0);
    }

    async fn case_k4_only_processed_messages_are_forgotten<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        deliver::<B>(&mut conn, &BILLING, ("processed", 10), &effect(), &Gate::open()).await.unwrap();
        let db = &mut conn;
        on!(B::Conn, failed(db, &BILLING, &id("failed"), 1, "no", b"")).unwrap();
        gave_up::<B>(&mut conn, &BILLING, "dead", "no").await;
        // Much older than everything.
        age_rows(&place, 24 * 400);
        B::purge(&mut conn, &retention::Purge::default()).await.unwrap();
        assert_eq!(dead_of::<B>(&mut conn, "billing", 10).await.len(), 1);
        assert_eq!(marks(&place), 0);
    }
}

#[test]
fn case_k5_a_retention_that_is_shorter_than_the_redelivery_is_refused() {
    let [hour, day] = ["1h", "24h"].map(Retention::literal);
    let refused =
        std::panic::catch_unwind(|| Subscription::new("billing", hour).redelivered_for(day));
    let panic = refused.unwrap_err();
    let text = panic.downcast_ref::<&str>().unwrap();
    assert!(
        text.contains("at least as long as the broker may deliver a message again"),
        "{text}"
    );
    assert_eq!(
        Subscription::new("billing", day)
            .redelivered_for(day)
            .retention(),
        day
    );
}

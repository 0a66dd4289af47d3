//! Many messages in one transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use idem_diesel::fault::{Fault, Pace, Point, arm};
use idem_diesel::inbox::{BatchItem, Claimed, begin_batch, failed, give_up};
use idem_diesel::{Consumed, ErrorKind, MessageId, Nested, Policy, Retention, Subscription};
use tokio::sync::{Barrier, Notify};

use super::{BILLING, MAIL, begun, deliver, effect, id, marks, on, rows};
use crate::backend::{Backend, Place, on_every_backend};
use crate::shop::{Gate, ShopError};

const ROUNDS: i32 = 100;

/// A wait that is longer than this is a failure.
const AT_MOST: Duration = Duration::from_secs(30);

/// A subscription of this test and this backend alone, because the hooks are known by its name.
fn own_subscription<B>(test: &str) -> Subscription {
    let name = format!("{test} {}", std::any::type_name::<B>());
    Subscription::new(name.leak(), Retention::literal("7d"))
}

/// What is to be done about each message of a batch, whose effects have the messages' names; then its end.
async fn process<B: Backend>(
    conn: &mut B::Conn,
    subscription: &Subscription,
    messages: &[(MessageId, i64)],
    result: Result<(), ShopError>,
) -> Result<Vec<BatchItem>, ShopError> {
    let batch = on!(B::Conn, begin_batch(conn, subscription, messages))?;
    let items = batch.items().to_vec();
    assert_eq!(items.len(), messages.len());
    let mut consumption = batch.into_consumption();
    for ((message_id, _), item) in messages.iter().zip(&items) {
        if *item == BatchItem::New {
            let insert = format!("INSERT INTO effects (name) VALUES ('{message_id}')");
            B::sql(consumption.connection(), &insert).await?;
        }
    }
    on!(B::Conn, consumption.finish(result))?;
    Ok(items)
}

fn messages<const N: usize>(ids: [&str; N]) -> [(MessageId, i64); N] {
    ids.map(|message_id| (id(message_id), 10))
}

#[track_caller]
fn state_of(place: &Place, message_id: &str) -> Option<String> {
    place.text(&format!(
        "SELECT state FROM processed_messages WHERE message_id = '{message_id}'"
    ))
}

/// Waits for the other one, which must come.
async fn meet(barrier: &Barrier) {
    let met = tokio::time::timeout(AT_MOST, barrier.wait()).await;
    assert!(met.is_ok(), "the other one does not come");
}

/// Two batches of the same two messages in opposite order, at once and again and again: how often they were new, and how often a batch began.
///
/// One that meets a conflict or a deadlock begins once more, which is seen nowhere else.
async fn race<B: Backend>(place: &Place, subscription: Subscription) -> (i64, i64) {
    let begun = Arc::new(AtomicI64::new(0));
    let counted = Arc::clone(&begun);
    let _armed = arm(subscription.subscriber(), Pace::Together, move |point| {
        if point == Point::BeforeBegin {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        Fault::None
    });
    let barrier = Arc::new(Barrier::new(2));
    let mut batches = Vec::new();
    for order in [["a", "b"], ["b", "a"]] {
        let mut conn = B::connect(place).await;
        let barrier = Arc::clone(&barrier);
        batches.push(tokio::spawn(async move {
            let mut new = 0;
            for round in 0..ROUNDS {
                let batch = order.map(|name| (id(&format!("{name}-{round}")), 10));
                meet(&barrier).await;
                let items = process::<B>(&mut conn, &subscription, &batch, Ok(()))
                    .await
                    .unwrap();
                assert!(
                    items == [BatchItem::New; 2] || items == [BatchItem::Duplicate; 2],
                    "{items:?}"
                );
                new += i64::from(items == [BatchItem::New; 2]);
            }
            new
        }));
    }
    let mut new = 0;
    for batch in batches {
        new += batch.await.unwrap();
    }
    (new, begun.load(Ordering::SeqCst))
}

/// The deadlocks that the server has met in this database, but for those of the last second. Where there is one writer there are none.
fn deadlocks(place: &Place) -> i64 {
    if place.is_postgres() {
        place.number("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    } else {
        0
    }
}

/// Makes every change of a row by `event` take its time, so that another session's comes between two of them.
fn take_time(place: &Place, event: &str) {
    if place.is_postgres() {
        place.run(&format!(
            "CREATE FUNCTION take_time() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.002); RETURN new; END';
             CREATE TRIGGER take_time {event} ON processed_messages FOR EACH ROW EXECUTE FUNCTION take_time()"
        ));
    }
}

on_every_backend! {
    async fn a_batch_says_what_is_to_be_done_about_each_message<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        for (message_id, amount) in [("processed", 10), ("other", 9)] {
            deliver::<B>(&mut conn, &BILLING, (message_id, amount), &effect(), &Gate::open()).await.unwrap();
        }
        let db = &mut conn;
        on!(B::Conn, failed(db, &BILLING, &id("failed"), 1, "no", b"")).unwrap();
        let db = &mut conn;
        on!(B::Conn, give_up(db, &BILLING, &id("dead"), 1, "no", b"")).unwrap();
        // What another subscriber has seen says nothing.
        deliver::<B>(&mut conn, &MAIL, ("new", 10), &effect(), &Gate::open()).await.unwrap();
        place.run("DELETE FROM effects");

        let mut all = messages(["new", "processed", "other", "failed", "dead", "also new", "new", "also new", "dead", "processed"]).to_vec();
        all[7].1 = 11;
        let items = process::<B>(&mut conn, &BILLING, &all, Ok(())).await.unwrap();
        assert_eq!(
            items,
            [
                BatchItem::New,
                BatchItem::Duplicate,
                BatchItem::Mismatch,
                BatchItem::New,
                BatchItem::Parked,
                BatchItem::New,
                BatchItem::Duplicate,
                BatchItem::Mismatch,
                BatchItem::Duplicate,
                BatchItem::Duplicate,
            ]
        );
        assert_eq!(place.number("SELECT count(*) FROM effects WHERE name IN ('new', 'failed', 'also new')"), 3);
        assert_eq!(place.effects(), 3);
        assert_eq!(state_of(&place, "failed").as_deref(), Some("processed"));
        assert_eq!(state_of(&place, "dead").as_deref(), Some("dead"));

        // Once more, as a whole and one by one.
        let again = process::<B>(&mut conn, &BILLING, &all[..6], Ok(())).await.unwrap();
        let (duplicate, mismatch, parked) = (BatchItem::Duplicate, BatchItem::Mismatch, BatchItem::Parked);
        assert_eq!(again, [duplicate, duplicate, mismatch, duplicate, parked, duplicate]);
        let one = deliver::<B>(&mut conn, &BILLING, ("also new", 10), &effect(), &Gate::open()).await;
        assert_eq!(one.unwrap(), Consumed::Duplicate);
        assert_eq!(place.effects(), 3);
    }

    async fn a_failed_batch_leaves_nothing_and_its_messages_are_as_new<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let db = &mut conn;
        on!(B::Conn, failed(db, &BILLING, &id("b"), 1, "no", b"")).unwrap();
        let batch = messages(["a", "b"]);
        let done = process::<B>(&mut conn, &BILLING, &batch, Err(ShopError::No)).await;
        assert!(matches!(done, Err(ShopError::No)));
        assert_eq!((place.effects(), marks(&place), rows(&place)), (0, 0, 1));
        // And one that is dropped.
        let (db, given) = (&mut conn, &batch);
        drop(on!(B::Conn, begin_batch(db, &BILLING, given)).unwrap());
        assert_eq!((marks(&place), rows(&place)), (0, 1));
        let items = process::<B>(&mut conn, &BILLING, &batch, Ok(())).await.unwrap();
        assert_eq!(items, [BatchItem::New; 2]);
        assert_eq!((place.effects(), marks(&place)), (2, 2));
    }

    async fn a_batch_with_nothing_new_in_it_ends_well<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let batch = messages(["a", "b"]);
        let items = process::<B>(&mut conn, &BILLING, &batch, Ok(())).await.unwrap();
        assert_eq!(items, [BatchItem::New; 2]);
        for _ in 0..2 {
            let items = process::<B>(&mut conn, &BILLING, &batch, Ok(())).await.unwrap();
            assert_eq!(items, [BatchItem::Duplicate; 2]);
        }
        let items = process::<B>(&mut conn, &BILLING, &[], Ok(())).await.unwrap();
        assert_eq!(items, []);
        assert_eq!((place.effects(), marks(&place)), (2, 2));
    }

    async fn a_body_that_ends_the_transaction_of_a_batch_is_told<B: Backend>() {
        for ending in ["COMMIT", "COMMIT; BEGIN", "ROLLBACK", "ROLLBACK; BEGIN"] {
            for is_retaken in [false, true] {
                let place = B::place();
                let mut conn = B::connect(&place).await;
                if is_retaken {
                    let db = &mut conn;
                    on!(B::Conn, failed(db, &BILLING, &id("a"), 1, "no", b"")).unwrap();
                }
                let (db, batch) = (&mut conn, &messages(["a"]));
                let mut consumption = on!(B::Conn, begin_batch(db, &BILLING, batch)).unwrap().into_consumption();
                B::sql(consumption.connection(), "INSERT INTO effects (name) VALUES ('e')").await.unwrap();
                B::sql(consumption.connection(), ending).await.unwrap();
                let done: Result<(), ShopError> = on!(B::Conn, consumption.finish(Ok(())));
                assert_eq!(crate::backend::kind(done), ErrorKind::RecordLost, "{ending}");
                drop(conn);
                assert_eq!(place.effects(), marks(&place), "{ending}");
            }
        }
    }

    async fn ids_that_look_like_something_else_are_themselves_in_a_batch<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let batch = messages(["17", "017", "1e1", "null", "a b", "a  b", "a\"b", "a\\b", "é", "e\u{301}", "[1]", "Evt", "evt"]);
        let items = process::<B>(&mut conn, &BILLING, &batch, Ok(())).await.unwrap();
        assert_eq!(items, [BatchItem::New; 13]);
        let items = process::<B>(&mut conn, &BILLING, &batch, Ok(())).await.unwrap();
        assert_eq!(items, [BatchItem::Duplicate; 13]);
        for (message_id, amount) in batch {
            let again = begun::<B>(&mut conn, &BILLING, &message_id, &amount).await;
            assert!(matches!(again, Ok(Claimed::Duplicate)), "{message_id}");
        }
        assert_eq!((place.effects(), marks(&place)), (13, 13));
    }

    async fn case_a5_two_batches_in_opposite_order_never_wait_in_a_circle<B: Backend>() {
        let place = B::place();
        take_time(&place, "BEFORE INSERT");
        let subscription = own_subscription::<B>("case_a5");
        let (new, begun) = race::<B>(&place, subscription).await;
        let rounds = i64::from(ROUNDS);
        assert_eq!((new, place.effects(), marks(&place)), (rounds, 2 * rounds, 2 * rounds));
        assert_eq!(place.number("SELECT count(DISTINCT name) FROM effects"), 2 * rounds);
        assert_eq!((begun, deadlocks(&place)), (2 * rounds, 0));
    }

    async fn case_a5_batches_that_take_up_failed_messages_never_wait_in_a_circle<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let subscription = own_subscription::<B>("case_a5 failed");
        for round in 0..ROUNDS {
            for name in ["a", "b"] {
                let (db, message_id) = (&mut conn, id(&format!("{name}-{round}")));
                on!(B::Conn, failed(db, &subscription, &message_id, 1, "no", b"")).unwrap();
            }
        }
        take_time(&place, "AFTER UPDATE");
        let (new, begun) = race::<B>(&place, subscription).await;
        let rounds = i64::from(ROUNDS);
        assert_eq!((new, place.effects(), marks(&place)), (rounds, 2 * rounds, 2 * rounds));
        // The one that comes second begins once more when it finds that its messages are processed.
        assert!(begun <= 3 * rounds, "begun {begun} times");
        assert_eq!(deadlocks(&place), 0);
    }

    async fn case_a5_two_handlers_that_claim_two_messages_in_opposite_order_both_end<B: Backend>() {
        if !B::is_postgres() {
            // SQLite has one writer: the second handler waits before its first claim.
            return;
        }
        let place = B::place();
        let joined = BILLING.with_policy(Policy::new().nested(Nested::Join));
        let (barrier, committed) = (Arc::new(Barrier::new(2)), Arc::new(Notify::new()));
        let mut handlers = Vec::new();
        for order in [["a", "b"], ["b", "a"]] {
            let mut conn = B::connect(&place).await;
            let (barrier, committed) = (Arc::clone(&barrier), Arc::clone(&committed));
            handlers.push(tokio::spawn(async move {
                let mut conflicts = 0;
                loop {
                    B::begin(&mut conn).await.unwrap();
                    let first = deliver::<B>(&mut conn, &joined, (order[0], 10), &effect(), &Gate::open()).await;
                    if conflicts == 0 {
                        meet(&barrier).await;
                    }
                    let both = match first {
                        Ok(_) => deliver::<B>(&mut conn, &joined, (order[1], 10), &effect(), &Gate::open()).await,
                        failed => failed,
                    };
                    match both {
                        Ok(_) => {
                            B::commit(&mut conn).await.unwrap();
                            committed.notify_one();
                            return conflicts;
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), Some(&ErrorKind::Conflict));
                            B::rollback(&mut conn).await.unwrap();
                            conflicts += 1;
                            assert_eq!(conflicts, 1, "it waits for nobody now");
                            // At once, the two might meet in the same way again.
                            let other = tokio::time::timeout(AT_MOST, committed.notified()).await;
                            assert!(other.is_ok(), "the other one does not end");
                        }
                    }
                }
            }));
        }
        let mut conflicts = 0;
        for handler in handlers {
            conflicts += handler.await.unwrap();
        }
        assert_eq!((conflicts, place.effects(), marks(&place)), (1, 2, 2));
    }
}

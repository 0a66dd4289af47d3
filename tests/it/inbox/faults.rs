//! Every boundary of a delivery x everything that can happen there x every connection: one effect and one mark, whatever it was.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use idem_diesel::fault::{Fault, Pace, Point, arm};
use idem_diesel::{Consumed, Retention, Subscription};
use tokio::sync::Notify;

use super::{EVENT, deliver};
use crate::backend::{Backend, PgAsync, PgSync, Place, SqliteAsync, SqliteSync, run};
use crate::shop::{Gate, Script};

/// What happens to a delivery at a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// The step gives an error.
    Error,
    /// The step panics.
    Panic,
    /// The future is dropped.
    Drop,
}

const SYNC: [Failure; 2] = [Failure::Error, Failure::Panic];
const ASYNC: [Failure; 3] = [Failure::Error, Failure::Panic, Failure::Drop];

const ORDER: i64 = 1;

/// Whether a delivery at this pace comes to the boundary at all.
fn is_reached<B: Backend>(failures: &[Failure], pace: Pace, point: Point) -> bool {
    let pipelines = B::is_postgres() && failures.contains(&Failure::Drop);
    match (pace, point) {
        (Pace::Together, Point::AfterBegin) => false,
        (Pace::Together, Point::AfterStore) => !pipelines,
        (Pace::Apart | Pace::Together, _) => true,
    }
}

/// One cell: the delivery fails at the point, and the message is delivered once more, from a fresh connection and from the same one.
async fn cell<B: Backend>(
    place: &Place,
    boundary: (Pace, Point),
    failure: Failure,
    is_reached: bool,
) {
    let (at_pace, point) = boundary;
    let cell = format!(
        "{} {at_pace:?} {point:?} {failure:?}",
        std::any::type_name::<B>()
    );
    place.run("DELETE FROM effects; UPDATE orders SET status = 'pending'");
    // A subscriber of the cell's own, because the hooks are known by its name.
    let subscription = Subscription::new(cell.clone().leak(), Retention::literal("7d"));
    let (script, gate) = (Script::effect("e").paying(ORDER), Gate::open());
    let reached = Arc::new(AtomicBool::new(false));
    let arrived = Arc::new(Notify::new());
    let (seen, notified) = (Arc::clone(&reached), Arc::clone(&arrived));
    let armed = arm(subscription.subscriber(), at_pace, move |at| {
        if at != point || seen.swap(true, Ordering::SeqCst) {
            return Fault::None;
        }
        match failure {
            Failure::Error => Fault::Error,
            Failure::Panic => Fault::Panic,
            Failure::Drop => {
                notified.notify_one();
                Fault::Hang
            }
        }
    });

    let mut conn = B::connect(place).await;
    let delivery = AssertUnwindSafe(deliver::<B>(
        &mut conn,
        &subscription,
        EVENT,
        &script,
        &gate,
    ));
    let ended = tokio::select! {
        ended = delivery.catch_unwind() => Some(ended),
        () = arrived.notified() => None,
    };
    drop(armed);
    assert_eq!(reached.load(Ordering::SeqCst), is_reached, "{cell}");
    match (is_reached, failure, ended) {
        (true, Failure::Error, Some(Ok(Err(_))))
        | (true, Failure::Panic, Some(Err(_)))
        | (true, Failure::Drop, None)
        | (false, _, Some(Ok(Ok(Consumed::Processed(()))))) => {}
        (_, _, ended) => panic!("{cell}: {ended:?}"),
    }

    let is_committed = !is_reached || point == Point::AfterCommit;
    let mut other = B::connect(place).await;
    let redelivery = deliver::<B>(&mut other, &subscription, EVENT, &script, &gate).await;
    let redelivery = redelivery.unwrap_or_else(|error| panic!("{cell}: {error:?}"));
    assert_eq!(redelivery.is_duplicate(), is_committed, "{cell}");
    let again = deliver::<B>(&mut conn, &subscription, EVENT, &script, &gate).await;
    let again = again.unwrap_or_else(|error| panic!("{cell}: {error:?}"));
    assert_eq!(again, Consumed::Duplicate, "{cell}");
    let marks = format!("SELECT count(*) FROM processed_messages WHERE subscriber_id = '{cell}'");
    assert_eq!((place.effects(), place.number(&marks)), (1, 1), "{cell}");
    assert_eq!(
        place.text("SELECT status FROM orders").as_deref(),
        Some("paid"),
        "{cell}"
    );
}

/// Case F4: all cells of one connection.
fn case_f4<B: Backend>(failures: &[Failure]) {
    run(async {
        let place = B::place();
        place.run("INSERT INTO orders (account_id, amount_cents, status) VALUES (1, 5, 'pending')");
        let mut cells = 0;
        for pace in [Pace::Together, Pace::Apart] {
            for point in Point::ALL {
                for failure in failures {
                    let is_reached = is_reached::<B>(failures, pace, point);
                    cell::<B>(&place, (pace, point), *failure, is_reached).await;
                    cells += 1;
                }
            }
        }
        println!(
            "{cells} cells: {} points x {failures:?} x 2 paces",
            Point::ALL.len()
        );
        assert_eq!(cells, Point::ALL.len() * failures.len() * 2);
    });
}

#[test]
fn case_f4_sqlite_sync() {
    case_f4::<SqliteSync>(&SYNC);
}

#[test]
fn case_f4_sqlite_async() {
    case_f4::<SqliteAsync>(&ASYNC);
}

#[test]
fn case_f4_pg_sync() {
    case_f4::<PgSync>(&SYNC);
}

#[test]
fn case_f4_pg_async() {
    case_f4::<PgAsync>(&ASYNC);
}

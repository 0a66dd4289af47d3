//! Every boundary of a call x everything that can happen there x every connection: one effect, one record, and a replay, whatever it was.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use idem_diesel::fault::{Armed, Fault, Pace, Point, arm};
use idem_diesel::{ErrorKind, Operation, Policy, Retention};
use support::proxy::Proxy;
use tokio::sync::Notify;

use crate::backend::{Backend, PgAsync, PgSync, Place, SqliteAsync, SqliteSync, intent, run};
use crate::shop::{Gate, Script};

/// What happens to a call at a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// The step gives an error.
    Error,
    /// The step panics.
    Panic,
    /// The future is dropped.
    Drop,
    /// The process is killed, by SIGKILL.
    Kill,
    /// The server ends the session.
    Terminate,
    /// The network closes the connection.
    Cut,
    /// The network forwards nothing any more, and says nothing.
    Silence,
}

const LOCAL: [Failure; 3] = [Failure::Error, Failure::Panic, Failure::Kill];
const LOCAL_ASYNC: [Failure; 4] = [Failure::Error, Failure::Panic, Failure::Drop, Failure::Kill];
const REMOTE: [Failure; 6] = [
    Failure::Error,
    Failure::Panic,
    Failure::Kill,
    Failure::Terminate,
    Failure::Cut,
    Failure::Silence,
];
const REMOTE_ASYNC: [Failure; 7] = [
    Failure::Error,
    Failure::Panic,
    Failure::Drop,
    Failure::Kill,
    Failure::Terminate,
    Failure::Cut,
    Failure::Silence,
];

/// The boundaries that are there when a call sends its statements together, as it does in production.
fn together() -> impl Iterator<Item = Point> {
    let apart = [Point::AfterBegin, Point::AfterStore];
    Point::ALL
        .into_iter()
        .filter(move |point| !apart.contains(point))
}

/// The cells of all five tests below.
fn product() -> usize {
    let apart = LOCAL.len() + LOCAL_ASYNC.len() + REMOTE.len() + REMOTE_ASYNC.len();
    Point::ALL.len() * apart + together().count() * REMOTE_ASYNC.len()
}

const ORDER: i64 = 1;

/// A wait that is longer than this is a failure.
const AT_MOST: Duration = Duration::from_secs(60);

fn script() -> Script {
    Script::effect("e").paying(ORDER)
}

/// An operation of a cell's own, because the hooks are known by operation.
fn operation(cell: &str) -> Operation {
    // A client that fell silent is given up after this long.
    let policy = Policy::new().max_idle(Some(Duration::from_millis(300)));
    Operation::new(cell.to_owned().leak(), Retention::literal("48h")).with_policy(policy)
}

/// Asks `failure` at the first time that a call comes to `point`.
fn arm_once(
    operation: &Operation,
    (how, point): (Pace, Point),
    failure: impl Fn() -> Fault + Send + Sync + 'static,
) -> (Armed, Arc<AtomicBool>) {
    let reached = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&reached);
    let armed = arm(operation.name(), how, move |at| {
        if at == point && !seen.swap(true, Ordering::SeqCst) {
            failure()
        } else {
            Fault::None
        }
    });
    (armed, reached)
}

/// One cell: the call fails at the point, is retried on a fresh connection, and the tables are looked at from another.
async fn cell<B: Backend>(name: &str, (how, point): (Pace, Point), failure: Failure) {
    let cell = format!("{name} {how:?} {point:?} {failure:?}");
    let place = B::place();
    place.run("INSERT INTO orders (account_id, amount_cents, status) VALUES (1, 5, 'pending')");
    let operation = operation(&cell);
    if failure == Failure::Kill {
        kill_a_process(name, &place, &operation, (how, point));
    } else {
        fail_here::<B>(&cell, &place, operation, (how, point), failure).await;
    }

    let mut conn = B::connect(&place).await;
    let retry = B::perform(
        &mut conn,
        Some(&intent("k")),
        &operation,
        &script(),
        &Gate::open(),
    )
    .await;
    let answer = retry.unwrap_or_else(|error| panic!("{cell}: the retry failed: {error:?}"));
    assert_eq!((place.effects(), place.records()), (1, 1), "{cell}");
    assert_eq!(
        place.text("SELECT status FROM orders").as_deref(),
        Some("paid"),
        "{cell}"
    );
    assert_eq!(
        place.text("SELECT state FROM api_idempotency").as_deref(),
        Some("completed"),
        "{cell}"
    );
    let later = B::perform(
        &mut conn,
        Some(&intent("k")),
        &operation,
        &script(),
        &Gate::open(),
    )
    .await
    .unwrap();
    assert!(later.is_replayed(), "{cell}");
    assert_eq!(later.get(), answer.get(), "{cell}");
}

/// The failures that happen inside of this process.
async fn fail_here<B: Backend>(
    cell: &str,
    place: &Place,
    operation: Operation,
    (how, point): (Pace, Point),
    failure: Failure,
) {
    let proxy = matches!(failure, Failure::Cut | Failure::Silence)
        .then(|| Arc::new(Proxy::in_front_of(place.url())));
    let mut conn = B::connect_to(proxy.as_ref().map_or(place.url(), |proxy| proxy.url())).await;
    let arrived = Arc::new(Notify::new());
    let (armed, reached) = match failure {
        Failure::Error => arm_once(&operation, (how, point), || Fault::Error),
        Failure::Panic => arm_once(&operation, (how, point), || Fault::Panic),
        Failure::Drop => {
            let arrived = Arc::clone(&arrived);
            arm_once(&operation, (how, point), move || {
                arrived.notify_one();
                Fault::Hang
            })
        }
        Failure::Terminate => {
            let session = B::text(&mut conn, "SELECT CAST(pg_backend_pid() AS text)")
                .await
                .unwrap();
            let url = place.url().to_owned();
            arm_once(&operation, (how, point), move || {
                tokio::task::block_in_place(|| crate::backend::terminate(&url, &session));
                Fault::None
            })
        }
        Failure::Cut | Failure::Silence => {
            let proxy = Arc::clone(proxy.as_ref().unwrap());
            arm_once(&operation, (how, point), move || {
                tokio::task::block_in_place(|| match failure {
                    Failure::Cut => proxy.cut(),
                    _ => proxy.silence(),
                });
                Fault::None
            })
        }
        Failure::Kill => unreachable!("a process is killed by its parent"),
    };
    let running = tokio::spawn(async move {
        B::perform(
            &mut conn,
            Some(&intent("k")),
            &operation,
            &script(),
            &Gate::open(),
        )
        .await
    });
    if failure == Failure::Drop {
        arrived.notified().await;
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled(), "{cell}");
    } else {
        if failure == Failure::Silence {
            // The client knows nothing yet; the server gives it up, and somebody else goes on.
            let mut other = B::connect(place).await;
            let gate = Gate::open();
            let done =
                B::perform(&mut other, Some(&intent("k")), &operation, &script(), &gate).await;
            assert!(done.is_ok(), "{cell}: {done:?}");
            tokio::task::block_in_place(|| proxy.as_ref().unwrap().cut());
        }
        match running.await {
            // Behind these boundaries nothing is sent whose answer matters: the call ends well on a connection that is gone.
            Ok(done) => assert!(
                done.is_err()
                    || (matches!(
                        failure,
                        Failure::Terminate | Failure::Cut | Failure::Silence
                    ) && point == Point::AfterCommit),
                "{cell}: {done:?}"
            ),
            Err(panicked) => assert!(panicked.is_panic() && failure == Failure::Panic, "{cell}"),
        }
    }
    drop(armed);
    assert!(
        reached.load(Ordering::SeqCst),
        "{cell}: the call never came there"
    );
}

/// The name of the variable that tells the process to be killed what to do.
const CHILD: &str = "IDEM_FAULT_CHILD";

/// Runs the call in a process of its own, and kills it when it says that it is there.
fn kill_a_process(name: &str, place: &Place, operation: &Operation, (how, point): (Pace, Point)) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "faults::the_process_that_is_killed",
            "--exact",
            "--nocapture",
        ])
        .env(
            CHILD,
            format!(
                "{name}\n{}\n{}\n{how:?}\n{point:?}",
                place.url(),
                operation.name()
            ),
        )
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_there = lines
        .map_while(Result::ok)
        .any(|line| line.contains("reached the point"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        is_there,
        "{name} {how:?} {point:?}: the process never came there"
    );
}

/// Not a test of its own: what [`kill_a_process`] starts. Without its variable there is nothing to do.
#[test]
fn the_process_that_is_killed() {
    let Ok(what) = std::env::var(CHILD) else {
        return;
    };
    let mut what = what.lines();
    let (name, url) = (what.next().unwrap(), what.next().unwrap());
    let operation = operation(what.next().unwrap());
    let (how, point) = (what.next().unwrap(), what.next().unwrap());
    let how = [Pace::Together, Pace::Apart]
        .into_iter()
        .find(|it| format!("{it:?}") == how)
        .unwrap();
    let point = Point::ALL
        .into_iter()
        .find(|at| format!("{at:?}") == point)
        .unwrap();
    let _armed = arm_once(&operation, (how, point), || {
        println!("reached the point");
        std::io::stdout().flush().unwrap();
        loop {
            std::thread::park();
        }
    });
    match name {
        "sqlite_sync" => run(call_to::<SqliteSync>(url, operation)),
        "sqlite_async" => run(call_to::<SqliteAsync>(url, operation)),
        "pg_sync" => run(call_to::<PgSync>(url, operation)),
        _ => run(call_to::<PgAsync>(url, operation)),
    }
}

async fn call_to<B: Backend>(url: &str, operation: Operation) {
    let mut conn = B::connect_to(url).await;
    let _ = B::perform(
        &mut conn,
        Some(&intent("k")),
        &operation,
        &script(),
        &Gate::open(),
    )
    .await;
}

/// All cells of one connection at one pace.
fn walk<B: Backend>(
    name: &str,
    how: Pace,
    points: impl Iterator<Item = Point>,
    failures: &[Failure],
) {
    run(async {
        let points: Vec<Point> = points.collect();
        let mut cells = 0;
        for point in &points {
            for failure in failures {
                cell::<B>(name, (how, *point), *failure).await;
                cells += 1;
            }
        }
        println!(
            "{name}, {how:?}: {cells} of {} cells: {} points x {failures:?}",
            product(),
            points.len()
        );
        assert_eq!(cells, points.len() * failures.len());
    });
}

fn walk_apart<B: Backend>(name: &str, failures: &[Failure]) {
    walk::<B>(name, Pace::Apart, Point::ALL.into_iter(), failures);
}

#[test]
fn the_product_is_complete() {
    assert_eq!(product(), 9 * (3 + 4 + 6 + 7) + 7 * 7);
}

#[test]
fn sqlite_sync() {
    walk_apart::<SqliteSync>("sqlite_sync", &LOCAL);
}

#[test]
fn sqlite_async() {
    walk_apart::<SqliteAsync>("sqlite_async", &LOCAL_ASYNC);
}

#[test]
fn pg_sync() {
    walk_apart::<PgSync>("pg_sync", &REMOTE);
}

#[test]
fn pg_async() {
    walk_apart::<PgAsync>("pg_async", &REMOTE_ASYNC);
}

/// As it is in production: statements that need no answer before the next are sent together.
#[test]
fn pg_async_together() {
    walk::<PgAsync>("pg_async", Pace::Together, together(), &REMOTE_ASYNC);
}

/// Case B8: COMMIT arrives, and its answer does not. The caller is told that nobody knows; the same key finds out.
async fn case_b8_the_answer_to_commit_is_lost<B: Backend>(how: Pace, last: Point) {
    let place = B::place();
    place.run("INSERT INTO orders (account_id, amount_cents, status) VALUES (1, 5, 'pending')");
    let operation = operation(&format!("{} {how:?}", std::any::type_name::<B>()));
    let proxy = Arc::new(Proxy::in_front_of(place.url()));
    let mut conn = B::connect_to(proxy.url()).await;
    // Every statement is prepared by then.
    let (nothing, gate) = (Script::of(["SELECT 1"]), Gate::open());
    let warm = B::perform(
        &mut conn,
        Some(&intent("warm")),
        &operation,
        &nothing,
        &gate,
    )
    .await;
    assert!(!warm.unwrap().is_replayed());
    let swallowing = Arc::clone(&proxy);
    let (armed, reached) = arm_once(&operation, (how, last), move || {
        tokio::task::block_in_place(|| swallowing.swallow_answers());
        Fault::None
    });
    let running = tokio::spawn(async move {
        let gate = Gate::open();
        B::perform(&mut conn, Some(&intent("k")), &operation, &script(), &gate).await
    });
    tokio::task::block_in_place(|| {
        proxy.wait_until_an_answer_is_lost();
        // It may have been that to the store: the line is cut only when COMMIT has been carried out.
        let started = Instant::now();
        while place.effects() == 0 {
            assert!(started.elapsed() < AT_MOST, "COMMIT never arrives");
            std::thread::yield_now();
        }
        proxy.cut();
    });
    let error = running.await.unwrap().unwrap_err();
    drop(armed);
    assert!(reached.load(Ordering::SeqCst));
    assert_eq!(error.kind(), Some(&ErrorKind::OutcomeUnknown));
    assert_eq!((place.effects(), place.records()), (1, 2));
    let mut conn = B::connect(&place).await;
    let gate = Gate::open();
    let retry = B::perform(&mut conn, Some(&intent("k")), &operation, &script(), &gate).await;
    assert!(retry.unwrap().is_replayed());
    assert_eq!((place.effects(), gate.entered()), (1, 0));
}

#[test]
fn case_b8_pg_sync() {
    run(case_b8_the_answer_to_commit_is_lost::<PgSync>(
        Pace::Apart,
        Point::AfterStore,
    ));
}

#[test]
fn case_b8_pg_async() {
    run(case_b8_the_answer_to_commit_is_lost::<PgAsync>(
        Pace::Apart,
        Point::AfterStore,
    ));
    // COMMIT is sent with the store.
    run(case_b8_the_answer_to_commit_is_lost::<PgAsync>(
        Pace::Together,
        Point::AfterBody,
    ));
}

//! What becomes of a message, for everything that can happen to it. The broker is a function call, the database a file of SQLite.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use diesel::SqliteConnection;
use diesel_async::AsyncConnection;
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use idem_diesel::inbox::{DeadMessage, dead};
use idem_diesel::{Retention, Subscription};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tempfile::TempDir;
use tokio::sync::watch;

use super::*;
use crate::consume::handler;

type Db = SyncConnectionWrapper<SqliteConnection>;

const MAIL: Subscription = Subscription::new("mail", Retention::literal("7d")).with_max_attempts(3);

const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// What the handler does when it is called: the first time the first of them, and so on; the last again and again.
#[derive(Debug, Clone, Copy)]
enum Act {
    Consume,
    Fail(&'static str),
    Permanent(&'static str),
    Library(fn() -> ErrorKind),
    Panic,
}

/// A database, whose connections fail as often as it is told, and a handler with its script.
struct Scene {
    folder: TempDir,
    script: Vec<Act>,
    runs: Arc<AtomicU32>,
    connects: Arc<AtomicU32>,
    /// The numbers of the connections that fail, counted from 1.
    down: std::ops::Range<u32>,
    stop: watch::Sender<bool>,
}

impl Scene {
    async fn new(script: impl Into<Vec<Act>>) -> Self {
        let scene = Self {
            folder: tempfile::tempdir().unwrap(),
            script: script.into(),
            runs: Arc::default(),
            connects: Arc::default(),
            down: 0..0,
            stop: watch::channel(false).0,
        };
        idem_diesel::ensure_schema(&mut scene.db().await)
            .await
            .unwrap();
        scene
    }

    fn path(&self) -> String {
        self.folder.path().join("mail.db").display().to_string()
    }

    async fn db(&self) -> Db {
        Db::establish(&self.path()).await.unwrap()
    }

    fn runs(&self) -> u32 {
        self.runs.load(Ordering::SeqCst)
    }

    async fn dead(&self) -> Vec<DeadMessage> {
        dead(&mut self.db().await, MAIL.subscriber(), 10)
            .await
            .unwrap()
    }

    /// How often the inbox says that the message was tried, without asking it: a further attempt would be one more.
    async fn attempts(&self) -> u32 {
        let again = DeliveryCount::Again;
        let id = MessageId::new("evt-17").unwrap();
        match inbox::attempt(&mut self.db().await, &MAIL, &id, again, b"")
            .await
            .unwrap()
        {
            Attempt::Go { number } => number - 1,
            Attempt::GivenUp => MAIL.max_attempts(),
        }
    }

    async fn deliver(&self, count: DeliveryCount) -> Settlement {
        self.deliver_as(Some("evt-17"), "5", count).await
    }

    /// One delivery to a loop that has just started.
    async fn deliver_as(
        &self,
        id: Option<&str>,
        payload: &str,
        count: DeliveryCount,
    ) -> Settlement {
        let (path, down, connects) = (self.path(), self.down.clone(), Arc::clone(&self.connects));
        let connect = move || {
            let number = connects.fetch_add(1, Ordering::SeqCst) + 1;
            let is_down = down.contains(&number);
            let path = path.clone();
            async move {
                if is_down {
                    return Err(diesel::ConnectionError::BadConnection("down".to_owned()));
                }
                Db::establish(&path).await
            }
        };
        let (script, runs) = (self.script.clone(), Arc::clone(&self.runs));
        let handler = handler(move |db: &mut Db, message| {
            let run = usize::try_from(runs.fetch_add(1, Ordering::SeqCst)).unwrap();
            let act = script.get(run).or(script.last()).copied().unwrap();
            Box::pin(async move {
                let cents: i64 = message.json()?;
                let consumed =
                    inbox::consume(db, &MAIL, message.id(), &cents, async |_db| match act {
                        Act::Consume => Ok(()),
                        Act::Fail(text) => Err(Failed::Own(text)),
                        Act::Permanent(text) => Err(Failed::Permanent(text)),
                        Act::Library(kind) => Err(Failed::Library(kind().into())),
                        Act::Panic => panic!("no stamps"),
                    });
                match consumed.await {
                    Err(Failed::Permanent(text)) => Err(HandlerError::permanent(text)),
                    Err(Failed::Own(text)) => Err(text.into()),
                    Err(Failed::Library(error)) => Err(error.into()),
                    Ok(consumed) => Ok(consumed),
                }
            })
        });
        let consume = ConsumeLoop::new(&MAIL, connect, handler);
        let mut worker = Worker::new(&consume, Stop(self.stop.subscribe()));
        let delivered = Delivered {
            id: id.map(str::to_owned),
            payload: payload.into(),
            headers: Vec::new(),
            count,
        };
        worker.settle(delivered).await
    }
}

enum Failed {
    Own(&'static str),
    Permanent(&'static str),
    Library(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

#[track_caller]
fn comes_again(settlement: Settlement, expected: Reason, attempt: u32) {
    let Settlement::Again { pause, reason } = settlement else {
        panic!("{settlement:?}");
    };
    assert_eq!(reason, expected);
    let least = FIRST_PAUSE * 2_u32.pow(attempt - 1);
    assert!(
        least <= pause && pause <= least * 2,
        "{pause:?} after attempt {attempt}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_processed_message_and_its_duplicate_are_acknowledged() {
    let scene = Scene::new([Act::Consume, Act::Panic]).await;
    assert_eq!(
        scene.deliver(DeliveryCount::First).await,
        Settlement::Acknowledge
    );
    for count in [
        DeliveryCount::First,
        DeliveryCount::Again,
        DeliveryCount::Exact(99),
    ] {
        assert_eq!(scene.deliver(count).await, Settlement::Acknowledge);
    }
    assert!(scene.dead().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_a_usable_id_is_ended_and_never_handled() {
    let scene = Scene::new([Act::Consume]).await;
    let long = "e".repeat(256);
    for id in [
        None,
        Some(""),
        Some("  "),
        Some("a\nb"),
        Some(long.as_str()),
    ] {
        let settlement = scene.deliver_as(id, "5", DeliveryCount::First).await;
        assert_eq!(settlement, Settlement::End, "{id:?}");
    }
    assert_eq!(scene.runs(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_keeps_failing_is_parked_with_its_last_error() {
    let counting = [1, 2, 3].map(DeliveryCount::Exact);
    let flagging = [
        DeliveryCount::First,
        DeliveryCount::Again,
        DeliveryCount::Again,
    ];
    for counts in [counting, flagging] {
        let scene = Scene::new(["one", "two", "three"].map(Act::Fail)).await;
        let [first, second, third] = counts;
        comes_again(scene.deliver(first).await, Reason::Failed, 1);
        comes_again(scene.deliver(second).await, Reason::Failed, 2);
        assert_eq!(scene.deliver(third).await, Settlement::End);
        let dead = scene.dead().await;
        assert_eq!(dead.len(), 1);
        assert_eq!((dead[0].attempts, &dead[0].payload[..]), (3, &b"5"[..]));
        assert_eq!(dead[0].last_error.as_deref(), Some("three"));
        // It is delivered once more all the same.
        assert_eq!(scene.deliver(third).await, Settlement::End);
        assert_eq!(scene.runs(), 4);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_kills_its_process_is_parked_before_it_is_handled_once_more() {
    let scene = Scene::new([Act::Consume]).await;
    for attempts in 1..=3 {
        assert_eq!(scene.attempts().await, attempts);
    }
    assert_eq!(scene.deliver(DeliveryCount::Again).await, Settlement::End);
    assert_eq!(
        scene.runs(),
        1,
        "the handler says itself that the message is parked"
    );
    assert_eq!(scene.dead().await[0].last_error, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_a_failed_attempt() {
    let scene = Scene::new([Act::Panic, Act::Consume]).await;
    comes_again(scene.deliver(DeliveryCount::First).await, Reason::Failed, 1);
    assert_eq!(scene.attempts().await, 1);
    assert_eq!(
        scene.deliver(DeliveryCount::Again).await,
        Settlement::Acknowledge
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_panic_is_what_the_parked_message_shows() {
    let scene = Scene::new([Act::Panic]).await;
    for number in 1..=3 {
        scene.deliver(DeliveryCount::Exact(number)).await;
    }
    let text = scene.dead().await[0].last_error.clone();
    assert_eq!(text.as_deref(), Some("the handler panicked: no stamps"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_attempt_can_mend_is_parked_at_once() {
    let scene = Scene::new([Act::Permanent("no such event type")]).await;
    assert_eq!(scene.deliver(DeliveryCount::First).await, Settlement::End);
    let malformed = scene
        .deliver_as(Some("evt-18"), "{", DeliveryCount::First)
        .await;
    assert_eq!(malformed, Settlement::End);
    let dead = scene.dead().await;
    let texts: Vec<_> = dead
        .iter()
        .map(|dead| dead.last_error.as_deref().unwrap())
        .collect();
    assert_eq!(texts[0], "no such event type");
    assert!(texts[1].starts_with("invalid type: map"), "{texts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_message_under_a_processed_id_is_ended_and_changes_nothing() {
    let scene = Scene::new([Act::Consume]).await;
    scene.deliver(DeliveryCount::First).await;
    let other = scene
        .deliver_as(Some("evt-17"), "6", DeliveryCount::First)
        .await;
    assert_eq!(other, Settlement::End);
    assert!(scene.dead().await.is_empty());
    assert_eq!(
        scene.deliver(DeliveryCount::Again).await,
        Settlement::Acknowledge
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_held_while_a_copy_is_in_flight_or_the_database_busy_and_nothing_counts() {
    const RETRY_AFTER: Duration = Duration::from_millis(10);
    let in_flight = || ErrorKind::InFlight {
        retry_after: RETRY_AFTER,
    };
    let busy = || ErrorKind::Busy {
        retry_after: RETRY_AFTER,
    };
    for kind in [in_flight, busy] {
        let held = Act::Library(kind);
        let scene = Scene::new([held, held, held, Act::Fail("no stamps")]).await;
        let settlement = scene.deliver(DeliveryCount::First).await;
        comes_again(settlement, Reason::Failed, 1);
        assert_eq!((scene.runs(), scene.attempts().await), (4, 1));

        let scene = Scene::new([held]).await;
        scene.stop.send_replace(true);
        comes_again(
            scene.deliver(DeliveryCount::First).await,
            Reason::Untried,
            1,
        );
        assert_eq!(scene.runs(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_at_commit_counts() {
    let scene = Scene::new([Act::Library(|| ErrorKind::OutcomeUnknown)]).await;
    comes_again(scene.deliver(DeliveryCount::First).await, Reason::Failed, 1);
    assert_eq!(scene.attempts().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_forgiven_once() {
    let lost = Act::Library(|| ErrorKind::ConnectionLost);
    let scene = Scene::new([lost, Act::Consume]).await;
    assert_eq!(
        scene.deliver(DeliveryCount::First).await,
        Settlement::Acknowledge
    );
    assert_eq!(scene.runs(), 2);

    let scene = Scene::new([lost]).await;
    comes_again(scene.deliver(DeliveryCount::First).await, Reason::Failed, 1);
    assert_eq!((scene.runs(), scene.attempts().await), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_held_until_the_database_is_back() {
    let mut scene = Scene::new([Act::Consume]).await;
    scene.down = 1..4;
    assert_eq!(
        scene.deliver(DeliveryCount::First).await,
        Settlement::Acknowledge
    );
    assert_eq!(scene.connects.load(Ordering::SeqCst), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_noted_when_the_database_is_back_and_the_handler_does_not_run_again() {
    let mut scene = Scene::new([Act::Fail("no stamps")]).await;
    scene.down = 2..4;
    comes_again(scene.deliver(DeliveryCount::First).await, Reason::Failed, 1);
    assert_eq!((scene.runs(), scene.attempts().await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_broker_counted_during_an_outage_is_no_attempt() {
    let mut scene = Scene::new([Act::Fail("no stamps")]).await;
    scene.down = 1..u32::MAX;
    scene.stop.send_replace(true);
    for number in 1..=20 {
        let settlement = scene.deliver(DeliveryCount::Exact(number)).await;
        comes_again(settlement, Reason::Untried, 1);
    }
    scene.down = 0..0;
    // The one before may have been ended by its process; that is all that is known.
    comes_again(
        scene.deliver(DeliveryCount::Exact(21)).await,
        Reason::Failed,
        2,
    );
    assert_eq!((scene.runs(), scene.attempts().await), (1, 2));
}

/// Its time stands still, so it has no database.
#[test]
fn a_message_is_given_back_when_the_database_stays_away_or_the_loop_ends() {
    let scene = Scene::new([Act::Consume]);
    let mut scene = tokio::runtime::Runtime::new().unwrap().block_on(scene);
    scene.down = 1..u32::MAX;
    let paused = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    paused.block_on(async {
        let start = Instant::now();
        comes_again(
            scene.deliver(DeliveryCount::First).await,
            Reason::Untried,
            1,
        );
        let held = start.elapsed();
        assert!(held <= HELD_AT_MOST && held > HELD_AT_MOST / 3, "{held:?}");

        let start = Instant::now();
        let delivering = scene.deliver(DeliveryCount::First);
        let ending = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            scene.stop.send_replace(true);
        };
        let (settlement, ()) = tokio::join!(delivering, ending);
        comes_again(settlement, Reason::Untried, 1);
        assert_eq!(start.elapsed(), Duration::from_secs(2));
    });
    assert_eq!(scene.runs(), 0);
}

#[test]
fn the_counters_tell_what_became_of_messages() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let acts = [
                Act::Consume,
                Act::Fail("one"),
                Act::Panic,
                Act::Fail("three"),
            ];
            let scene = Scene::new(acts).await;
            scene.deliver(DeliveryCount::First).await;
            scene.deliver(DeliveryCount::Again).await;
            scene.deliver_as(None, "5", DeliveryCount::First).await;
            let scene = Scene::new(&acts[1..]).await;
            for number in 1..=3 {
                scene.deliver(DeliveryCount::Exact(number)).await;
            }
        });
    });
    let mut counters: Vec<_> = snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .map(|(key, _, _, value)| {
            let key = key.key();
            let labels: Vec<_> = key
                .labels()
                .map(|label| (label.key(), label.value()))
                .collect();
            assert_eq!(labels, [("subscriber", "mail")]);
            let DebugValue::Counter(count) = value else {
                panic!("{value:?}");
            };
            (key.name().to_owned(), count)
        })
        .collect();
    counters.sort();
    let expected = [
        ("idem_inbox_dead", 1),
        ("idem_inbox_duplicates", 1),
        ("idem_inbox_failed", 3),
        ("idem_inbox_processed", 1),
        ("idem_inbox_refused", 1),
    ];
    assert_eq!(
        counters,
        expected.map(|(name, count)| (name.to_owned(), count))
    );
}

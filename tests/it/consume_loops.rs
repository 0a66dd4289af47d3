//! Consume loops behind their brokers: the same body with each, on SQLite and PostgreSQL.

use std::collections::HashMap;
use std::future::pending;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::jetstream::{self, consumer, stream};
use async_nats::{HeaderMap, header};
use idem_diesel::inbox::{DeadMessage, dead};
use idem_diesel::{Async, Error, IdempotentConnection, Retention, Subscription, inbox};
use idem_relay::consume::{Handling, RabbitMqQueue};
use idem_relay::{Connect, ConsumeLoop, Handler, Received};
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Connection, ConnectionProperties};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::backend::{Backend, PgAsync, Place, SqliteAsync, run};
use crate::publishers::{fresh_name, soon};

const BILLING: Subscription =
    Subscription::new("billing", Retention::literal("7d")).with_max_attempts(3);

/// Short pauses, for tests that wait for a message to come again.
const SHORT: Duration = Duration::from_millis(10);

/// No test waits for it.
const LONG: Duration = Duration::from_secs(3600);

/// How often something that nobody tells is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How long a broker may take to have done what it was told.
const LEAVES_WITHIN: Duration = Duration::from_secs(20);

/// A backend whose connections are async.
trait Database: Backend<Conn: IdempotentConnection<Flavor = Async>> {}

impl<B: Backend<Conn: IdempotentConnection<Flavor = Async>>> Database for B {}

// --- Brokers --------------------------------------------------------------------------------------------------------------------

/// A queue, or what stands for one.
trait Queue: Send + Sync + Sized + 'static {
    /// An empty one at a broker of all tests.
    fn fresh() -> impl Future<Output = Self> + Send;

    fn send(&self, id: Option<&str>, payload: &str) -> impl Future<Output = ()> + Send;

    fn run<S, H>(
        &self,
        consume: &ConsumeLoop<S, H>,
        shutdown: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = ()> + Send
    where
        S: Connect,
        H: Handler<S::Connection>;

    /// How many messages it has that are not consumed, now that no loop runs.
    fn left(&self) -> impl Future<Output = u64> + Send;

    /// How many it has that no loop has taken.
    fn waiting(&self) -> impl Future<Output = u64> + Send;
}

struct JetStream {
    context: jetstream::Context,
    name: String,
}

impl JetStream {
    async fn at(url: &str) -> Self {
        let client = soon(async_nats::connect(url)).await.unwrap();
        let context = jetstream::new(client);
        let name = fresh_name("billing");
        let config = stream::Config {
            name: name.clone(),
            subjects: vec![name.clone()],
            ..Default::default()
        };
        soon(context.create_stream(config)).await.unwrap();
        let queue = Self { context, name };
        queue.make_consumer().await;
        queue
    }

    async fn make_consumer(&self) {
        let config = consumer::pull::Config {
            durable_name: Some(self.name.clone()),
            // When the server knows that a consumer has crashed.
            ack_wait: Duration::from_secs(1),
            ..Default::default()
        };
        let stream = soon(self.context.get_stream(&self.name)).await.unwrap();
        soon(stream.create_consumer(config)).await.unwrap();
    }

    async fn consumer(&self) -> consumer::PullConsumer {
        let consumer = self
            .context
            .get_consumer_from_stream(&self.name, &self.name);
        soon(consumer).await.unwrap()
    }
}

impl Queue for JetStream {
    async fn fresh() -> Self {
        Self::at(support::nats::shared().url()).await
    }

    async fn send(&self, id: Option<&str>, payload: &str) {
        let mut headers = HeaderMap::new();
        if let Some(id) = id {
            headers.insert(header::NATS_MESSAGE_ID, id);
        }
        let payload = payload.to_owned().into();
        let sent = self
            .context
            .publish_with_headers(self.name.clone(), headers, payload);
        soon(soon(sent).await.unwrap().into_future()).await.unwrap();
    }

    async fn run<S, H>(
        &self,
        consume: &ConsumeLoop<S, H>,
        shutdown: impl Future<Output = ()> + Send,
    ) where
        S: Connect,
        H: Handler<S::Connection>,
    {
        consume
            .run_jetstream(self.consumer().await, shutdown)
            .await
            .unwrap();
    }

    async fn left(&self) -> u64 {
        let info = self.consumer().await.cached_info().clone();
        info.num_pending + u64::try_from(info.num_ack_pending).unwrap()
    }

    async fn waiting(&self) -> u64 {
        self.consumer().await.cached_info().num_pending
    }
}

/// A queue of RabbitMQ, of one of its kinds.
struct RabbitMq<K> {
    url: String,
    name: String,
    channel: lapin::Channel,
    _connection: Connection,
    _kind: PhantomData<K>,
}

/// The kind that says only whether a message was delivered before.
struct Classic;

/// The kind that counts.
struct Quorum;

trait Kind: Send + Sync + 'static {
    const NAME: &'static str;
}

impl Kind for Classic {
    const NAME: &'static str = "classic";
}

impl Kind for Quorum {
    const NAME: &'static str = "quorum";
}

impl<K: Kind> RabbitMq<K> {
    async fn at(url: &str) -> Self {
        let connecting = Connection::connect(url, ConnectionProperties::default());
        let connection = soon(connecting).await.unwrap();
        let channel = soon(connection.create_channel()).await.unwrap();
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await
            .unwrap();
        let name = fresh_name("billing");
        let mut arguments = FieldTable::default();
        arguments.insert("x-queue-type".into(), AMQPValue::LongString(K::NAME.into()));
        let durable = QueueDeclareOptions::durable();
        let declared = channel.queue_declare(name.as_str().into(), durable, arguments);
        soon(declared).await.unwrap();
        Self {
            url: url.to_owned(),
            name,
            channel,
            _connection: connection,
            _kind: PhantomData,
        }
    }
}

impl<K: Kind> Queue for RabbitMq<K> {
    async fn fresh() -> Self {
        Self::at(support::rabbitmq::shared().url()).await
    }

    async fn send(&self, id: Option<&str>, payload: &str) {
        let mut properties = BasicProperties::default().with_delivery_mode(2);
        if let Some(id) = id {
            properties = properties.with_message_id(id.into());
        }
        let (exchange, name) = ("".into(), self.name.as_str().into());
        let options = BasicPublishOptions::default();
        let payload = payload.as_bytes();
        let sent = self
            .channel
            .basic_publish(exchange, name, options, payload, properties);
        assert!(soon(soon(sent).await.unwrap()).await.unwrap().is_ack());
    }

    async fn run<S, H>(
        &self,
        consume: &ConsumeLoop<S, H>,
        shutdown: impl Future<Output = ()> + Send,
    ) where
        S: Connect,
        H: Handler<S::Connection>,
    {
        let queue = RabbitMqQueue::new(&self.url, &self.name).unwrap();
        consume.run_rabbitmq(&queue, shutdown).await;
    }

    async fn left(&self) -> u64 {
        let passive = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::durable()
        };
        let name = self.name.as_str().into();
        let declared = self
            .channel
            .queue_declare(name, passive, FieldTable::default());
        soon(declared).await.unwrap().message_count().into()
    }

    async fn waiting(&self) -> u64 {
        // It does not count what a consumer has.
        self.left().await
    }
}

// --- The handler ----------------------------------------------------------------------------------------------------------------

/// What the handler does with a message.
#[derive(Debug, Clone, Copy)]
enum Act {
    Consume,
    Fail(&'static str),
    Panic,
    /// It waits before COMMIT until the test lets it go on.
    Wait,
    /// It comes to no end: before COMMIT, or between COMMIT and the acknowledgement.
    HangBeforeCommit,
    HangAfterCommit,
}

/// A handler whose effect is a row, and which tells the test what it does.
struct Bill<B> {
    /// What it does in the first, second, … run for a message; then, and for the others, it consumes.
    script: HashMap<&'static str, Vec<Act>>,
    runs: Mutex<HashMap<String, usize>>,
    seen: mpsc::UnboundedSender<String>,
    hangs: Arc<Notify>,
    go_on: Arc<Notify>,
    _database: PhantomData<B>,
}

impl<B> Bill<B> {
    fn next(&self, id: &str) -> Act {
        let mut runs = self.runs.lock().unwrap();
        let run = runs.entry(id.to_owned()).or_default();
        let act = self.script.get(id).and_then(|acts| acts.get(*run));
        *run += 1;
        act.copied().unwrap_or(Act::Consume)
    }
}

impl<B: Database> Handler<B::Conn> for Bill<B> {
    fn handle<'a>(&'a self, db: &'a mut B::Conn, message: &'a Received) -> Handling<'a> {
        Box::pin(async move {
            let id = message.id().as_str();
            let act = self.next(id);
            self.seen.send(id.to_owned()).unwrap();
            let cents: i64 = message.json()?;
            let insert = format!("INSERT INTO effects VALUES ('{id}')");
            let consumed = inbox::consume(db, &BILLING, message.id(), &cents, async |db| {
                B::sql(db, &insert).await.map_err(Error::from)?;
                match act {
                    Act::Consume | Act::HangAfterCommit => {}
                    Act::Fail(text) => return Err(Failed::Own(text)),
                    Act::Panic => panic!("the handler panics, as the test told it"),
                    Act::Wait => self.go_on.notified().await,
                    Act::HangBeforeCommit => {
                        self.hangs.notify_one();
                        pending::<()>().await;
                    }
                }
                Ok(())
            });
            let consumed = consumed.await?;
            if matches!(act, Act::HangAfterCommit) {
                self.hangs.notify_one();
                pending::<()>().await;
            }
            Ok(consumed)
        })
    }
}

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("{0}")]
    Own(&'static str),
    #[error(transparent)]
    Library(#[from] Error),
}

/// A queue, a database, and the loops that a test runs between them one after the other.
struct Scene<Q, B> {
    queue: Arc<Q>,
    place: Arc<Place>,
    pauses: Duration,
    _database: PhantomData<B>,
}

/// A loop in a task, as an application runs it.
struct Running {
    task: JoinHandle<()>,
    stop: oneshot::Sender<()>,
    is_stopping: oneshot::Receiver<()>,
    seen: mpsc::UnboundedReceiver<String>,
    hangs: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl<Q: Queue, B: Database> Scene<Q, B> {
    async fn new() -> Self {
        Self::at(Q::fresh().await)
    }

    fn at(queue: Q) -> Self {
        Self {
            queue: Arc::new(queue),
            place: Arc::new(B::place()),
            pauses: SHORT,
            _database: PhantomData,
        }
    }

    async fn send(&self, id: &str) {
        self.queue.send(Some(id), "500").await;
    }

    fn start(&self, script: &[(&'static str, &[Act])]) -> Running {
        let place = Arc::clone(&self.place);
        self.start_with(script, move || {
            let place = Arc::clone(&place);
            async move { Ok::<_, Error>(B::connect(&place).await) }
        })
    }

    fn start_with(
        &self,
        script: &[(&'static str, &[Act])],
        source: impl Connect<Connection = B::Conn> + 'static,
    ) -> Running {
        let (see, seen) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let (stops, is_stopping) = oneshot::channel();
        let (hangs, go_on) = <(Arc<Notify>, Arc<Notify>)>::default();
        let bill = Bill::<B> {
            script: script
                .iter()
                .map(|(id, acts)| (*id, acts.to_vec()))
                .collect(),
            runs: Mutex::default(),
            seen: see,
            hangs: Arc::clone(&hangs),
            go_on: Arc::clone(&go_on),
            _database: PhantomData,
        };
        let consume = ConsumeLoop::new(&BILLING, source, bill).pauses(self.pauses, self.pauses);
        let queue = Arc::clone(&self.queue);
        let task = tokio::spawn(async move {
            let shutdown = async {
                stopped.await.unwrap();
                stops.send(()).unwrap();
            };
            queue.run(&consume, shutdown).await;
        });
        Running {
            task,
            stop,
            is_stopping,
            seen,
            hangs,
            go_on,
        }
    }

    /// Waits until the queue has so many messages that are not consumed: a broker takes its time to note what a loop has told it, or that a loop has gone.
    async fn leaves(&self, messages: u64) {
        let mut left = self.queue.left().await;
        let start = tokio::time::Instant::now();
        while left != messages {
            assert!(
                start.elapsed() < LEAVES_WITHIN,
                "the queue has {left} messages, not {messages}"
            );
            tokio::time::sleep(LOOK_AGAIN).await;
            left = self.queue.left().await;
        }
    }

    async fn dead(&self) -> Vec<DeadMessage> {
        let mut db = B::connect(&self.place).await;
        dead(&mut db, BILLING.subscriber(), 10).await.unwrap()
    }
}

impl Running {
    /// The id of the message of the handler's next run.
    async fn seen(&mut self) -> String {
        soon(self.seen.recv()).await.unwrap()
    }

    /// Ends the loop, which finishes what it has in work.
    async fn end(self) {
        self.stop.send(()).unwrap();
        soon(self.task).await.unwrap();
    }

    /// Ends the loop where the handler hangs, as a crash of its process does.
    async fn crash(self) {
        soon(self.hangs.notified()).await;
        self.task.abort();
        assert!(soon(self.task).await.unwrap_err().is_cancelled());
    }
}

/// Makes tests of one body: with each broker, on each database.
macro_rules! on_every_queue {
    ($($(#[$attribute:meta])* async fn $name:ident<$queue:ident: Queue, $database:ident: Database>() $body:block)+) => {$(
        $(#[$attribute])*
        mod $name {
            use super::*;

            async fn body<$queue: Queue, $database: Database>() $body

            #[test]
            fn jetstream_and_sqlite() {
                run(body::<JetStream, SqliteAsync>());
            }

            #[test]
            fn jetstream_and_postgres() {
                run(body::<JetStream, PgAsync>());
            }

            #[test]
            fn rabbitmq_classic_and_sqlite() {
                run(body::<RabbitMq<Classic>, SqliteAsync>());
            }

            #[test]
            fn rabbitmq_classic_and_postgres() {
                run(body::<RabbitMq<Classic>, PgAsync>());
            }

            #[test]
            fn rabbitmq_quorum_and_sqlite() {
                run(body::<RabbitMq<Quorum>, SqliteAsync>());
            }

            #[test]
            fn rabbitmq_quorum_and_postgres() {
                run(body::<RabbitMq<Quorum>, PgAsync>());
            }
        }
    )+};
}

on_every_queue! {
    /// The article's promise, at the point where it is hardest to keep.
    async fn a_consumer_that_commits_and_crashes_before_its_ack_has_its_effect_once<Q: Queue, B: Database>() {
        let scene = Scene::<Q, B>::new().await;
        scene.send("evt-1").await;
        let running = scene.start(&[("evt-1", &[Act::HangAfterCommit])]);
        running.crash().await;
        assert_eq!(scene.place.effects(), 1);

        let mut running = scene.start(&[]);
        assert_eq!(running.seen().await, "evt-1", "the broker was not told");
        running.end().await;
        assert_eq!(scene.place.effects(), 1);
        scene.leaves(0).await;
    }

    async fn a_consumer_that_crashes_before_its_commit_has_its_effect_the_next_time<Q: Queue, B: Database>() {
        let scene = Scene::<Q, B>::new().await;
        scene.send("evt-1").await;
        let running = scene.start(&[("evt-1", &[Act::HangBeforeCommit])]);
        running.crash().await;
        assert_eq!(scene.place.effects(), 0);

        let mut running = scene.start(&[]);
        assert_eq!(running.seen().await, "evt-1");
        running.end().await;
        assert_eq!(scene.place.effects(), 1);
        scene.leaves(0).await;
    }

    /// Nobody lives to say so, and it is counted all the same.
    async fn a_message_that_ends_every_process_is_parked<Q: Queue, B: Database>() {
        let scene = Scene::<Q, B>::new().await;
        scene.send("evt-1").await;
        for _ in 0..BILLING.max_attempts() {
            scene.start(&[("evt-1", &[Act::HangBeforeCommit])]).crash().await;
        }
        let running = scene.start(&[]);
        soon(async {
            while scene.dead().await.is_empty() {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        })
        .await;
        running.end().await;
        let [dead] = &scene.dead().await[..] else {
            panic!("one is parked")
        };
        assert_eq!(dead.last_error, None);
        assert!(dead.attempts >= BILLING.max_attempts());
        assert_eq!(scene.place.effects(), 0);
        scene.leaves(0).await;
    }

    /// Two queues, because a stream drops a second message of the same id by itself.
    async fn a_duplicate_is_acknowledged_and_has_no_effect<Q: Queue, B: Database>() {
        let first = Scene::<Q, B>::new().await;
        let second = Scene::<Q, B> {
            place: Arc::clone(&first.place),
            ..Scene::new().await
        };
        for scene in [&first, &second] {
            scene.send("evt-1").await;
            let mut running = scene.start(&[]);
            assert_eq!(running.seen().await, "evt-1");
            running.end().await;
            assert_eq!(scene.place.effects(), 1);
            scene.leaves(0).await;
        }
    }

    async fn a_message_that_fails_holds_up_nothing_and_is_not_lost<Q: Queue, B: Database>() {
        let mut scene = Scene::<Q, B>::new().await;
        scene.pauses = LONG;
        scene.send("evt-1").await;
        scene.send("evt-2").await;
        let mut running = scene.start(&[("evt-1", &[Act::Fail("no account")])]);
        assert_eq!(running.seen().await, "evt-1");
        assert_eq!(running.seen().await, "evt-2");
        // It rests, also while there is time for it.
        for number in 3..20 {
            let id = format!("evt-{number}");
            scene.send(&id).await;
            assert_eq!(running.seen().await, id);
        }
        running.end().await;
        assert_eq!(scene.place.effects(), 18);
        assert!(scene.dead().await.is_empty());
        scene.leaves(1).await;
    }

    async fn a_message_that_keeps_failing_is_parked_with_its_last_error<Q: Queue, B: Database>() {
        let scene = Scene::<Q, B>::new().await;
        scene.send("evt-1").await;
        let script = [Act::Fail("first"), Act::Panic, Act::Fail("third")];
        let mut running = scene.start(&[("evt-1", &script)]);
        for _ in script {
            assert_eq!(running.seen().await, "evt-1");
        }
        // The loop is not where it was before the panic, and goes on.
        scene.send("evt-2").await;
        assert_eq!(running.seen().await, "evt-2");
        running.end().await;

        let [dead] = &scene.dead().await[..] else { panic!("one is parked") };
        assert_eq!((dead.id.as_str(), dead.attempts, &dead.payload[..]), ("evt-1", 3, &b"500"[..]));
        assert_eq!(dead.last_error.as_deref(), Some("third"));
        assert_eq!(scene.place.effects(), 1);
        scene.leaves(0).await;
    }

    async fn what_cannot_be_read_is_parked_at_once_and_what_has_no_id_is_ended<Q: Queue, B: Database>() {
        let scene = Scene::<Q, B>::new().await;
        scene.queue.send(None, "500").await;
        scene.queue.send(Some("evt-1"), "five hundred").await;
        scene.send("evt-2").await;
        let mut running = scene.start(&[]);
        assert_eq!(running.seen().await, "evt-1");
        assert_eq!(running.seen().await, "evt-2");
        running.end().await;

        let [dead] = &scene.dead().await[..] else { panic!("one is parked") };
        assert_eq!((dead.id.as_str(), dead.attempts, &dead.payload[..]), ("evt-1", 1, &b"five hundred"[..]));
        assert_eq!(scene.place.effects(), 1);
        scene.leaves(0).await;
    }

    async fn at_shutdown_the_message_in_work_is_finished_and_no_other_is_begun<Q: Queue, B: Database>() {
        let scene = Scene::<Q, B>::new().await;
        scene.send("evt-1").await;
        scene.send("evt-2").await;
        let mut running = scene.start(&[("evt-1", &[Act::Wait])]);
        assert_eq!(running.seen().await, "evt-1");
        running.stop.send(()).unwrap();
        soon(running.is_stopping).await.unwrap();
        running.go_on.notify_one();
        soon(running.task).await.unwrap();
        assert!(running.seen.recv().await.is_none());
        assert_eq!(scene.place.effects(), 1);
        scene.leaves(1).await;
    }

    async fn without_a_database_nothing_is_taken_and_nothing_counted<Q: Queue, B: Database>() {
        let scene = Scene::<Q, B>::new().await;
        scene.send("evt-1").await;
        let is_up = Arc::new(AtomicBool::new(false));
        let (refused, place) = (Arc::new(AtomicU32::new(0)), Arc::clone(&scene.place));
        let source = {
            let (is_up, refused) = (Arc::clone(&is_up), Arc::clone(&refused));
            move || {
                let (is_up, refused, place) = (Arc::clone(&is_up), Arc::clone(&refused), Arc::clone(&place));
                async move {
                    if is_up.load(Ordering::SeqCst) {
                        return Ok(B::connect(&place).await);
                    }
                    refused.fetch_add(1, Ordering::SeqCst);
                    Err("the database is down")
                }
            }
        };
        let mut running = scene.start_with(&[("evt-1", &[Act::Fail("once")])], source);
        soon(async {
            while refused.load(Ordering::SeqCst) < 4 {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        })
        .await;
        assert_eq!(scene.queue.waiting().await, 1);
        is_up.store(true, Ordering::SeqCst);
        assert_eq!(running.seen().await, "evt-1");
        assert_eq!(running.seen().await, "evt-1");
        running.end().await;
        assert_eq!(scene.place.effects(), 1);
        scene.leaves(0).await;
    }
}

/// A loop outlives its broker.
async fn goes_on<Q: Queue>(
    queue: Q,
    stop: impl FnOnce(),
    restart: impl FnOnce(),
    again: impl AsyncFnOnce() -> Q,
) {
    let scene = Scene::<Q, SqliteAsync>::at(queue);
    scene.send("evt-1").await;
    let mut running = scene.start(&[]);
    assert_eq!(running.seen().await, "evt-1");
    tokio::task::block_in_place(stop);
    tokio::task::block_in_place(restart);
    again().await.send(Some("evt-2"), "500").await;
    // What was not acknowledged before the end comes once more.
    while running.seen().await != "evt-2" {}
    running.end().await;
    assert_eq!(scene.place.effects(), 2);
}

#[test]
fn a_loop_goes_on_when_nats_is_back() {
    run(async {
        let nats = Mutex::new(support::nats::Nats::start());
        let url = nats.lock().unwrap().url().to_owned();
        let queue = JetStream::at(&url).await;
        let (context, name) = (queue.context.clone(), queue.name.clone());
        goes_on(
            queue,
            || nats.lock().unwrap().stop(),
            || nats.lock().unwrap().restart(),
            async || {
                soon(async {
                    while context.get_stream(&name).await.is_err() {
                        tokio::time::sleep(LOOK_AGAIN).await;
                    }
                })
                .await;
                JetStream { context, name }
            },
        )
        .await;
    });
}

#[test]
fn a_loop_goes_on_when_rabbitmq_is_back() {
    run(async {
        let rabbitmq = Mutex::new(support::rabbitmq::RabbitMq::start());
        let url = rabbitmq.lock().unwrap().url().to_owned();
        let queue = RabbitMq::<Classic>::at(&url).await;
        let name = queue.name.clone();
        goes_on(
            queue,
            || rabbitmq.lock().unwrap().stop(),
            || rabbitmq.lock().unwrap().restart(),
            async || RabbitMq {
                name,
                ..RabbitMq::at(&url).await
            },
        )
        .await;
    });
}

/// The new one delivers everything from the beginning.
#[test]
fn a_loop_goes_on_when_its_consumer_was_deleted_and_is_made_again() {
    run(async {
        let scene = Scene::<JetStream, SqliteAsync>::new().await;
        scene.send("evt-1").await;
        let mut running = scene.start(&[]);
        assert_eq!(running.seen().await, "evt-1");
        // It has asked for the next one.
        soon(async {
            while scene.queue.consumer().await.cached_info().num_waiting == 0 {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        })
        .await;
        let name = &scene.queue.name;
        let stream = soon(scene.queue.context.get_stream(name)).await.unwrap();
        soon(stream.delete_consumer(name)).await.unwrap();
        scene.queue.make_consumer().await;
        scene.send("evt-2").await;
        while running.seen().await != "evt-2" {}
        running.end().await;
        assert_eq!(scene.place.effects(), 2);
        scene.leaves(0).await;
    });
}

#[test]
fn a_consumer_that_acknowledges_by_itself_is_refused() {
    run(async {
        let queue = JetStream::fresh().await;
        let stream = soon(queue.context.get_stream(&queue.name)).await.unwrap();
        let config = consumer::pull::Config {
            ack_policy: consumer::AckPolicy::None,
            ..Default::default()
        };
        let consumer = soon(stream.create_consumer(config)).await.unwrap();
        let place = SqliteAsync::place();
        let (see, _seen) = mpsc::unbounded_channel();
        let bill = Bill::<SqliteAsync> {
            script: HashMap::new(),
            runs: Mutex::default(),
            seen: see,
            hangs: Arc::default(),
            go_on: Arc::default(),
            _database: PhantomData,
        };
        let source = || async { Ok::<_, Error>(SqliteAsync::connect(&place).await) };
        let consume = ConsumeLoop::new(&BILLING, source, bill);
        let running = consume.run_jetstream(consumer, pending::<()>());
        let refused = soon(running).await.unwrap_err();
        assert!(refused.to_string().contains("must be explicit"));
    });
}

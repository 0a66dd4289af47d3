//! Random histories: many workers, few keys, errors, panics and dropped futures, on each connection.
//!
//! ```sh
//! cargo test -p idem-tests --test it histories                                   # 5,000 calls on each connection
//! IDEM_HISTORY_CALLS=100000 cargo test -p idem-tests --test it histories         # the long run
//! IDEM_SEED=17 cargo test -p idem-tests --test it histories                      # the same choices again
//! ```
//!
//! The seed decides what every worker calls and which fault it meets; how the workers interleave is the machine's.

mod checker;

use std::any::TypeId;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::task::Poll;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use idem_diesel::{Async, ErrorKind, IdempotentConnection, Operation, Outcome, Policy, Retention};

use self::checker::{Answer, Call, Id, Key, Payload, Row, judge};
use crate::backend::{Backend, Place, intent, on_every_backend};
use crate::shop::{CreateOrder, Ending, Gate, Script, ShopError};

const WORKERS: u64 = 6;

/// How many keys are called at a time, and how many calls there are for each, on average.
const KEYS_AT_A_TIME: u64 = 3;
const CALLS_OF_A_KEY: u64 = 8;

/// The operations: one answers with the number of its row, the other can be told how to end.
const CREATE: &str = "create";
const PERFORM: &str = "perform";

/// Nobody waits, so that calls are also told to come back.
const NO_WAIT: Operation = Operation::new("histories.perform", Retention::literal("48h"))
    .with_policy(Policy::new().wait(None));

/// The payloads of [`PERFORM`] that never answer; all others do.
const FAILS: Payload = 3;
const PANICS: Payload = 4;
const HANGS: Payload = 5;

/// Numbers that follow from a seed: splitmix64, <https://prng.di.unimi.it/splitmix64.c>.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

/// A number from the environment.
fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|error| panic!("{name}={text}: {error}")),
    )
}

fn seed() -> u64 {
    variable("IDEM_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        u64::from(now.unwrap().subsec_nanos())
    })
}

/// What all workers share.
struct History {
    place: Place,
    calls: u64,
    /// The next call's number.
    next: AtomicU64,
    /// The one order of all beginnings and ends.
    clock: AtomicU64,
}

impl History {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }
}

/// One caller, its connection, and what it has seen.
struct Worker<B: Backend> {
    history: Arc<History>,
    random: Random,
    conn: B::Conn,
    /// Whether a call was dropped on this connection, so that it may be marked broken.
    has_dropped: bool,
    /// Whether inserts of orders fail on this connection.
    is_faulty: bool,
    calls: Vec<Call>,
}

/// On SQLite what is not a call waits for others, too: Diesel sets no busy timeout.
async fn connect<B: Backend>(place: &Place) -> B::Conn {
    let mut conn = B::connect(place).await;
    if !place.is_postgres() {
        let patient = "PRAGMA busy_timeout = 10000";
        B::sql(&mut conn, patient).await.unwrap();
    }
    conn
}

/// A way to end that is not the handler's own.
#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    /// The call is dropped after so many polls.
    Drop {
        polls: u64,
    },
}

impl<B: Backend> Worker<B> {
    async fn new(history: Arc<History>, seed: u64) -> Self {
        let conn = connect::<B>(&history.place).await;
        Self {
            history,
            random: Random(seed),
            conn,
            has_dropped: false,
            is_faulty: false,
            calls: Vec::new(),
        }
    }

    async fn work(mut self) -> Vec<Call> {
        loop {
            let number = self.history.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.history.calls {
                return self.calls;
            }
            let key = number / (CALLS_OF_A_KEY * KEYS_AT_A_TIME) * KEYS_AT_A_TIME
                + self.random.below(KEYS_AT_A_TIME);
            let operation = if self.random.one_in(2) {
                CREATE
            } else {
                PERFORM
            };
            self.prepare_connection().await;
            self.one_call((operation, u32::try_from(key).unwrap()))
                .await;
        }
    }

    /// Changes the connection now and then, and whether it fails.
    async fn prepare_connection(&mut self) {
        if self.random.one_in(40) {
            self.reconnect().await;
        }
        let is_faulty = self.random.one_in(3);
        if is_faulty != self.is_faulty {
            let sql = fault_sql(self.history.place.is_postgres(), is_faulty);
            // A connection that a drop left unusable is found out, and replaced, by the call that comes next.
            let set = B::sql(&mut self.conn, sql).await;
            assert!(set.is_ok() || self.has_dropped, "{set:?}");
            if set.is_ok() {
                self.is_faulty = is_faulty;
            }
        }
    }

    async fn reconnect(&mut self) {
        self.conn = connect::<B>(&self.history.place).await;
        self.has_dropped = false;
        self.is_faulty = false;
    }

    async fn one_call(&mut self, key: Key) {
        let is_async =
            TypeId::of::<<B::Conn as IdempotentConnection>::Flavor>() == TypeId::of::<Async>();
        let payloads = match (key.0, is_async) {
            (CREATE, _) => 2,
            (_, true) => u64::from(HANGS),
            (_, false) => u64::from(PANICS),
        };
        // Mostly the same one, so that most calls are duplicates.
        let payload = if self.random.one_in(3) {
            1 + self.random.below(payloads)
        } else {
            1
        };
        let payload = Payload::try_from(payload).unwrap();
        let fault = if is_async && (payload == HANGS || self.random.one_in(3)) {
            Fault::Drop {
                polls: 1 + self.random.below(25),
            }
        } else {
            Fault::None
        };
        let began = self.history.now();
        let answer = call::<B>(&mut self.conn, key, payload, fault).await;
        let ended = self.history.now();
        self.has_dropped |= answer == Answer::Unheard;
        self.calls.push(Call {
            key,
            payload,
            began,
            ended,
            answer,
        });
        if answer == Answer::NotCalled {
            assert!(
                self.has_dropped,
                "a connection on which nothing was dropped cannot be used"
            );
            self.reconnect().await;
        }
    }
}

/// Makes inserts of orders fail on one connection, or not.
fn fault_sql(is_postgres: bool, is_faulty: bool) -> &'static str {
    match (is_postgres, is_faulty) {
        (true, true) => "SET histories.fault = 'on'",
        (true, false) => "SET histories.fault = 'off'",
        (false, true) => {
            "CREATE TEMP TRIGGER fault BEFORE INSERT ON main.orders BEGIN SELECT RAISE(ABORT, 'the fault of this connection'); END"
        }
        (false, false) => "DROP TRIGGER temp.fault",
    }
}

/// On PostgreSQL a trigger reads the setting of the session.
const PG_FAULT: &str = "
    CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF current_setting('histories.fault', true) = 'on' THEN RAISE EXCEPTION 'the fault of this connection'; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER fault BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION fault();
";

async fn call<B: Backend>(conn: &mut B::Conn, key: Key, payload: Payload, fault: Fault) -> Answer {
    let (operation, number) = key;
    let intent = intent(&format!("history-{number}"));
    if operation == CREATE {
        let cmd = CreateOrder {
            account_id: i64::from(number),
            amount_cents: i64::from(payload),
        };
        let call = B::create_order(conn, &intent, &cmd);
        return answer(within(fault, call).await, |order| order.id);
    }
    let gate = Gate::open();
    let script = Script::effect(&format!("{number} {payload} 0")).ending(match payload {
        FAILS => Ending::Error,
        PANICS => Ending::Panic,
        HANGS => Ending::Hang,
        _ => Ending::Answer,
    });
    let call = B::perform(conn, Some(&intent), &NO_WAIT, &script, &gate);
    answer(within(fault, call).await, |_| 0)
}

/// How a call ended, as far as the worker knows.
enum Ended<T> {
    Answered(Result<Outcome<T>, ShopError>),
    Panicked,
    Dropped,
}

async fn within<T>(
    fault: Fault,
    call: impl Future<Output = Result<Outcome<T>, ShopError>>,
) -> Ended<T> {
    /// A body that hangs is never polled again.
    const HANGS_AT_MOST: Duration = Duration::from_millis(10);

    let call = AssertUnwindSafe(call).catch_unwind();
    let caught = match fault {
        Fault::None => Some(call.await),
        Fault::Drop { polls } => tokio::time::timeout(HANGS_AT_MOST, poll_at_most(polls, call))
            .await
            .unwrap_or_default(),
    };
    match caught {
        None => Ended::Dropped,
        Some(Ok(result)) => Ended::Answered(result),
        Some(Err(panic)) => {
            let text = panic.downcast_ref::<&str>().copied().unwrap_or_default();
            assert_eq!(text, TOLD_PANIC);
            Ended::Panicked
        }
    }
}

/// Polls a future at most `polls` times, then drops it.
async fn poll_at_most<T>(polls: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        left = left.saturating_sub(1);
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// What the checker is told of it.
fn answer<T>(ended: Ended<T>, id: impl Fn(&T) -> Id) -> Answer {
    let result = match ended {
        Ended::Dropped => return Answer::Unheard,
        Ended::Panicked => return Answer::WorkFailed,
        Ended::Answered(result) => result,
    };
    match result {
        Ok(outcome) if outcome.is_replayed() => Answer::Replayed(id(outcome.get())),
        Ok(outcome) => Answer::Executed(id(outcome.get())),
        Err(error) => match error.kind() {
            None => Answer::WorkFailed,
            Some(ErrorKind::Mismatch) => Answer::OtherRequest,
            Some(ErrorKind::InFlight { .. } | ErrorKind::Busy { .. } | ErrorKind::Conflict) => {
                Answer::ComeBack
            }
            Some(ErrorKind::OutcomeUnknown) => Answer::Unheard,
            Some(ErrorKind::UnfinishedTransaction | ErrorKind::ConnectionLost) => Answer::NotCalled,
            Some(other) => panic!("no fault of this history explains {other:?}: {error:?}"),
        },
    }
}

/// What a body says that was told to panic.
const TOLD_PANIC: &str = "the body panics, as the test told it";

/// Keeps the panics that were told to happen out of the output.
fn silence_told_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload().downcast_ref() != Some(&TOLD_PANIC) {
                others(panic);
            }
        }));
    });
}

fn rows(place: &Place) -> Vec<Row> {
    let queries = [
        (
            CREATE,
            "SELECT string_agg(account_id || ' ' || amount_cents || ' ' || id, ',') FROM orders",
        ),
        (PERFORM, "SELECT string_agg(name, ',') FROM effects"),
    ];
    let mut rows = Vec::new();
    for (operation, query) in queries {
        let text = place.text(query).unwrap_or_default();
        for line in text.split(',').filter(|line| !line.is_empty()) {
            let numbers: Vec<i64> = line
                .split(' ')
                .map(|number| number.parse().unwrap())
                .collect();
            let [number, payload, id] = numbers[..] else {
                panic!("not three numbers: {line}");
            };
            rows.push(Row {
                key: (operation, u32::try_from(number).unwrap()),
                payload: Payload::try_from(payload).unwrap(),
                id,
            });
        }
    }
    rows
}

/// Calls each key once more, when all is quiet: none is wedged, and each has its effect afterwards.
async fn settle<B: Backend>(history: &History, calls: &mut Vec<Call>) {
    let mut keys: Vec<Key> = calls.iter().map(|call| call.key).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut conn = B::connect(&history.place).await;
    for key in &keys {
        let began = history.now();
        let answer = call::<B>(&mut conn, *key, 1, Fault::None).await;
        let ended = history.now();
        assert!(
            matches!(
                answer,
                Answer::Executed(_) | Answer::Replayed(_) | Answer::OtherRequest
            ),
            "{key:?} is wedged: {answer:?}"
        );
        calls.push(Call {
            key: *key,
            payload: 1,
            began,
            ended,
            answer,
        });
    }
    assert_eq!(
        rows(&history.place).len(),
        keys.len(),
        "each key has its effect"
    );
}

/// How often each answer was given, which must not be never.
fn tell(calls: &[Call], is_async: bool) {
    let count = |is: fn(&Answer) -> bool| calls.iter().filter(|call| is(&call.answer)).count();
    let counts = [
        (
            "executed",
            count(|answer| matches!(answer, Answer::Executed(_))),
        ),
        (
            "replayed",
            count(|answer| matches!(answer, Answer::Replayed(_))),
        ),
        (
            "refused as another request",
            count(|answer| *answer == Answer::OtherRequest),
        ),
        ("failed", count(|answer| *answer == Answer::WorkFailed)),
        (
            "told to come back",
            count(|answer| *answer == Answer::ComeBack),
        ),
        ("dropped", count(|answer| *answer == Answer::Unheard)),
        (
            "on a broken connection",
            count(|answer| *answer == Answer::NotCalled),
        ),
    ];
    let mut texts = vec![format!("{} calls", calls.len())];
    for (name, count) in counts {
        let may_be_none = match name {
            "told to come back" | "on a broken connection" => true,
            "dropped" => !is_async,
            _ => calls.len() < 1_000,
        };
        assert!(count > 0 || may_be_none, "none {name} of {texts:?}");
        texts.push(format!("{count} {name}"));
    }
    println!("{}", texts.join(", "));
}

on_every_backend! {
    async fn every_history_is_one_in_which_each_key_has_one_effect<B: Backend>() {
        silence_told_panics();
        let seed = seed();
        println!("IDEM_SEED={seed}");
        let place = B::place();
        if place.is_postgres() {
            place.run(PG_FAULT);
        }
        let history = Arc::new(History {
            place,
            calls: variable("IDEM_HISTORY_CALLS").unwrap_or(5_000),
            next: AtomicU64::new(0),
            clock: AtomicU64::new(0),
        });
        let mut workers = Vec::new();
        for number in 0..WORKERS {
            let worker = Worker::<B>::new(Arc::clone(&history), seed.wrapping_add(number << 32)).await;
            workers.push(tokio::spawn(worker.work()));
        }
        let mut calls = Vec::new();
        for worker in workers {
            calls.extend(worker.await.unwrap());
        }
        settle::<B>(&history, &mut calls).await;
        let wrong = judge(&calls, &rows(&history.place));
        assert!(wrong.is_empty(), "IDEM_SEED={seed}:\n{}", wrong.join("\n"));
        let is_async = TypeId::of::<<B::Conn as IdempotentConnection>::Flavor>() == TypeId::of::<Async>();
        tell(&calls, is_async);
    }
}

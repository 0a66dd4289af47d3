//! The relay: at least once, in order, and never past an event.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem_diesel::outbox::{self, Dead, OutboxEvent};
use idem_relay::relay::Outage;
use idem_relay::{Connect, PublishError, Publisher, Relay, Summary};
use tokio::sync::{Notify, Semaphore};

use crate::backend::{Backend, PgAsync, Place, SqliteAsync, run};
use crate::outbox::{commit, let_time_pass, name_of, placed};

/// A wait that is longer than this is a failure.
const AT_MOST: Duration = Duration::from_secs(60);

async fn soon<T>(future: impl Future<Output = T>) -> T {
    let soon = tokio::time::timeout(AT_MOST, future).await;
    soon.unwrap_or_else(|_| panic!("it took more than {AT_MOST:?}"))
}

/// What happens to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Fails(u32),
    Panics,
    Hangs,
    Rejected,
    Unavailable,
}

/// A broker of the test's own: it notes what it was given, and does what it was told.
#[derive(Debug, Default)]
struct Broker {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    fates: HashMap<String, Fate>,
    /// The events it took, in their order.
    taken: Vec<String>,
    ids: Vec<String>,
    attempts: u32,
    is_down: bool,
}

impl Broker {
    fn with(fates: &[(&str, Fate)]) -> Arc<Self> {
        let broker = Self::default();
        for (name, fate) in fates {
            broker
                .state
                .lock()
                .unwrap()
                .fates
                .insert((*name).to_owned(), *fate);
        }
        Arc::new(broker)
    }

    fn taken(&self) -> Vec<String> {
        self.state.lock().unwrap().taken.clone()
    }

    fn attempts(&self) -> u32 {
        self.state.lock().unwrap().attempts
    }

    fn down(&self, is_down: bool) {
        self.state.lock().unwrap().is_down = is_down;
    }

    /// Until it has seen something that makes `is_so` true.
    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        soon(async {
            loop {
                let changed = self.changed.notified();
                if is_so(self) {
                    return;
                }
                changed.await;
            }
        })
        .await;
    }
}

/// The same, as a publisher.
#[derive(Debug, Clone)]
struct To(Arc<Broker>);

impl Publisher for To {
    async fn publish(&self, event: &OutboxEvent) -> Result<(), PublishError> {
        let name = name_of(event);
        let fate = {
            let mut state = self.0.state.lock().unwrap();
            state.attempts += 1;
            let is_down = state.is_down;
            let fate = match state.fates.get_mut(&name) {
                _ if is_down => Some(Fate::Unavailable),
                Some(Fate::Fails(0)) => None,
                Some(Fate::Fails(times)) => {
                    *times -= 1;
                    Some(Fate::Fails(*times))
                }
                other => other.copied(),
            };
            if fate.is_none() {
                state.taken.push(name);
                state.ids.push(event.id.to_string());
            }
            fate
        };
        self.0.changed.notify_waiters();
        match fate {
            None => Ok(()),
            Some(Fate::Fails(_)) => Err(PublishError::failed("not today")),
            Some(Fate::Rejected) => Err(PublishError::rejected("too large")),
            Some(Fate::Unavailable) => Err(PublishError::unavailable("connection refused")),
            Some(Fate::Panics) => panic!("the publisher panics, as the test told it"),
            Some(Fate::Hangs) => std::future::pending().await,
        }
    }
}

/// Takes an event and then does not come back, as a relay that is killed between publishing and settling.
#[derive(Debug, Clone)]
struct TakesAndHangs {
    broker: Arc<Broker>,
    after: usize,
}

impl Publisher for TakesAndHangs {
    async fn publish(&self, event: &OutboxEvent) -> Result<(), PublishError> {
        To(Arc::clone(&self.broker)).publish(event).await?;
        if self.broker.taken().len() >= self.after {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

/// Where a relay of these tests gets its connections.
fn source<B: Backend>(place: &Place) -> impl Connect<Connection = B::Conn> + use<B>
where
    B::Conn: idem_diesel::IdempotentConnection<Flavor = idem_diesel::Async>,
{
    let url = place.url().to_owned();
    move || {
        let url = url.clone();
        async move { Ok::<_, std::convert::Infallible>(B::connect_to(&url).await) }
    }
}

/// Makes tests of one body on both async connections.
macro_rules! on_async_backends {
    ($($(#[$attribute:meta])* async fn $name:ident<$backend:ident: Backend>() $body:block)+) => {$(
        $(#[$attribute])*
        mod $name {
            use super::*;

            async fn body<$backend: Backend>()
            where
                $backend::Conn: idem_diesel::IdempotentConnection<Flavor = idem_diesel::Async>,
            $body

            #[test]
            fn sqlite_async() {
                run(body::<SqliteAsync>());
            }

            #[test]
            fn pg_async() {
                run(body::<PgAsync>());
            }
        }
    )+};
}

/// A relay that pauses for no time and looks often.
fn relay<S: Connect, P: Publisher>(source: S, publisher: P) -> Relay<S, P> {
    Relay::new(source, publisher)
        .pauses(Duration::ZERO, Duration::ZERO)
        .poll_every(Duration::from_millis(20))
}

fn undelivered(place: &Place) -> i64 {
    place.number("SELECT count(*) FROM outbox_deliveries WHERE state <> 'delivered'")
}

/// Runs relays until `done`, and gives what they did.
async fn until<S, P>(relay: &Relay<S, P>, done: impl Future<Output = ()>) -> Summary
where
    S: Connect,
    P: Publisher,
{
    soon(relay.run(done)).await
}

/// Until nothing is to be delivered any more.
async fn all_settled(place: &Place) {
    soon(async {
        while place.number("SELECT count(*) FROM outbox_deliveries WHERE state = 'pending'") > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

on_async_backends! {
    async fn events_are_published_once_and_in_order<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let events: Vec<_> = (0..25).map(|n| placed(&(n % 3).to_string(), &n.to_string())).collect();
        commit::<B>(&mut conn, &events).await;
        let broker = Broker::with(&[]);
        let summary = relay(source::<B>(&place), To(Arc::clone(&broker))).batch(7).drain().await.unwrap();
        assert_eq!((summary.published, summary.retried, summary.dead, summary.fenced), (25, 0, 0, 0));
        for aggregate in 0..3 {
            let of_one: Vec<u32> = broker.taken().iter().map(|name| name.parse().unwrap()).filter(|n| n % 3 == aggregate).collect();
            assert!(of_one.is_sorted(), "{of_one:?}");
        }
        assert_eq!(broker.taken().len(), 25);
        assert_eq!(undelivered(&place), 0);
        let again = relay(source::<B>(&place), To(Arc::clone(&broker))).drain().await.unwrap();
        assert_eq!(again, Summary::default());
    }

    /// A1 fails twice, then works: B1 is not delayed, and A2 never comes before A1.
    async fn case_g3_an_event_that_fails_holds_up_its_own_aggregate_alone<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        commit::<B>(&mut conn, &[placed("A", "A1"), placed("A", "A2"), placed("B", "B1")]).await;
        let broker = Broker::with(&[("A1", Fate::Fails(2))]);
        let relays = [0, 1].map(|n| {
            relay(source::<B>(&place), To(Arc::clone(&broker))).name(format!("r{n}")).batch(1)
        });
        let done = Arc::new(Semaphore::new(0));
        let stop = || async { done.acquire().await.unwrap().forget() };
        let finish = async {
            broker.until(|broker| broker.taken().len() == 3).await;
            all_settled(&place).await;
            done.add_permits(2);
        };
        let (first, second, ()) = tokio::join!(until(&relays[0], stop()), until(&relays[1], stop()), finish);
        assert_eq!(first.published + second.published, 3);
        assert_eq!(first.retried + second.retried, 2);
        let order: Vec<_> = broker.taken().into_iter().filter(|name| name.starts_with('A')).collect();
        assert_eq!(order, ["A1", "A2"]);
    }

    async fn case_g3_a_dead_event_blocks_its_aggregate_or_is_skipped_as_chosen<B: Backend>() {
        for (dead, expected) in [(Dead::Block, vec!["B1"]), (Dead::Skip, vec!["A2", "A3", "B1"])] {
            let place = B::place();
            let mut conn = B::connect(&place).await;
            commit::<B>(&mut conn, &[placed("A", "A1"), placed("A", "A2"), placed("A", "A3"), placed("B", "B1")]).await;
            let broker = Broker::with(&[("A1", Fate::Fails(u32::MAX))]);
            let relay = relay(source::<B>(&place), To(Arc::clone(&broker))).max_attempts(3).dead(dead);
            let mut dead_events = 0;
            for _ in 0..4 {
                dead_events += relay.drain().await.unwrap().dead;
            }
            let mut taken = broker.taken();
            taken.sort();
            assert_eq!((taken, dead_events), (expected.iter().map(ToString::to_string).collect(), 1), "{dead:?}");
            let found = outbox::dead(&mut conn, 10).await.unwrap();
            assert_eq!((found[0].attempts, found[0].last_error.as_deref()), (3, Some("not today")));
        }
    }

    /// Published, and then the relay is gone: the next one publishes it again, under the same id. Never is an event lost.
    async fn case_g5_a_relay_that_dies_between_publishing_and_settling_repeats_itself<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let events: Vec<_> = (1..=5).map(|n| placed("A", &n.to_string())).collect();
        let ids = commit::<B>(&mut conn, &events).await;
        let broker = Broker::with(&[]);
        {
            let publisher = TakesAndHangs { broker: Arc::clone(&broker), after: 3 };
            let relay = relay(source::<B>(&place), publisher).publish_timeout(AT_MOST);
            let mut running = Box::pin(relay.run(std::future::pending::<()>()));
            tokio::select! {
                _ = &mut running => unreachable!("nobody stops it"),
                () = broker.until(|broker| broker.taken().len() == 3) => {}
            }
            // Here it dies: what it leased stays leased until the lease is over.
        }
        assert_eq!(undelivered(&place), 5);
        let relay = relay(source::<B>(&place), To(Arc::clone(&broker)));
        assert_eq!(relay.drain().await.unwrap(), Summary::default());
        let_time_pass(&place);
        assert_eq!(relay.drain().await.unwrap().published, 5);
        assert_eq!(broker.taken(), ["1", "2", "3", "1", "2", "3", "4", "5"]);
        let different: HashSet<_> = broker.state.lock().unwrap().ids.iter().cloned().collect();
        assert_eq!(different, ids.iter().map(ToString::to_string).collect());
        assert_eq!(place.number("SELECT max(attempts) FROM outbox_deliveries"), 2);
        // After the settlement nothing is repeated.
        let_time_pass(&place);
        assert_eq!(relay.drain().await.unwrap(), Summary::default());
    }

    /// A relay that was suspended for longer than its lease settles nothing.
    async fn a_zombie_is_fenced<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        commit::<B>(&mut conn, &[placed("A", "A1")]).await;
        let broker = Broker::with(&[]);
        let gate = Arc::new(Semaphore::new(0));
        let zombie = relay(source::<B>(&place), Held { broker: Arc::clone(&broker), gate: Arc::clone(&gate) })
            .publish_timeout(AT_MOST);
        let suspended = async {
            broker.until(|broker| broker.taken().len() == 1).await;
            let_time_pass(&place);
            let other = relay(source::<B>(&place), To(Arc::clone(&broker)));
            assert_eq!(other.drain().await.unwrap().published, 1);
            gate.add_permits(1);
        };
        let (woken, ()) = tokio::join!(soon(zombie.drain()), suspended);
        let woken = woken.unwrap();
        assert_eq!((woken.published, woken.fenced), (0, 1));
        assert_eq!(place.number("SELECT count(*) FROM outbox_deliveries WHERE state = 'delivered'"), 1);
    }

    async fn an_outage_makes_nothing_dead_and_counts_no_attempt<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        commit::<B>(&mut conn, &[placed("A", "A1"), placed("A", "A2"), placed("B", "B1")]).await;
        let broker = Broker::with(&[]);
        broker.down(true);
        let relay = relay(source::<B>(&place), To(Arc::clone(&broker))).max_attempts(1);
        for _ in 0..5 {
            let outage = relay.drain().await.unwrap_err();
            assert!(matches!(outage, Outage::Publisher(_)), "{outage:?}");
        }
        assert_eq!(place.number("SELECT sum(attempts) FROM outbox_deliveries"), 0);
        broker.down(false);
        assert_eq!(relay.drain().await.unwrap().published, 3);
        assert_eq!(undelivered(&place), 0);
    }

    /// Each pass gives up what was published too often without anybody saying how it ended, and goes on with the rest.
    async fn what_kills_its_relay_is_dead_after_max_attempts_and_the_others_go_on<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        commit::<B>(&mut conn, &[placed("A", "poison"), placed("B", "B1")]).await;
        for _ in 0..3 {
            let broker = Broker::with(&[("poison", Fate::Hangs)]);
            let relay = relay(source::<B>(&place), To(Arc::clone(&broker))).max_attempts(3).publish_timeout(AT_MOST);
            let mut running = Box::pin(relay.run(std::future::pending::<()>()));
            tokio::select! {
                _ = &mut running => unreachable!("nobody stops it"),
                () = broker.until(|broker| broker.attempts() >= 1) => {}
            }
            drop(running);
            let_time_pass(&place);
        }
        let broker = Broker::with(&[("poison", Fate::Hangs)]);
        let summary = relay(source::<B>(&place), To(Arc::clone(&broker))).max_attempts(3).drain().await.unwrap();
        assert_eq!((summary.published, summary.dead), (1, 1));
        assert_eq!(broker.taken(), ["B1"]);
        let found = outbox::dead(&mut conn, 10).await.unwrap();
        assert_eq!(found[0].last_error.as_deref(), Some("no attempt came to an end: did it kill its relay?"));
    }

    async fn one_bad_event_never_stops_the_others<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let names = ["panics", "hangs", "rejected", "gone", "good"];
        let events: Vec<_> = names.iter().map(|name| placed(name, name)).collect();
        let ids = commit::<B>(&mut conn, &events).await;
        place.run(&format!("DELETE FROM outbox_events WHERE CAST(id AS text) = '{}'", ids[3]));
        let broker = Broker::with(&[("panics", Fate::Panics), ("hangs", Fate::Hangs), ("rejected", Fate::Rejected)]);
        let relay = relay(source::<B>(&place), To(Arc::clone(&broker)))
            .max_attempts(2)
            .publish_timeout(Duration::from_millis(100));
        let summary = relay.drain().await.unwrap();
        assert_eq!((summary.published, summary.retried, summary.dead), (1, 2, 4));
        assert_eq!(broker.taken(), ["good"]);
        let mut errors: Vec<_> = outbox::dead(&mut conn, 10).await.unwrap().into_iter().map(|dead| dead.last_error.unwrap()).collect();
        errors.sort();
        assert_eq!(errors, [
            "it was not published within 100ms",
            "its row in outbox_events is gone",
            "the publisher panicked: the publisher panics, as the test told it",
            "too large",
        ]);
    }

    async fn relays_side_by_side_publish_each_event_once<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let events: Vec<_> = (0..200).map(|n| placed(&(n % 17).to_string(), &n.to_string())).collect();
        commit::<B>(&mut conn, &events).await;
        let broker = Broker::with(&[]);
        let relays: Vec<_> = (0..3)
            .map(|n| relay(source::<B>(&place), To(Arc::clone(&broker))).name(format!("r{n}")).batch(9))
            .collect();
        let done = Arc::new(Semaphore::new(0));
        let runs = relays.iter().map(|relay| until(relay, async { done.acquire().await.unwrap().forget() }));
        let finish = async {
            all_settled(&place).await;
            done.add_permits(3);
        };
        let (summaries, ()) = tokio::join!(futures_util::future::join_all(runs), finish);
        assert_eq!(summaries.iter().map(|summary| summary.published).sum::<u64>(), 200);
        assert_eq!(broker.taken().len(), 200);
        for aggregate in 0..17 {
            let of_one: Vec<u32> = broker.taken().iter().map(|name| name.parse().unwrap()).filter(|n| n % 17 == aggregate).collect();
            assert!(of_one.is_sorted(), "{of_one:?}");
        }
    }

    async fn a_shutdown_finishes_what_is_begun_and_gives_back_the_rest<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let events: Vec<_> = (1..=5).map(|n| placed("A", &n.to_string())).collect();
        commit::<B>(&mut conn, &events).await;
        let broker = Broker::with(&[]);
        let gate = Arc::new(Semaphore::new(1));
        let relay = relay(source::<B>(&place), Held { broker: Arc::clone(&broker), gate: Arc::clone(&gate) })
            .publish_timeout(AT_MOST);
        // The first may pass; the second is begun when the relay is told to stop, and still finished.
        let shutdown = async {
            broker.until(|broker| broker.taken().len() == 2).await;
            gate.add_permits(1);
        };
        let told = async {
            shutdown.await;
        };
        let summary = until(&relay, told).await;
        assert_eq!(summary.published, 2);
        assert_eq!(broker.taken(), ["1", "2"]);
        assert_eq!(place.number("SELECT sum(attempts) FROM outbox_deliveries"), 2, "what was not tried was not counted");
        // What was given back is due at once.
        let other = Broker::with(&[]);
        assert_eq!(super::relay(source::<B>(&place), To(other)).drain().await.unwrap().published, 3);
    }

    async fn a_commit_of_this_process_wakes_the_relay<B: Backend>() {
        use idem_diesel::{Error, Operation, Retention};
        const PLACE: Operation = Operation::new("relay.place", Retention::literal("48h"));
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let broker = Broker::with(&[]);
        // It would not look again by itself in the time of this test.
        let relay = Relay::new(source::<B>(&place), To(Arc::clone(&broker))).poll_every(AT_MOST * 10);
        let shutdown = async {
            for n in 0..3 {
                let (intent, name) = (crate::backend::intent(&n.to_string()), n.to_string());
                idem_diesel::idempotent(&mut conn, &intent, &PLACE, &n, async |db: &mut B::Conn, _| {
                    outbox::publish(db, &placed("A", &name)).await?;
                    Ok::<_, Error>(())
                })
                .await
                .unwrap();
                broker.until(|broker| broker.taken().len() == n + 1).await;
            }
        };
        until(&relay, shutdown).await;
        assert_eq!(broker.taken(), ["0", "1", "2"]);
    }

    async fn a_database_that_is_away_is_waited_for<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        commit::<B>(&mut conn, &[placed("A", "A1")]).await;
        let (url, calls) = (place.url().to_owned(), Arc::new(Mutex::new(0)));
        let counter = Arc::clone(&calls);
        let source = move || {
            let (url, counter) = (url.clone(), Arc::clone(&counter));
            async move {
                let call = {
                    let mut calls = counter.lock().unwrap();
                    *calls += 1;
                    *calls
                };
                if call < 3 {
                    return Err("the database is away");
                }
                Ok(B::connect_to(&url).await)
            }
        };
        let broker = Broker::with(&[]);
        let relay = relay(source, To(Arc::clone(&broker)));
        until(&relay, broker.until(|broker| broker.taken().len() == 1)).await;
        assert_eq!(*calls.lock().unwrap(), 3);
    }
}

/// Takes an event, and lets it go on when a permit is there.
#[derive(Debug, Clone)]
struct Held {
    broker: Arc<Broker>,
    gate: Arc<Semaphore>,
}

impl Publisher for Held {
    async fn publish(&self, event: &OutboxEvent) -> Result<(), PublishError> {
        To(Arc::clone(&self.broker)).publish(event).await?;
        self.gate.acquire().await.unwrap().forget();
        Ok(())
    }
}

/// One process publishes, another relays: what wakes it is a notification, outside of the work's transaction.
#[test]
fn a_commit_of_another_process_wakes_the_relay_through_a_notification() {
    run(async {
        let place = PgAsync::place();
        let mut conn = PgAsync::connect(&place).await;
        let broker = Broker::with(&[]);
        let relay =
            Relay::new(source::<PgAsync>(&place), To(Arc::clone(&broker))).poll_every(AT_MOST * 10);
        let done = Arc::new(Semaphore::new(0));
        let stop = || async { done.acquire().await.unwrap().forget() };
        let listening = idem_relay::listen(source::<PgAsync>(&place), relay.wake(), stop());
        let work = async {
            // A plain transaction wakes nobody by itself, like one of another process.
            commit::<PgAsync>(&mut conn, &[placed("A", "A1")]).await;
            let mut told = 0;
            while broker.taken().is_empty() {
                outbox::notify(&mut conn).await.unwrap();
                told += 1;
                assert!(told < 6000, "nobody listens");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            done.add_permits(2);
        };
        tokio::join!(listening, until(&relay, stop()), work);
    });
}

/// The names of the metrics are what dashboards are made of.
#[test]
fn the_metrics_tell_what_happened() {
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    metrics::with_local_recorder(&recorder, || {
        runtime.block_on(async {
            let place = PgAsync::place();
            let mut conn = PgAsync::connect(&place).await;
            commit::<PgAsync>(
                &mut conn,
                &[placed("A", "A1"), placed("B", "B1"), placed("C", "C1")],
            )
            .await;
            let broker = Broker::with(&[("B1", Fate::Fails(1)), ("C1", Fate::Rejected)]);
            let relay = relay(source::<PgAsync>(&place), To(Arc::clone(&broker)));
            let published = broker.until(|broker| broker.taken().len() == 2);
            until(&relay, async {
                published.await;
                all_settled(&place).await;
            })
            .await;
        });
    });
    let seen: HashMap<String, DebugValue> = snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .map(|(key, _, _, value)| (key.key().name().to_owned(), value))
        .collect();
    let counter = |name: &str| match seen.get(name) {
        Some(DebugValue::Counter(count)) => *count,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(counter("idem_outbox_published"), 2);
    assert_eq!(counter("idem_outbox_retried"), 1);
    assert_eq!(counter("idem_outbox_dead"), 1);
    assert_eq!(counter("idem_outbox_fenced"), 0);
    for gauge in ["idem_outbox_pending", "idem_outbox_oldest_seconds"] {
        assert!(
            matches!(seen.get(gauge), Some(DebugValue::Gauge(_))),
            "{gauge}"
        );
    }
    let lag = seen.get("idem_outbox_lag_seconds");
    assert!(
        matches!(lag, Some(DebugValue::Histogram(values)) if values.len() == 2),
        "{lag:?}"
    );
}

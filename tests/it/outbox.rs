//! The outbox: what is published with a transaction, and how it is leased and settled.

use std::sync::Arc;
use std::time::Duration;

use idem_diesel::outbox::{
    self, Dead, EventId, Lease, Leased, OutboxEvent, Settled, lease, publish, publish_unique,
    settle,
};
use idem_diesel::{Claimed, ErrorKind, Event, Operation, Retention, begin};
use serde::Serialize;

use crate::backend::{Backend, Place, intent, on, on_every_backend};
use crate::shop::ShopError;

/// An order was placed. Its text says which, so that tests can tell events apart.
#[derive(Debug, Clone, Serialize, Event)]
#[event(type = "order.placed", aggregate_type = "order")]
pub struct Placed {
    #[event(aggregate_id)]
    pub order: String,
    pub name: String,
}

/// The event `name` of `order`.
pub fn placed(order: &str, name: &str) -> Placed {
    Placed {
        order: order.to_owned(),
        name: name.to_owned(),
    }
}

/// What [`placed`] was called.
pub fn name_of(event: &OutboxEvent) -> String {
    let value: serde_json::Value = serde_json::from_str(&event.payload).unwrap();
    value["name"].as_str().unwrap().to_owned()
}

fn names(leased: &[Leased]) -> Vec<String> {
    let events = leased.iter().map(|leased| leased.event.as_ref().unwrap());
    events.map(name_of).collect()
}

/// Publishes in a transaction of Diesel's.
pub async fn commit<B: Backend>(conn: &mut B::Conn, events: &[Placed]) -> Vec<EventId> {
    B::begin(conn).await.unwrap();
    let mut ids = Vec::new();
    for event in events {
        ids.push(on::<B::Conn, _>(publish(conn, event)).await.unwrap());
    }
    B::commit(conn).await.unwrap();
    ids
}

fn terms(owner: &str) -> Lease {
    Lease {
        owner: owner.to_owned(),
        duration: Duration::from_secs(600),
        at_most: 100,
        dead: Dead::Block,
    }
}

async fn leased<B: Backend>(conn: &mut B::Conn, owner: &str) -> Vec<Leased> {
    on::<B::Conn, _>(lease(conn, &terms(owner))).await.unwrap()
}

async fn settled<B: Backend>(conn: &mut B::Conn, leased: &Leased, outcome: Settled) -> bool {
    let settlement = leased.settlement(outcome);
    let ids = on::<B::Conn, _>(settle(conn, &[settlement])).await.unwrap();
    ids == [leased.id()]
}

fn retry() -> Settled {
    Settled::Retry {
        pause: Duration::ZERO,
        error: "no".to_owned(),
    }
}

fn given_up() -> Settled {
    Settled::Dead {
        error: "never".to_owned(),
    }
}

/// Makes every lease and every pause end now.
pub fn let_time_pass(place: &Place) {
    let now = if place.is_postgres() {
        "clock_timestamp()"
    } else {
        "strftime('%Y-%m-%d %H:%M:%f', 'now')"
    };
    place.run(&format!("UPDATE outbox_deliveries SET due_at = {now}"));
}

const PLACE: Operation = Operation::new("outbox.place", Retention::literal("48h"));

/// Runs `body` in a call, and ends it with `result`.
async fn in_call<'c, B: Backend>(
    conn: &'c mut B::Conn,
    key: &str,
) -> idem_diesel::Execution<'c, B::Conn, ()> {
    let claimed = begin(conn, &intent(key), &PLACE, &key);
    match on::<B::Conn, Result<Claimed<'c, B::Conn, ()>, _>>(claimed).await {
        Ok(Claimed::Execute(execution)) => execution,
        Ok(Claimed::Replay(_)) => panic!("the key {key} is new"),
        Err(error) => panic!("{error:?}"),
    }
}

on_every_backend! {
    async fn an_event_says_what_caused_it<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let mut execution = in_call::<B>(&mut conn, "k").await;
        let id = on::<B::Conn, _>(publish(execution.connection(), &placed("7", "first"))).await.unwrap();
        on::<B::Conn, _>(execution.finish(Ok::<_, ShopError>(()))).await.unwrap();

        let leased = leased::<B>(&mut conn, "r").await;
        let event = leased[0].event.as_ref().unwrap();
        assert_eq!(event.id, id);
        assert_eq!((&*event.event_type, &*event.aggregate_type, &*event.aggregate_id), ("order.placed", "order", "7"));
        assert_eq!(event.payload, r#"{"order":"7","name":"first"}"#);
        assert_eq!(event.tenant, "acme/alice");
        assert_eq!((event.operation.as_deref(), event.idempotency_key.as_deref()), (Some("outbox.place"), Some("k")));
        let columns = "SELECT aggregatetype || ' ' || aggregateid || ' ' || type || ' ' || payload || ' ' || tenant_id FROM outbox_events";
        assert_eq!(place.text(columns).unwrap(), r#"order 7 order.placed {"order":"7","name":"first"} acme/alice"#);
        assert_eq!(place.text("SELECT CAST(id AS text) FROM outbox_events").unwrap(), id.to_string());
    }

    async fn an_event_outside_of_a_call_has_no_cause<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        commit::<B>(&mut conn, &[placed("7", "first")]).await;
        let leased = leased::<B>(&mut conn, "r").await;
        let event = leased[0].event.as_ref().unwrap();
        assert_eq!((&*event.tenant, &event.operation, &event.idempotency_key), ("", &None, &None));
    }

    async fn nothing_is_published_outside_of_a_transaction<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let error = on::<B::Conn, _>(publish(&mut conn, &placed("7", "first"))).await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::NotInTransaction);
        assert_eq!(place.number("SELECT count(*) FROM outbox_events"), 0);
        assert_eq!(place.number("SELECT count(*) FROM outbox_deliveries"), 0);
    }

    async fn names_that_are_none_are_refused_before_anything_is_written<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        B::begin(&mut conn).await.unwrap();
        for order in ["", "a\nb", &"o".repeat(256)] {
            let error = on::<B::Conn, _>(publish(&mut conn, &placed(order, "x"))).await.unwrap_err();
            assert_eq!(error.kind(), &ErrorKind::Invalid, "{order}");
        }
        let error = on::<B::Conn, _>(publish_unique(&mut conn, &placed("7", "x"), "")).await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Invalid);
        B::commit(&mut conn).await.unwrap();
        assert_eq!(place.number("SELECT count(*) FROM outbox_events"), 0);
    }

    /// What is escaped in JSON stays as it is, and what a jsonb column would refuse is published.
    async fn a_payload_is_published_byte_for_byte<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let name = "a\0b \"quoted\" \u{1f600} \\ '";
        commit::<B>(&mut conn, &[placed("7", name)]).await;
        let leased = leased::<B>(&mut conn, "r").await;
        let event = leased[0].event.as_ref().unwrap();
        assert_eq!(event.payload, serde_json::to_string(&placed("7", name)).unwrap());
    }

    async fn case_g6_events_follow_their_savepoint_and_wake_nobody_before_the_commit<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        // What another session sees at each wake-up that comes from this test.
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (url, noted) = (place.url().to_owned(), Arc::clone(&seen));
        let _wake_up = outbox::on_publish(move || {
            if OF_TEST.try_with(|test| *test == url).unwrap_or(false) {
                noted.lock().unwrap().push(events_seen(&url));
            }
        });
        for (key, fails) in [("b", true), ("c", true), ("a", false)] {
            let call = async {
                let mut execution = in_call::<B>(&mut conn, key).await;
                let db = execution.connection();
                on::<B::Conn, _>(publish(db, &placed("7", "o1"))).await.unwrap();
                B::sql(db, "SAVEPOINT inner_work").await.unwrap();
                on::<B::Conn, _>(publish(db, &placed("7", "o2"))).await.unwrap();
                B::sql(db, "ROLLBACK TO SAVEPOINT inner_work; RELEASE SAVEPOINT inner_work").await.unwrap();
                let third = if key == "c" { placed("", "o3") } else { placed("7", "o3") };
                let third = on::<B::Conn, _>(publish(db, &third)).await.map(drop);
                let result = if key == "b" { third.and(Err(ErrorKind::Conflict.into())) } else { third };
                on::<B::Conn, _>(execution.finish(result)).await
            };
            let ended = OF_TEST.scope(place.url().to_owned(), call).await;
            assert_eq!(ended.is_err(), fails, "{key}");
            if fails {
                assert_eq!(place.number("SELECT count(*) FROM outbox_events"), 0, "{key}");
                assert_eq!(place.number("SELECT count(*) FROM outbox_deliveries"), 0, "{key}");
                assert!(seen.lock().unwrap().is_empty(), "{key}");
            }
        }
        assert_eq!(*seen.lock().unwrap(), [2], "once, and after the commit");
        assert_eq!(names(&leased::<B>(&mut conn, "r").await), ["o1", "o3"]);
    }

    async fn a_unique_job_is_enqueued_once_until_it_is_delivered<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let enqueue = async |conn: &mut B::Conn, name: &str, key: &str| {
            B::begin(conn).await.unwrap();
            let enqueued = on::<B::Conn, _>(publish_unique(conn, &placed("7", name), key)).await.unwrap();
            B::commit(conn).await.unwrap();
            enqueued
        };
        let first = enqueue(&mut conn, "first", "totals").await;
        let second = enqueue(&mut conn, "second", "totals").await;
        let other = enqueue(&mut conn, "other", "averages").await;
        assert!(first.is_new() && !second.is_new() && other.is_new());
        assert_eq!(first.id(), second.id());

        // Leased is not delivered, and neither is dead.
        let found = leased::<B>(&mut conn, "r").await;
        assert_eq!(names(&found), ["first", "other"]);
        assert_eq!(enqueue(&mut conn, "third", "totals").await.id(), first.id());
        assert!(settled::<B>(&mut conn, &found[0], given_up()).await);
        assert_eq!(enqueue(&mut conn, "fourth", "totals").await.id(), first.id());
        let dead = on::<B::Conn, _>(outbox::dead(&mut conn, 10)).await.unwrap();
        assert!(on::<B::Conn, _>(outbox::redrive(&mut conn, &dead[0])).await.unwrap());
        let again = leased::<B>(&mut conn, "r").await;
        assert_eq!(names(&again), ["first"]);
        assert!(settled::<B>(&mut conn, &again[0], Settled::Delivered).await);

        let fifth = enqueue(&mut conn, "fifth", "totals").await;
        assert!(fifth.is_new() && fifth.id() != first.id());
        assert_eq!(place.number("SELECT count(*) FROM outbox_events"), 3);
    }

    async fn racing_unique_jobs_are_one<B: Backend>() {
        let place = B::place();
        let mut tasks = Vec::new();
        let barrier = Arc::new(tokio::sync::Barrier::new(6));
        for _ in 0..6 {
            let mut conn = B::connect(&place).await;
            let barrier = Arc::clone(&barrier);
            tasks.push(tokio::spawn(async move {
                barrier.wait().await;
                let claimed = begin(&mut conn, None, &PLACE, &());
                let mut execution = match on::<B::Conn, Result<Claimed<'_, B::Conn, ()>, _>>(claimed).await.unwrap() {
                    Claimed::Execute(execution) => execution,
                    Claimed::Replay(_) => unreachable!("without an intent nothing is replayed"),
                };
                let enqueued = on::<B::Conn, _>(publish_unique(execution.connection(), &placed("7", "x"), "totals")).await.unwrap();
                on::<B::Conn, _>(execution.finish(Ok::<_, ShopError>(()))).await.unwrap();
                enqueued
            }));
        }
        let mut new = 0;
        let mut ids = std::collections::HashSet::new();
        for task in tasks {
            let enqueued = task.await.unwrap();
            new += u32::from(enqueued.is_new());
            ids.insert(enqueued.id());
        }
        assert_eq!((new, ids.len()), (1, 1));
        assert_eq!(place.number("SELECT count(*) FROM outbox_events"), 1);
    }

    async fn a_lease_is_one_relays_until_it_is_over_and_an_older_one_settles_nothing<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        commit::<B>(&mut conn, &[placed("7", "first"), placed("8", "other")]).await;
        let first = leased::<B>(&mut conn, "r1").await;
        assert_eq!(names(&first), ["first", "other"]);
        assert_eq!((first[0].attempt, first[0].fence), (1, 1));
        assert!(leased::<B>(&mut conn, "r2").await.is_empty());

        let_time_pass(&place);
        let second = leased::<B>(&mut conn, "r2").await;
        assert_eq!((second[0].attempt, second[0].fence), (2, 2));
        // The first relay wakes up, and its lease is worth nothing any more.
        for outcome in [Settled::Delivered, retry(), given_up()] {
            assert!(!settled::<B>(&mut conn, &first[0], outcome).await);
        }
        assert!(settled::<B>(&mut conn, &second[0], Settled::Delivered).await);
        assert!(!settled::<B>(&mut conn, &second[0], retry()).await, "settled is settled");
        // One statement settles what is still this relay's, and says so.
        let both = [first[1].settlement(Settled::Delivered), second[1].settlement(Settled::Delivered)];
        assert_eq!(on::<B::Conn, _>(settle(&mut conn, &both)).await.unwrap(), [second[1].id()]);
    }

    async fn events_of_one_aggregate_never_overtake<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        commit::<B>(&mut conn, &[placed("A", "A1"), placed("A", "A2"), placed("B", "B1"), placed("A", "A3")]).await;
        let one = Lease { at_most: 1, ..terms("r1") };
        let first = on::<B::Conn, _>(lease(&mut conn, &one)).await.unwrap();
        assert_eq!(names(&first), ["A1"]);
        // While A1 is leased, nobody gets what is behind it; B is not delayed.
        let others = leased::<B>(&mut conn, "r2").await;
        assert_eq!(names(&others), ["B1"]);

        // A1 fails, and pauses: still nobody.
        let pause = Settled::Retry { pause: Duration::from_secs(600), error: "no".to_owned() };
        assert!(settled::<B>(&mut conn, &first[0], pause).await);
        assert!(leased::<B>(&mut conn, "r2").await.is_empty());

        // A1 is due again: the rest comes with it, in its order.
        let_time_pass(&place);
        assert!(settled::<B>(&mut conn, &others[0], Settled::Delivered).await);
        let all = leased::<B>(&mut conn, "r2").await;
        assert_eq!(names(&all), ["A1", "A2", "A3"]);

        // A1 is dead: what is behind it waits, or goes on, as it was chosen.
        assert!(settled::<B>(&mut conn, &all[0], given_up()).await);
        for untried in &all[1..] {
            assert!(settled::<B>(&mut conn, untried, Settled::Untried { pause: Duration::ZERO }).await);
        }
        assert!(leased::<B>(&mut conn, "r1").await.is_empty());
        let skip = Lease { dead: Dead::Skip, ..terms("r1") };
        let rest = on::<B::Conn, _>(lease(&mut conn, &skip)).await.unwrap();
        assert_eq!(names(&rest), ["A2", "A3"]);
        assert_eq!(rest[0].attempt, 1, "what was not tried was not counted");
    }

    async fn two_relays_at_once_never_share_an_aggregate<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let events: Vec<_> = (0..40).map(|n| placed(&(n % 4).to_string(), &n.to_string())).collect();
        commit::<B>(&mut conn, &events).await;
        for round in 0..10 {
            let barrier = Arc::new(tokio::sync::Barrier::new(4));
            let mut relays = Vec::new();
            for relay in 0..4 {
                let mut conn = B::connect(&place).await;
                let barrier = Arc::clone(&barrier);
                relays.push(tokio::spawn(async move {
                    barrier.wait().await;
                    let some = Lease { at_most: 7, ..terms(&format!("r{relay}")) };
                    on::<B::Conn, _>(lease(&mut conn, &some)).await.unwrap()
                }));
            }
            let mut owner = std::collections::HashMap::new();
            let mut leased = 0;
            for (relay, found) in relays.into_iter().enumerate() {
                for found in found.await.unwrap() {
                    leased += 1;
                    let aggregate = found.event.unwrap().aggregate_id;
                    let first = *owner.entry(aggregate.clone()).or_insert(relay);
                    assert_eq!(first, relay, "aggregate {aggregate} in round {round}");
                }
            }
            assert!(leased > 0, "round {round}");
            let_time_pass(&place);
        }
    }

    async fn a_dead_event_can_be_redriven_or_dropped<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        commit::<B>(&mut conn, &[placed("A", "A1"), placed("A", "A2"), placed("B", "B1")]).await;
        let found = leased::<B>(&mut conn, "r").await;
        assert!(settled::<B>(&mut conn, &found[0], given_up()).await);
        assert!(settled::<B>(&mut conn, &found[1], Settled::Untried { pause: Duration::ZERO }).await);
        assert!(settled::<B>(&mut conn, &found[2], given_up()).await);
        let backlog = on::<B::Conn, _>(outbox::backlog(&mut conn)).await.unwrap();
        assert_eq!((backlog.pending, backlog.dead), (1, 2));
        let dead = on::<B::Conn, _>(outbox::dead(&mut conn, 10)).await.unwrap();
        assert_eq!(dead.iter().map(|dead| name_of(dead.event.as_ref().unwrap())).collect::<Vec<_>>(), ["A1", "B1"]);
        assert_eq!(dead[0].last_error.as_deref(), Some("never"));

        assert!(on::<B::Conn, _>(outbox::drop_dead(&mut conn, &dead[0])).await.unwrap());
        assert!(!on::<B::Conn, _>(outbox::drop_dead(&mut conn, &dead[0])).await.unwrap());
        assert!(on::<B::Conn, _>(outbox::redrive(&mut conn, &dead[1])).await.unwrap());
        assert!(!on::<B::Conn, _>(outbox::redrive(&mut conn, &dead[1])).await.unwrap());
        let again = leased::<B>(&mut conn, "r").await;
        assert_eq!(names(&again), ["A2", "B1"]);
        assert_eq!(again[1].attempt, 1, "a redriven event is as if it was never tried");
        assert_eq!(place.number("SELECT count(*) FROM outbox_events"), 2);
    }

    async fn the_backlog_says_how_long_the_oldest_waits<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let empty = on::<B::Conn, _>(outbox::backlog(&mut conn)).await.unwrap();
        assert_eq!((empty.pending, empty.oldest), (0, None));
        commit::<B>(&mut conn, &[placed("A", "A1")]).await;
        let hour_ago = if place.is_postgres() {
            "created_at - interval '1 hour'"
        } else {
            "strftime('%Y-%m-%d %H:%M:%f', created_at, '-3600 seconds')"
        };
        place.run(&format!("UPDATE outbox_deliveries SET created_at = {hour_ago}"));
        let backlog = on::<B::Conn, _>(outbox::backlog(&mut conn)).await.unwrap();
        let oldest = backlog.oldest.unwrap().as_secs();
        assert!((3600..3700).contains(&oldest), "{oldest}");
    }

    async fn an_event_carries_the_trace_it_was_published_in<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        // The provider is one for the whole process, so it says the same in every test.
        outbox::carry_trace_context(|| Some(TRACE.to_owned()));
        commit::<B>(&mut conn, &[placed("A", "A1")]).await;
        let leased = leased::<B>(&mut conn, "r").await;
        assert_eq!(leased[0].event.as_ref().unwrap().traceparent.as_deref(), Some(TRACE));
    }
}

tokio::task_local! {
    /// The database of the test that a wake-up comes from: the hooks are the whole process's.
    static OF_TEST: String;
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// How many events another session sees.
fn events_seen(url: &str) -> i64 {
    use diesel::dsl::sql;
    use diesel::sql_types::BigInt;
    use diesel::{Connection, PgConnection, RunQueryDsl, SqliteConnection};
    let query = diesel::select(sql::<BigInt>("(SELECT count(*) FROM outbox_events)"));
    let seen = if url.starts_with("postgres") {
        query.get_result(&mut PgConnection::establish(url).unwrap())
    } else {
        query.get_result(&mut SqliteConnection::establish(url).unwrap())
    };
    seen.unwrap()
}

mod postgres {
    use super::*;
    use crate::backend::{PgAsync, PgSync, run};

    /// One takes a position and stays open; the other, of the same aggregate, waits for it; of another aggregate it does not.
    async fn positions_are_in_the_order_of_commits<B: Backend>() {
        let place = B::place();
        let (mut first, mut second, mut third) = (
            B::connect(&place).await,
            B::connect(&place).await,
            B::connect(&place).await,
        );
        B::begin(&mut first).await.unwrap();
        on::<B::Conn, _>(publish(&mut first, &placed("A", "A1")))
            .await
            .unwrap();
        let waiting = tokio::spawn(async move {
            commit::<B>(&mut second, &[placed("A", "A2")]).await;
        });
        commit::<B>(&mut third, &[placed("B", "B1")]).await;
        place_waits_for_a_lock(&place).await;
        assert_eq!(names(&leased::<B>(&mut third, "r").await), ["B1"]);
        assert!(!waiting.is_finished());
        B::commit(&mut first).await.unwrap();
        waiting.await.unwrap();
        assert_eq!(names(&leased::<B>(&mut third, "r").await), ["A1", "A2"]);
    }

    #[test]
    fn positions_are_in_the_order_of_commits_sync() {
        run(positions_are_in_the_order_of_commits::<PgSync>());
    }

    #[test]
    fn positions_are_in_the_order_of_commits_async() {
        run(positions_are_in_the_order_of_commits::<PgAsync>());
    }

    /// Until a session of the database waits for an advisory lock.
    async fn place_waits_for_a_lock(place: &Place) {
        let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        for _ in 0..6000 {
            if place.number(waits) > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nobody waits for the order of the aggregate");
    }

    /// A late commit is not passed by, and a rolled-back event is no gap that anybody waits for.
    #[test]
    fn case_g1_an_event_that_commits_late_is_delivered() {
        run(async {
            let place = PgAsync::place();
            let (mut a, mut b) = (
                PgAsync::connect(&place).await,
                PgAsync::connect(&place).await,
            );
            PgAsync::begin(&mut a).await.unwrap();
            publish(&mut a, &placed("A", "1")).await.unwrap();
            commit::<PgAsync>(&mut b, &[placed("B", "2")]).await;
            let mut delivered = Vec::new();
            let found = leased::<PgAsync>(&mut b, "r").await;
            delivered.extend(names(&found));
            assert!(settled::<PgAsync>(&mut b, &found[0], Settled::Delivered).await);
            PgAsync::commit(&mut a).await.unwrap();

            PgAsync::begin(&mut a).await.unwrap();
            publish(&mut a, &placed("C", "3")).await.unwrap();
            PgAsync::rollback(&mut a).await.unwrap();
            commit::<PgAsync>(&mut a, &[placed("D", "4")]).await;
            delivered.extend(names(&leased::<PgAsync>(&mut b, "r").await));
            assert_eq!(delivered, ["2", "1", "4"]);
        });
    }

    #[test]
    fn a_captured_event_is_in_the_log_and_not_in_the_table() {
        run(async {
            let place = PgAsync::place();
            let mut conn = PgAsync::connect(&place).await;
            PgAsync::begin(&mut conn).await.unwrap();
            let inserted =
                "SELECT n_tup_ins FROM pg_stat_xact_user_tables WHERE relname = 'outbox_events'";
            outbox::publish_captured(&mut conn, &placed("A", "A1"))
                .await
                .unwrap();
            let count = PgAsync::text(&mut conn, &format!("CAST(({inserted}) AS text)")).await;
            assert_eq!(count.unwrap(), "1");
            PgAsync::commit(&mut conn).await.unwrap();
            assert_eq!(place.number("SELECT count(*) FROM outbox_events"), 0);
            assert_eq!(place.number("SELECT count(*) FROM outbox_deliveries"), 0);
        });
    }

    #[test]
    fn a_notification_wakes_whoever_listens() {
        run(async {
            let place = PgAsync::place();
            let (mut listener, mut teller) = (
                PgAsync::connect(&place).await,
                PgAsync::connect(&place).await,
            );
            let (woken, mut heard) = tokio::sync::mpsc::unbounded_channel();
            let listening = tokio::spawn(async move {
                outbox::listen(&mut listener, || woken.send(()).unwrap()).await
            });
            // Once at the beginning, for what was missed before.
            heard.recv().await.unwrap();
            outbox::notify(&mut teller).await.unwrap();
            heard.recv().await.unwrap();
            place.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()");
            let lost = tokio::time::timeout(Duration::from_secs(60), listening).await;
            assert!(lost.is_ok(), "a lost connection is told");
        });
    }
}

#[test]
fn sqlite_has_no_log_to_capture_from() {
    use crate::backend::{SqliteAsync, run};
    run(async {
        let place = SqliteAsync::place();
        let mut conn = SqliteAsync::connect(&place).await;
        SqliteAsync::begin(&mut conn).await.unwrap();
        let captured = outbox::publish_captured(&mut conn, &placed("A", "A1")).await;
        let kind = captured.unwrap_err().kind().clone();
        assert!(matches!(kind, ErrorKind::Unsupported { .. }), "{kind:?}");
    });
}

//! The inbox: a message has its effects once for each subscriber, whoever delivers it how often.

mod attempts;
mod batches;
mod ends;
mod faults;
mod joined;
mod races;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use diesel::Connection;
use diesel::connection::SimpleConnection;
use futures_util::FutureExt;
use idem_diesel::inbox::{Claimed, begin};
use idem_diesel::{
    Async, Blocking, Consumed, Error, ErrorKind, IdempotentConnection, MessageId, RequestHash,
    Retention, Run, StateMachine, Subscription, inbox,
};
use tokio::task::JoinHandle;

use crate::backend::{
    Backend, PgAsync, PgSync, Place, SqliteAsync, SqliteSync, Wait, on_every_backend, run,
};
use crate::drops::poll_at_most;
use crate::shop::{Ending, Gate, OrderStatus, Script, ShopError};

const BILLING: Subscription = Subscription::new("billing", Retention::literal("7d"));
const MAIL: Subscription = Subscription::new("mail", Retention::literal("7d"));

/// A message by its id, and the amount that it is about.
type Message = (&'static str, i64);

const EVENT: Message = ("evt-17", 10);

/// The same id, about another amount.
const OTHER: Message = ("evt-17", 11);

fn id(id: &str) -> MessageId {
    MessageId::new(id).unwrap()
}

/// Waits for what a function of the library gives. A sync one blocks, so the runtime gets another thread meanwhile.
macro_rules! on {
    ($conn:ty, $call:expr) => {
        crate::backend::on::<$conn, _>(tokio::task::block_in_place(move || $call)).await
    };
}
pub(crate) use on;

/// [`inbox::begin`] on any connection.
async fn begun<'c, B: Backend>(
    conn: &'c mut B::Conn,
    subscription: &Subscription,
    message_id: &MessageId,
    message: &(impl RequestHash + Sync),
) -> Result<Claimed<'c, B::Conn>, Error> {
    let run: Run<'c, B::Conn, Result<Claimed<'c, B::Conn>, Error>> =
        tokio::task::block_in_place(move || begin(conn, subscription, message_id, message));
    <<B::Conn as IdempotentConnection>::Flavor as Wait>::wait(run).await
}

/// A handler of the message, which does what `script` says.
async fn deliver<B: Backend>(
    conn: &mut B::Conn,
    subscription: &Subscription,
    (message_id, amount): Message,
    script: &Script,
    gate: &Gate,
) -> Result<Consumed, ShopError> {
    let mut consumption = match begun::<B>(conn, subscription, &id(message_id), &amount).await? {
        Claimed::Duplicate => return Ok(Consumed::Duplicate),
        Claimed::Execute(consumption) => consumption,
    };
    let paid = match script.pays {
        Some(order_id) => {
            let pay = OrderStatus::Paid.from(OrderStatus::Pending);
            let to_pay = &mut consumption;
            on!(B::Conn, to_pay.transition(pay, order_id))
        }
        None => Ok(()),
    };
    let result = match paid {
        Ok(()) => body::<B>(consumption.connection(), script, gate).await,
        Err(refused) => Err(refused.into()),
    };
    on!(B::Conn, consumption.finish(result)).map(Consumed::Processed)
}

async fn body<B: Backend>(db: &mut B::Conn, script: &Script, gate: &Gate) -> Result<(), ShopError> {
    gate.pass();
    for statement in &script.statements {
        let done = B::sql(db, statement).await;
        if !script.swallows {
            done?;
        }
    }
    match script.ending {
        Ending::Answer => Ok(()),
        Ending::Error => Err(ShopError::No),
        Ending::Panic => panic!("the body panics, as the test told it"),
        Ending::Hang => std::future::pending().await,
    }
}

/// Starts a delivery on a connection of its own, which stops at `gate`.
async fn start<B: Backend>(
    place: &Place,
    subscription: Subscription,
    message: Message,
    script: Script,
    gate: &Arc<Gate>,
) -> JoinHandle<Result<Consumed, ShopError>> {
    let mut conn = B::connect(place).await;
    let gate = Arc::clone(gate);
    tokio::spawn(
        async move { deliver::<B>(&mut conn, &subscription, message, &script, &gate).await },
    )
}

/// Messages that were processed.
#[track_caller]
fn marks(place: &Place) -> i64 {
    place.number("SELECT count(*) FROM processed_messages WHERE state = 'processed'")
}

/// Rows of `processed_messages`, whatever they say.
#[track_caller]
fn rows(place: &Place) -> i64 {
    place.number("SELECT count(*) FROM processed_messages")
}

fn effect() -> Script {
    Script::effect("e")
}

on_every_backend! {
    async fn a_message_has_its_effects_once<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let gate = Gate::open();
        let first = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &gate).await;
        assert_eq!(first.unwrap(), Consumed::Processed(()));
        let again = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &gate).await;
        assert_eq!(again.unwrap(), Consumed::Duplicate);

        // Also on another connection, after the first is gone.
        drop(conn);
        let mut conn = B::connect(&place).await;
        let again = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &gate).await;
        assert_eq!(again.unwrap(), Consumed::Duplicate);
        assert_eq!((place.effects(), marks(&place), rows(&place), gate.entered()), (1, 1, 1, 1));
        // The next message is another one.
        let next = deliver::<B>(&mut conn, &BILLING, ("evt-18", 10), &effect(), &gate).await;
        assert_eq!(next.unwrap(), Consumed::Processed(()));
        assert_eq!((place.effects(), marks(&place)), (2, 2));
    }

    async fn case_f1_a_message_has_its_effects_once_for_each_subscriber<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        for expected in [Consumed::Processed(()), Consumed::Duplicate] {
            for (subscription, name) in [(BILLING, "billing"), (MAIL, "mail")] {
                let done = deliver::<B>(&mut conn, &subscription, EVENT, &Script::effect(name), &Gate::open()).await;
                assert_eq!(done.unwrap(), expected, "{name}");
            }
        }
        let names = if B::is_postgres() { "string_agg(name, ' ' ORDER BY name)" } else { "group_concat(name, ' ')" };
        let names = format!("SELECT {names} FROM (SELECT name FROM effects ORDER BY name) AS sorted");
        assert_eq!(place.text(&names).as_deref(), Some("billing mail"));
        assert_eq!((marks(&place), rows(&place)), (2, 2));
        let whose = "SELECT count(*) FROM processed_messages WHERE message_id = 'evt-17' AND subscriber_id IN ('billing', 'mail')";
        assert_eq!(place.number(whose), 2);
    }

    async fn a_failed_handler_leaves_nothing_and_the_message_is_as_new<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        for _ in 0..2 {
            let failed = deliver::<B>(&mut conn, &BILLING, EVENT, &effect().ending(Ending::Error), &Gate::open()).await;
            assert!(matches!(failed, Err(ShopError::No)));
            assert_eq!((place.effects(), rows(&place)), (0, 0));
        }
        // Nothing is left to compare with, so also another content is new.
        let done = deliver::<B>(&mut conn, &BILLING, OTHER, &effect(), &Gate::open()).await;
        assert_eq!(done.unwrap(), Consumed::Processed(()));
        assert_eq!((place.effects(), marks(&place)), (1, 1));
    }

    async fn a_panic_in_the_handler_leaves_nothing_and_the_message_is_as_new<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let (panicking, gate) = (effect().ending(Ending::Panic), Gate::open());
        let call = deliver::<B>(&mut conn, &BILLING, EVENT, &panicking, &gate);
        assert!(AssertUnwindSafe(call).catch_unwind().await.is_err());
        assert_eq!((place.effects(), rows(&place)), (0, 0));
        let done = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &gate).await;
        assert_eq!(done.unwrap(), Consumed::Processed(()));
        assert_eq!((place.effects(), marks(&place)), (1, 1));
    }

    async fn a_dropped_consumption_leaves_nothing_and_the_message_is_as_new<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let Claimed::Execute(mut consumption) = begun::<B>(&mut conn, &BILLING, &id("evt-17"), &10).await.unwrap() else {
            panic!("it is new");
        };
        B::sql(consumption.connection(), "INSERT INTO effects (name) VALUES ('e')").await.unwrap();
        drop(consumption);
        // Another session first: what was dropped must not hold the message.
        let mut other = B::connect(&place).await;
        let done = deliver::<B>(&mut other, &BILLING, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(done.unwrap(), Consumed::Processed(()));
        let again = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(again.unwrap(), Consumed::Duplicate);
        assert_eq!((place.effects(), marks(&place)), (1, 1));
    }

    async fn case_c10_vi_another_content_under_the_id_of_a_processed_message_is_refused<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let gate = Gate::open();
        deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &gate).await.unwrap();
        let row = || place.text("SELECT request_hash || state || processed_at || forget_at FROM processed_messages");
        let before = row();
        let refused = deliver::<B>(&mut conn, &BILLING, OTHER, &effect(), &gate).await.unwrap_err();
        assert_eq!(refused.kind(), Some(&ErrorKind::Mismatch));
        assert!(refused.to_string().starts_with("billing: "), "{refused}");

        // Also right after a restart, when nothing is remembered but the row.
        drop(conn);
        let mut conn = B::connect(&place).await;
        let refused = deliver::<B>(&mut conn, &BILLING, OTHER, &effect(), &gate).await.unwrap_err();
        assert_eq!(refused.kind(), Some(&ErrorKind::Mismatch));
        assert_eq!(row(), before);
        let again = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &gate).await;
        assert_eq!(again.unwrap(), Consumed::Duplicate);
        assert_eq!((place.effects(), marks(&place), gate.entered()), (1, 1, 1));
        // To another subscriber it is a message like any other.
        let done = deliver::<B>(&mut conn, &MAIL, OTHER, &effect(), &gate).await;
        assert_eq!(done.unwrap(), Consumed::Processed(()));
    }

    async fn ids_that_look_like_something_else_are_themselves<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let ids = ["17", "017", "1e1", "null", "a b", "a  b", "a'b", "a\"b", "a\\b", "é", "e\u{301}", "[1]", "Evt", "evt"];
        for expected in [Consumed::Processed(()), Consumed::Duplicate] {
            for message_id in ids {
                let done = deliver::<B>(&mut conn, &BILLING, (message_id, 10), &effect(), &Gate::open()).await;
                assert_eq!(done.unwrap(), expected, "{message_id}");
            }
        }
        assert_eq!(place.effects(), i64::try_from(ids.len()).unwrap());
    }

    async fn a_message_without_a_hash_sends_nothing<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let refused = begun::<B>(&mut conn, &BILLING, &id("evt-17"), &f64::NAN).await;
        assert_eq!(refused.err().unwrap().kind(), &ErrorKind::Unhashable);
        assert_eq!(rows(&place), 0);
    }

    async fn a_hook_runs_once_after_the_commit_and_never_otherwise<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let ran = Arc::new(AtomicU32::new(0));
        for (result, runs) in [(Err(ShopError::No), 0), (Ok(()), 1)] {
            let Claimed::Execute(mut consumption) = begun::<B>(&mut conn, &BILLING, &id("evt-17"), &10).await.unwrap() else {
                panic!("it is new");
            };
            let hook = Arc::clone(&ran);
            consumption.after_commit(move || {
                hook.fetch_add(1, Ordering::SeqCst);
            });
            assert_eq!(ran.load(Ordering::SeqCst), 0);
            let _: Result<(), ShopError> = on!(B::Conn, consumption.finish(result));
            assert_eq!(ran.load(Ordering::SeqCst), runs);
        }
        let again = begun::<B>(&mut conn, &BILLING, &id("evt-17"), &10).await;
        assert!(matches!(again, Ok(Claimed::Duplicate)));
        assert_eq!((ran.load(Ordering::SeqCst), marks(&place)), (1, 1));
    }

    async fn a_missing_table_is_named_with_what_makes_it<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        place.run("DROP TABLE processed_messages");
        let refused = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &Gate::open()).await.unwrap_err();
        assert_eq!(refused.kind(), Some(&ErrorKind::TableMissing { table: "processed_messages" }));
        assert_eq!(
            refused.to_string(),
            "billing: the table processed_messages is missing: call ensure_schema or run the migrations"
        );
        assert_eq!(place.effects(), 0);
        assert_eq!(B::text(&mut conn, "SELECT 'usable'").await.unwrap(), "usable");
    }
}

/// Deliveries to a closure: whether it fails, and the amount.
const DELIVERIES: [(bool, i64); 4] = [(true, 10), (false, 10), (false, 10), (false, 11)];

/// What they must have led to.
#[track_caller]
fn check_deliveries(place: &Place, runs: u32, results: &[Result<Consumed<&str>, ShopError>]) {
    let [failed, first, again, other] = results else {
        panic!("four deliveries");
    };
    assert!(matches!(failed, Err(ShopError::No)));
    assert!(matches!(first, Ok(Consumed::Processed("done"))));
    assert!(matches!(again, Ok(Consumed::Duplicate)));
    let refused = other.as_ref().unwrap_err();
    assert_eq!(refused.kind(), Some(&ErrorKind::Mismatch));
    assert_eq!((runs, place.effects(), marks(place)), (2, 1, 1));
}

async fn an_async_closure_runs_once<B>()
where
    B: Backend<Conn: IdempotentConnection<Flavor = Async>>,
{
    let place = B::place();
    let mut conn = B::connect(&place).await;
    let (mut runs, mut results) = (0, Vec::new());
    for (fails, amount) in DELIVERIES {
        let body = async |db: &mut B::Conn| {
            runs += 1;
            B::sql(db, "INSERT INTO effects (name) VALUES ('e')").await?;
            if fails {
                Err(ShopError::No)
            } else {
                Ok("done")
            }
        };
        results.push(inbox::consume(&mut conn, &BILLING, &id("evt-17"), &amount, body).await);
    }
    check_deliveries(&place, runs, &results);
}

fn a_sync_closure_runs_once<C>(place: &Place, mut conn: C)
where
    C: IdempotentConnection<Flavor = Blocking> + SimpleConnection,
{
    let (mut runs, mut results) = (0, Vec::new());
    for (fails, amount) in DELIVERIES {
        let body = |db: &mut C| {
            runs += 1;
            db.batch_execute("INSERT INTO effects (name) VALUES ('e')")?;
            if fails {
                Err(ShopError::No)
            } else {
                Ok("done")
            }
        };
        let message_id = id("evt-17");
        results.push(inbox::consume_sync(
            &mut conn,
            &BILLING,
            &message_id,
            &amount,
            body,
        ));
    }
    check_deliveries(place, runs, &results);
}

#[test]
fn a_closure_runs_once_sqlite_sync() {
    let place = SqliteSync::place();
    let conn = diesel::SqliteConnection::establish(place.url()).unwrap();
    a_sync_closure_runs_once(&place, conn);
}

#[test]
fn a_closure_runs_once_pg_sync() {
    let place = PgSync::place();
    let conn = diesel::PgConnection::establish(place.url()).unwrap();
    a_sync_closure_runs_once(&place, conn);
}

#[test]
fn a_closure_runs_once_sqlite_async() {
    run(an_async_closure_runs_once::<SqliteAsync>());
}

#[test]
fn a_closure_runs_once_pg_async() {
    run(an_async_closure_runs_once::<PgAsync>());
}

/// Case B4 for a message: whatever the await at which a delivery is dropped, it has its effects once.
///
/// How often a delivery is polled until it is done depends on the machine, so all numbers up to a bound are tried; `at_least` of them must
/// drop it half-way.
async fn case_b4_a_delivery_is_dropped_at_every_await<B: Backend>(at_least: usize) {
    let mut dropped = 0;
    let (script, gate) = (effect(), Gate::open());
    for polls in 1..=30 {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let delivery = deliver::<B>(&mut conn, &BILLING, EVENT, &script, &gate);
        match poll_at_most(polls, delivery).await {
            Some(done) => assert_eq!(done.unwrap(), Consumed::Processed(())),
            None => dropped += 1,
        }
        // Another session first: the dropped delivery must not hold the message.
        let mut other = B::connect(&place).await;
        deliver::<B>(&mut other, &BILLING, EVENT, &script, &gate)
            .await
            .unwrap();
        let again = deliver::<B>(&mut conn, &BILLING, EVENT, &script, &gate).await;
        assert_eq!(
            again.unwrap(),
            Consumed::Duplicate,
            "dropped after {polls} polls"
        );
        assert_eq!(
            (place.effects(), marks(&place)),
            (1, 1),
            "dropped after {polls} polls"
        );
    }
    assert!(dropped >= at_least, "dropped {dropped} times");
    println!("dropped after {dropped} numbers of polls");
}

#[test]
fn case_b4_pg_async() {
    // The claim, the body, and the end wait for the server once each, at least.
    run(case_b4_a_delivery_is_dropped_at_every_await::<PgAsync>(3));
}

#[test]
fn case_b4_sqlite_async() {
    run(case_b4_a_delivery_is_dropped_at_every_await::<SqliteAsync>(
        1,
    ));
}

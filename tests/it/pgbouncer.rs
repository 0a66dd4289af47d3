//! Everything that a call promises, once more through pgbouncer in transaction mode, and what only matters there.
//!
//! `on_every_backend!` makes two tests of each body for it. Which connections work behind it is told in `support::pgbouncer`.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use diesel::connection::CacheSize;
use diesel::sql_types::Integer;
use diesel::{Connection, IntoSql, PgConnection, RunQueryDsl};
use diesel_async::{AsyncConnection, AsyncPgConnection};
use idem_diesel::{ErrorKind, Isolation, Policy};
use support::pgbouncer::{in_front_of, keeps_prepared_statements};

use crate::backend::{Backend, PERFORM, PgAsync, PgSync, Place, intent, kind};
use crate::drops;
use crate::shop::{CreateOrder, Gate, Script, ShopError};
use crate::surroundings::{In, Surroundings, on_postgres};
use crate::waiting::{start, wait_until_somebody_waits};

/// Between the clients and the server stands pgbouncer; what a test looks at by itself, it sees around it.
pub struct Pgbouncer;

/// The backend `B` through pgbouncer.
pub type Through<B> = In<Pgbouncer, B>;

impl Surroundings<PgSync> for Pgbouncer {
    fn prepare(_: &Place) {}

    async fn connect_to(url: &str) -> PgConnection {
        let mut conn = PgSync::connect_to(&in_front_of(url)).await;
        if !keeps_prepared_statements() {
            Connection::set_prepared_statement_cache_size(&mut conn, CacheSize::Disabled);
        }
        conn
    }
}

impl Surroundings<PgAsync> for Pgbouncer {
    fn prepare(_: &Place) {}

    async fn connect_to(url: &str) -> AsyncPgConnection {
        if keeps_prepared_statements() {
            PgAsync::connect_to(&in_front_of(url)).await
        } else {
            connect_in_a_transaction(&in_front_of(url)).await
        }
    }
}

/// Connects as `AsyncPgConnection::establish` does, but inside a transaction.
///
/// `establish` prepares and executes two `SET` statements, each in two messages; outside of a transaction an old pgbouncer may give
/// the second message to another session, and the connection fails.
async fn connect_in_a_transaction(url: &str) -> AsyncPgConnection {
    let (client, mut connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::select! {
        begun = client.batch_execute("BEGIN") => begun.unwrap(),
        ended = &mut connection => panic!("the connection ended: {ended:?}"),
    }
    let mut conn = AsyncPgConnection::try_from_client_and_connection(client, connection)
        .await
        .unwrap();
    conn.set_prepared_statement_cache_size(CacheSize::Disabled);
    PgAsync::sql(&mut conn, "COMMIT").await.unwrap();
    conn
}

/// Bodies that are about a session of one's own, which nobody has behind pgbouncer in transaction mode, and what is true instead.
const EXCEPT: [(&str, &str); 3] = [
    (
        "waiting::the_sessions_own_timeouts_are_back_before_the_body_runs",
        "a setting of the session would be somebody else's after the transaction",
    ),
    (
        "misuse::a_connection_that_the_server_closed_is_a_lost_connection",
        "between transactions no session is the client's to lose; inside of one it is, see below",
    ),
    (
        "histories::every_history_is_one_in_which_each_key_has_one_effect",
        "its faults are settings of the session",
    ),
];

/// Runs the body of the test at `path`, unless it is an exception.
pub fn run(path: &str, body: impl Future<Output = ()>) {
    let except = EXCEPT
        .iter()
        .find(|(name, _)| path.ends_with(&format!("::{name}")));
    match except {
        Some((name, reason)) => println!("{name} says nothing about pgbouncer: {reason}"),
        None => crate::backend::run(body),
    }
}

#[test]
fn every_exception_is_there() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("it");
    for (path, _) in EXCEPT {
        let (file, name) = path.split_once("::").unwrap();
        let text = std::fs::read_to_string(folder.join(file).with_extension("rs")).unwrap();
        assert!(text.contains(&format!("async fn {name}<")), "{path}");
    }
}

#[test]
fn case_b4_dropped_at_every_await() {
    crate::backend::run(drops::case_b4_dropped_at_every_await::<Through<PgAsync>>(5));
}

#[test]
fn a_hanging_body_is_dropped() {
    crate::backend::run(drops::a_hanging_body_is_dropped::<Through<PgAsync>>());
}

/// What a session tells of itself: its number, everything that a call sets in it, and the locks of a session that it holds.
const SESSION: &str = "SELECT concat_ws(' ', pg_backend_pid(), current_setting('lock_timeout'), \
     current_setting('idle_in_transaction_session_timeout'), current_setting('default_transaction_isolation'), \
     coalesce(nullif(current_setting('app.tenant_id', true), ''), 'nobody'), \
     (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()))";

const CLEAN: &str = " 0 0 read committed nobody 0";

on_postgres! {
    in Pgbouncer:

    async fn nothing_that_a_call_sets_is_seen_by_the_next_client<B: Backend>() {
        let place = B::place();
        let operation = PERFORM.with_policy(
            Policy::new()
                .tenant_setting("app.tenant_id")
                .max_idle(Some(Duration::from_secs(77)))
                .isolation(Isolation::ReadCommitted)
                .wait(Some(Duration::from_secs(33))),
        );
        // Two sessions of the server: one executes, the other one waits for it.
        let script = Script::of([format!("INSERT INTO effects {SESSION}")]);
        let gate = Arc::new(Gate::closed());
        let first = start::<B>(&place, operation, script.clone(), &gate).await;
        gate.wait_until_entered();
        let second = start::<B>(&place, operation, script, &gate).await;
        wait_until_somebody_waits(&place);
        gate.release();
        assert!(!first.await.unwrap().unwrap().is_replayed());
        assert!(second.await.unwrap().unwrap().is_replayed());
        let inside = place.text("SELECT name FROM effects").unwrap();
        assert!(inside.contains(" 77s read committed acme"), "{inside}");

        // Two clients at once get both of them, and see nothing of it.
        let (mut one, mut other) = (B::connect(&place).await, B::connect(&place).await);
        let mut seen = BTreeSet::new();
        B::begin(&mut one).await.unwrap();
        B::begin(&mut other).await.unwrap();
        for conn in [&mut one, &mut other] {
            let session = B::text(conn, SESSION).await.unwrap();
            let number = session.strip_suffix(CLEAN).unwrap_or_else(|| panic!("{session}"));
            seen.insert(number.to_owned());
            B::rollback(conn).await.unwrap();
        }
        let executed_in = inside.split(' ').next().unwrap();
        assert!(seen.contains(executed_in), "{executed_in} is not among {seen:?}");
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        assert_eq!((place.number(sessions), seen.len()), (2, 2));
    }

    async fn a_session_that_ends_inside_a_call_is_a_lost_connection<B: Backend>() {
        let place = B::place();
        let gate = Arc::new(Gate::closed());
        let call = start::<B>(&place, PERFORM, Script::effect("e"), &gate).await;
        gate.wait_until_entered();
        let session = "SELECT CAST(pid AS text) FROM pg_stat_activity WHERE state = 'idle in transaction' \
                       AND datname = current_database()";
        crate::backend::terminate(place.url(), &place.text(session).unwrap());
        gate.release();
        let Err(ShopError::Database(error)) = call.await.unwrap() else {
            panic!("the body reports what its statement met");
        };
        assert_eq!(idem_diesel::Error::from(error).kind(), &ErrorKind::ConnectionLost);
        let mut conn = B::connect(&place).await;
        let done = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &gate).await;
        assert!(!done.unwrap().is_replayed());
        assert_eq!((place.effects(), place.records()), (1, 1));
    }
}

/// A connection as an application makes it that has not heard of `CacheSize`: it meets a session that does not know its statements.
async fn remembered_statements_need_a_pgbouncer_that_keeps_them<B: Backend>() {
    let cmd = CreateOrder {
        account_id: 1,
        amount_cents: 5,
    };
    let place = B::place();
    let mut conn = B::connect_to(&in_front_of(place.url())).await;
    B::create_order(&mut conn, &intent("k1"), &cmd)
        .await
        .unwrap();
    // Somebody else has the session in which they were prepared.
    let mut other = B::connect_to(&in_front_of(place.url())).await;
    B::begin(&mut other).await.unwrap();
    let done = B::create_order(&mut conn, &intent("k2"), &cmd).await;
    if keeps_prepared_statements() {
        assert!(!done.unwrap().is_replayed());
    } else {
        assert_eq!(kind(done), ErrorKind::Database);
        assert_eq!(
            (place.number("SELECT count(*) FROM orders"), place.records()),
            (1, 1)
        );
    }
    B::rollback(&mut other).await.unwrap();
}

#[test]
fn remembered_statements_pg_sync() {
    crate::backend::run(remembered_statements_need_a_pgbouncer_that_keeps_them::<
        PgSync,
    >());
}

#[test]
fn remembered_statements_pg_async() {
    crate::backend::run(remembered_statements_need_a_pgbouncer_that_keeps_them::<
        PgAsync,
    >());
}

diesel::define_sql_function! { fn abs(x: Integer) -> Integer; }

/// Why Diesel's own cache must not stand in front of an old pgbouncer: its names are the same in every connection, so that another
/// client's statement runs instead of one's own, without an error.
#[test]
fn a_remembered_statement_can_be_somebody_elses() {
    use diesel::connection::SimpleConnection;
    let place = PgSync::place();
    let connect = || PgConnection::establish(&in_front_of(place.url())).unwrap();
    let (mut ours, mut theirs, mut third) = (connect(), connect(), connect());
    let absolute = |conn: &mut PgConnection| {
        let query = diesel::select(abs(-5));
        query.get_result::<i32>(conn).unwrap()
    };

    // Each of the two prepares its first statement, in another session.
    ours.batch_execute("BEGIN").unwrap();
    theirs.batch_execute("BEGIN").unwrap();
    assert_eq!(absolute(&mut ours), 5);
    let as_it_is = diesel::select((-5).into_sql::<Integer>());
    assert_eq!(as_it_is.get_result::<i32>(&mut theirs), Ok(-5));
    // Now the other session is the only free one.
    ours.batch_execute("COMMIT").unwrap();
    third.batch_execute("BEGIN").unwrap();
    theirs.batch_execute("COMMIT").unwrap();
    ours.batch_execute("BEGIN").unwrap();
    let expected = if keeps_prepared_statements() { 5 } else { -5 };
    assert_eq!(absolute(&mut ours), expected);
}

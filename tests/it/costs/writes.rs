//! What a call writes: how many transaction ids it takes, and how many bytes of the log (WAL).

use diesel::connection::SimpleConnection;
use diesel::dsl::sql;
use diesel::sql_types::{BigInt, Text};
use diesel::{Connection, PgConnection, RunQueryDsl, select};
use idem_diesel::{IdempotencyKey, Intent, Tenant};
use support::postgres::{Database, Server};
use uuid::Uuid;

use super::{AsyncPg, Client, SyncPg, run};
use crate::shop::TABLES;

/// Calls that are measured together.
const CALLS: u16 = 200;

/// What a first call writes to the log beside its transaction, in bytes: at most this, as the mean of [`CALLS`].
const MOST_BYTES: i64 = 400;

/// Nothing happens on such a server but what a test does: no checkpoint, no vacuum, and no page that is logged as a whole because it was not changed
/// since a checkpoint. What is logged of a change is what it is by default (`wal_level`).
const QUIET: &str =
    "-c full_page_writes=off -c autovacuum=off -c checkpoint_timeout=1h -c bgwriter_lru_maxpages=0";

/// A server that nobody else uses.
fn quiet_server() -> Server {
    Server::start_in(&std::env::temp_dir(), QUIET).unwrap_or_else(|error| panic!("{error}"))
}

#[derive(Debug, Clone, Copy)]
enum Call {
    /// A transaction without a key.
    Bare,
    First,
    /// A first call with a savepoint around its body.
    Completed,
    /// The same, rolled back to its savepoint.
    Declined,
    Replay,
    ReplayReadFirst,
}

impl Call {
    async fn make<C: Client>(self, conn: &mut C::Conn, key: &Intent) {
        let is_replayed = match self {
            Self::Bare => C::sell(conn).await.map(|_| false).unwrap(),
            Self::First | Self::Replay => C::sell_once(conn, key).await.unwrap().is_replayed(),
            Self::Completed => C::try_to_sell(conn, key, false)
                .await
                .unwrap()
                .is_replayed(),
            Self::Declined => C::try_to_sell(conn, key, true).await.unwrap().is_replayed(),
            Self::ReplayReadFirst => {
                let outcome = C::sell_once_read_first(conn, key).await;
                outcome.unwrap().is_replayed()
            }
        };
        assert_eq!(
            is_replayed,
            matches!(self, Self::Replay | Self::ReplayReadFirst)
        );
    }
}

/// A client on a database of its own, and a session that looks at what it does.
struct Watched<C: Client> {
    conn: C::Conn,
    witness: PgConnection,
    _database: Database,
}

impl<C: Client> Watched<C> {
    async fn on(server: &Server) -> Self {
        let database = server.fresh_database().unwrap();
        let mut witness = PgConnection::establish(database.url()).unwrap();
        idem_diesel::ensure_schema(&mut witness).unwrap();
        let tables = TABLES.replace("{auto}", "BIGSERIAL PRIMARY KEY");
        witness.batch_execute(&tables).unwrap();
        // So that all answers are equally long.
        witness
            .batch_execute("ALTER SEQUENCE orders_id_seq RESTART 1000000")
            .unwrap();
        Self {
            conn: C::connect(database.url()).await,
            witness,
            _database: database,
        }
    }

    fn number(&mut self, expression: &str) -> i64 {
        let number = sql::<BigInt>(&format!("CAST({expression} AS bigint)"));
        select(number).get_result(&mut self.witness).unwrap()
    }

    /// The indexes of the records, the primary key last.
    fn indexes(&mut self) -> Vec<String> {
        let name = "CAST(indexrelid::regclass AS text) FROM pg_index \
                    WHERE indrelid = 'api_idempotency'::regclass ORDER BY indisprimary, 1";
        select(sql::<Text>(name)).load(&mut self.witness).unwrap()
    }

    /// How many transaction ids a call for each of these keys takes, all together.
    async fn ids(&mut self, call: Call, keys: &[Intent]) -> i64 {
        // Asking takes one.
        let next = "CAST(pg_current_xact_id() AS text)";
        let before = self.number(next);
        for key in keys {
            call.make::<C>(&mut self.conn, key).await;
        }
        self.number(next) - before - 1
    }

    /// What a call for each of these keys writes to the log.
    async fn log(&mut self, call: Call, keys: &[Intent]) -> Log {
        let end_of_log = "pg_current_wal_insert_lsn() - '0/0'";
        let mut calls = Vec::new();
        let mut before = self.number(end_of_log);
        for key in keys {
            call.make::<C>(&mut self.conn, key).await;
            let after = self.number(end_of_log);
            calls.push(after - before);
            before = after;
        }
        calls.sort_unstable();
        Log {
            bytes: calls.iter().sum(),
            typical: calls.get(calls.len() / 2).copied().unwrap(),
        }
    }
}

/// What calls write to the log.
#[derive(Debug, Clone, Copy)]
struct Log {
    /// Of all of them, the heads of the log's pages included.
    bytes: i64,
    /// Of the one in the middle. Some of the others had to split a page of an index, say.
    typical: i64,
}

impl Log {
    fn mean(self) -> f64 {
        let bytes = i32::try_from(self.bytes).unwrap();
        f64::from(bytes) / f64::from(CALLS)
    }
}

#[derive(Debug, Clone, Copy)]
enum Form {
    /// 12 characters.
    Short,
    /// 36 characters.
    Uuid,
}

/// Keys that nobody has used. They come in no order, as those that clients make, and are the same in every run.
#[derive(Debug, Default)]
struct Keys {
    made: u64,
}

impl Keys {
    fn make(&mut self, form: Form) -> Vec<Intent> {
        (0..CALLS).map(|_| self.next(form)).collect()
    }

    fn next(&mut self, form: Form) -> Intent {
        self.made += 1;
        let number = scattered(self.made);
        let key = match form {
            Form::Short => format!("{:012x}", number >> 16),
            Form::Uuid => Uuid::from_u64_pair(number, scattered(number)).to_string(),
        };
        let tenant = Tenant::of("acme", "alice").unwrap();
        Intent::new(tenant, IdempotencyKey::new(key).unwrap())
    }
}

/// Different numbers for different numbers: `SplitMix64`. Source: <https://prng.di.unimi.it/splitmix64.c>
fn scattered(number: u64) -> u64 {
    let z = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

async fn ids<C: Client>(server: &Server) {
    let mut watched = Watched::<C>::on(server).await;
    let mut keys = Keys::default();
    let once = keys.make(Form::Short);
    for (call, keys, expected) in [
        (Call::Bare, &once, 1),
        (Call::First, &once, 1),
        (Call::Replay, &once, 0),
        (Call::ReplayReadFirst, &once, 0),
        // What is written inside of a savepoint takes an id of its own.
        (Call::Completed, &keys.make(Form::Short), 2),
        // Behind ROLLBACK TO the savepoint is there anew, and the answer is written inside of it.
        (Call::Declined, &keys.make(Form::Short), 2),
    ] {
        let ids = watched.ids(call, keys).await;
        println!("{}, {call:?}: {ids} ids in {CALLS} calls", C::NAME);
        assert_eq!(ids, expected * i64::from(CALLS), "{}, {call:?}", C::NAME);
    }
}

#[test]
fn a_first_call_takes_one_transaction_id_as_its_transaction_and_a_replay_none() {
    run(async {
        let server = quiet_server();
        ids::<SyncPg>(&server).await;
        ids::<AsyncPg>(&server).await;
    });
}

/// A client in the middle of its work: its tables are not empty, and everything is prepared.
async fn at_work<C: Client>(server: &Server, keys: &mut Keys) -> Watched<C> {
    let mut watched = Watched::<C>::on(server).await;
    let keys = keys.make(Form::Short);
    for call in [Call::Bare, Call::First, Call::Replay, Call::ReplayReadFirst] {
        watched.log(call, &keys).await;
    }
    watched
}

async fn log_of_a_first_call<C: Client>(server: &Server) {
    let mut keys = Keys::default();
    let mut watched = at_work::<C>(server, &mut keys).await;
    let once = keys.make(Form::Short);
    let bare = watched.log(Call::Bare, &once).await;
    let first = watched.log(Call::First, &once).await;
    let others = [
        ("a key of 36 characters", Call::First, Form::Uuid),
        ("a savepoint that is released", Call::Completed, Form::Short),
        (
            "a savepoint that is rolled back",
            Call::Declined,
            Form::Short,
        ),
    ];
    let mut more = vec![("a first call", first)];
    for (with, call, form) in others {
        more.push((with, watched.log(call, &keys.make(form)).await));
    }
    println!(
        "{}: {:.1} bytes in a transaction, and more in",
        C::NAME,
        bare.mean()
    );
    for (call, log) in more {
        println!("{:8.1} {call}", log.mean() - bare.mean());
    }

    // At most each 15 seconds the server notes by itself which transactions run, in less than a byte per call.
    assert!(first.bytes - bare.bytes <= MOST_BYTES * i64::from(CALLS));

    // What a part writes is what is not written without it; the rest is splitting full pages.
    println!("A first call that splits none writes");
    let mut with = first;
    for index in watched.indexes() {
        let drop_it = if index == "api_idempotency_pkey" {
            format!("ALTER TABLE api_idempotency DROP CONSTRAINT {index}")
        } else {
            format!("DROP INDEX {index}")
        };
        watched.witness.batch_execute(&drop_it).unwrap();
        let log = watched.log(Call::First, &keys.make(Form::Short)).await;
        println!("{:6} for {index}", with.typical - log.typical);
        with = log;
    }
    println!("{:6} for the row", with.typical - bare.typical);
}

#[test]
fn a_first_call_logs_little_more_than_its_transaction() {
    run(async {
        let server = quiet_server();
        log_of_a_first_call::<SyncPg>(&server).await;
        log_of_a_first_call::<AsyncPg>(&server).await;
    });
}

async fn log_of_a_replay<C: Client>(server: &Server) {
    let mut keys = Keys::default();
    let mut watched = at_work::<C>(server, &mut keys).await;
    let once = keys.make(Form::Short);
    watched.log(Call::First, &once).await;
    for call in [Call::Replay, Call::ReplayReadFirst] {
        // The server notes by itself which transactions run, at some time after something was logged, and once. Where nothing is logged
        // by others, one of two measurements has no such note in it.
        let bytes = [
            watched.log(call, &once).await.bytes,
            watched.log(call, &once).await.bytes,
        ];
        println!("{}, {call:?}: {bytes:?} bytes in {CALLS} calls", C::NAME);
        assert!(bytes.contains(&0), "{}, {call:?}: {bytes:?}", C::NAME);
    }
}

#[test]
fn a_replay_logs_nothing() {
    run(async {
        let server = quiet_server();
        log_of_a_replay::<SyncPg>(&server).await;
        log_of_a_replay::<AsyncPg>(&server).await;
    });
}

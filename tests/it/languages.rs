//! A server that does not speak English: what an error means is never read from its text.
//!
//! Each place is made German by `support::locale::speak_german`, which asserts that the server has left English before the test begins.

use std::future::Future;

use diesel::connection::SimpleConnection;
use diesel::dsl::sql;
use diesel::sql_types::BigInt;
use diesel::{Connection, PgConnection, RunQueryDsl, select};
use idem_diesel::{ErrorKind, Isolation, Operation, Outcome, Policy};
use tokio::task::JoinHandle;

use crate::backend::{Backend, PERFORM, Place, intent};
use crate::shop::{Gate, Script, ShopError};
use crate::surroundings::{Surroundings, on_postgres, once_more};

/// A database whose sessions get German messages.
pub struct German;

impl<B: Backend> Surroundings<B> for German {
    fn prepare(place: &Place) {
        support::locale::speak_german(place.url());
    }

    fn connect_to(url: &str) -> impl Future<Output = B::Conn> + Send {
        B::connect_to(url)
    }
}

once_more! {
    in German:
    waiting {
        a_call_that_does_not_wait_is_turned_away_at_once,
        a_wait_ends_at_its_deadline,
        a_row_that_somebody_is_deleting_is_there_until_the_commit,
        case_a1_a_waiting_call_executes_when_the_first_one_fails,
        case_c10_another_request_that_waited_for_the_first_is_a_mismatch,
    }
    misuse {
        case_b1_a_swallowed_error_is_never_an_answer_without_effects,
        case_b6_an_unfinished_transaction_is_refused_by_name,
        a_body_that_deletes_its_own_record_is_rolled_back,
        a_body_that_rolls_back_by_itself_gets_no_answer_stored,
        a_body_that_commits_by_itself_leaves_an_orphan_that_never_runs_again,
        a_missing_table_is_named_with_what_makes_it,
        a_connection_that_the_server_closed_is_a_lost_connection,
    }
    transactions {
        case_a4_a_duplicate_under_a_stricter_level_replays,
        a_client_that_vanished_is_bounded_by_max_idle,
    }
}

fn at(level: Isolation) -> Operation {
    PERFORM.with_policy(Policy::new().isolation(level))
}

/// Starts a call on a connection of its own.
async fn start<B: Backend>(
    place: &Place,
    key: &'static str,
    operation: Operation,
    script: &Script,
) -> JoinHandle<Result<Outcome<String>, ShopError>> {
    let (mut conn, script) = (B::connect(place).await, script.clone());
    tokio::spawn(async move {
        B::perform(
            &mut conn,
            Some(&intent(key)),
            &operation,
            &script,
            &Gate::open(),
        )
        .await
    })
}

/// Holds back every transaction that comes to [`TURNSTILE`].
struct Turnstile(PgConnection);

/// A statement that waits until the turnstile opens.
const TURNSTILE: &str = "SELECT pg_advisory_xact_lock_shared(1)";

impl Turnstile {
    fn closed(place: &Place) -> Self {
        let mut conn = PgConnection::establish(place.url()).unwrap();
        conn.batch_execute("SELECT pg_advisory_lock(1)").unwrap();
        Self(conn)
    }

    /// Waits until so many transactions are held back.
    fn wait_for(&mut self, transactions: i64) {
        let waiting = "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 1 AND NOT granted \
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";
        let mut count = || {
            let query = select(sql::<BigInt>(waiting));
            query.get_result::<i64>(&mut self.0).unwrap()
        };
        tokio::task::block_in_place(|| {
            while count() < transactions {
                std::thread::yield_now();
            }
        });
    }

    fn open(mut self) {
        self.0
            .batch_execute("SELECT pg_advisory_unlock(1)")
            .unwrap();
    }
}

/// What an error means to the library, and what the server said.
#[track_caller]
fn conflict(error: ShopError) -> String {
    let (kind, text) = match error {
        // The body's own: the library would classify it in this way.
        ShopError::Database(error) => {
            let text = error.to_string();
            (idem_diesel::Error::from(error).kind().clone(), text)
        }
        ShopError::Idempotency(error) => {
            let source = std::error::Error::source(&*error).unwrap();
            (error.kind().clone(), source.to_string())
        }
        ShopError::No => panic!("the body reported what the server said"),
    };
    assert_eq!(kind, ErrorKind::Conflict, "{text}");
    text
}

on_postgres! {
    in German:

    async fn the_server_speaks_german<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let error = B::sql(&mut conn, "SELECT 1 / 0").await.unwrap_err();
        assert_eq!(error.to_string(), "Division durch Null");
    }

    async fn a_conflict_at_a_statement<B: Backend>() {
        for level in [Isolation::RepeatableRead, Isolation::Serializable] {
            let place = B::place();
            let change = Script::of([TURNSTILE, "UPDATE accounts SET balance_cents = balance_cents - 1"]);
            let mut turnstile = Turnstile::closed(&place);
            let call = start::<B>(&place, "k", at(level), &change).await;
            turnstile.wait_for(1);
            // The call's snapshot is older than this.
            place.run("UPDATE accounts SET balance_cents = balance_cents - 2");
            turnstile.open();
            let text = conflict(call.await.unwrap().unwrap_err());
            assert!(text.contains("kann Zugriff nicht serialisieren") || text.contains("konnte Zugriff nicht serialisieren"), "{text}");
            assert_eq!(place.records(), 0);

            let mut conn = B::connect(&place).await;
            let done = B::perform(&mut conn, Some(&intent("k")), &at(level), &change, &Gate::open()).await;
            assert!(!done.unwrap().is_replayed());
            assert_eq!(place.number("SELECT balance_cents FROM accounts"), 9_997);
        }
    }

    async fn a_conflict_at_commit<B: Backend>() {
        let place = B::place();
        place.run(&format!(
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN PERFORM * FROM ({TURNSTILE}) AS turnstile; RETURN NULL; END $$;
             CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED
                 FOR EACH ROW EXECUTE FUNCTION wait()"
        ));
        // It reads what the rival writes, and writes what the rival reads; its COMMIT waits inside of the trigger.
        let skewed = Script::of(["INSERT INTO effects SELECT 'e' || sum(balance_cents) FROM accounts"]);
        let mut turnstile = Turnstile::closed(&place);
        let call = start::<B>(&place, "k", at(Isolation::Serializable), &skewed).await;
        turnstile.wait_for(1);
        let stored = "SELECT count(*) FROM pg_stat_activity WHERE query ILIKE 'commit%' AND wait_event = 'advisory' \
                      AND datname = current_database()";
        assert_eq!(place.number(stored), 1, "the call is not at its COMMIT");
        place.run(
            "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM effects;
             UPDATE accounts SET balance_cents = 1; COMMIT",
        );
        turnstile.open();
        let text = conflict(call.await.unwrap().unwrap_err());
        assert!(text.contains("serialisieren"), "{text}");
        assert_eq!((place.effects(), place.records()), (0, 0));

        let mut conn = B::connect(&place).await;
        let done = B::perform(&mut conn, Some(&intent("k")), &at(Isolation::Serializable), &skewed, &Gate::open()).await;
        assert!(!done.unwrap().is_replayed());
        assert_eq!(place.text("SELECT name FROM effects").as_deref(), Some("e1"));
    }

    async fn a_deadlock_of_two_handlers<B: Backend>() {
        let place = B::place();
        place.run(
            "INSERT INTO accounts VALUES (2, 10000);
             DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 10', current_database()); END $$",
        );
        let pay = |id: u8| format!("UPDATE accounts SET balance_cents = balance_cents - 1 WHERE id = {id}");
        let scripts = [(1, 2), (2, 1)]
            .map(|(one, other)| Script::of([pay(one), TURNSTILE.to_owned(), pay(other)]));
        let mut turnstile = Turnstile::closed(&place);
        let keys = ["up", "down"];
        let mut calls = Vec::new();
        for (key, script) in keys.into_iter().zip(&scripts) {
            calls.push(start::<B>(&place, key, PERFORM, script).await);
        }
        turnstile.wait_for(2);
        turnstile.open();
        // The loser is told at once; the winner has to commit first.
        let mut ended = Vec::new();
        for call in calls {
            ended.push(call.await.unwrap());
        }
        let mut losers = 0;
        for ((done, key), script) in ended.into_iter().zip(keys).zip(&scripts) {
            let Err(error) = done else {
                continue;
            };
            losers += 1;
            let text = conflict(error);
            assert!(text.contains("Verklemmung"), "{text}");
            assert_eq!(place.records(), 1);
            let mut conn = B::connect(&place).await;
            let done = B::perform(&mut conn, Some(&intent(key)), &PERFORM, script, &Gate::open()).await;
            assert!(!done.unwrap().is_replayed());
        }
        assert_eq!((losers, place.records()), (1, 2));
        assert_eq!(place.number("SELECT sum(balance_cents) FROM accounts"), 20_000 - 4);
    }
}

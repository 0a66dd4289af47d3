//! Handlers and connections that do what they should not: each ends in a named error, with nothing half-written.

use diesel::connection::SimpleConnection;
use diesel::result::{DatabaseErrorKind, Error as DieselError};
use futures_util::FutureExt;
use idem_diesel::{
    Advice, BoundIntent, Error, ErrorKind, KeyState, Late, Operation, Policy, idempotent_sync,
};

use crate::backend::{Backend, PERFORM, Place, intent, kind, on_every_backend};
use crate::shop::{CreateOrder, Ending, Gate, Script, ShopError};

const FAILS: &str = "INSERT INTO effects (name) VALUES (NULL)";
const EFFECT: &str = "INSERT INTO effects (name) VALUES ('e')";

on_every_backend! {
    async fn case_b1_a_swallowed_error_is_never_an_answer_without_effects<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let script = Script::of([EFFECT, FAILS]).swallowing();
        let done = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &script, &Gate::open()).await;
        if B::is_postgres() {
            // The server takes nothing after a failed statement, and would answer COMMIT with ROLLBACK.
            assert_eq!(kind(done), ErrorKind::StatementFailed);
            assert_eq!((place.effects(), place.records()), (0, 0));
            let again = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &Gate::open()).await;
            assert!(!again.unwrap().is_replayed());
        } else {
            // A failed statement undoes itself alone.
            assert!(!done.unwrap().is_replayed());
        }
        assert_eq!((place.effects(), place.records()), (1, 1));
    }

    async fn case_e3_an_error_releases_the_key<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let failing = Script::effect("e").ending(Ending::Error);
        for _ in 0..2 {
            let done = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &failing, &Gate::open()).await;
            assert!(matches!(done, Err(ShopError::No)));
            assert_eq!((place.effects(), place.records()), (0, 0));
        }
        let done = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &Gate::open()).await;
        assert!(!done.unwrap().is_replayed());
        assert_eq!((place.effects(), place.records()), (1, 1));
    }

    async fn a_failed_statement_that_is_reported_releases_the_key<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let script = Script::of([EFFECT, FAILS]);
        let done = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &script, &Gate::open()).await;
        assert!(matches!(
            done,
            Err(ShopError::Database(DieselError::DatabaseError(DatabaseErrorKind::NotNullViolation, _)))
        ));
        assert_eq!((place.effects(), place.records()), (0, 0));
    }

    async fn a_panic_in_the_body_rolls_back_and_the_connection_goes_on<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let panicking = Script::effect("e").ending(Ending::Panic);
        let (key, gate) = (intent("k"), Gate::open());
        let call = B::perform(&mut conn, Some(&key), &PERFORM, &panicking, &gate);
        let panicked = std::panic::AssertUnwindSafe(call).catch_unwind().await;
        assert!(panicked.is_err());
        assert_eq!((place.effects(), place.records()), (0, 0));
        let again = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &Gate::open()).await;
        assert!(!again.unwrap().is_replayed());
        assert_eq!((place.effects(), place.records()), (1, 1));
    }

    async fn case_b6_an_unfinished_transaction_is_refused_by_name<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        B::begin(&mut conn).await.unwrap();
        let refused = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &Gate::open()).await;
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), Some(&ErrorKind::UnfinishedTransaction));
        assert_eq!(
            error.to_string(),
            "tests.perform: the connection is inside an unfinished transaction: commit or roll it back before the call"
        );
        // The transaction is still the caller's.
        B::sql(&mut conn, EFFECT).await.unwrap();
        B::rollback(&mut conn).await.unwrap();
        assert_eq!((place.effects(), place.records()), (0, 0));
        let again = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &Gate::open()).await;
        assert!(!again.unwrap().is_replayed());
    }

    async fn inside_diesels_test_transaction_a_call_joins_by_itself<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        B::begin_test(&mut conn).await.unwrap();
        let cmd = CreateOrder { account_id: 1, amount_cents: 5 };
        for is_replayed in [false, true, true] {
            let outcome = B::create_order(&mut conn, &intent("k"), &cmd).await.unwrap();
            assert_eq!(outcome.is_replayed(), is_replayed);
        }
        let declined = CreateOrder { account_id: 1, amount_cents: 9000 };
        for is_replayed in [false, true] {
            let outcome = B::charge(&mut conn, &intent("c"), &declined).await.unwrap();
            assert_eq!(outcome.is_replayed(), is_replayed);
        }
        let failing = Script::effect("e").ending(Ending::Error);
        assert!(B::perform(&mut conn, Some(&intent("f")), &PERFORM, &failing, &Gate::open()).await.is_err());
        assert_eq!(
            B::text(&mut conn, "SELECT (SELECT count(*) FROM orders) || ' ' || (SELECT count(*) FROM effects) || ' ' || balance_cents FROM accounts").await.unwrap(),
            "1 0 10000"
        );
        // Nobody else has seen any of it.
        if B::is_postgres() {
            assert_eq!((place.number("SELECT count(*) FROM orders"), place.records()), (0, 0));
        }
        B::rollback(&mut conn).await.unwrap();
        assert_eq!((place.number("SELECT count(*) FROM orders"), place.records()), (0, 0));
    }

    async fn a_body_that_deletes_its_own_record_is_rolled_back<B: Backend>() {
        const AGAIN: Operation = PERFORM.with_policy(Policy::new().late(Late::Execute));
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let deletes = Script::of([EFFECT, "DELETE FROM api_idempotency WHERE state = 'pending'"]);
        if B::is_postgres() {
            // A new key has no record before the end; one that is executed again has.
            let first = B::perform(&mut conn, Some(&intent("k")), &AGAIN, &deletes, &Gate::open()).await;
            assert!(!first.unwrap().is_replayed());
            place.age_records(48 * 3600);
        }
        let before = (place.effects(), place.records());
        let done = B::perform(&mut conn, Some(&intent("k")), &AGAIN, &deletes, &Gate::open()).await;
        assert_eq!(kind(done), ErrorKind::RecordLost);
        assert_eq!((place.effects(), place.records()), before);
    }

    async fn a_body_that_commits_by_itself_and_then_fails_leaves_an_orphan_too<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let script = Script::of([EFFECT, "COMMIT"]).ending(Ending::Error);
        let done = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &script, &Gate::open()).await;
        assert!(matches!(done, Err(ShopError::No)));
        drop(conn);
        let mut conn = B::connect(&place).await;
        let again = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &script, &Gate::open()).await;
        assert_eq!(kind(again), ErrorKind::Orphaned);
        assert_eq!((place.effects(), place.records()), (1, 1));
    }

    async fn a_body_that_rolls_back_by_itself_gets_no_answer_stored<B: Backend>() {
        for ending in ["ROLLBACK", "ROLLBACK; BEGIN"] {
            let place = B::place();
            let mut conn = B::connect(&place).await;
            let script = Script::of([EFFECT, ending]);
            let done = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &script, &Gate::open()).await;
            assert_eq!(kind(done), ErrorKind::RecordLost, "{ending}");
            assert_eq!((place.effects(), place.records()), (0, 0), "{ending}");
            drop(conn);
            let mut conn = B::connect(&place).await;
            let again = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &Gate::open()).await;
            assert!(!again.unwrap().is_replayed(), "{ending}");
        }
    }

    async fn a_body_that_commits_by_itself_leaves_an_orphan_that_never_runs_again<B: Backend>() {
        for ending in ["COMMIT", "COMMIT; BEGIN"] {
            let place = B::place();
            let mut conn = B::connect(&place).await;
            let script = Script::of([EFFECT, ending]);
            let done = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &script, &Gate::open()).await;
            assert_eq!(kind(done), ErrorKind::RecordLost, "{ending}");
            drop(conn);
            assert_eq!((place.effects(), place.records()), (1, 1), "{ending}");
            let mut conn = B::connect(&place).await;
            let again = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &script, &Gate::open()).await;
            assert_eq!(kind(again), ErrorKind::Orphaned, "{ending}");
            assert_eq!(place.effects(), 1, "{ending}");
        }
    }

    async fn a_body_that_commits_by_itself_is_known_whatever_the_call_ends_with<B: Backend>() {
        if !B::is_postgres() {
            // A failed statement of SQLite undoes itself alone.
            return;
        }
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let script = Script::of([EFFECT, "COMMIT", "BEGIN", FAILS]).swallowing();
        let done = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &script, &Gate::open()).await;
        // Sync Diesel has noticed that its transaction is gone; async Diesel has not.
        let told = kind(done);
        assert!(matches!(told, ErrorKind::StatementFailed | ErrorKind::RecordLost), "{told:?}");
        drop(conn);
        let mut conn = B::connect(&place).await;
        let again = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &script, &Gate::open()).await;
        assert_eq!(kind(again), ErrorKind::Orphaned);
        assert_eq!((place.effects(), place.records()), (1, 1));
    }

    async fn a_call_without_an_intent_runs_unrecorded_and_still_guarded<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        for _ in 0..2 {
            let done = B::perform(&mut conn, None, &PERFORM, &Script::effect("e"), &Gate::open()).await;
            assert!(!done.unwrap().is_replayed());
        }
        assert_eq!((place.effects(), place.records()), (2, 0));
        let failing = Script::effect("e").ending(Ending::Error);
        assert!(B::perform(&mut conn, None, &PERFORM, &failing, &Gate::open()).await.is_err());
        assert_eq!(place.effects(), 2);
        if B::is_postgres() {
            let careless = Script::of([EFFECT, FAILS]).swallowing();
            let done = B::perform(&mut conn, None, &PERFORM, &careless, &Gate::open()).await;
            assert_eq!(kind(done), ErrorKind::StatementFailed);
            assert_eq!(place.effects(), 2);
        }
    }

    async fn an_answer_over_the_limit_rolls_back<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let narrow = PERFORM.with_policy(Policy::new().answer_bytes(5));
        let done = B::perform(&mut conn, Some(&intent("k")), &narrow, &Script::effect("e"), &Gate::open()).await;
        assert_eq!(kind(done), ErrorKind::AnswerTooLarge { bytes: 6, limit: 5 });
        assert_eq!((place.effects(), place.records()), (0, 0));
        let wide = PERFORM.with_policy(Policy::new().answer_bytes(6));
        let done = B::perform(&mut conn, Some(&intent("k")), &wide, &Script::effect("e"), &Gate::open()).await;
        assert!(!done.unwrap().is_replayed());
    }

    async fn a_stored_answer_that_no_longer_decodes_is_an_error_and_never_run_again<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let cmd = CreateOrder { account_id: 1, amount_cents: 5 };
        B::create_order(&mut conn, &intent("k"), &cmd).await.unwrap();
        let bytes = if B::is_postgres() { r"'\x5b5d'" } else { "X'5b5d'" };
        place.run(&format!("UPDATE api_idempotency SET response_body = {bytes}"));
        let error = B::create_order(&mut conn, &intent("k"), &cmd).await.unwrap_err();
        let Some(ErrorKind::Undecodable { answer, codec }) = error.kind() else {
            panic!("{error:?}");
        };
        assert!(answer.ends_with("Order") && codec == "json", "{answer} {codec}");
        assert_eq!(place.number("SELECT count(*) FROM orders"), 1);
    }

    async fn a_missing_table_is_named_with_what_makes_it<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        place.run("DROP VIEW api_idempotency_readable; DROP TABLE api_idempotency");
        let done = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &Gate::open()).await;
        let error = done.unwrap_err();
        assert_eq!(
            error.to_string(),
            "tests.perform: the table api_idempotency is missing: call ensure_schema or run the migrations"
        );
        assert_eq!(place.effects(), 0);
        assert_eq!(B::text(&mut conn, "SELECT 'usable'").await.unwrap(), "usable");
    }

    async fn a_claim_that_was_committed_alone_needs_a_person<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let gate = Gate::open();
        B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &gate).await.unwrap();
        place.run("UPDATE api_idempotency SET state = 'pending', response_body = NULL, codec = NULL");
        let done = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &gate).await;
        let error = done.unwrap_err();
        let error = Error::find(&error).unwrap();
        assert_eq!(error.kind(), &ErrorKind::Orphaned);
        assert_eq!((error.advice(), error.key_state()), (Advice::AskOperator, KeyState::Used));
        assert_eq!((place.effects(), gate.entered()), (1, 1));
    }

    async fn a_connection_that_the_server_closed_is_a_lost_connection<B: Backend>() {
        if !B::is_postgres() {
            // There is no server between SQLite and its file.
            return;
        }
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let session = B::text(&mut conn, "SELECT CAST(pg_backend_pid() AS text)").await.unwrap();
        crate::backend::terminate(place.url(), &session);
        let done = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &Gate::open()).await;
        let error = done.unwrap_err();
        assert_eq!(error.kind(), Some(&ErrorKind::ConnectionLost));
        assert!(Error::find(&error).unwrap().is_retryable());
        assert_eq!((place.effects(), place.records()), (0, 0));
    }
}

/// An operation without a record of its own kind, for the tests below.
const VALUE: Operation = Operation::new("tests.value", idem_diesel::Retention::literal("48h"));

fn sqlite() -> (Place, diesel::SqliteConnection) {
    use diesel::Connection;
    let place = crate::backend::SqliteSync::place();
    let db = diesel::SqliteConnection::establish(place.url()).unwrap();
    (place, db)
}

#[test]
fn an_answer_that_does_not_survive_being_stored_rolls_back() {
    let (place, mut db) = sqlite();
    let answer = |db: &mut diesel::SqliteConnection, _: &BoundIntent| -> Result<f64, Error> {
        db.batch_execute(EFFECT)?;
        Ok(f64::NAN)
    };
    let error = idempotent_sync(&mut db, &intent("k"), &VALUE, &1, answer).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::NotReplayable { answer: "f64" });
    assert_eq!((place.effects(), place.records()), (0, 0));
}

#[test]
fn a_request_without_a_hash_sends_nothing() {
    let (place, mut db) = sqlite();
    let ran = idempotent_sync(&mut db, &intent("k"), &VALUE, &f64::NAN, |_, _| {
        Ok::<_, Error>(1)
    });
    assert_eq!(ran.unwrap_err().kind(), &ErrorKind::Unhashable);
    assert_eq!(place.records(), 0);
}

#[test]
fn a_call_inside_a_body_on_its_connection_is_refused() {
    let (place, mut db) = sqlite();
    let body = |db: &mut diesel::SqliteConnection, _: &BoundIntent| {
        idempotent_sync(db, &intent("inner"), &VALUE, &1, |_, _| Ok::<_, Error>(1))
    };
    let refused = idempotent_sync(&mut db, &intent("outer"), &VALUE, &1, body).unwrap_err();
    assert_eq!(refused.kind(), &ErrorKind::UnfinishedTransaction);
    assert_eq!(place.records(), 0);
}

#[test]
fn an_error_chain_says_nothing_twice() {
    let (_place, mut db) = sqlite();
    let run = |db: &mut diesel::SqliteConnection, request: i32| {
        idempotent_sync(db, &intent("k"), &VALUE, &request, |_, _| Ok::<_, Error>(1))
    };
    run(&mut db, 1).unwrap();
    let error = ShopError::from(run(&mut db, 2).unwrap_err());
    let mut texts = vec![error.to_string()];
    let mut next = std::error::Error::source(&error);
    while let Some(error) = next {
        texts.push(error.to_string());
        next = error.source();
    }
    assert_eq!(
        texts,
        [
            "tests.value: the idempotency key was used before with another request",
            "a new intent takes a new key"
        ]
    );
}

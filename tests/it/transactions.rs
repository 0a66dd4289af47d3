//! The transaction of a call: its isolation level, its bounds, its tenant, and the caller's own around it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idem_diesel::{ErrorKind, Isolation, Late, Nested, Operation, Policy, begin, idempotent_sync};

use crate::backend::{
    Backend, PERFORM, PgAsync, Place, SqliteSync, intent, kind, on_every_backend,
};
use crate::shop::{Ending, Gate, Script, ShopError};
use crate::waiting::{start, wait_until_somebody_waits};

const LEVELS: [(Isolation, &str); 3] = [
    (Isolation::ReadCommitted, "read committed"),
    (Isolation::RepeatableRead, "repeatable read"),
    (Isolation::Serializable, "serializable"),
];

fn at(level: Isolation) -> Operation {
    PERFORM.with_policy(Policy::new().isolation(level))
}

/// Joins whatever is open.
const JOINED: Operation = PERFORM.with_policy(Policy::new().nested(Nested::Join));

on_every_backend! {
    async fn the_isolation_level_is_stated<B: Backend>() {
        let place = B::place();
        let read = if B::is_postgres() {
            place.run(
                "DO $$ BEGIN
                 EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database());
                 EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$",
            );
            "INSERT INTO effects SELECT current_setting('transaction_isolation')"
        } else {
            // It has one level, and takes every wish for one.
            "INSERT INTO effects VALUES ('serializable')"
        };
        let mut conn = B::connect(&place).await;
        for (position, (level, name)) in LEVELS.into_iter().enumerate() {
            let key = intent(name);
            B::perform(&mut conn, Some(&key), &at(level), &Script::of([read]), &Gate::open()).await.unwrap();
            let expected = if B::is_postgres() { name } else { "serializable" };
            let rows = place.number(&format!("SELECT count(*) FROM effects WHERE name = '{expected}'"));
            let as_many = if B::is_postgres() { 1 } else { i64::try_from(position).unwrap() + 1 };
            assert_eq!(rows, as_many, "{name}");
        }
    }

    async fn case_a4_a_duplicate_under_a_stricter_level_replays<B: Backend>() {
        for (level, name) in LEVELS {
            let place = B::place();
            let gate = Arc::new(Gate::closed());
            let script = Script::of(["INSERT INTO effects SELECT 'e' || count(*) FROM effects"]);
            let first = start::<B>(&place, at(level), script.clone(), &gate).await;
            gate.wait_until_entered();
            let mut others = Vec::new();
            for _ in 0..3 {
                others.push(start::<B>(&place, at(level), script.clone(), &gate).await);
            }
            if B::is_postgres() {
                wait_until_somebody_waits(&place);
            }
            gate.release();
            assert!(!first.await.unwrap().unwrap().is_replayed(), "{name}");
            for other in others {
                assert!(other.await.unwrap().unwrap().is_replayed(), "{name}");
            }
            assert_eq!((place.effects(), place.records(), gate.entered()), (1, 1, 1), "{name}");
        }
    }

    async fn a_call_joins_the_callers_transaction_only_on_purpose<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        for commits in [false, true] {
            B::begin(&mut conn).await.unwrap();
            for is_replayed in [false, true] {
                let done = B::perform(&mut conn, Some(&intent("k")), &JOINED, &Script::effect("e"), &Gate::open()).await;
                assert_eq!(done.unwrap().is_replayed(), is_replayed);
            }
            // A failure inside undoes itself alone.
            let failing = Script::effect("f").ending(Ending::Error);
            assert!(B::perform(&mut conn, Some(&intent("f")), &JOINED, &failing, &Gate::open()).await.is_err());
            B::sql(&mut conn, "INSERT INTO effects (name) VALUES ('of the caller')").await.unwrap();
            if commits {
                B::commit(&mut conn).await.unwrap();
            } else {
                B::rollback(&mut conn).await.unwrap();
                assert_eq!((place.effects(), place.records()), (0, 0));
            }
        }
        assert_eq!((place.effects(), place.records()), (2, 1));
        let done = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &Gate::open()).await;
        assert!(done.unwrap().is_replayed());
    }

    async fn a_panic_in_a_joined_body_undoes_the_body_alone<B: Backend>() {
        use futures_util::FutureExt;
        let place = B::place();
        let mut conn = B::connect(&place).await;
        B::begin(&mut conn).await.unwrap();
        B::sql(&mut conn, "INSERT INTO effects (name) VALUES ('of the caller')").await.unwrap();
        let panicking = Script::effect("e").ending(Ending::Panic);
        let (key, gate) = (intent("k"), Gate::open());
        let call = B::perform(&mut conn, Some(&key), &JOINED, &panicking, &gate);
        assert!(std::panic::AssertUnwindSafe(call).catch_unwind().await.is_err());
        let done = B::perform(&mut conn, Some(&key), &JOINED, &Script::effect("e"), &gate).await;
        assert!(!done.unwrap().is_replayed());
        B::commit(&mut conn).await.unwrap();
        assert_eq!((place.effects(), place.records()), (2, 1));
    }

    async fn a_joined_call_never_undoes_what_the_caller_wrote<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        B::begin(&mut conn).await.unwrap();
        // A call that failed, and one that was replayed: neither leaves a savepoint that a later rollback could mean.
        let failing = Script::effect("f").ending(Ending::Error);
        assert!(B::perform(&mut conn, Some(&intent("f")), &JOINED, &failing, &Gate::open()).await.is_err());
        for _ in 0..2 {
            B::perform(&mut conn, Some(&intent("k")), &JOINED, &Script::effect("e"), &Gate::open()).await.unwrap();
        }
        B::sql(&mut conn, "INSERT INTO effects (name) VALUES ('of the caller')").await.unwrap();
        // The caller swallows an error: on PostgreSQL its transaction takes nothing any more, and a call does not mend that.
        let _ = B::sql(&mut conn, "INSERT INTO effects (name) VALUES (NULL)").await;
        let refused = B::perform(&mut conn, Some(&intent("later")), &JOINED, &Script::effect("e"), &Gate::open()).await;
        assert_eq!(refused.is_err(), B::is_postgres());
        if B::is_postgres() {
            B::rollback(&mut conn).await.unwrap();
            assert_eq!((place.effects(), place.records()), (0, 0));
        } else {
            B::commit(&mut conn).await.unwrap();
            assert_eq!((place.effects(), place.records()), (3, 2));
        }
    }

    async fn a_client_that_vanished_is_bounded_by_max_idle<B: Backend>() {
        if !B::is_postgres() {
            // There is no other host.
            return;
        }
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let read = "INSERT INTO effects SELECT current_setting('idle_in_transaction_session_timeout')";
        B::perform(&mut conn, Some(&intent("default")), &PERFORM, &Script::of([read]), &Gate::open()).await.unwrap();
        assert_eq!(place.text("SELECT name FROM effects").as_deref(), Some("1min"));
        assert_eq!(
            B::text(&mut conn, "SELECT current_setting('idle_in_transaction_session_timeout')").await.unwrap(),
            "0"
        );

        // A body that says nothing for longer: the server ends the session, and the key is free.
        let brief = PERFORM.with_policy(Policy::new().max_idle(Some(Duration::from_millis(100))));
        let gate = Arc::new(Gate::closed());
        let silent = {
            let gate = Arc::clone(&gate);
            tokio::spawn(async move {
                B::perform(&mut conn, Some(&intent("k")), &brief, &Script::effect("e"), &gate).await
            })
        };
        gate.wait_until_entered();
        let mut other = B::connect(&place).await;
        let done = B::perform(&mut other, Some(&intent("k")), &PERFORM, &Script::effect("e"), &Gate::open()).await;
        assert!(!done.unwrap().is_replayed());
        gate.release();
        assert!(silent.await.unwrap().is_err());
        assert_eq!((place.effects(), place.records()), (2, 2));
    }

    async fn row_level_security_reads_the_tenant_from_its_setting<B: Backend>() {
        if !B::is_postgres() {
            // It has no row-level security.
            return;
        }
        let place = B::place();
        let role = format!("idem_tenant_{}", place.text("SELECT md5(current_database())").unwrap());
        place.run(&format!(
            "CREATE ROLE {role};
             GRANT SELECT, INSERT, UPDATE, DELETE ON api_idempotency, effects TO {role};
             ALTER TABLE api_idempotency ENABLE ROW LEVEL SECURITY;
             ALTER TABLE api_idempotency FORCE ROW LEVEL SECURITY;
             CREATE POLICY own_rows ON api_idempotency USING (tenant_id = current_setting('app.tenant_id', true))"
        ));
        let mut conn = B::connect(&place).await;
        B::sql(&mut conn, &format!("SET ROLE {role}")).await.unwrap();
        let of_tenant = PERFORM.with_policy(Policy::new().tenant_setting("app.tenant_id"));
        for is_replayed in [false, true] {
            let done = B::perform(&mut conn, Some(&intent("k")), &of_tenant, &Script::effect("e"), &Gate::open()).await;
            assert_eq!(done.unwrap().is_replayed(), is_replayed);
        }
        // Without the setting nothing runs, and the setting did not outlive its transaction.
        let hidden = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &Gate::open()).await;
        let hidden = kind(hidden);
        assert!(matches!(hidden, ErrorKind::RecordHidden | ErrorKind::Database), "{hidden:?}");
        // A body that switches to another tenant gets no answer stored.
        let switching = Script::of(["INSERT INTO effects VALUES ('x')", "SET LOCAL app.tenant_id = 'somebody else'"]);
        let lost = B::perform(&mut conn, Some(&intent("s")), &of_tenant, &switching, &Gate::open()).await;
        assert!(lost.is_err());
        assert_eq!((place.effects(), place.records()), (1, 1));
        // A tenant with quotes in it is a value, never SQL.
        let quoted = idem_diesel::Intent::new(
            idem_diesel::Tenant::shared("o'brien'); DROP TABLE effects; --").unwrap(),
            idem_diesel::IdempotencyKey::new("k").unwrap(),
        );
        let done = B::perform(&mut conn, Some(&quoted), &of_tenant, &Script::effect("e"), &Gate::open()).await;
        assert!(!done.unwrap().is_replayed());
        drop(conn);
        place.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    }

    async fn a_joined_call_that_ignores_a_failed_statement_leaves_the_callers_transaction_alone<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        B::begin(&mut conn).await.unwrap();
        B::sql(&mut conn, "INSERT INTO effects VALUES ('before')").await.unwrap();
        let careless = Script::of(["INSERT INTO effects VALUES ('inside')", "INSERT INTO effects (name) VALUES (NULL)"]).swallowing();
        let done = B::perform(&mut conn, Some(&intent("k")), &JOINED, &careless, &Gate::open()).await;
        B::sql(&mut conn, "INSERT INTO effects VALUES ('after')").await.unwrap();
        // Nothing of it is anybody else's before the caller's commit.
        if B::is_postgres() {
            assert_eq!(kind(done), ErrorKind::StatementFailed);
            assert_eq!((place.effects(), place.records()), (0, 0));
        } else {
            assert!(!done.unwrap().is_replayed());
        }
        B::rollback(&mut conn).await.unwrap();
        assert_eq!((place.effects(), place.records()), (0, 0));
        B::sql(&mut conn, "INSERT INTO effects VALUES ('alone')").await.unwrap();
        assert_eq!(place.effects(), 1);
    }

    async fn an_impossible_setting_is_refused_before_anything_is_sent<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let odd = PERFORM.with_policy(Policy::new().tenant_setting("app.tenant'"));
        let refused = B::perform(&mut conn, Some(&intent("k")), &odd, &Script::effect("e"), &Gate::open()).await;
        assert!(matches!(kind(refused), ErrorKind::Unsupported { .. }));
        assert_eq!((place.effects(), place.records()), (0, 0));
    }
}

fn sqlite() -> (Place, diesel::SqliteConnection) {
    use diesel::Connection;
    let place = SqliteSync::place();
    let db = diesel::SqliteConnection::establish(place.url()).unwrap();
    (place, db)
}

/// A claim that was committed without an answer is nobody's reentrance, also seen from inside a transaction.
#[test]
fn an_orphan_is_an_orphan_inside_the_callers_transaction_too() {
    crate::backend::run(async {
        let place = PgAsync::place();
        let mut conn = PgAsync::connect(&place).await;
        let gate = Gate::open();
        let script = Script::effect("e");
        PgAsync::perform(&mut conn, Some(&intent("k")), &JOINED, &script, &gate)
            .await
            .unwrap();
        place.run(
            "UPDATE api_idempotency SET state = 'pending', response_body = NULL, codec = NULL",
        );
        PgAsync::begin(&mut conn).await.unwrap();
        let refused =
            PgAsync::perform(&mut conn, Some(&intent("k")), &JOINED, &script, &gate).await;
        assert_eq!(kind(refused), ErrorKind::Orphaned);
        PgAsync::rollback(&mut conn).await.unwrap();

        // The claim of a body around this one is its own, also behind a savepoint.
        let body = async |db: &mut diesel_async::AsyncPgConnection,
                          _: &idem_diesel::BoundIntent| {
            let inner = async |_: &mut diesel_async::AsyncPgConnection,
                               _: &idem_diesel::BoundIntent| {
                Ok::<_, ShopError>(1)
            };
            idem_diesel::idempotent(db, &intent("r"), &JOINED, &1, inner).await
        };
        let refused = idem_diesel::idempotent(&mut conn, &intent("r"), &JOINED, &1, body).await;
        assert_eq!(kind(refused), ErrorKind::Reentrant);
    });
}

#[test]
fn the_same_key_inside_its_own_joined_body_is_reentrant() {
    let (place, mut db) = sqlite();
    let refused = idempotent_sync(&mut db, &intent("k"), &JOINED, &1, |db, _| {
        idempotent_sync(db, &intent("k"), &JOINED, &1, |_, _| Ok::<_, ShopError>(1))
    });
    assert_eq!(kind(refused), ErrorKind::Reentrant);
    assert_eq!(place.records(), 0);
}

/// A call whose hook counts, on a connection that may be inside a transaction. Gives the hooks that the caller has to run.
fn counting(
    db: &mut diesel::SqliteConnection,
    key: &str,
    result: Result<i32, ShopError>,
    runs: &Arc<AtomicU32>,
    takes: bool,
) -> idem_diesel::AfterCommit {
    let claimed = begin::<_, i32>(db, &intent(key), &JOINED, &1).unwrap();
    let idem_diesel::Claimed::Execute(mut execution) = claimed else {
        return idem_diesel::AfterCommit::default();
    };
    let runs = Arc::clone(runs);
    execution.after_commit(move || {
        runs.fetch_add(1, Ordering::Relaxed);
    });
    let hooks = if takes {
        execution.take_after_commit()
    } else {
        idem_diesel::AfterCommit::default()
    };
    let _ = execution.finish(result);
    hooks
}

#[test]
fn hooks_run_once_after_the_commit_that_makes_them_durable() {
    use diesel::connection::{AnsiTransactionManager, TransactionManager};
    let (_place, mut db) = sqlite();
    let runs = Arc::new(AtomicU32::new(0));
    let count = || runs.load(Ordering::Relaxed);

    assert!(counting(&mut db, "own", Ok(1), &runs, false).is_empty());
    assert_eq!(count(), 1);
    // Not on a replay, and not when everything was rolled back.
    assert!(counting(&mut db, "own", Ok(1), &runs, false).is_empty());
    assert!(counting(&mut db, "failed", Err(ShopError::No), &runs, false).is_empty());
    assert_eq!(count(), 1);

    // Inside the caller's transaction they are the caller's to run, after its commit.
    AnsiTransactionManager::begin_transaction(&mut db).unwrap();
    let hooks = counting(&mut db, "joined", Ok(1), &runs, true);
    assert!(!hooks.is_empty());
    assert!(counting(&mut db, "joined and forgotten", Ok(1), &runs, false).is_empty());
    assert_eq!(count(), 1);
    AnsiTransactionManager::commit_transaction(&mut db).unwrap();
    hooks.run();
    assert_eq!(count(), 2);
}

/// A joined call that fails, dropped at every await: what the caller wrote before and after is committed.
async fn a_dropped_joined_call_leaves_the_callers_transaction_alone<B: Backend>() {
    let mut dropped = 0;
    for polls in 1..=20 {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        B::begin(&mut conn).await.unwrap();
        B::sql(&mut conn, "INSERT INTO effects VALUES ('before')")
            .await
            .unwrap();
        let (key, gate) = (intent("k"), Gate::open());
        let failing = Script::effect("inside").ending(Ending::Error);
        let call = B::perform(&mut conn, Some(&key), &JOINED, &failing, &gate);
        if crate::drops::poll_at_most(polls, call).await.is_none() {
            dropped += 1;
        }
        B::sql(&mut conn, "INSERT INTO effects VALUES ('after')")
            .await
            .unwrap();
        B::commit(&mut conn).await.unwrap();
        assert_eq!((place.effects(), place.records()), (2, 0), "{polls} polls");
    }
    assert!(dropped > 3, "dropped {dropped} times");
}

#[test]
fn a_dropped_joined_call_leaves_the_callers_transaction_alone_pg_async() {
    crate::backend::run(a_dropped_joined_call_leaves_the_callers_transaction_alone::<PgAsync>());
}

/// The takeover's bound of locks is not the body's, also when the row that was to be taken over went away.
#[test]
fn a_key_that_was_forgotten_under_a_takeover_runs_with_the_sessions_own_bound() {
    const AGAIN: Operation = PERFORM.with_policy(Policy::new().late(Late::Execute));
    crate::backend::run(async {
        let place = PgAsync::place();
        let mut conn = PgAsync::connect(&place).await;
        let key = intent("k");
        let script = Script::of(["INSERT INTO effects SELECT current_setting('lock_timeout')"]);
        PgAsync::perform(&mut conn, Some(&key), &AGAIN, &script, &Gate::open())
            .await
            .unwrap();
        place.age_records(48 * 3600);
        // An operator deletes the row; the takeover waits for the commit.
        let mut operator = PgAsync::connect(&place).await;
        PgAsync::begin(&mut operator).await.unwrap();
        PgAsync::sql(&mut operator, "DELETE FROM api_idempotency")
            .await
            .unwrap();
        let takeover = tokio::spawn(async move {
            PgAsync::perform(&mut conn, Some(&key), &AGAIN, &script, &Gate::open()).await
        });
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'transactionid' \
                       AND datname = current_database()";
        while place.number(waiting) == 0 {
            assert!(!takeover.is_finished(), "it must wait for the operator");
            tokio::task::yield_now().await;
        }
        PgAsync::commit(&mut operator).await.unwrap();
        assert!(!takeover.await.unwrap().unwrap().is_replayed());
        let bounds = "SELECT count(*) FROM effects WHERE name = '0'";
        assert_eq!((place.number(bounds), place.records()), (2, 1));
    });
}

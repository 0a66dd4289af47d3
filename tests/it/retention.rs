//! The end of retention, purge by purge, and what operators do with records by hand.

mod messages;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use idem_diesel::admin::{Filter, State};
use idem_diesel::retention::{Ended, Purge, Purged, purge_periodically};
use idem_diesel::{
    Async, ErrorKind, IdempotentConnection, Late, Operation, Outcome, Policy, Tenant,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::backend::{
    Backend, PERFORM, PgAsync, PgSync, Place, SqliteAsync, SqliteSync, intent, kind,
    on_every_backend, run,
};
use crate::shop::{CreateOrder, Gate, Script, ShopError};
use crate::waiting::wait_until_somebody_waits;

const AGAIN: Operation = PERFORM.with_policy(Policy::new().late(Late::Execute));
const TWO_DAYS: u32 = 48 * 3600;
/// Nothing here takes so long, but for what would never end.
const AT_MOST: Duration = Duration::from_secs(20);

async fn perform<B: Backend>(conn: &mut B::Conn, key: &str) -> Result<Outcome<String>, ShopError> {
    B::perform(
        conn,
        Some(&intent(key)),
        &PERFORM,
        &Script::effect("e"),
        &Gate::open(),
    )
    .await
}

/// Calls that are answered: `PREFIX0`, `PREFIX1` and so on.
async fn answered<B: Backend>(conn: &mut B::Conn, prefix: &str, calls: u32) {
    for number in 0..calls {
        perform::<B>(conn, &format!("{prefix}{number}"))
            .await
            .unwrap();
    }
}

/// Calls that have failed for good.
async fn failed<B: Backend>(conn: &mut B::Conn, prefix: &str, calls: u32) {
    let too_much = CreateOrder {
        account_id: 1,
        amount_cents: 9000,
    };
    for number in 0..calls {
        let key = intent(&format!("{prefix}{number}"));
        B::charge(conn, &key, &too_much).await.unwrap();
    }
}

/// A call that has come to its body and stays there until it is let go; a test that fails lets it go, too.
struct Held {
    gate: Arc<Gate>,
    call: JoinHandle<Result<Outcome<String>, ShopError>>,
}

impl Held {
    /// On a connection of its own.
    async fn start<B: Backend>(place: &Place, key: &'static str) -> Self {
        let mut conn = B::connect(place).await;
        let gate = Arc::new(Gate::closed());
        let body = Arc::clone(&gate);
        let call = tokio::spawn(async move {
            let script = Script::effect("e");
            B::perform(&mut conn, Some(&intent(key)), &AGAIN, &script, &body).await
        });
        gate.wait_until_entered();
        Self { gate, call }
    }

    /// Lets it go. It executes.
    async fn end(mut self) {
        self.gate.release();
        assert!(!(&mut self.call).await.unwrap().unwrap().is_replayed());
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.gate.release();
    }
}

/// A connection on which a statement that waits for a row fails, where that can be set: a sync call cannot be given up.
async fn impatient<B: Backend>(place: &Place) -> B::Conn {
    let mut conn = B::connect(place).await;
    if B::is_postgres() {
        B::sql(&mut conn, "SET lock_timeout = '10s'").await.unwrap();
    }
    conn
}

/// Lets others run until it is so.
#[track_caller]
fn wait_until(is_so: impl Fn() -> bool) {
    let started = Instant::now();
    tokio::task::block_in_place(|| {
        while !is_so() {
            assert!(started.elapsed() < AT_MOST, "it never comes");
            std::thread::yield_now();
        }
    });
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    // What never ends is a failure, not a wait.
    tokio::time::timeout(AT_MOST, future).await.unwrap()
}

fn counts(purged: Purged) -> (u64, u64, Ended) {
    (purged.blanked, purged.forgotten, purged.ended)
}

/// Every batch of deletions in `table` waits from now on when it has deleted its rows, as long as `holder` is not told to let go.
async fn hold_deletions<B: Backend>(place: &Place, holder: &mut B::Conn, table: &str) {
    place.run(&format!(
        "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NULL; END $$;
         CREATE TRIGGER hold AFTER DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION hold();"
    ));
    B::begin(holder).await.unwrap();
    B::sql(holder, "SELECT pg_advisory_xact_lock(42)")
        .await
        .unwrap();
}

async fn let_deletions_go<B: Backend>(holder: &mut B::Conn) {
    B::rollback(holder).await.unwrap();
}

/// Ended records `k1`, `k2` and so on, whose number is also their `attempt`; nothing is due. Each takes `bytes` at least.
fn fill(place: &Place, rows: u32, bytes: usize) {
    let filler = "x".repeat(bytes);
    place.run(&format!(
        "INSERT INTO api_idempotency (tenant_id, operation, idempotency_key, request_hash, state, attempt, response_headers, codec, expires_at, forget_at)
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         SELECT 'acme/alice', 'tests.perform', 'k' || i, '00', 'completed', i, '{filler}', 'json', '2999-01-01 00:00:00.000', '2999-01-01 00:00:00.000' FROM n"
    ));
}

/// More than two stretches of the table on every backend.
const MANY: u32 = 12_000;
const MANY_BYTES: usize = 900;

fn set_old(place: &Place, horizon: &str, which: &str) {
    place.run(&format!(
        "UPDATE api_idempotency SET {horizon} = '2020-01-01 00:00:00.000' WHERE {which}"
    ));
}

const OLD_PENDING_ROWS: &str = "
    INSERT INTO api_idempotency (tenant_id, operation, idempotency_key, request_hash, state, created_at, expires_at, forget_at, owner, lease_expires_at)
    VALUES ('acme/alice', 'tests.perform', 'orphan', '00', 'pending', '2020-01-01 00:00:00.000', '2020-01-03 00:00:00.000', '2020-01-05 00:00:00.000', NULL, NULL),
           ('acme/alice', 'tests.perform', 'leased', '00', 'pending', '2020-01-01 00:00:00.000', '2020-01-03 00:00:00.000', '2020-01-05 00:00:00.000', 'worker 3', '2020-01-01 00:01:00.000')";
const PENDING: &str = "SELECT count(*) FROM api_idempotency WHERE state = 'pending'";
const TOMBSTONES: &str = "SELECT count(*) FROM api_idempotency WHERE state <> 'pending' AND codec IS NULL AND response_body IS NULL";

on_every_backend! {
    async fn case_k4_only_ended_rows_go_while_claims_run<B: Backend>() {
        let place = B::place();
        let mut conn = impatient::<B>(&place).await;
        // Seven that may go and one like them that is being taken over, four that have expired, one that is young, and two
        // without an answer, as old as can be.
        answered::<B>(&mut conn, "gone", 5).await;
        failed::<B>(&mut conn, "gone", 2).await;
        perform::<B>(&mut conn, "taken").await.unwrap();
        place.age_records(TWO_DAYS);
        answered::<B>(&mut conn, "expired", 3).await;
        failed::<B>(&mut conn, "expired", 1).await;
        place.age_records(TWO_DAYS);
        answered::<B>(&mut conn, "young", 1).await;
        place.run(OLD_PENDING_ROWS);
        let gentle = Purge::new().batch_rows(2).pause(Duration::from_millis(5));

        let taken = Held::start::<B>(&place, "taken").await;
        let holding = if B::is_postgres() {
            vec![taken, Held::start::<B>(&place, "new").await]
        } else {
            // Nobody else writes meanwhile, and nothing is broken by that.
            let brief = gentle.time_limit(Duration::from_millis(100));
            let purged = in_time(B::purge(&mut conn, &brief)).await.unwrap();
            assert_eq!(counts(purged), (0, 0, Ended::AnotherRunner));
            taken.end().await;
            vec![]
        };

        let mut claiming = B::connect(&place).await;
        let claims = tokio::spawn(async move {
            for number in 0..40 {
                let done = perform::<B>(&mut claiming, &format!("claim{number}")).await;
                assert!(!done.unwrap().is_replayed());
                assert!(perform::<B>(&mut claiming, "young0").await.unwrap().is_replayed());
                assert_eq!(kind(perform::<B>(&mut claiming, "expired0").await), ErrorKind::Expired);
            }
        });
        let purged = in_time(B::purge(&mut conn, &gentle)).await.unwrap();
        assert_eq!(counts(purged), (4, 7, Ended::Complete));
        claims.await.unwrap();
        for held in holding {
            // It was not waited for, and what it holds is still there.
            assert!(!held.call.is_finished());
            held.end().await;
        }
        assert_eq!((place.number(PENDING), place.number(TOMBSTONES)), (2, 4));
        // Each tombstone still says how its call ended.
        assert_eq!(place.number("SELECT count(*) FROM api_idempotency WHERE state = 'failed'"), 1);
        assert_eq!(place.number("SELECT attempt FROM api_idempotency WHERE idempotency_key = 'taken'"), 2);
        // 4 tombstones, 2 pending, 1 young, 1 taken over, 40 claims, and on PostgreSQL the new one.
        assert_eq!(place.records(), if B::is_postgres() { 49 } else { 48 });
        // There is nothing left to do.
        let purged = B::purge(&mut conn, &gentle).await.unwrap();
        assert_eq!(counts(purged), (0, 0, Ended::Complete));
    }

    async fn a_late_retry_of_a_tombstone_has_no_effect_and_of_a_forgotten_key_is_new<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        perform::<B>(&mut conn, "k").await.unwrap();
        place.run("UPDATE api_idempotency SET status_code = 201, response_headers = 'x'");
        let row = || place.text("SELECT state || attempt || request_hash || expires_at || forget_at FROM api_idempotency");

        place.age_records(TWO_DAYS - 5);
        let purged = B::purge(&mut conn, &Purge::new()).await.unwrap();
        assert_eq!(counts(purged), (0, 0, Ended::Complete));
        assert!(perform::<B>(&mut conn, "k").await.unwrap().is_replayed());

        place.age_records(5);
        let before = row();
        let purged = B::purge(&mut conn, &Purge::new()).await.unwrap();
        assert_eq!(counts(purged), (1, 0, Ended::Complete));
        assert_eq!(place.number(TOMBSTONES), 1);
        assert_eq!(place.number("SELECT count(*) FROM api_idempotency WHERE status_code IS NULL AND response_headers IS NULL"), 1);
        assert_eq!(row(), before);
        assert_eq!(kind(perform::<B>(&mut conn, "k").await), ErrorKind::Expired);
        let other = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("x"), &Gate::open()).await;
        assert_eq!(kind(other), ErrorKind::Mismatch);

        place.age_records(TWO_DAYS - 5);
        let purged = B::purge(&mut conn, &Purge::new()).await.unwrap();
        assert_eq!(counts(purged), (0, 0, Ended::Complete));
        assert_eq!(kind(perform::<B>(&mut conn, "k").await), ErrorKind::Expired);
        assert_eq!(place.effects(), 1);

        place.age_records(5);
        let purged = B::purge(&mut conn, &Purge::new()).await.unwrap();
        assert_eq!(counts(purged), (0, 1, Ended::Complete));
        assert!(!perform::<B>(&mut conn, "k").await.unwrap().is_replayed());
        assert_eq!((place.effects(), place.records()), (2, 1));
    }

    async fn a_late_execution_takes_a_tombstone_over<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        perform::<B>(&mut conn, "k").await.unwrap();
        place.age_records(TWO_DAYS);
        B::purge(&mut conn, &Purge::new()).await.unwrap();
        let again = B::perform(&mut conn, Some(&intent("k")), &AGAIN, &Script::effect("e"), &Gate::open()).await;
        assert!(!again.unwrap().is_replayed());
        assert_eq!(place.number("SELECT attempt FROM api_idempotency WHERE codec IS NOT NULL"), 2);
    }

    async fn batches_of_every_size_count_exactly<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        for batch_rows in [1, 2, 3, 4, 1000] {
            answered::<B>(&mut conn, "k", 4).await;
            place.age_records(TWO_DAYS);
            let options = Purge::new().batch_rows(batch_rows).pause(Duration::ZERO);
            let blanked = B::purge(&mut conn, &options).await.unwrap();
            assert_eq!(counts(blanked), (4, 0, Ended::Complete), "{batch_rows}");
            place.age_records(TWO_DAYS);
            let forgotten = B::purge(&mut conn, &options).await.unwrap();
            assert_eq!(counts(forgotten), (0, 4, Ended::Complete), "{batch_rows}");
            assert_eq!(place.records(), 0);
        }
    }

    async fn a_purge_ends_at_its_time_limit<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        answered::<B>(&mut conn, "k", 3).await;
        place.age_records(2 * TWO_DAYS);
        let none = Purge::new().time_limit(Duration::ZERO);
        assert_eq!(counts(B::purge(&mut conn, &none).await.unwrap()), (0, 0, Ended::TimeLimit));
        // The pause would end after the limit, so it is not even begun.
        let one = Purge::new().batch_rows(1).pause(Duration::from_secs(30)).time_limit(AT_MOST);
        let purged = in_time(B::purge(&mut conn, &one)).await.unwrap();
        assert_eq!(counts(purged), (0, 1, Ended::TimeLimit));
        // So many pauses as there are batches are longer than the limit, whatever a batch takes.
        answered::<B>(&mut conn, "l", 30).await;
        place.age_records(2 * TWO_DAYS);
        let some = Purge::new().batch_rows(1).pause(Duration::from_millis(100)).time_limit(Duration::from_secs(2));
        let purged = in_time(B::purge(&mut conn, &some)).await.unwrap();
        assert_eq!(purged.ended, Ended::TimeLimit);
        assert!((1..=20).contains(&purged.forgotten), "{purged:?}");
        assert_eq!(place.records(), 32 - i64::try_from(purged.forgotten).unwrap());
    }

    async fn a_purge_comes_through_the_whole_table<B: Backend>() {
        let place = B::place();
        let mut conn = impatient::<B>(&place).await;
        fill(&place, MANY, MANY_BYTES);
        set_old(&place, "forget_at", "attempt % 11 = 0");
        set_old(&place, "expires_at", "attempt % 7 = 0 OR attempt % 11 = 0");
        place.run("UPDATE api_idempotency SET state = 'pending', codec = NULL WHERE attempt % 13 = 0");
        let count = |is_so: fn(u32) -> bool| (1..=MANY).filter(|number| is_so(*number)).count() as u64;
        let go = count(|number| number % 11 == 0 && number % 13 != 0);
        let expire = count(|number| number % 7 == 0 && number % 11 != 0 && number % 13 != 0);

        let options = Purge::new().batch_rows(100).pause(Duration::ZERO);
        let purged = in_time(B::purge(&mut conn, &options)).await.unwrap();
        assert_eq!(counts(purged), (expire, go, Ended::Complete));
        let left = i64::from(MANY) - i64::try_from(go).unwrap();
        assert_eq!((place.records(), place.number(PENDING)), (left, i64::from(MANY / 13)));
        let old = "SELECT count(*) FROM api_idempotency WHERE codec IS NOT NULL AND expires_at < '2021-01-01'";
        assert_eq!(place.number(old), 0);
        let purged = in_time(B::purge(&mut conn, &options)).await.unwrap();
        assert_eq!(counts(purged), (0, 0, Ended::Complete));
    }

    async fn where_nothing_is_due_a_purge_neither_rests_nor_writes<B: Backend>() {
        let place = B::place();
        let (mut conn, mut writer) = (B::connect(&place).await, B::connect(&place).await);
        fill(&place, MANY, MANY_BYTES);
        let slow = Purge::new().pause(Duration::from_secs(50));
        B::sql(&mut writer, if B::is_postgres() { "BEGIN" } else { "BEGIN IMMEDIATE" }).await.unwrap();
        B::sql(&mut writer, "UPDATE api_idempotency SET owner = 'somebody'").await.unwrap();
        let purged = in_time(B::purge(&mut conn, &slow)).await.unwrap();
        assert_eq!(counts(purged), (0, 0, Ended::Complete));
        B::sql(&mut writer, "ROLLBACK").await.unwrap();
        // After one row of a thousand it rests a thousandth of the time.
        set_old(&place, "forget_at", &format!("attempt IN (1, {}, {MANY})", MANY / 2));
        let purged = in_time(B::purge(&mut conn, &slow)).await.unwrap();
        assert_eq!(counts(purged), (0, 3, Ended::Complete));
    }

    async fn a_purge_ends_although_rows_come_in_as_fast_as_it_deletes<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        // A block for each row, so that what comes in lies behind the end.
        let copy = |key: &str| format!(
            "INSERT INTO api_idempotency (tenant_id, operation, idempotency_key, request_hash, state, response_headers, expires_at, forget_at)
             VALUES (OLD.tenant_id, OLD.operation, {key}, OLD.request_hash, OLD.state, OLD.response_headers, OLD.expires_at, OLD.forget_at)"
        );
        if B::is_postgres() {
            place.run("ALTER TABLE api_idempotency ALTER response_headers SET STORAGE PLAIN");
            place.run(&format!(
                "CREATE FUNCTION copy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {}; RETURN NULL; END $$;
                 CREATE TRIGGER copy AFTER DELETE ON api_idempotency FOR EACH ROW EXECUTE FUNCTION copy();",
                copy("'z' || gen_random_uuid()")
            ));
        } else {
            let copy = copy("'z' || hex(randomblob(16))");
            place.run(&format!("CREATE TRIGGER copy AFTER DELETE ON api_idempotency BEGIN {copy}; END"));
        }
        fill(&place, 3, 5000);
        // On PostgreSQL that writes them again, into three more blocks.
        set_old(&place, "forget_at", "1 = 1");
        let options = Purge::new().batch_rows(1).pause(Duration::from_millis(1)).time_limit(Duration::from_secs(5));
        let purged = in_time(B::purge(&mut conn, &options)).await.unwrap();
        assert_eq!(counts(purged), (0, 3, Ended::Complete));
        assert_eq!(place.number("SELECT count(*) FROM api_idempotency WHERE idempotency_key LIKE 'z%'"), 3);
    }

    async fn a_call_writes_to_no_index_but_its_key<B: Backend>() {
        let indexes = if B::is_postgres() {
            "SELECT count(*) FROM pg_indexes WHERE tablename = 'api_idempotency'"
        } else {
            "SELECT count(*) FROM pragma_index_list('api_idempotency')"
        };
        assert_eq!(B::place().number(indexes), 1);
    }

    async fn a_second_runner_is_told_so<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        answered::<B>(&mut conn, "k", 3).await;
        place.age_records(2 * TWO_DAYS);
        let brief = Purge::new().time_limit(Duration::from_millis(200));
        let (mut holder, mut second) = (B::connect(&place).await, impatient::<B>(&place).await);
        if B::is_postgres() {
            hold_deletions::<B>(&place, &mut holder, "api_idempotency").await;
            let first = tokio::spawn(async move { B::purge(&mut conn, &Purge::new()).await });
            wait_until_somebody_waits(&place);
            let purged = in_time(B::purge(&mut second, &brief)).await.unwrap();
            assert_eq!(counts(purged), (0, 0, Ended::AnotherRunner));
            let_deletions_go::<B>(&mut holder).await;
            assert_eq!(counts(first.await.unwrap().unwrap()), (0, 3, Ended::Complete));
        } else {
            B::sql(&mut holder, "BEGIN IMMEDIATE").await.unwrap();
            let purged = in_time(B::purge(&mut second, &brief)).await.unwrap();
            assert_eq!(counts(purged), (0, 0, Ended::AnotherRunner));
            B::sql(&mut holder, "ROLLBACK").await.unwrap();
            assert_eq!(counts(B::purge(&mut second, &brief).await.unwrap()), (0, 3, Ended::Complete));
        }
        // It was left clean.
        assert!(!perform::<B>(&mut second, "k0").await.unwrap().is_replayed());
    }

    async fn a_purge_needs_the_table_and_a_transaction_of_its_own<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        B::begin(&mut conn).await.unwrap();
        let refused = B::purge(&mut conn, &Purge::new()).await.unwrap_err();
        assert_eq!(refused.kind(), &ErrorKind::UnfinishedTransaction);
        B::rollback(&mut conn).await.unwrap();
        // Inside Diesel's test transaction it joins by itself.
        B::begin_test(&mut conn).await.unwrap();
        perform::<B>(&mut conn, "k").await.unwrap();
        let purged = B::purge(&mut conn, &Purge::new()).await.unwrap();
        assert_eq!(counts(purged), (0, 0, Ended::Complete));
        B::rollback(&mut conn).await.unwrap();

        place.run("DROP VIEW api_idempotency_readable; DROP TABLE api_idempotency");
        let missing = ErrorKind::TableMissing { table: "api_idempotency" };
        assert_eq!(B::purge(&mut conn, &Purge::new()).await.unwrap_err().kind(), &missing);
        assert_eq!(B::list(&mut conn, &Filter::new()).await.unwrap_err().kind(), &missing);
        assert_eq!(B::forget(&mut conn, &intent("k"), "tests.perform").await.unwrap_err().kind(), &missing);
        assert_eq!(B::text(&mut conn, "SELECT 'usable'").await.unwrap(), "usable");
    }

    async fn an_orphan_is_found_and_resolved<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let commits_by_itself = Script::of(["INSERT INTO effects VALUES ('e')", "COMMIT"]);
        let call = async |conn: &mut B::Conn, script: &Script| {
            B::perform(conn, Some(&intent("k")), &PERFORM, script, &Gate::open()).await
        };
        assert_eq!(kind(call(&mut conn, &commits_by_itself).await), ErrorKind::RecordLost);
        drop(conn);
        let mut conn = B::connect(&place).await;
        let told = call(&mut conn, &commits_by_itself).await.unwrap_err();
        assert_eq!(told.kind(), Some(&ErrorKind::Orphaned));
        assert!(told.to_string().contains("idem_diesel::admin::forget"), "{told}");
        // No age makes a purge take it.
        place.age_records(10 * TWO_DAYS);
        let purged = B::purge(&mut conn, &Purge::new()).await.unwrap();
        assert_eq!(counts(purged), (0, 0, Ended::Complete));

        let orphans = Filter::new().state(State::Pending).older_than(Duration::from_secs(3600));
        let [orphan] = <[_; 1]>::try_from(B::list(&mut conn, &orphans).await.unwrap()).unwrap();
        assert_eq!((orphan.attempt, &orphan.owner, &orphan.codec), (1, &None, &None));
        assert_eq!(orphan.intent().unwrap(), intent("k"));
        // The operator has seen that the effect is there, and takes it back.
        place.run("DELETE FROM effects");
        assert!(B::forget(&mut conn, &orphan.intent().unwrap(), &orphan.operation).await.unwrap());
        assert!(!perform::<B>(&mut conn, "k").await.unwrap().is_replayed());
        assert_eq!((place.effects(), place.records()), (1, 1));
        assert_eq!(B::list(&mut conn, &orphans).await.unwrap(), []);
    }

    async fn a_record_is_shown_as_it_is<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        assert_eq!(B::find(&mut conn, &intent("k"), "tests.perform").await.unwrap(), None);
        perform::<B>(&mut conn, "k").await.unwrap();
        let seen = B::find(&mut conn, &intent("k"), "tests.perform").await.unwrap().unwrap();
        assert_eq!(
            (seen.tenant_id.as_str(), seen.operation.as_str(), seen.idempotency_key.as_str()),
            ("acme/alice", "tests.perform", "k")
        );
        assert_eq!((seen.state, seen.attempt, seen.body_bytes), (State::Completed, 1, Some(6)));
        assert_eq!((seen.codec.as_deref(), seen.owner, seen.lease_expires_at), (Some("json"), None, None));
        assert_eq!(Some(seen.request_hash), place.text("SELECT request_hash FROM api_idempotency"));
        let completed_at = seen.completed_at.unwrap();
        let age = SystemTime::now().duration_since(seen.created_at).unwrap_or_default();
        assert!(age < AT_MOST && seen.created_at <= completed_at, "{age:?}");
        let two_days = Duration::from_secs(u64::from(TWO_DAYS));
        // SQLite's times are of milliseconds, and on PostgreSQL each is of its own moment.
        for (horizon, expected) in [(seen.expires_at, two_days), (seen.forget_at, 2 * two_days)] {
            let kept = horizon.duration_since(completed_at).unwrap();
            assert!(kept.abs_diff(expected) < Duration::from_millis(50), "{kept:?}");
        }
        place.age_records(TWO_DAYS);
        B::purge(&mut conn, &Purge::new()).await.unwrap();
        let seen = B::find(&mut conn, &intent("k"), "tests.perform").await.unwrap().unwrap();
        assert_eq!((seen.state, seen.codec, seen.body_bytes), (State::Completed, None, None));
        place.run(OLD_PENDING_ROWS);
        let seen = B::find(&mut conn, &intent("leased"), "tests.perform").await.unwrap().unwrap();
        let leased_for = seen.lease_expires_at.unwrap().duration_since(seen.created_at).unwrap();
        assert_eq!((seen.owner.as_deref(), seen.completed_at), (Some("worker 3"), None));
        assert_eq!(leased_for, Duration::from_secs(60));
    }

    async fn a_filter_gives_what_matches_all_of_it<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        answered::<B>(&mut conn, "old", 2).await;
        place.age_records(3600);
        answered::<B>(&mut conn, "new", 3).await;
        failed::<B>(&mut conn, "new", 1).await;
        place.run(OLD_PENDING_ROWS);
        let hour = Duration::from_secs(3600);
        let bob = Tenant::of("acme", "bob").unwrap();
        for (filter, rows) in [
            (Filter::new(), 8),
            (Filter::new().limit(3), 3),
            (Filter::new().state(State::Completed), 5),
            (Filter::new().state(State::Failed), 1),
            (Filter::new().operation("cards.charge"), 1),
            (Filter::new().operation("tests.perform"), 7),
            (Filter::new().tenant(intent("k").tenant()), 8),
            (Filter::new().tenant(&bob), 0),
            (Filter::new().older_than(hour), 4),
            (Filter::new().older_than(hour + Duration::from_secs(60)), 2),
            (Filter::new().older_than(Duration::ZERO), 8),
            (Filter::new().older_than(Duration::MAX), 0),
            (Filter::new().older_than(hour).state(State::Completed).operation("tests.perform"), 2),
            (Filter::new().older_than(hour).state(State::Completed).operation("cards.charge"), 0),
        ] {
            assert_eq!(B::list(&mut conn, &filter).await.unwrap().len(), rows, "{filter:?}");
        }
        // The oldest first; a name is never read as SQL.
        let oldest = B::list(&mut conn, &Filter::new().limit(1)).await.unwrap().pop();
        assert_eq!(oldest.unwrap().idempotency_key, "leased");
        assert_eq!(B::list(&mut conn, &Filter::new().operation("' OR '1'='1")).await.unwrap(), []);
    }

    async fn only_the_named_record_is_forgotten_whatever_its_state<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        answered::<B>(&mut conn, "k", 2).await;
        failed::<B>(&mut conn, "k", 1).await;
        place.run(OLD_PENDING_ROWS);
        for (key, operation, is_there) in [
            ("k0", "tests.other", false),
            ("K0", "tests.perform", false),
            ("k0", "tests.perform", true),
            ("k0", "tests.perform", false),
            ("leased", "tests.perform", true),
            ("k0", "cards.charge", true),
        ] {
            let before = place.records();
            assert_eq!(B::forget(&mut conn, &intent(key), operation).await.unwrap(), is_there, "{key} {operation}");
            assert_eq!(place.records(), before - i64::from(is_there));
        }
        assert!(perform::<B>(&mut conn, "k1").await.unwrap().is_replayed());
    }

    async fn nothing_is_forgotten_from_under_a_running_call<B: Backend>() {
        let place = B::place();
        let mut conn = impatient::<B>(&place).await;
        perform::<B>(&mut conn, "k").await.unwrap();
        place.age_records(TWO_DAYS);
        let running = Held::start::<B>(&place, "k").await;
        let refused = in_time(B::forget(&mut conn, &intent("k"), "tests.perform")).await.unwrap_err();
        let is_right = match refused.kind() {
            ErrorKind::InFlight { .. } => B::is_postgres(),
            ErrorKind::Busy { .. } => !B::is_postgres(),
            _ => false,
        };
        assert!(is_right, "{refused:?}");
        running.end().await;
        assert!(perform::<B>(&mut conn, "k").await.unwrap().is_replayed());
        assert_eq!(place.effects(), 2);
    }

    async fn what_operators_do_is_on_record<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        answered::<B>(&mut conn, "k", 2).await;
        let spans = Spans::default();
        let recording = tracing::subscriber::set_default(spans.clone());
        // Another test may have come to a span for the first time just before.
        tracing::callsite::rebuild_interest_cache();
        B::find(&mut conn, &intent("k0"), "tests.perform").await.unwrap();
        B::list(&mut conn, &Filter::new().operation("tests.perform")).await.unwrap();
        for _ in 0..2 {
            B::forget(&mut conn, &intent("k1"), "tests.perform").await.unwrap();
        }
        B::purge(&mut conn, &Purge::new()).await.unwrap();
        place.run("DROP VIEW api_idempotency_readable; DROP TABLE api_idempotency");
        B::find(&mut conn, &intent("k0"), "tests.perform").await.unwrap_err();
        drop(recording);
        assert_eq!(spans.texts(), [
            "idem_diesel::admin key=k0 operation=tests.perform rows=1 tenant=acme/alice what=find",
            "idem_diesel::admin operation=tests.perform rows=2 what=list",
            "idem_diesel::admin key=k1 operation=tests.perform rows=1 tenant=acme/alice what=forget",
            "idem_diesel::admin key=k1 operation=tests.perform rows=0 tenant=acme/alice what=forget",
            "idem_diesel::retention blanked=0 ended=Complete events=0 forgotten=0 messages=0",
            "idem_diesel::admin error=the table api_idempotency is missing: call ensure_schema or run the migrations \
             key=k0 operation=tests.perform tenant=acme/alice what=find",
        ]);
    }
}

/// On PostgreSQL a purge sets nothing that outlives its transactions.
fn the_sessions_own_busy_timeout_is_back_after_a_purge<B: Backend>() {
    run(async {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        B::sql(&mut conn, "PRAGMA busy_timeout = 12345")
            .await
            .unwrap();
        B::purge(&mut conn, &Purge::new()).await.unwrap();
        let get = "SELECT CAST(timeout AS TEXT) FROM pragma_busy_timeout";
        assert_eq!(B::text(&mut conn, get).await.unwrap(), "12345");
    });
}

#[test]
fn the_sessions_own_busy_timeout_is_back_sqlite_sync() {
    the_sessions_own_busy_timeout_is_back_after_a_purge::<SqliteSync>();
}

#[test]
fn the_sessions_own_busy_timeout_is_back_sqlite_async() {
    the_sessions_own_busy_timeout_is_back_after_a_purge::<SqliteAsync>();
}

/// The rows of two parts may lie at the same place, each in its own.
fn a_partitioned_table_is_purged_as_well<B: Backend>() {
    run(async {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        place.run(
            "CREATE TABLE parts (LIKE api_idempotency INCLUDING ALL) PARTITION BY HASH (idempotency_key);
             CREATE TABLE one PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
             CREATE TABLE other PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
             DROP VIEW api_idempotency_readable; DROP TABLE api_idempotency;
             ALTER TABLE parts RENAME TO api_idempotency",
        );
        fill(&place, 400, MANY_BYTES);
        place.run("UPDATE one SET forget_at = '2020-01-01' WHERE attempt % 2 = 0");
        place.run("UPDATE one SET expires_at = '2020-01-01' WHERE attempt % 2 = 1");
        place.run("VACUUM FULL one");
        let in_one = |what| place.number(&format!("SELECT count(*) FROM one WHERE {what}"));
        let (go, expire) = (in_one("attempt % 2 = 0"), in_one("attempt % 2 = 1"));
        assert!(go > 20 && expire > 20);
        let options = Purge::new().batch_rows(3).pause(Duration::ZERO);
        let purged = in_time(B::purge(&mut conn, &options)).await.unwrap();
        let expected = (expire.unsigned_abs(), go.unsigned_abs(), Ended::Complete);
        assert_eq!(counts(purged), expected);
        assert_eq!(place.records(), 400 - go);
        assert_eq!(place.number(TOMBSTONES), expire);
    });
}

#[test]
fn a_partitioned_table_is_purged_as_well_pg_sync() {
    a_partitioned_table_is_purged_as_well::<PgSync>();
}

#[test]
fn a_partitioned_table_is_purged_as_well_pg_async() {
    a_partitioned_table_is_purged_as_well::<PgAsync>();
}

/// A claim of a key that a purge is deleting waits for nothing: the row is there until the batch is committed, and then the key is new.
fn a_claim_does_not_wait_for_a_purge<B: Backend>() {
    run(async {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        answered::<B>(&mut conn, "k", 4).await;
        place.age_records(2 * TWO_DAYS);
        let mut holder = B::connect(&place).await;
        hold_deletions::<B>(&place, &mut holder, "api_idempotency").await;
        let slow = Purge::new().batch_rows(2).pause(Duration::from_secs(3));
        let purging = tokio::spawn(async move { B::purge(&mut conn, &slow).await });
        wait_until_somebody_waits(&place);
        // Rows that one connection wrote one after the other lie in that order.
        let mut claiming = B::connect(&place).await;
        for key in ["k0", "k3"] {
            let late = in_time(perform::<B>(&mut claiming, key)).await;
            assert_eq!(kind(late), ErrorKind::Expired);
        }
        let_deletions_go::<B>(&mut holder).await;
        wait_until(|| place.records() == 2);
        let new = in_time(perform::<B>(&mut claiming, "k0")).await;
        assert!(!new.unwrap().is_replayed());
        // The second batch is yet to come.
        assert_eq!((place.effects(), place.records()), (5, 3));
        let purged = in_time(purging).await.unwrap().unwrap();
        assert_eq!(counts(purged), (0, 4, Ended::Complete));
    });
}

#[test]
fn a_claim_does_not_wait_for_a_purge_pg_sync() {
    a_claim_does_not_wait_for_a_purge::<PgSync>();
}

#[test]
fn a_claim_does_not_wait_for_a_purge_pg_async() {
    a_claim_does_not_wait_for_a_purge::<PgAsync>();
}

/// A takeover does write the row: it waits for the one batch that holds it, and then the key is new.
fn a_takeover_waits_for_one_batch_at_most<B: Backend>() {
    const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'transactionid' AND datname = current_database()";
    run(async {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        answered::<B>(&mut conn, "k", 2).await;
        place.age_records(2 * TWO_DAYS);
        let mut holder = B::connect(&place).await;
        hold_deletions::<B>(&place, &mut holder, "api_idempotency").await;
        let purging = tokio::spawn(async move { B::purge(&mut conn, &Purge::new()).await });
        wait_until_somebody_waits(&place);
        let mut claiming = B::connect(&place).await;
        let takeover = tokio::spawn(async move {
            let (gate, script) = (Gate::open(), Script::effect("e"));
            B::perform(&mut claiming, Some(&intent("k0")), &AGAIN, &script, &gate).await
        });
        wait_until(|| place.number(WAITING) == 1);
        let_deletions_go::<B>(&mut holder).await;
        assert!(!in_time(takeover).await.unwrap().unwrap().is_replayed());
        in_time(purging).await.unwrap().unwrap();
        assert_eq!((place.effects(), place.records()), (3, 1));
    });
}

#[test]
fn a_takeover_waits_for_one_batch_at_most_pg_sync() {
    a_takeover_waits_for_one_batch_at_most::<PgSync>();
}

#[test]
fn a_takeover_waits_for_one_batch_at_most_pg_async() {
    a_takeover_waits_for_one_batch_at_most::<PgAsync>();
}

const HOURLY: Duration = Duration::from_secs(3600);

/// The background task on connections of its own, and the other end of its shutdown. So many times it gets no connection first.
fn in_background<B>(
    place: &Arc<Place>,
    options: Purge,
    every: Duration,
    refusals: u32,
) -> (JoinHandle<Purged>, oneshot::Sender<()>)
where
    B: Backend<Conn: IdempotentConnection<Flavor = Async>>,
{
    let place = Arc::clone(place);
    let mut connections = 0;
    let connect = move || {
        connections += 1;
        let place = (connections > refusals).then(|| Arc::clone(&place));
        async move {
            match place {
                Some(place) => Ok(B::connect(&place).await),
                None => Err("the pool is empty"),
            }
        }
    };
    let (stop, shutdown) = oneshot::channel();
    let purging = tokio::spawn(purge_periodically(connect, options, every, shutdown));
    (purging, stop)
}

fn the_background_task_ends_within_its_pauses<B>()
where
    B: Backend<Conn: IdempotentConnection<Flavor = Async>>,
{
    run(async {
        let place = Arc::new(B::place());
        let mut conn = B::connect(&place).await;
        let short = Duration::from_secs(1);

        // Between two runs, of which the first had no connection and the second did the work.
        answered::<B>(&mut conn, "k", 3).await;
        place.age_records(2 * TWO_DAYS);
        let (purging, stop) = in_background::<B>(&place, Purge::new(), short, 1);
        wait_until(|| place.records() == 0);
        answered::<B>(&mut conn, "l", 2).await;
        // Beside the task, so with patience.
        if !B::is_postgres() {
            B::sql(&mut conn, "PRAGMA busy_timeout = 10000")
                .await
                .unwrap();
        }
        B::sql(
            &mut conn,
            "UPDATE api_idempotency SET forget_at = created_at",
        )
        .await
        .unwrap();
        wait_until(|| place.records() == 0);
        stop.send(()).unwrap();
        let purged = in_time(purging).await.unwrap();
        assert_eq!(counts(purged), (0, 5, Ended::Shutdown));

        // In the hour between two runs.
        let (purging, stop) = in_background::<B>(&place, Purge::new(), HOURLY, 0);
        drop(stop);
        assert_eq!(
            counts(in_time(purging).await.unwrap()),
            (0, 0, Ended::Shutdown)
        );

        // Between two batches.
        answered::<B>(&mut conn, "m", 3).await;
        place.age_records(2 * TWO_DAYS);
        let slow = Purge::new().batch_rows(1).pause(Duration::from_secs(50));
        let (purging, stop) = in_background::<B>(&place, slow, HOURLY, 0);
        wait_until(|| place.records() == 2);
        stop.send(()).unwrap();
        let purged = in_time(purging).await.unwrap();
        assert_eq!(
            (counts(purged), place.records()),
            ((0, 1, Ended::Shutdown), 2)
        );

        // The connections were left clean.
        assert_eq!(
            counts(B::purge(&mut conn, &Purge::new()).await.unwrap()),
            (0, 2, Ended::Complete)
        );
    });
}

#[test]
fn the_background_task_ends_within_its_pauses_sqlite_async() {
    the_background_task_ends_within_its_pauses::<SqliteAsync>();
}

#[test]
fn the_background_task_ends_within_its_pauses_pg_async() {
    the_background_task_ends_within_its_pauses::<PgAsync>();
}

#[test]
fn a_shutdown_in_the_middle_of_a_batch_comes_after_it() {
    run(async {
        let place = Arc::new(PgAsync::place());
        let mut holder = PgAsync::connect(&place).await;
        answered::<PgAsync>(&mut holder, "k", 3).await;
        place.age_records(2 * TWO_DAYS);
        hold_deletions::<PgAsync>(&place, &mut holder, "api_idempotency").await;
        let (purging, stop) =
            in_background::<PgAsync>(&place, Purge::new().batch_rows(2), HOURLY, 0);
        wait_until_somebody_waits(&place);
        stop.send(()).unwrap();
        assert!(!purging.is_finished());
        let_deletions_go::<PgAsync>(&mut holder).await;
        let purged = in_time(purging).await.unwrap();
        assert_eq!(
            (counts(purged), place.records()),
            ((0, 2, Ended::Shutdown), 1)
        );
    });
}

/// The spans of this library with their fields, as an operator's log has them.
#[derive(Debug, Clone, Default)]
struct Spans(Arc<Mutex<Vec<Span>>>);

type Span = (&'static str, BTreeMap<&'static str, String>);

impl Spans {
    fn texts(&self) -> Vec<String> {
        let spans = self.0.lock().unwrap();
        let text = |(target, fields): &Span| {
            let fields = fields
                .iter()
                .map(|(name, value)| format!(" {name}={value}"));
            format!("{target}{}", fields.collect::<String>())
        };
        spans.iter().map(text).collect()
    }

    fn visit(&self, id: &tracing::span::Id, fields: impl FnOnce(&mut Fields<'_>)) {
        let position = usize::try_from(id.into_u64()).unwrap() - 1;
        let mut spans = self.0.lock().unwrap();
        fields(&mut Fields(&mut spans.get_mut(position).unwrap().1));
    }
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl tracing::field::Visit for Fields<'_> {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl tracing::Subscriber for Spans {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with("idem_diesel::")
    }

    fn new_span(&self, attributes: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        let id = {
            let mut spans = self.0.lock().unwrap();
            spans.push((attributes.metadata().target(), BTreeMap::new()));
            tracing::span::Id::from_u64(u64::try_from(spans.len()).unwrap())
        };
        self.visit(&id, |fields| attributes.record(fields));
        id
    }

    fn record(&self, id: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        self.visit(id, |fields| values.record(fields));
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {}

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

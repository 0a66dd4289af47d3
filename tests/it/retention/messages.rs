//! The end of retention in the inbox and the outbox.

use std::time::Duration;

use idem_diesel::retention::{Ended, Purge, Purged};
use idem_diesel::{ErrorKind, Retention};

use super::{
    Held, OLD_PENDING_ROWS, PENDING, TWO_DAYS, answered, fill, hold_deletions, impatient, in_time,
    let_deletions_go, set_old, wait_until,
};
use crate::backend::{Backend, PERFORM, PgAsync, Place, intent, on_every_backend, run};
use crate::shop::{Gate, Script};
use crate::waiting::wait_until_somebody_waits;

const OLD: &str = "2020-01-01 00:00:00.000";
const NEVER: &str = "2999-01-01 00:00:00.000";
const DELIVERED: &str = "SELECT count(*) FROM outbox_deliveries WHERE state = 'delivered'";
const DELIVERIES: &str = "SELECT count(*) FROM outbox_deliveries";
const EVENTS: &str = "SELECT count(*) FROM outbox_events";
const MESSAGES: &str = "SELECT count(*) FROM processed_messages";
/// Events and deliveries that have lost each other.
const UNPAIRED: &str = "
    SELECT (SELECT count(*) FROM outbox_events AS e WHERE NOT EXISTS
               (SELECT 1 FROM outbox_deliveries AS d WHERE d.tenant_id = e.tenant_id AND d.event_id = e.id))
         + (SELECT count(*) FROM outbox_deliveries AS d WHERE NOT EXISTS
               (SELECT 1 FROM outbox_events AS e WHERE e.tenant_id = d.tenant_id AND e.id = d.event_id))";

/// Blanked, forgotten, messages, events.
fn all(purged: Purged) -> ([u64; 4], Ended) {
    let counts = [
        purged.blanked,
        purged.forgotten,
        purged.messages,
        purged.events,
    ];
    (counts, purged.ended)
}

/// The statement that inserts messages `PREFIX0`, `PREFIX1` and so on.
fn messages(prefix: &str, rows: u32, state: &str, forget_at: &str) -> String {
    let rows: Vec<String> = (0..rows)
        .map(|number| format!("('billing', '{prefix}{number}', '{state}', '{OLD}', '{forget_at}')"))
        .collect();
    let rows = rows.join(", ");
    format!(
        "INSERT INTO processed_messages (subscriber_id, message_id, state, processed_at, forget_at) VALUES {rows}"
    )
}

/// The id of an event.
fn id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// The statements that insert an event of `tenant` with its delivery.
fn event(tenant: &str, number: u32, state: &str, settled_at: &str) -> String {
    let id = id(number);
    format!(
        "INSERT INTO outbox_events (tenant_id, id, aggregatetype, aggregateid, type, created_at)
         VALUES ('{tenant}', '{id}', 'order', '{number}', 'order.placed', '{OLD}');
         INSERT INTO outbox_deliveries (tenant_id, event_id, aggregatetype, aggregateid, type, state, due_at, created_at, settled_at)
         VALUES ('{tenant}', '{id}', 'order', '{number}', 'order.placed', '{state}', '{OLD}', '{OLD}', {settled_at});"
    )
}

fn events(numbers: impl IntoIterator<Item = u32>, state: &str, settled_at: &str) -> String {
    let numbers = numbers.into_iter();
    numbers
        .map(|number| event("acme/alice", number, state, settled_at))
        .collect()
}

fn old() -> String {
    format!("'{OLD}'")
}

/// The time so many seconds ago.
fn ago<B: Backend>(seconds: u32) -> String {
    if B::is_postgres() {
        format!("now() - interval '{seconds} seconds'")
    } else {
        format!("strftime('%Y-%m-%d %H:%M:%f', 'now', '-{seconds} seconds')")
    }
}

fn old_delivered(place: &Place, number: u32) -> i64 {
    let id = id(number);
    place.number(&format!("{DELIVERED} AND event_id = '{id}'"))
}

/// What handlers and relays do beside a purge: a message is processed, an event published, leased and delivered, each in a call of its own.
async fn work<B: Backend>(conn: &mut B::Conn, number: u32) {
    let event_number = 1000 + number;
    let (now, id) = (ago::<B>(0), id(event_number));
    let steps = [
        format!(
            "{};{}",
            messages(&format!("new{number}-"), 1, "processed", NEVER),
            events([event_number], "pending", "NULL")
        ),
        format!(
            "UPDATE outbox_deliveries SET owner = 'relay', fence = fence + 1 WHERE event_id = '{id}'"
        ),
        format!(
            "UPDATE outbox_deliveries SET state = 'delivered', settled_at = {now} WHERE event_id = '{id}'"
        ),
    ];
    for (step, statement) in steps.into_iter().enumerate() {
        let (key, script) = (format!("work{number}-{step}"), Script::of([statement]));
        let done = B::perform(conn, Some(&intent(&key)), &PERFORM, &script, &Gate::open()).await;
        assert!(!done.unwrap().is_replayed());
    }
}

on_every_backend! {
    async fn case_k4_only_what_is_done_goes_while_others_work<B: Backend>() {
        let place = B::place();
        let mut conn = impatient::<B>(&place).await;
        // All of it is as old as can be: three records that may go, five messages and five events that are done, and what is not.
        answered::<B>(&mut conn, "gone", 3).await;
        place.age_records(3 * TWO_DAYS);
        place.run(OLD_PENDING_ROWS);
        place.run(&messages("done", 5, "processed", OLD));
        place.run(&messages("failed", 2, "failed", OLD));
        place.run(&messages("dead", 2, "dead", OLD));
        place.run(&events(0..5, "delivered", &old()));
        place.run(&events(10..12, "pending", "NULL"));
        place.run(&events(20..22, "pending", "NULL"));
        place.run(&events(30..32, "dead", &old()));
        place.run("UPDATE outbox_deliveries SET owner = 'relay', fence = 1 WHERE aggregateid LIKE '2_'");
        // Done as well, but somebody has them.
        place.run(&messages("held", 1, "processed", OLD));
        place.run(&events([40], "delivered", &old()));
        let gentle = Purge::new().batch_rows(2).pause(Duration::from_millis(5));

        let mut holder = B::connect(&place).await;
        B::sql(&mut holder, if B::is_postgres() { "BEGIN" } else { "BEGIN IMMEDIATE" }).await.unwrap();
        for table in ["processed_messages", "outbox_deliveries"] {
            let held = if table == "processed_messages" { "message_id = 'held0'" } else { "aggregateid = '40'" };
            B::sql(&mut holder, &format!("UPDATE {table} SET attempts = 1 WHERE {held}")).await.unwrap();
        }
        B::sql(&mut holder, &messages("uncommitted", 1, "processed", OLD)).await.unwrap();
        B::sql(&mut holder, &events([50], "delivered", &old())).await.unwrap();
        let claim = if B::is_postgres() {
            Some(Held::start::<B>(&place, "claim").await)
        } else {
            // Nobody else writes meanwhile, and nothing is broken by that.
            let brief = gentle.time_limit(Duration::from_millis(100));
            let purged = in_time(B::purge(&mut conn, &brief)).await.unwrap();
            assert_eq!(all(purged), ([0; 4], Ended::AnotherRunner));
            B::sql(&mut holder, "ROLLBACK").await.unwrap();
            None
        };
        let held = u64::from(claim.is_some());

        let mut working = B::connect(&place).await;
        let worker = tokio::spawn(async move {
            for number in 0..15 {
                work::<B>(&mut working, number).await;
            }
        });
        let purged = in_time(B::purge(&mut conn, &gentle)).await.unwrap();
        assert_eq!(all(purged), ([0, 3, 6 - held, 6 - held], Ended::Complete));
        worker.await.unwrap();
        if let Some(claim) = claim {
            // None of them was waited for, and what they hold is still there.
            assert!(!claim.call.is_finished());
            claim.end().await;
            B::sql(&mut holder, "COMMIT").await.unwrap();
            assert_eq!(old_delivered(&place, 40), 1);
            // What they held or brought is due, too.
            let purged = in_time(B::purge(&mut conn, &gentle)).await.unwrap();
            assert_eq!(all(purged), ([0, 0, 2, 2], Ended::Complete));
        }
        assert_eq!(place.number(PENDING), 2);
        assert_eq!(place.number(&format!("{MESSAGES} WHERE state = 'failed'")), 2);
        assert_eq!(place.number(&format!("{MESSAGES} WHERE state = 'dead'")), 2);
        assert_eq!(place.number(&format!("{MESSAGES} WHERE message_id LIKE 'new%'")), 15);
        assert_eq!(place.number(MESSAGES), 19);
        assert_eq!(place.number(&format!("{DELIVERIES} WHERE state = 'pending' AND owner IS NULL")), 2);
        assert_eq!(place.number(&format!("{DELIVERIES} WHERE state = 'pending' AND owner = 'relay'")), 2);
        assert_eq!(place.number(&format!("{DELIVERIES} WHERE state = 'dead'")), 2);
        assert_eq!((place.number(DELIVERED), place.number(DELIVERIES), place.number(EVENTS)), (15, 21, 21));
        assert_eq!(place.number(UNPAIRED), 0);
        // There is nothing left to do.
        let purged = B::purge(&mut conn, &gentle).await.unwrap();
        assert_eq!(all(purged), ([0; 4], Ended::Complete));
    }

    async fn a_message_that_is_not_processed_stays_whatever_its_age<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        place.run(&messages("failed", 3, "failed", OLD));
        place.run(&messages("dead", 3, "dead", OLD));
        place.run(&messages("young", 3, "processed", NEVER));
        let purged = B::purge(&mut conn, &Purge::new()).await.unwrap();
        assert_eq!(all(purged), ([0; 4], Ended::Complete));
        assert_eq!(place.number(MESSAGES), 9);
        // Once it has been processed after all it goes like any other.
        place.run("UPDATE processed_messages SET state = 'processed' WHERE message_id = 'failed1'");
        let purged = B::purge(&mut conn, &Purge::new()).await.unwrap();
        assert_eq!(all(purged), ([0, 0, 1, 0], Ended::Complete));
        assert_eq!(place.number(&format!("{MESSAGES} WHERE message_id <> 'failed1'")), 8);
    }

    async fn delivered_events_go_by_a_retention_of_their_own<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let week = 7 * 24 * 3600;
        place.run(&messages("kept", 1, "processed", NEVER));
        place.run(&events([1], "delivered", &ago::<B>(week - 60)));
        place.run(&events([2], "delivered", &ago::<B>(week + 60)));
        let purged = B::purge(&mut conn, &Purge::new()).await.unwrap();
        assert_eq!(all(purged), ([0, 0, 0, 1], Ended::Complete));
        assert_eq!((old_delivered(&place, 1), old_delivered(&place, 2)), (1, 0));

        let shorter = Purge::new().delivered_for(Retention::literal("6d"));
        let purged = B::purge(&mut conn, &shorter).await.unwrap();
        assert_eq!(all(purged), ([0, 0, 0, 1], Ended::Complete));
        assert_eq!((place.number(MESSAGES), place.number(EVENTS)), (1, 0));
        // The other way round.
        place.run(&format!("UPDATE processed_messages SET forget_at = '{OLD}'"));
        place.run(&events([3], "delivered", &old()));
        let longest = Purge::new().delivered_for(Retention::literal("3650d"));
        let purged = B::purge(&mut conn, &longest).await.unwrap();
        assert_eq!(all(purged), ([0, 0, 1, 0], Ended::Complete));
        assert_eq!((place.number(MESSAGES), place.number(EVENTS)), (0, 1));
    }

    async fn messages_and_events_are_counted_exactly_in_batches_of_every_size<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        for batch_rows in [1, 2, 3, 4, 1000] {
            place.run(&messages("m", 4, "processed", OLD));
            // Tenants are whatever texts an application has, and none where an event was published outside of a call.
            for (number, tenant) in (0..).zip(["", "a\"b\\", "[ü, 魚]", "acme/al''ice"]) {
                place.run(&event(tenant, number, "delivered", &old()));
            }
            // The same ids belong to somebody else, too.
            place.run(&events(0..4, "pending", "NULL"));
            let options = Purge::new().batch_rows(batch_rows).pause(Duration::ZERO);
            let purged = B::purge(&mut conn, &options).await.unwrap();
            assert_eq!(all(purged), ([0, 0, 4, 4], Ended::Complete), "{batch_rows}");
            assert_eq!((place.number(MESSAGES), place.number(EVENTS), place.number(UNPAIRED)), (0, 4, 0));
            place.run("DELETE FROM outbox_deliveries; DELETE FROM outbox_events");
        }
        // An event that somebody removed by hand holds nothing up.
        place.run(&events(0..3, "delivered", &old()));
        place.run("DELETE FROM outbox_events WHERE aggregateid = '1'");
        let purged = B::purge(&mut conn, &Purge::new()).await.unwrap();
        assert_eq!(all(purged), ([0, 0, 0, 3], Ended::Complete));
        assert_eq!((place.number(DELIVERIES), place.number(EVENTS)), (0, 0));
    }

    async fn a_purge_comes_through_the_whole_inbox<B: Backend>() {
        // More than two stretches of the table on every backend.
        const MANY: u32 = 12_000;
        let place = B::place();
        let mut conn = impatient::<B>(&place).await;
        let filler = "x".repeat(900);
        place.run(&format!(
            "INSERT INTO processed_messages (subscriber_id, message_id, state, attempts, last_error, forget_at)
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MANY})
             SELECT 'billing', 'm' || i, CASE i % 13 WHEN 0 THEN 'failed' ELSE 'processed' END, i, '{filler}',
                    CASE i % 11 WHEN 0 THEN {NOW} ELSE {LATER} END FROM n",
            NOW = if B::is_postgres() { "timestamptz '2020-01-01'" } else { "'2020-01-01 00:00:00.000'" },
            LATER = if B::is_postgres() { "timestamptz '2999-01-01'" } else { "'2999-01-01 00:00:00.000'" },
        ));
        let go = (1..=MANY).filter(|number| number % 11 == 0 && number % 13 != 0).count();
        let options = Purge::new().batch_rows(100).pause(Duration::ZERO);
        let purged = in_time(B::purge(&mut conn, &options)).await.unwrap();
        assert_eq!(all(purged), ([0, 0, go as u64, 0], Ended::Complete));
        let left = i64::from(MANY) - i64::try_from(go).unwrap();
        assert_eq!(place.number(MESSAGES), left);
        assert_eq!(place.number(&format!("{MESSAGES} WHERE state = 'processed' AND forget_at < '2021-01-01'")), 0);
    }

    async fn a_run_too_short_for_one_table_comes_to_the_others<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        fill(&place, 100, 1);
        set_old(&place, "forget_at", "1 = 1");
        place.run(&messages("m", 1, "processed", OLD));
        place.run(&events([1], "delivered", &old()));
        let short = Purge::new().batch_rows(1).pause(Duration::from_millis(100)).time_limit(Duration::from_secs(2));
        let purged = in_time(B::purge(&mut conn, &short)).await.unwrap();
        assert_eq!((purged.messages, purged.events, purged.ended), (1, 1, Ended::TimeLimit));
        assert!((1..=20).contains(&purged.forgotten), "{purged:?}");
    }

    async fn a_second_runner_is_told_so_in_every_table<B: Backend>() {
        for table in ["processed_messages", "outbox_deliveries"] {
            let place = B::place();
            let mut conn = impatient::<B>(&place).await;
            let (mut holder, mut second) = (B::connect(&place).await, impatient::<B>(&place).await);
            place.run(&messages("m", 2, "processed", OLD));
            place.run(&events(0..2, "delivered", &old()));
            if !B::is_postgres() {
                // Its write lock is one for all tables.
                break;
            }
            hold_deletions::<B>(&place, &mut holder, table).await;
            let first = tokio::spawn(async move { B::purge(&mut conn, &Purge::new()).await });
            wait_until_somebody_waits(&place);
            // The records are nobody's at the moment.
            fill(&place, 1, 1);
            set_old(&place, "forget_at", "1 = 1");
            let purged = in_time(B::purge(&mut second, &Purge::new())).await.unwrap();
            assert_eq!(all(purged), ([0, 1, 0, 0], Ended::AnotherRunner), "{table}");
            let_deletions_go::<B>(&mut holder).await;
            let purged = in_time(first).await.unwrap().unwrap();
            assert_eq!(all(purged), ([0, 0, 2, 2], Ended::Complete), "{table}");
        }
    }

    async fn a_purge_names_the_table_that_is_missing<B: Backend>() {
        for table in ["processed_messages", "outbox_events", "outbox_deliveries"] {
            let place = B::place();
            let mut conn = B::connect(&place).await;
            place.run(&events([1], "delivered", &old()));
            place.run(&format!("DROP TABLE {table}"));
            let told = B::purge(&mut conn, &Purge::new()).await.unwrap_err();
            assert_eq!(told.kind(), &ErrorKind::TableMissing { table });
            // Calls do without, and what is wrong with theirs is not laid at its door.
            answered::<B>(&mut conn, "k", 1).await;
            place.run("DROP VIEW api_idempotency_readable; ALTER TABLE api_idempotency RENAME COLUMN codec TO other");
            let told = B::find(&mut conn, &intent("k0"), "tests.perform").await.unwrap_err();
            assert_eq!(told.kind(), &ErrorKind::Database);
        }
    }
}

/// The second of the two deletions waits, and the purge is dropped there.
#[test]
fn an_event_and_its_delivery_go_together_or_not_at_all() {
    run(async {
        let place = PgAsync::place();
        let mut conn = PgAsync::connect(&place).await;
        let mut holder = PgAsync::connect(&place).await;
        place.run(&events(0..3, "delivered", &old()));
        hold_deletions::<PgAsync>(&place, &mut holder, "outbox_events").await;
        let purging = tokio::spawn(async move { PgAsync::purge(&mut conn, &Purge::new()).await });
        wait_until_somebody_waits(&place);
        assert_eq!((place.number(DELIVERIES), place.number(EVENTS)), (3, 3));
        purging.abort();
        assert!(purging.await.unwrap_err().is_cancelled());
        let_deletions_go::<PgAsync>(&mut holder).await;
        // Its session has ended, and with it whatever it did.
        let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
        wait_until(|| place.number(others) == 2);
        assert_eq!((place.number(DELIVERIES), place.number(EVENTS)), (3, 3));
        let purged = PgAsync::purge(&mut holder, &Purge::new()).await.unwrap();
        assert_eq!(all(purged), ([0, 0, 0, 3], Ended::Complete));
        assert_eq!((place.number(DELIVERIES), place.number(EVENTS)), (0, 0));
    });
}

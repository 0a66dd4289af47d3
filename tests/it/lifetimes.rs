//! How long an answer is remembered, and what a late retry gets.

use idem_diesel::{ErrorKind, Late, Operation, Policy, Retention};

use crate::backend::{PERFORM, intent, kind, on_every_backend};
use crate::shop::{Gate, Script};

const TWO_SECONDS: Operation = Operation::new("tests.brief", Retention::literal("2s"));
const AGAIN: Operation = TWO_SECONDS.with_policy(Policy::new().late(Late::Execute));

on_every_backend! {
    async fn an_expired_record_and_a_late_retry_have_no_second_effect<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let script = Script::effect("e");
        B::perform(&mut conn, Some(&intent("k")), &PERFORM, &script, &Gate::open()).await.unwrap();
        place.age_records(48 * 3600 - 5);
        let replayed = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &script, &Gate::open()).await;
        assert!(replayed.unwrap().is_replayed());
        place.age_records(5);
        let late = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &script, &Gate::open()).await;
        assert_eq!(kind(late), ErrorKind::Expired);
        // Another request is still told that the key is taken.
        let other = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("x"), &Gate::open()).await;
        assert_eq!(kind(other), ErrorKind::Mismatch);
        // The answer may be blanked by then.
        place.run("UPDATE api_idempotency SET response_body = NULL, codec = NULL");
        let late = B::perform(&mut conn, Some(&intent("k")), &PERFORM, &script, &Gate::open()).await;
        assert_eq!(kind(late), ErrorKind::Expired);
        assert_eq!((place.effects(), place.records()), (1, 1));
    }

    async fn case_k1_two_seconds_are_two_seconds_of_the_database<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let script = Script::effect("e");
        let gate = Gate::open();
        for (operation, key) in [(&AGAIN, "again"), (&TWO_SECONDS, "reject")] {
            let first = B::perform(&mut conn, Some(&intent(key)), operation, &script, &gate).await;
            assert!(!first.unwrap().is_replayed());
        }
        // One second of the two is left for a slow machine: a record one second old replays ...
        place.age_records(1);
        for (operation, key) in [(&AGAIN, "again"), (&TWO_SECONDS, "reject")] {
            let second = B::perform(&mut conn, Some(&intent(key)), operation, &script, &gate).await;
            assert!(second.unwrap().is_replayed());
        }
        // ... and exactly two seconds old it has expired.
        place.age_records(1);
        let third = B::perform(&mut conn, Some(&intent("reject")), &TWO_SECONDS, &script, &gate).await;
        assert_eq!(kind(third), ErrorKind::Expired);
        let third = B::perform(&mut conn, Some(&intent("again")), &AGAIN, &script, &gate).await;
        assert!(!third.unwrap().is_replayed());
        assert_eq!((place.effects(), place.records()), (3, 2));
        assert_eq!(place.number("SELECT attempt FROM api_idempotency WHERE idempotency_key = 'again'"), 2);
        // The second attempt's answer is kept as long as the first one's was.
        let fourth = B::perform(&mut conn, Some(&intent("again")), &AGAIN, &script, &gate).await;
        assert!(fourth.unwrap().is_replayed());
    }

    async fn a_late_execution_that_fails_leaves_the_expired_record<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let gate = Gate::open();
        let fails_later = Script::of([
            "INSERT INTO effects SELECT CASE WHEN count(*) = 0 THEN 'first' END FROM effects",
        ]);
        B::perform(&mut conn, Some(&intent("k")), &AGAIN, &fails_later, &gate).await.unwrap();
        place.age_records(60);
        let row = || place.text("SELECT state || attempt || expires_at FROM api_idempotency");
        let before = row();
        assert!(B::perform(&mut conn, Some(&intent("k")), &AGAIN, &fails_later, &gate).await.is_err());
        assert_eq!(row(), before);
        assert_eq!(place.effects(), 1);
    }

    async fn both_horizons_count_from_completion<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        B::perform(&mut conn, Some(&intent("k")), &PERFORM, &Script::effect("e"), &Gate::open()).await.unwrap();
        let seconds = |from: &str, to: &str| {
            place.number(&if B::is_postgres() {
                format!("SELECT CAST(extract(epoch FROM {to} - {from}) AS bigint) FROM api_idempotency")
            } else {
                format!("SELECT CAST(round((julianday({to}) - julianday({from})) * 86400) AS INTEGER) FROM api_idempotency")
            })
        };
        assert_eq!(seconds("completed_at", "expires_at"), 48 * 3600);
        assert_eq!(seconds("completed_at", "forget_at"), 96 * 3600);
    }

    async fn case_a12_and_a13_a_key_is_unique_inside_tenant_and_operation<B: Backend>() {
        use idem_diesel::{IdempotencyKey, Intent, Tenant};
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let key = || IdempotencyKey::new("k").unwrap();
        let other_operation = Operation::new("tests.other", Retention::literal("48h"));
        let scopes = [
            (Tenant::of("acme", "alice").unwrap(), &PERFORM),
            (Tenant::of("acme", "bob").unwrap(), &PERFORM),
            (Tenant::shared("acme").unwrap(), &PERFORM),
            (Tenant::of("acme", "alice").unwrap(), &other_operation),
        ];
        for is_replayed in [false, true] {
            for (tenant, operation) in &scopes {
                let intent = Intent::new(tenant.clone(), key());
                let done = B::perform(&mut conn, Some(&intent), operation, &Script::effect("e"), &Gate::open()).await;
                assert_eq!(done.unwrap().is_replayed(), is_replayed);
            }
        }
        assert_eq!((place.effects(), place.records()), (4, 4));
    }

    async fn keys_compare_byte_by_byte<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        for key in ["k", "K", "k k", "k  k"] {
            let done = B::perform(&mut conn, Some(&intent(key)), &PERFORM, &Script::effect("e"), &Gate::open()).await;
            assert!(!done.unwrap().is_replayed(), "{key}");
        }
        assert_eq!(place.records(), 4);
    }
}

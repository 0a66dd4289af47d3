//! What one handler promises: one effect, one answer, whoever calls how often.

use std::sync::Arc;

use idem_diesel::{ErrorKind, Outcome, Verdict};
use tokio::sync::Barrier;

use crate::backend::{intent, kind, on_every_backend};
use crate::shop::{ChangeOrder, CreateOrder, Decline, Gate};

const ORDER: CreateOrder = CreateOrder {
    account_id: 1,
    amount_cents: 2500,
};

on_every_backend! {
    async fn second_call_replays_the_first_answer_byte_for_byte<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let first = B::create_order(&mut conn, &intent("k"), &ORDER).await.unwrap();
        let bytes = place.text("SELECT response_text FROM api_idempotency_readable");
        assert!(matches!(first, Outcome::Executed(_)));

        // Also on another connection, after the first is gone.
        drop(conn);
        let mut conn = B::connect(&place).await;
        let second = B::create_order(&mut conn, &intent("k"), &ORDER).await.unwrap();
        assert!(second.is_replayed());
        assert_eq!(first.get(), second.get());
        assert_eq!(
            bytes.unwrap(),
            serde_json::to_string(second.get()).unwrap()
        );
        assert_eq!(place.number("SELECT count(*) FROM orders"), 1);
        assert_eq!(place.records(), 1);
    }

    async fn case_c10_another_request_under_the_same_key_is_refused_and_changes_nothing<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let first = B::create_order(&mut conn, &intent("k"), &ORDER).await.unwrap();
        let row = || place.text("SELECT request_hash || state || attempt || expires_at FROM api_idempotency");
        let before = row();
        let other = CreateOrder { amount_cents: 2501, ..ORDER };
        let error = B::create_order(&mut conn, &intent("k"), &other).await.unwrap_err();
        assert_eq!(error.to_string(), "orders.create: the idempotency key was used before with another request");
        assert_eq!(error.kind(), Some(&ErrorKind::Mismatch));
        assert_eq!(row(), before);

        // Also right after a restart, when nothing is remembered but the row.
        drop(conn);
        let mut conn = B::connect(&place).await;
        let refused = kind(B::create_order(&mut conn, &intent("k"), &other).await);
        assert_eq!(refused, ErrorKind::Mismatch);
        assert_eq!(row(), before);

        let again = B::create_order(&mut conn, &intent("k"), &ORDER).await.unwrap();
        assert!(again.is_replayed());
        assert_eq!(again.get(), first.get());
        assert_eq!(place.number("SELECT count(*) FROM orders"), 1);
    }

    async fn the_same_request_under_two_keys_is_two_orders<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let first = B::create_order(&mut conn, &intent("k1"), &ORDER).await.unwrap();
        let second = B::create_order(&mut conn, &intent("k2"), &ORDER).await.unwrap();
        assert_ne!(first.get().id, second.get().id);
        assert_eq!(place.number("SELECT count(*) FROM orders"), 2);
        assert_eq!(place.records(), 2);
    }

    async fn sixteen_racing_calls_execute_once<B: Backend>() {
        let place = B::place();
        let barrier = Arc::new(Barrier::new(16));
        let mut calls = Vec::new();
        for _ in 0..16 {
            let mut conn = B::connect(&place).await;
            let barrier = Arc::clone(&barrier);
            calls.push(tokio::spawn(async move {
                barrier.wait().await;
                B::create_order(&mut conn, &intent("k"), &ORDER).await
            }));
        }
        let mut executed = 0;
        let mut answers = Vec::new();
        for call in calls {
            let outcome = call.await.unwrap().unwrap();
            executed += i32::from(!outcome.is_replayed());
            answers.push(outcome.into_inner());
        }
        assert_eq!(executed, 1);
        answers.dedup();
        assert_eq!(answers.len(), 1);
        assert_eq!(place.number("SELECT count(*) FROM orders"), 1);
    }

    async fn a_final_failure_rolls_its_writes_back_and_is_replayed<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let cmd = CreateOrder { account_id: 1, amount_cents: 9000 };
        let declined = Verdict::Failed(Decline::TooExpensive { limit_cents: 5000 });
        for is_replayed in [false, true] {
            let outcome = B::charge(&mut conn, &intent("k"), &cmd).await.unwrap();
            assert_eq!(outcome.is_replayed(), is_replayed);
            assert_eq!(outcome.into_inner(), declined);
            assert_eq!(place.number("SELECT balance_cents FROM accounts"), 10_000);
        }
        assert_eq!(place.text("SELECT state FROM api_idempotency").as_deref(), Some("failed"));

        let paid = B::charge(&mut conn, &intent("k2"), &ORDER).await.unwrap();
        assert_eq!(paid.into_inner(), Verdict::Completed(2500));
        assert_eq!(place.number("SELECT balance_cents FROM accounts"), 7_500);
    }

    async fn paid_twice_is_refused_as_already_applied<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let order_id = B::create_order(&mut conn, &intent("k"), &ORDER).await.unwrap().get().id;
        let cmd = ChangeOrder { order_id };
        let first = B::pay_order(&mut conn, &intent("p1"), &cmd, &Gate::open()).await.unwrap();
        assert_eq!(first.get().balance_cents, 7_500);

        let error = B::pay_order(&mut conn, &intent("p2"), &cmd, &Gate::open()).await.unwrap_err();
        let found = idem_diesel::Error::find(&error).unwrap();
        assert!(found.is_already_applied());
        assert_eq!(error.to_string(), "orders.pay: the entity is paid already");
        assert_eq!(place.number("SELECT balance_cents FROM accounts"), 7_500);
        assert_eq!(place.number("SELECT count(*) FROM payments"), 1);
        // The key of the refused call is free: nothing is stored under it.
        assert_eq!(place.number("SELECT count(*) FROM api_idempotency WHERE idempotency_key = 'p2'"), 0);
    }

    async fn an_illegal_transition_names_the_current_state<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let order_id = B::create_order(&mut conn, &intent("k"), &ORDER).await.unwrap().get().id;
        let cmd = ChangeOrder { order_id };
        B::cancel_order(&mut conn, &intent("c"), &cmd).await.unwrap();
        let refused = kind(B::pay_order(&mut conn, &intent("p"), &cmd, &Gate::open()).await);
        assert_eq!(refused, ErrorKind::IllegalTransition { current: "cancelled".into(), to: "paid" });

        let nobody = ChangeOrder { order_id: 999 };
        let refused = kind(B::pay_order(&mut conn, &intent("p"), &nobody, &Gate::open()).await);
        assert_eq!(refused, ErrorKind::EntityNotFound { entity: "OrderStatus" });

        // The key of the two refused calls is free: it now serves another order.
        let order_id = B::create_order(&mut conn, &intent("k2"), &ORDER).await.unwrap().get().id;
        let paid = B::pay_order(&mut conn, &intent("p"), &ChangeOrder { order_id }, &Gate::open()).await;
        assert!(!paid.unwrap().is_replayed());
    }

    async fn a_replay_means_what_the_first_answer_meant_after_the_state_moved_on<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let order_id = B::create_order(&mut conn, &intent("k"), &ORDER).await.unwrap().get().id;
        let cmd = ChangeOrder { order_id };
        let paid = B::pay_order(&mut conn, &intent("pay"), &cmd, &Gate::open()).await.unwrap();
        let shipped = B::advance_order(&mut conn, &intent("ship"), &cmd).await.unwrap();
        let refunded = B::advance_order(&mut conn, &intent("refund"), &cmd).await.unwrap();
        assert_eq!(shipped.get().status, "shipped");
        assert_eq!(refunded.get().status, "refunded");

        let retry = B::pay_order(&mut conn, &intent("pay"), &cmd, &Gate::open()).await.unwrap();
        assert!(retry.is_replayed());
        assert_eq!(retry.get(), paid.get());
        assert_eq!(retry.get().status, "paid");
        assert_eq!(place.text("SELECT status FROM orders").as_deref(), Some("refunded"));
    }

    async fn case_j1_two_commands_cannot_both_leave_one_state<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let order_id = B::create_order(&mut conn, &intent("k"), &ORDER).await.unwrap().get().id;
        let gate = Arc::new(Gate::closed());
        let pay = {
            let (mut conn, gate) = (B::connect(&place).await, Arc::clone(&gate));
            tokio::spawn(async move {
                B::pay_order(&mut conn, &intent("pay"), &ChangeOrder { order_id }, &gate).await
            })
        };
        gate.wait_until_entered();
        let cancel = tokio::spawn(async move {
            B::cancel_order(&mut conn, &intent("cancel"), &ChangeOrder { order_id }).await
        });
        gate.release();
        assert!(!pay.await.unwrap().unwrap().is_replayed());
        let refused = kind(cancel.await.unwrap());
        assert_eq!(refused, ErrorKind::IllegalTransition { current: "paid".into(), to: "cancelled" });
        assert_eq!(place.text("SELECT status FROM orders").as_deref(), Some("paid"));
        assert_eq!(place.number("SELECT count(*) FROM payments"), 1);
        assert_eq!(place.number("SELECT count(*) FROM api_idempotency WHERE idempotency_key = 'cancel'"), 0);
    }

    async fn a_committed_call_whose_answer_was_lost_is_replayed<B: Backend>() {
        let place = B::place();
        // The server commits; whoever called is gone before the answer arrives, and its connection with it.
        let mut conn = B::connect(&place).await;
        let call = tokio::spawn(async move {
            B::create_order(&mut conn, &intent("k"), &ORDER).await.map(drop)
        });
        call.await.unwrap().unwrap();

        let mut conn = B::connect(&place).await;
        let retry = B::create_order(&mut conn, &intent("k"), &ORDER).await.unwrap();
        assert!(retry.is_replayed());
        assert_eq!(place.number("SELECT count(*) FROM orders"), 1);
    }
}

//! Handlers with `#[consumer(…)]` on every connection: what they give, what a transition does, and what the intent is for.

use std::future::Future;
use std::sync::Arc;

use idem_diesel::{
    Consumed, ErrorKind, Intent, MessageId, Policy, RequestHash, Retention, Subscription, Tenant,
};

use crate::backend::{Backend, PgAsync, PgSync, Place, SqliteAsync, SqliteSync, kind};
use crate::shop::{Gate, ShopError};

/// An order was paid for, somewhere else.
#[derive(Debug, Clone, RequestHash)]
pub struct Paid {
    pub order_id: i64,
    pub amount_cents: i64,
}

/// A contract is in a new state since a time, or since nobody knows when.
#[derive(Debug, Clone, RequestHash)]
pub struct Changed {
    pub contract: i64,
    pub status: &'static str,
    pub at: Option<i64>,
}

diesel::table! {
    contracts { id -> BigInt, status -> Text, changed_at -> BigInt, changed_by -> Text, }
}

/// A subscription as a constant, which reads the tenant of its intents.
pub const ISOLATED: Subscription = Subscription::new("isolated", Retention::literal("7d"))
    .redelivered_for(Retention::literal("24h"))
    .with_policy(Policy::new().tenant_setting("app.tenant_id"));

const PAID: Paid = Paid {
    order_id: 1,
    amount_cents: 500,
};

/// A backend with the consumers for it.
pub trait Consumers: Backend {
    /// Gives the number of payments.
    fn book(
        conn: &mut Self::Conn,
        id: &MessageId,
        event: &Paid,
        gate: &Gate,
    ) -> impl Future<Output = Result<Consumed<i64>, ShopError>> + Send;

    /// Says nothing of what became of the message.
    fn note(
        conn: &mut Self::Conn,
        id: &MessageId,
        event: &Paid,
        fails: bool,
    ) -> impl Future<Output = Result<(), ShopError>> + Send;

    /// Pays an order, which must be pending.
    fn pay(
        conn: &mut Self::Conn,
        id: &MessageId,
        event: &Paid,
    ) -> impl Future<Output = Result<Consumed<&'static str>, ShopError>> + Send;

    /// The same for another subscriber, which says nothing of what became of the message.
    fn pay_quietly(
        conn: &mut Self::Conn,
        id: &MessageId,
        event: &Paid,
    ) -> impl Future<Output = Result<(), ShopError>> + Send;

    /// The same in the body, where the attribute knows nothing of it.
    fn pay_by_hand(
        conn: &mut Self::Conn,
        id: &MessageId,
        event: &Paid,
    ) -> impl Future<Output = Result<Consumed, ShopError>> + Send;

    /// Brings a contract into its newest state.
    fn change(
        conn: &mut Self::Conn,
        id: &MessageId,
        event: &Changed,
    ) -> impl Future<Output = Result<Consumed, ShopError>> + Send;

    /// Gives the key of a call to another system, or fails with it.
    fn charge_elsewhere(
        conn: &mut Self::Conn,
        id: &MessageId,
        intent: &Intent,
        keys: &mut Vec<String>,
        fails: bool,
    ) -> impl Future<Output = Result<Consumed<String>, ShopError>> + Send;

    /// Gives the tenant that row-level security sees.
    fn whose(
        conn: &mut Self::Conn,
        id: &MessageId,
        intent: Option<&Intent>,
    ) -> impl Future<Output = Result<Consumed<String>, ShopError>> + Send;
}

/// Calls a handler; a sync one blocks, so the runtime gets another thread meanwhile.
macro_rules! call {
    ([async], $call:expr) => {
        $call.await
    };
    ([], $call:expr) => {
        tokio::task::block_in_place(|| $call)
    };
}

/// The consumers of one kind of connection.
macro_rules! consumers {
    ($backend:ident in $module:ident: $tenant:literal, [$($asyncness:ident)?], [$($wait:tt)*], $dsl:path, $simple:path) => {
        mod $module {
            use diesel::{ExpressionMethods, QueryDsl};
            use idem_diesel::{ApplyTransition, Consumed, Intent, MessageId, StateMachine, consumer};
            use $dsl;

            use super::{Changed, Paid, contracts};
            use crate::shop::{Gate, OrderStatus, ShopError, payments};

            type Conn = <crate::backend::$backend as crate::backend::Backend>::Conn;

            $($asyncness)? fn effect(db: &mut Conn, name: &str) -> diesel::QueryResult<()> {
                use $simple;
                db.batch_execute(&format!("INSERT INTO effects (name) VALUES ('{name}')")) $($wait)*
            }

            $($asyncness)? fn pay_for(db: &mut Conn, event: &Paid) -> diesel::QueryResult<i64> {
                diesel::insert_into(payments::table)
                    .values((payments::order_id.eq(event.order_id), payments::amount_cents.eq(event.amount_cents)))
                    .execute(db)
                    $($wait)*?;
                payments::table.count().get_result(db) $($wait)*
            }

            #[consumer(subscriber = "books", retention = "7d", redelivery = "24h")]
            pub $($asyncness)? fn book(
                db: &mut Conn,
                id: &MessageId,
                event: &Paid,
                #[consumer(skip)] gate: &Gate,
            ) -> Result<Consumed<i64>, ShopError> {
                gate.pass();
                Ok(pay_for(db, event) $($wait)*?.into())
            }

            #[consumer(subscriber = "notes", retention = "7d")]
            pub $($asyncness)? fn note(
                db: &mut Conn,
                id: &MessageId,
                event: &Paid,
                #[consumer(skip)] fails: bool,
            ) -> Result<(), ShopError> {
                effect(db, &format!("{id} {}", event.order_id)) $($wait)*?;
                if fails { Err(ShopError::No) } else { Ok(()) }
            }

            #[consumer(
                subscriber = "orders",
                retention = "7d",
                transition(OrderStatus::Pending => OrderStatus::Paid, id = event.order_id)
            )]
            pub $($asyncness)? fn pay(
                db: &mut Conn,
                id: &MessageId,
                event: &Paid,
            ) -> Result<Consumed<&'static str>, ShopError> {
                pay_for(db, event) $($wait)*?;
                Ok("paid".into())
            }

            #[consumer(
                subscriber = "quiet orders",
                retention = "7d",
                transition(OrderStatus::Pending => OrderStatus::Paid, id = event.order_id)
            )]
            pub $($asyncness)? fn pay_quietly(
                db: &mut Conn,
                id: &MessageId,
                event: &Paid,
            ) -> Result<(), ShopError> {
                pay_for(db, event) $($wait)*?;
                Ok(())
            }

            #[consumer(subscriber = "orders by hand", retention = "7d")]
            pub $($asyncness)? fn pay_by_hand(
                db: &mut Conn,
                id: &MessageId,
                event: &Paid,
            ) -> Result<Consumed, ShopError> {
                OrderStatus::Paid.from(OrderStatus::Pending).apply(db, event.order_id) $($wait)*?;
                pay_for(db, event) $($wait)*?;
                Ok(Consumed::Processed(()))
            }

            /// Of two events the later one counts; of two at the same time the one with the greater id; one without a time is older than all others.
            #[consumer(subscriber = "contracts", retention = "7d")]
            pub $($asyncness)? fn change(
                db: &mut Conn,
                id: &MessageId,
                event: &Changed,
            ) -> Result<Consumed, ShopError> {
                let at = event.at.unwrap_or(i64::MIN);
                let (seen_at, seen_by): (i64, String) = contracts::table
                    .find(event.contract)
                    .select((contracts::changed_at, contracts::changed_by))
                    .get_result(db)
                    $($wait)*?;
                if (at, id.as_str()) <= (seen_at, seen_by.as_str()) {
                    return Ok(Consumed::AlreadyApplied);
                }
                diesel::update(contracts::table.find(event.contract))
                    .set((
                        contracts::status.eq(event.status),
                        contracts::changed_at.eq(at),
                        contracts::changed_by.eq(id.as_str()),
                    ))
                    .execute(db)
                    $($wait)*?;
                Ok(Consumed::Processed(()))
            }

            #[consumer(subscriber = "cards", retention = "7d", conn = conn)]
            pub $($asyncness)? fn charge_elsewhere(
                #[consumer(skip)] keys: &mut Vec<String>,
                conn: &mut Conn,
                id: &MessageId,
                intent: &Intent,
                #[consumer(skip)] fails: bool,
            ) -> Result<Consumed<String>, ShopError> {
                let key = intent.downstream("stripe.charge").to_string();
                keys.push(key.clone());
                effect(conn, "charged") $($wait)*?;
                if fails { Err(ShopError::No) } else { Ok(key.into()) }
            }

            #[consumer(subscription = super::ISOLATED)]
            pub $($asyncness)? fn whose(
                db: &mut Conn,
                id: &MessageId,
                intent: Option<&Intent>,
            ) -> Result<Consumed<String>, ShopError> {
                let tenant = diesel::dsl::sql::<diesel::sql_types::Text>($tenant);
                Ok(diesel::select(tenant).get_result::<String>(db) $($wait)*?.into())
            }
        }

        impl Consumers for $backend {
            async fn book(
                conn: &mut Self::Conn,
                id: &MessageId,
                event: &Paid,
                gate: &Gate,
            ) -> Result<Consumed<i64>, ShopError> {
                call!([$($asyncness)?], $module::book(conn, id, event, gate))
            }

            async fn note(conn: &mut Self::Conn, id: &MessageId, event: &Paid, fails: bool) -> Result<(), ShopError> {
                call!([$($asyncness)?], $module::note(conn, id, event, fails))
            }

            async fn pay(conn: &mut Self::Conn, id: &MessageId, event: &Paid) -> Result<Consumed<&'static str>, ShopError> {
                call!([$($asyncness)?], $module::pay(conn, id, event))
            }

            async fn pay_quietly(conn: &mut Self::Conn, id: &MessageId, event: &Paid) -> Result<(), ShopError> {
                call!([$($asyncness)?], $module::pay_quietly(conn, id, event))
            }

            async fn pay_by_hand(conn: &mut Self::Conn, id: &MessageId, event: &Paid) -> Result<Consumed, ShopError> {
                call!([$($asyncness)?], $module::pay_by_hand(conn, id, event))
            }

            async fn change(conn: &mut Self::Conn, id: &MessageId, event: &Changed) -> Result<Consumed, ShopError> {
                call!([$($asyncness)?], $module::change(conn, id, event))
            }

            async fn charge_elsewhere(
                conn: &mut Self::Conn,
                id: &MessageId,
                intent: &Intent,
                keys: &mut Vec<String>,
                fails: bool,
            ) -> Result<Consumed<String>, ShopError> {
                call!([$($asyncness)?], $module::charge_elsewhere(keys, conn, id, intent, fails))
            }

            async fn whose(
                conn: &mut Self::Conn,
                id: &MessageId,
                intent: Option<&Intent>,
            ) -> Result<Consumed<String>, ShopError> {
                call!([$($asyncness)?], $module::whose(conn, id, intent))
            }
        }
    };
}

consumers!(SqliteSync in sqlite_sync: "'nobody'", [], [], diesel::RunQueryDsl, diesel::connection::SimpleConnection);
consumers!(PgSync in pg_sync: "coalesce(nullif(current_setting('app.tenant_id', true), ''), 'nobody')", [], [], diesel::RunQueryDsl, diesel::connection::SimpleConnection);
consumers!(SqliteAsync in sqlite_async: "'nobody'", [async], [.await], diesel_async::RunQueryDsl, diesel_async::SimpleAsyncConnection);
consumers!(PgAsync in pg_async: "coalesce(nullif(current_setting('app.tenant_id', true), ''), 'nobody')", [async], [.await], diesel_async::RunQueryDsl, diesel_async::SimpleAsyncConnection);

/// Makes tests of one body that is generic over its backend: one on each.
macro_rules! on_every_connection {
    ($(async fn $name:ident<$backend:ident: Consumers>() $body:block)+) => {$(
        mod $name {
            #[allow(unused_imports, reason = "not every body needs every name of its file")]
            use super::*;
            use crate::backend::run;

            async fn body<$backend: Consumers>() $body

            #[test]
            fn sqlite_sync() {
                run(body::<SqliteSync>());
            }

            #[test]
            fn sqlite_async() {
                run(body::<SqliteAsync>());
            }

            #[test]
            fn pg_sync() {
                run(body::<PgSync>());
            }

            #[test]
            fn pg_async() {
                run(body::<PgAsync>());
            }
        }
    )+};
}

fn id(id: &str) -> MessageId {
    MessageId::new(id).unwrap()
}

fn tenant() -> Tenant {
    Tenant::of("acme", "alice").unwrap()
}

/// A place with order 1 in this state.
fn with_order<B: Backend>(status: &str) -> Place {
    let place = B::place();
    place.run(&format!(
        "INSERT INTO orders (account_id, amount_cents, status) VALUES (1, 500, '{status}')"
    ));
    place
}

#[track_caller]
fn payments(place: &Place) -> i64 {
    place.number("SELECT count(*) FROM payments")
}

#[track_caller]
fn marks(place: &Place) -> i64 {
    place.number("SELECT count(*) FROM processed_messages WHERE state = 'processed'")
}

#[track_caller]
fn status(place: &Place) -> String {
    place.text("SELECT status FROM orders").unwrap()
}

fn illegal(current: &str) -> ErrorKind {
    ErrorKind::IllegalTransition {
        current: current.to_owned(),
        to: "paid",
    }
}

on_every_connection! {
    async fn a_consumer_says_what_became_of_a_message<B: Consumers>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let gate = Gate::open();
        assert_eq!(B::book(&mut conn, &id("evt-1"), &PAID, &gate).await.unwrap(), Consumed::Processed(1));
        assert_eq!(B::book(&mut conn, &id("evt-1"), &PAID, &gate).await.unwrap(), Consumed::Duplicate);
        assert_eq!(B::book(&mut conn, &id("evt-2"), &PAID, &gate).await.unwrap(), Consumed::Processed(2));
        // Also on another connection, after the first is gone.
        drop(conn);
        let mut conn = B::connect(&place).await;
        assert_eq!(B::book(&mut conn, &id("evt-1"), &PAID, &gate).await.unwrap(), Consumed::Duplicate);
        assert_eq!((payments(&place), marks(&place), gate.entered()), (2, 2, 2));
    }

    async fn a_consumer_without_an_answer_runs_once_and_a_failure_leaves_nothing<B: Consumers>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        for _ in 0..2 {
            let failed = B::note(&mut conn, &id("evt-1"), &PAID, true).await;
            assert!(matches!(failed, Err(ShopError::No)));
            assert_eq!((place.effects(), marks(&place)), (0, 0));
        }
        // What is skipped is not part of the message.
        B::note(&mut conn, &id("evt-1"), &PAID, false).await.unwrap();
        B::note(&mut conn, &id("evt-1"), &PAID, true).await.unwrap();
        assert_eq!(place.text("SELECT name FROM effects").as_deref(), Some("evt-1 1"));
        assert_eq!((place.effects(), marks(&place)), (1, 1));
    }

    async fn case_c10_vi_another_content_under_the_same_id_is_refused<B: Consumers>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let (event, other) = (Paid { amount_cents: 10, ..PAID }, Paid { amount_cents: 11, ..PAID });
        let gate = Gate::open();
        B::book(&mut conn, &id("evt-1"), &event, &gate).await.unwrap();
        let refused = B::book(&mut conn, &id("evt-1"), &other, &gate).await.unwrap_err();
        assert_eq!(refused.kind(), Some(&ErrorKind::Mismatch));
        assert!(refused.to_string().starts_with("books: "), "{refused}");
        assert_eq!(kind(B::book(&mut B::connect(&place).await, &id("evt-1"), &other, &gate).await), ErrorKind::Mismatch);
        assert_eq!(B::book(&mut conn, &id("evt-1"), &event, &gate).await.unwrap(), Consumed::Duplicate);
        assert_eq!((payments(&place), marks(&place), gate.entered()), (1, 1, 1));
    }

    async fn case_f1_each_subscriber_has_its_own_memory<B: Consumers>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        for expected in [Consumed::Processed(1), Consumed::Duplicate] {
            assert_eq!(B::book(&mut conn, &id("evt-1"), &PAID, &Gate::open()).await.unwrap(), expected);
            B::note(&mut conn, &id("evt-1"), &PAID, false).await.unwrap();
        }
        assert_eq!((payments(&place), place.effects(), marks(&place)), (1, 1, 2));
    }

    async fn case_f2_the_second_copy_waits_and_is_a_duplicate<B: Consumers>() {
        let place = B::place();
        let gate = Arc::new(Gate::closed());
        let mut copies = Vec::new();
        for _ in 0..2 {
            let (mut conn, gate) = (B::connect(&place).await, Arc::clone(&gate));
            copies.push(tokio::spawn(async move { B::book(&mut conn, &id("evt-1"), &PAID, &gate).await }));
        }
        gate.wait_until_entered();
        gate.release();
        let mut processed = 0;
        for copy in copies {
            processed += i32::from(copy.await.unwrap().unwrap() == Consumed::Processed(1));
        }
        assert_eq!((processed, payments(&place), marks(&place), gate.entered()), (1, 1, 1, 1));
    }

    async fn a_transition_is_made_before_the_body_and_with_it<B: Consumers>() {
        let place = with_order::<B>("pending");
        let mut conn = B::connect(&place).await;
        assert_eq!(B::pay(&mut conn, &id("evt-1"), &PAID).await.unwrap(), Consumed::Processed("paid"));
        assert_eq!(B::pay(&mut conn, &id("evt-1"), &PAID).await.unwrap(), Consumed::Duplicate);
        assert_eq!((status(&place).as_str(), payments(&place), marks(&place)), ("paid", 1, 1));
    }

    async fn a_transition_that_is_applied_already_consumes_the_message<B: Consumers>() {
        let place = with_order::<B>("pending");
        let mut conn = B::connect(&place).await;
        assert_eq!(B::pay(&mut conn, &id("evt-1"), &PAID).await.unwrap(), Consumed::Processed("paid"));
        // Another message about the same.
        assert_eq!(B::pay(&mut conn, &id("evt-2"), &PAID).await.unwrap(), Consumed::AlreadyApplied);
        assert_eq!((payments(&place), marks(&place)), (1, 2));
        // It is consumed, so its second delivery finds the mark, whatever has become of the order.
        place.run("UPDATE orders SET status = 'pending'");
        assert_eq!(B::pay(&mut conn, &id("evt-2"), &PAID).await.unwrap(), Consumed::Duplicate);
        let refused = B::pay(&mut conn, &id("evt-2"), &Paid { amount_cents: 1, ..PAID }).await;
        assert_eq!(kind(refused), ErrorKind::Mismatch);
        assert_eq!((status(&place).as_str(), payments(&place), marks(&place)), ("pending", 1, 2));
    }

    async fn a_transition_that_is_applied_already_is_no_error_without_an_answer_either<B: Consumers>() {
        let place = with_order::<B>("paid");
        let mut conn = B::connect(&place).await;
        B::pay_quietly(&mut conn, &id("evt-1"), &PAID).await.unwrap();
        assert_eq!((payments(&place), marks(&place)), (0, 1));
        place.run("UPDATE orders SET status = 'pending'");
        B::pay_quietly(&mut conn, &id("evt-1"), &PAID).await.unwrap();
        assert_eq!((status(&place).as_str(), payments(&place)), ("pending", 0));
        B::pay_quietly(&mut conn, &id("evt-2"), &PAID).await.unwrap();
        assert_eq!((status(&place).as_str(), payments(&place), marks(&place)), ("paid", 1, 2));
    }

    async fn an_illegal_transition_is_an_error_and_the_message_is_as_new<B: Consumers>() {
        let place = with_order::<B>("cancelled");
        let mut conn = B::connect(&place).await;
        for _ in 0..2 {
            assert_eq!(kind(B::pay(&mut conn, &id("evt-1"), &PAID).await), illegal("cancelled"));
            assert_eq!(kind(B::pay_quietly(&mut conn, &id("evt-1"), &PAID).await), illegal("cancelled"));
            assert_eq!((payments(&place), marks(&place)), (0, 0));
        }
        let nobody = Paid { order_id: 999, ..PAID };
        let refused = B::pay(&mut conn, &id("evt-1"), &nobody).await;
        assert_eq!(kind(refused), ErrorKind::EntityNotFound { entity: "OrderStatus" });
        assert_eq!(marks(&place), 0);
        place.run("UPDATE orders SET status = 'pending'");
        assert_eq!(B::pay(&mut conn, &id("evt-1"), &PAID).await.unwrap(), Consumed::Processed("paid"));
        assert_eq!((payments(&place), marks(&place)), (1, 1));
    }

    async fn a_transition_in_the_body_is_the_bodys_own<B: Consumers>() {
        let place = with_order::<B>("paid");
        let mut conn = B::connect(&place).await;
        // It has reported an error, and an error leaves nothing.
        let refused = B::pay_by_hand(&mut conn, &id("evt-1"), &PAID).await;
        assert_eq!(kind(refused), ErrorKind::AlreadyApplied { state: "paid".to_owned() });
        assert_eq!(marks(&place), 0);
        place.run("UPDATE orders SET status = 'pending'");
        assert_eq!(B::pay_by_hand(&mut conn, &id("evt-1"), &PAID).await.unwrap(), Consumed::Processed(()));
        assert_eq!((status(&place).as_str(), payments(&place), marks(&place)), ("paid", 1, 1));
    }

    async fn case_j3_a_transition_does_not_let_a_late_event_go_back<B: Consumers>() {
        let place = with_order::<B>("shipped");
        let mut conn = B::connect(&place).await;
        assert_eq!(kind(B::pay(&mut conn, &id("late"), &PAID).await), illegal("shipped"));
        assert_eq!((status(&place).as_str(), payments(&place), marks(&place)), ("shipped", 0, 0));
    }

    async fn case_j3_a_late_older_event_is_consumed_and_changes_nothing<B: Consumers>() {
        let place = B::place();
        place.run(CONTRACTS);
        let mut conn = B::connect(&place).await;
        let (updated, created) = (changed("active", Some(1_623_979_266)), changed("incomplete", Some(1_623_979_265)));
        assert_eq!(B::change(&mut conn, &id("u"), &updated).await.unwrap(), Consumed::Processed(()));
        assert_eq!(B::change(&mut conn, &id("c"), &created).await.unwrap(), Consumed::AlreadyApplied);
        assert_eq!(contract(&place), "active");
        // Both are consumed.
        for (message_id, event) in [("u", &updated), ("c", &created)] {
            assert_eq!(B::change(&mut conn, &id(message_id), event).await.unwrap(), Consumed::Duplicate);
        }
        // One without a time is older than whatever has one.
        let timeless = changed("unknown", None);
        assert_eq!(B::change(&mut conn, &id("t"), &timeless).await.unwrap(), Consumed::AlreadyApplied);
        assert_eq!((contract(&place).as_str(), marks(&place)), ("active", 3));
    }

    async fn case_j3_of_two_events_at_the_same_time_the_same_one_counts_in_both_orders<B: Consumers>() {
        let (active, paused) = (changed("active", Some(7)), changed("paused", Some(7)));
        let events = [("evt-1", &active), ("evt-2", &paused)];
        for order in [[0, 1], [1, 0]] {
            let place = B::place();
            place.run(CONTRACTS);
            let mut conn = B::connect(&place).await;
            for position in order {
                let (message_id, event) = events[position];
                let is_stale = order == [1, 0] && position == 0;
                let expected = if is_stale { Consumed::AlreadyApplied } else { Consumed::Processed(()) };
                assert_eq!(B::change(&mut conn, &id(message_id), event).await.unwrap(), expected);
            }
            assert_eq!((contract(&place).as_str(), marks(&place)), ("paused", 2));
        }
    }

    async fn the_intent_gives_the_same_downstream_keys_on_every_delivery<B: Consumers>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let message_id = id("evt-1");
        let intent = || Intent::of_message(tenant(), "cards", &id("evt-1"));
        let mut keys = Vec::new();
        for fails in [true, true, false] {
            let done = B::charge_elsewhere(&mut conn, &message_id, &intent(), &mut keys, fails).await;
            assert_eq!(done.is_err(), fails);
            // Also after a restart.
            conn = B::connect(&place).await;
        }
        let again = B::charge_elsewhere(&mut conn, &message_id, &intent(), &mut keys, false).await;
        assert_eq!(again.unwrap(), Consumed::Duplicate);
        assert_eq!((keys.len(), place.effects(), marks(&place)), (3, 1, 1));
        keys.dedup();
        let [key] = &keys[..] else { panic!("{keys:?}") };
        let expected = intent().bind("cards").downstream("stripe.charge");
        assert_eq!(key, expected.as_str());

        // Another message has another one, and so has another tenant.
        let other = Intent::of_message(tenant(), "cards", &id("evt-2"));
        let done = B::charge_elsewhere(&mut conn, &id("evt-2"), &other, &mut keys, false).await.unwrap();
        assert_ne!(done.processed().as_deref(), Some(expected.as_str()));
        let other = Intent::of_message(Tenant::shared("other").unwrap(), "cards", &id("evt-3"));
        let done = B::charge_elsewhere(&mut conn, &id("evt-3"), &other, &mut keys, false).await.unwrap();
        let third = Intent::of_message(tenant(), "cards", &id("evt-3")).bind("cards");
        assert_ne!(done.processed().as_deref(), Some(third.downstream("stripe.charge").as_str()));
    }

    async fn an_intent_that_is_not_of_the_message_is_refused_before_anything_is_sent<B: Consumers>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let message_id = id("evt-1");
        let mut keys = Vec::new();
        for wrong in [
            // Of another message, of another subscriber, and of a client.
            Intent::of_message(tenant(), "cards", &id("evt-2")),
            Intent::of_message(tenant(), "books", &message_id),
            crate::backend::intent("evt-1"),
        ] {
            let refused = B::charge_elsewhere(&mut conn, &message_id, &wrong, &mut keys, false).await.unwrap_err();
            assert_eq!(refused.kind(), Some(&ErrorKind::WrongIntent));
            assert_eq!(
                refused.to_string(),
                "cards: the intent is not that of the message: make it with Intent::of_message"
            );
        }
        let rows = place.number("SELECT count(*) FROM processed_messages");
        assert_eq!((keys.len(), place.effects(), rows), (0, 0, 0));
        // A message that was processed is no excuse.
        let right = Intent::of_message(tenant(), "cards", &message_id);
        B::charge_elsewhere(&mut conn, &message_id, &right, &mut keys, false).await.unwrap();
        let wrong = Intent::of_message(tenant(), "cards", &id("evt-2"));
        let refused = B::charge_elsewhere(&mut conn, &message_id, &wrong, &mut keys, false).await;
        assert_eq!(kind(refused), ErrorKind::WrongIntent);
        assert_eq!((keys.len(), place.effects(), marks(&place)), (1, 1, 1));
    }

    async fn row_level_security_sees_the_tenant_of_the_intent<B: Consumers>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let own = Intent::of_message(tenant(), "isolated", &id("evt-1"));
        let seen = B::whose(&mut conn, &id("evt-1"), Some(&own)).await.unwrap();
        let expected = if B::is_postgres() { "acme/alice" } else { "nobody" };
        assert_eq!(seen, Consumed::Processed(expected.to_owned()));
        // It is a setting of that transaction alone.
        let seen = B::whose(&mut conn, &id("evt-2"), None).await.unwrap();
        assert_eq!(seen, Consumed::Processed("nobody".to_owned()));
        // The message is the same, whoever's it is said to be.
        let seen = B::whose(&mut conn, &id("evt-1"), None).await.unwrap();
        assert_eq!(seen, Consumed::Duplicate);
    }
}

const CONTRACTS: &str = "
    CREATE TABLE contracts (id BIGINT PRIMARY KEY, status TEXT NOT NULL, changed_at BIGINT NOT NULL, changed_by TEXT NOT NULL);
    INSERT INTO contracts VALUES (1, 'new', -9223372036854775807, '')";

fn changed(status: &'static str, at: Option<i64>) -> Changed {
    Changed {
        contract: 1,
        status,
        at,
    }
}

#[track_caller]
fn contract(place: &Place) -> String {
    place.text("SELECT status FROM contracts").unwrap()
}

//! Deliveries on a connection that has a transaction open already.

use idem_diesel::inbox::{Attempt, Claimed, DeliveryCount, attempt, begin_batch};
use idem_diesel::{Consumed, ErrorKind, Nested, Policy, Subscription};

use super::{BILLING, EVENT, MAIL, OTHER, begun, deliver, effect, id, marks, on, rows};
use crate::backend::{kind, on_every_backend};
use crate::shop::{Ending, Gate, Script, ShopError};

/// Joins whatever is open.
const JOINED: Subscription = BILLING.with_policy(Policy::new().nested(Nested::Join));

const CALLERS: &str = "INSERT INTO effects (name) VALUES ('of the caller')";

on_every_backend! {
    async fn case_b6_an_unfinished_transaction_is_refused_by_name<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        B::begin(&mut conn).await.unwrap();
        let refused = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(kind(refused), ErrorKind::UnfinishedTransaction);
        let (db, messages) = (&mut conn, &[(id("evt-17"), 10)]);
        let refused = on!(B::Conn, begin_batch(db, &BILLING, messages)).map(drop).unwrap_err();
        assert_eq!(refused.kind(), &ErrorKind::UnfinishedTransaction);
        let db = &mut conn;
        let refused = on!(B::Conn, attempt(db, &BILLING, &id("evt-17"), DeliveryCount::Again, b"")).unwrap_err();
        assert_eq!(refused.kind(), &ErrorKind::UnfinishedTransaction);
        // The transaction is still the caller's.
        B::sql(&mut conn, CALLERS).await.unwrap();
        B::commit(&mut conn).await.unwrap();
        assert_eq!((place.effects(), rows(&place)), (1, 0));
        let done = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(done.unwrap(), Consumed::Processed(()));
    }

    async fn case_b6_a_delivery_joins_the_callers_transaction_only_on_purpose<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        for commits in [false, true] {
            B::begin(&mut conn).await.unwrap();
            for expected in [Consumed::Processed(()), Consumed::Duplicate] {
                let done = deliver::<B>(&mut conn, &JOINED, EVENT, &effect(), &Gate::open()).await;
                assert_eq!(done.unwrap(), expected);
            }
            let refused = deliver::<B>(&mut conn, &JOINED, OTHER, &effect(), &Gate::open()).await;
            assert_eq!(kind(refused), ErrorKind::Mismatch);
            // A failure inside undoes itself alone.
            let failing = effect().ending(Ending::Error);
            assert!(deliver::<B>(&mut conn, &JOINED, ("evt-18", 1), &failing, &Gate::open()).await.is_err());
            B::sql(&mut conn, CALLERS).await.unwrap();
            if commits {
                B::commit(&mut conn).await.unwrap();
            } else {
                B::rollback(&mut conn).await.unwrap();
                assert_eq!((place.effects(), rows(&place)), (0, 0));
            }
        }
        assert_eq!((place.effects(), marks(&place), rows(&place)), (2, 1, 1));
        let again = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(again.unwrap(), Consumed::Duplicate);
    }

    async fn a_body_that_ends_the_callers_transaction_is_told<B: Backend>() {
        for ending in ["COMMIT", "COMMIT; BEGIN", "ROLLBACK", "ROLLBACK; BEGIN"] {
            let place = B::place();
            let mut conn = B::connect(&place).await;
            B::begin(&mut conn).await.unwrap();
            let script = Script::of(["INSERT INTO effects (name) VALUES ('e')", ending]);
            let done = deliver::<B>(&mut conn, &JOINED, EVENT, &script, &Gate::open()).await;
            assert_eq!(kind(done), ErrorKind::RecordLost, "{ending}");
            drop(conn);
            assert_eq!(place.effects(), marks(&place), "{ending}");
        }
    }

    async fn a_dropped_delivery_undoes_itself_alone<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        B::begin(&mut conn).await.unwrap();
        B::sql(&mut conn, CALLERS).await.unwrap();
        let Claimed::Execute(mut consumption) = begun::<B>(&mut conn, &JOINED, &id("evt-17"), &10).await.unwrap() else {
            panic!("it is new");
        };
        B::sql(consumption.connection(), "INSERT INTO effects (name) VALUES ('e')").await.unwrap();
        drop(consumption);
        let done = deliver::<B>(&mut conn, &JOINED, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(done.unwrap(), Consumed::Processed(()));
        B::commit(&mut conn).await.unwrap();
        assert_eq!((place.effects(), marks(&place)), (2, 1));
    }

    async fn inside_diesels_test_transaction_a_delivery_joins_by_itself<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        B::begin_test(&mut conn).await.unwrap();
        for expected in [Consumed::Processed(()), Consumed::Duplicate, Consumed::Duplicate] {
            let done = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &Gate::open()).await;
            assert_eq!(done.unwrap(), expected);
        }
        for (number, expected) in [(1, Attempt::Go { number: 2 }), (2, Attempt::Go { number: 3 })] {
            let db = &mut conn;
            let told = on!(B::Conn, attempt(db, &BILLING, &id("evt-18"), DeliveryCount::Again, b"")).unwrap();
            assert_eq!(told, expected, "{number}");
        }
        let failing = effect().ending(Ending::Error);
        assert!(deliver::<B>(&mut conn, &BILLING, ("evt-18", 1), &failing, &Gate::open()).await.is_err());
        B::rollback(&mut conn).await.unwrap();
        assert_eq!((place.effects(), rows(&place)), (0, 0));
    }

    async fn a_delivery_of_a_message_inside_its_own_processing_is_told<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let Claimed::Execute(mut consumption) = begun::<B>(&mut conn, &JOINED, &id("evt-17"), &10).await.unwrap() else {
            panic!("it is new");
        };
        let db = consumption.connection();
        let inner = deliver::<B>(db, &JOINED, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(kind(inner), ErrorKind::Reentrant);
        // Another message, and the same one to another subscriber, are none of its business.
        let another = deliver::<B>(db, &JOINED, ("evt-18", 1), &effect(), &Gate::open()).await;
        assert_eq!(another.unwrap(), Consumed::Processed(()));
        let mail = MAIL.with_policy(Policy::new().nested(Nested::Join));
        let elsewhere = deliver::<B>(db, &mail, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(elsewhere.unwrap(), Consumed::Processed(()));
        // Without leave to join, it is the open transaction that is told.
        let refused = deliver::<B>(db, &BILLING, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(kind(refused), ErrorKind::UnfinishedTransaction);
        let done: Result<(), ShopError> = on!(B::Conn, consumption.finish(Ok(())));
        done.unwrap();
        assert_eq!((place.effects(), marks(&place)), (2, 3));
        // It has ended, so the next delivery is an ordinary duplicate.
        let again = deliver::<B>(&mut conn, &JOINED, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(again.unwrap(), Consumed::Duplicate);
    }

    async fn a_delivery_of_a_message_inside_the_batch_that_processes_it_runs_nothing<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let (db, messages) = (&mut conn, &[(id("evt-1"), 1), (id("evt-17"), 10)]);
        let batch = on!(B::Conn, begin_batch(db, &JOINED, messages)).unwrap();
        let mut consumption = batch.into_consumption();
        let inner = deliver::<B>(consumption.connection(), &JOINED, EVENT, &effect(), &Gate::open()).await;
        // Its mark is there already, and what follows from it shares the fate of the batch.
        assert_eq!(inner.unwrap(), Consumed::Duplicate);
        on!(B::Conn, consumption.finish(Ok::<_, ShopError>(()))).unwrap();
        assert_eq!((place.effects(), marks(&place)), (0, 2));
    }
}

//! Handlers that do what they should not: each ends in a named error, and the message and its effects stay together.

use diesel::result::{DatabaseErrorKind, Error as DieselError};
use idem_diesel::inbox::Claimed;
use idem_diesel::{Consumed, ErrorKind};

use super::{BILLING, EVENT, begun, deliver, effect, id, marks, on, rows};
use crate::backend::{kind, on_every_backend};
use crate::shop::{Ending, Gate, Script, ShopError};

const EFFECT: &str = "INSERT INTO effects (name) VALUES ('e')";
const FAILS: &str = "INSERT INTO effects (name) VALUES (NULL)";

on_every_backend! {
    async fn a_body_that_rolls_back_by_itself_is_told_and_the_message_is_as_new<B: Backend>() {
        for ending in ["ROLLBACK", "ROLLBACK; BEGIN"] {
            let place = B::place();
            let mut conn = B::connect(&place).await;
            let script = Script::of([EFFECT, ending]);
            let done = deliver::<B>(&mut conn, &BILLING, EVENT, &script, &Gate::open()).await;
            assert_eq!(kind(done), ErrorKind::RecordLost, "{ending}");
            assert_eq!((place.effects(), rows(&place)), (0, 0), "{ending}");
            drop(conn);
            let mut conn = B::connect(&place).await;
            let again = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &Gate::open()).await;
            assert_eq!(again.unwrap(), Consumed::Processed(()), "{ending}");
        }
    }

    async fn a_body_that_commits_by_itself_is_told_and_mark_and_effect_stay_together<B: Backend>() {
        for ending in ["COMMIT", "COMMIT; BEGIN"] {
            let place = B::place();
            let mut conn = B::connect(&place).await;
            // What it does behind its own COMMIT is not tied to the message.
            let script = Script::of([EFFECT, ending]);
            let done = deliver::<B>(&mut conn, &BILLING, EVENT, &script, &Gate::open()).await;
            assert_eq!(kind(done), ErrorKind::RecordLost, "{ending}");
            drop(conn);
            assert_eq!((place.effects(), marks(&place), rows(&place)), (1, 1, 1), "{ending}");
            let mut conn = B::connect(&place).await;
            let again = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &Gate::open()).await;
            assert_eq!(again.unwrap(), Consumed::Duplicate, "{ending}");
            assert_eq!(place.effects(), 1, "{ending}");
        }
    }

    async fn what_a_body_does_behind_its_own_commit_is_rolled_back<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let script = Script::of([EFFECT, "COMMIT", "BEGIN", "INSERT INTO effects (name) VALUES ('late')"]);
        let done = deliver::<B>(&mut conn, &BILLING, EVENT, &script, &Gate::open()).await;
        assert_eq!(kind(done), ErrorKind::RecordLost);
        drop(conn);
        assert_eq!(place.text("SELECT name FROM effects").as_deref(), Some("e"));
        assert_eq!((place.effects(), marks(&place)), (1, 1));
    }

    async fn case_b1_a_swallowed_error_never_consumes_a_message_without_its_effects<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let script = Script::of([EFFECT, FAILS]).swallowing();
        let done = deliver::<B>(&mut conn, &BILLING, EVENT, &script, &Gate::open()).await;
        if B::is_postgres() {
            // The server takes nothing after a failed statement, and would answer COMMIT with ROLLBACK.
            assert_eq!(kind(done), ErrorKind::StatementFailed);
            assert_eq!((place.effects(), rows(&place)), (0, 0));
            let again = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &Gate::open()).await;
            assert_eq!(again.unwrap(), Consumed::Processed(()));
        } else {
            // A failed statement undoes itself alone.
            assert_eq!(done.unwrap(), Consumed::Processed(()));
        }
        assert_eq!((place.effects(), marks(&place)), (1, 1));
    }

    async fn a_failed_statement_that_is_reported_is_the_applications_error<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let script = Script::of([EFFECT, FAILS]);
        let done = deliver::<B>(&mut conn, &BILLING, EVENT, &script, &Gate::open()).await;
        assert!(matches!(
            done,
            Err(ShopError::Database(DieselError::DatabaseError(DatabaseErrorKind::NotNullViolation, _)))
        ));
        assert_eq!((place.effects(), rows(&place)), (0, 0));
    }

    async fn a_savepoint_of_diesels_that_the_body_leaves_open_is_told<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let Claimed::Execute(mut consumption) = begun::<B>(&mut conn, &BILLING, &id("evt-17"), &10).await.unwrap() else {
            panic!("it is new");
        };
        B::sql(consumption.connection(), EFFECT).await.unwrap();
        B::begin(consumption.connection()).await.unwrap();
        let done: Result<(), ShopError> = on!(B::Conn, consumption.finish(Ok(())));
        assert_eq!(kind(done), ErrorKind::UnfinishedTransaction);
        assert_eq!((place.effects(), rows(&place)), (0, 0));
        // The connection has nothing open, and is as it was.
        let again = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(again.unwrap(), Consumed::Processed(()));
        assert_eq!((place.effects(), marks(&place)), (1, 1));
    }

    async fn a_savepoint_of_diesels_that_the_body_closes_is_its_own<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let Claimed::Execute(mut consumption) = begun::<B>(&mut conn, &BILLING, &id("evt-17"), &10).await.unwrap() else {
            panic!("it is new");
        };
        for commits in [true, false] {
            B::begin(consumption.connection()).await.unwrap();
            B::sql(consumption.connection(), EFFECT).await.unwrap();
            if commits {
                B::commit(consumption.connection()).await.unwrap();
            } else {
                B::rollback(consumption.connection()).await.unwrap();
            }
        }
        let done: Result<(), ShopError> = on!(B::Conn, consumption.finish(Ok(())));
        done.unwrap();
        assert_eq!((place.effects(), marks(&place)), (1, 1));
    }

    async fn case_b7_a_constraint_that_is_checked_at_commit_leaves_nothing<B: Backend>() {
        let place = B::place();
        place.run("CREATE TABLE parents (id BIGINT PRIMARY KEY);
                   CREATE TABLE children (parent BIGINT NOT NULL REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)");
        let mut conn = B::connect(&place).await;
        if !B::is_postgres() {
            B::sql(&mut conn, "PRAGMA foreign_keys = ON").await.unwrap();
        }
        let orphan = Script::of([EFFECT, "INSERT INTO children VALUES (1)"]);
        let done = deliver::<B>(&mut conn, &BILLING, EVENT, &orphan, &Gate::open()).await;
        assert_eq!(kind(done), ErrorKind::Database);
        assert_eq!((place.effects(), rows(&place)), (0, 0));
        place.run("INSERT INTO parents VALUES (1)");
        let again = deliver::<B>(&mut conn, &BILLING, EVENT, &orphan, &Gate::open()).await;
        assert_eq!(again.unwrap(), Consumed::Processed(()));
    }

    async fn a_body_that_commits_by_itself_and_then_fails_has_consumed_the_message<B: Backend>() {
        let place = B::place();
        let mut conn = B::connect(&place).await;
        let script = Script::of([EFFECT, "COMMIT"]).ending(Ending::Error);
        let done = deliver::<B>(&mut conn, &BILLING, EVENT, &script, &Gate::open()).await;
        assert!(matches!(done, Err(ShopError::No)));
        drop(conn);
        // What it committed, it committed with the mark.
        assert_eq!((place.effects(), marks(&place)), (1, 1));
        let mut conn = B::connect(&place).await;
        let again = deliver::<B>(&mut conn, &BILLING, EVENT, &effect(), &Gate::open()).await;
        assert_eq!(again.unwrap(), Consumed::Duplicate);
    }
}

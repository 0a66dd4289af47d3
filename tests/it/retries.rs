//! Conflicts with concurrent transactions: started over within `retries`, then one named error; never stored as an answer.

use std::sync::atomic::{AtomicUsize, Ordering};

use diesel::connection::SimpleConnection;
use diesel::result::{DatabaseErrorKind, Error as DieselError};
use diesel_async::SimpleAsyncConnection;
use idem_diesel::{Error, ErrorKind, Intent, Isolation, Outcome, Policy, Verdict, idempotent};

use crate::backend::{Backend, PgAsync, PgSync, Place, SqliteSync, intent, run};
use crate::shop::ShopError;

const SERIALIZABLE: Policy = Policy::new().isolation(Isolation::Serializable);

/// Another session's change, between this body's read and its write.
struct Rival<'p> {
    place: &'p Place,
    bodies: AtomicUsize,
    /// In how many bodies it comes in between.
    conflicts: usize,
}

impl<'p> Rival<'p> {
    fn new(place: &'p Place, conflicts: usize) -> Self {
        Self {
            place,
            bodies: AtomicUsize::new(0),
            conflicts,
        }
    }

    fn interfere(&self) {
        if self.bodies.fetch_add(1, Ordering::SeqCst) < self.conflicts {
            tokio::task::block_in_place(|| {
                self.place
                    .run("UPDATE accounts SET balance_cents = balance_cents + 1");
            });
        }
    }

    fn bodies(&self) -> usize {
        self.bodies.load(Ordering::SeqCst)
    }
}

const READ: &str = "SELECT balance_cents FROM accounts";
const WRITE: &str = "UPDATE accounts SET balance_cents = balance_cents - 100";

/// The arguments are taken by value, so each run gets a clone.
#[idempotent(scope = "tests.retried", ttl = "48h", retries = 3, policy = SERIALIZABLE)]
async fn retried_async(
    db: &mut diesel_async::AsyncPgConnection,
    intent: Intent,
    mut text: String,
    #[idempotent(skip)] rival: &Rival<'_>,
) -> Result<Outcome<String>, ShopError> {
    db.batch_execute(READ).await?;
    rival.interfere();
    db.batch_execute(WRITE).await?;
    text.push_str(intent.operation());
    Ok(text.into())
}

#[idempotent(scope = "tests.retried", ttl = "48h", retries = 3, policy = SERIALIZABLE)]
fn retried_sync(
    db: &mut diesel::PgConnection,
    intent: Intent,
    mut text: String,
    #[idempotent(skip)] rival: &Rival<'_>,
) -> Result<Outcome<String>, ShopError> {
    db.batch_execute(READ)?;
    rival.interfere();
    db.batch_execute(WRITE)?;
    text.push_str(intent.operation());
    Ok(text.into())
}

#[idempotent(scope = "tests.once", ttl = "48h", policy = SERIALIZABLE)]
async fn not_retried(
    db: &mut diesel_async::AsyncPgConnection,
    intent: &Intent,
    #[idempotent(skip)] rival: &Rival<'_>,
) -> Result<Outcome<i32>, Error> {
    db.batch_execute(READ).await?;
    rival.interfere();
    db.batch_execute(WRITE).await?;
    Ok(1.into())
}

/// Takes the conflict for a decline.
#[idempotent(scope = "tests.mistaken", ttl = "48h", policy = SERIALIZABLE)]
async fn mistaken(
    db: &mut diesel_async::AsyncPgConnection,
    intent: &Intent,
    #[idempotent(skip)] rival: &Rival<'_>,
) -> Result<Outcome<Verdict<i32, String>>, Error> {
    db.batch_execute(READ).await?;
    rival.interfere();
    let done = match db.batch_execute(WRITE).await {
        Ok(()) => Verdict::Completed(1),
        Err(error) => Verdict::Failed(error.to_string()),
    };
    Ok(done.into())
}

#[test]
fn a_conflict_starts_the_call_over_on_a_new_snapshot() {
    run(async {
        for conflicts in 0..=3 {
            let place = PgAsync::place();
            let rival = Rival::new(&place, conflicts);
            let mut db = PgAsync::connect(&place).await;
            let done = retried_async(&mut db, intent("k"), "by ".to_owned(), &rival).await;
            assert_eq!(
                done.unwrap(),
                Outcome::Executed("by tests.retried".to_owned())
            );
            assert_eq!((rival.bodies(), place.records()), (conflicts + 1, 1));

            let place = PgSync::place();
            let rival = Rival::new(&place, conflicts);
            let mut db = PgSync::connect(&place).await;
            let done = tokio::task::block_in_place(|| {
                retried_sync(&mut db, intent("k"), "by ".to_owned(), &rival)
            });
            assert_eq!(
                done.unwrap(),
                Outcome::Executed("by tests.retried".to_owned())
            );
            assert_eq!((rival.bodies(), place.records()), (conflicts + 1, 1));
            assert_eq!(
                place.number(READ),
                10_000 - 100 + i64::try_from(conflicts).unwrap()
            );
        }
    });
}

#[test]
fn case_b9_a_conflict_that_stays_is_one_retryable_error_and_nothing_stored() {
    run(async {
        let place = PgAsync::place();
        let rival = Rival::new(&place, 4);
        let mut db = PgAsync::connect(&place).await;
        let error = retried_async(&mut db, intent("k"), String::new(), &rival)
            .await
            .unwrap_err();
        // The error is the body's own; what it means is found in it.
        assert!(matches!(
            error,
            ShopError::Database(DieselError::DatabaseError(
                DatabaseErrorKind::SerializationFailure,
                _
            ))
        ));
        assert_eq!((rival.bodies(), place.records()), (4, 0));
        let later = retried_async(&mut db, intent("k"), String::new(), &rival).await;
        assert!(!later.unwrap().is_replayed());
        assert_eq!((rival.bodies(), place.records()), (5, 1));
    });
}

#[test]
fn without_retries_a_body_runs_once() {
    run(async {
        let place = PgAsync::place();
        let rival = Rival::new(&place, 1);
        let mut db = PgAsync::connect(&place).await;
        let error = not_retried(&mut db, &intent("k"), &rival)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Conflict);
        assert!(error.is_retryable());
        assert_eq!((rival.bodies(), place.records()), (1, 0));
        assert!(
            !not_retried(&mut db, &intent("k"), &rival)
                .await
                .unwrap()
                .is_replayed()
        );
    });
}

#[test]
fn case_b9_a_conflict_is_never_stored_as_a_final_failure() {
    run(async {
        let place = PgAsync::place();
        let rival = Rival::new(&place, 1);
        let mut db = PgAsync::connect(&place).await;
        let error = mistaken(&mut db, &intent("k"), &rival).await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Conflict);
        assert_eq!(place.records(), 0);
        let later = mistaken(&mut db, &intent("k"), &rival).await.unwrap();
        assert_eq!(later, Outcome::Executed(Verdict::Completed(1)));
    });
}

/// Case B7: what only COMMIT finds out. A deferred constraint is no conflict and is not retried; a dangerous cycle is.
#[test]
fn case_b7_errors_at_commit() {
    #[idempotent(scope = "tests.deferred", ttl = "48h", retries = 3)]
    async fn deferred(
        db: &mut diesel_async::AsyncPgConnection,
        intent: &Intent,
        #[idempotent(skip)] rival: &Rival<'_>,
    ) -> Result<Outcome<i32>, Error> {
        rival.interfere();
        db.batch_execute("INSERT INTO lines VALUES (1, 99)").await?;
        Ok(1.into())
    }

    /// Reads what the rival writes, and writes what the rival has read.
    #[idempotent(scope = "tests.cycle", ttl = "48h", retries = 3, policy = SERIALIZABLE)]
    async fn cycle(
        db: &mut diesel_async::AsyncPgConnection,
        intent: &Intent,
        #[idempotent(skip)] rival: &Rival<'_>,
    ) -> Result<Outcome<i32>, Error> {
        db.batch_execute("SELECT count(*) FROM effects WHERE name = 'theirs'")
            .await?;
        db.batch_execute("INSERT INTO effects VALUES ('ours')")
            .await?;
        if rival.bodies.fetch_add(1, Ordering::SeqCst) == 0 {
            tokio::task::block_in_place(|| {
                rival.place.run(
                    "BEGIN ISOLATION LEVEL SERIALIZABLE;
                     SELECT count(*) FROM effects WHERE name = 'ours';
                     INSERT INTO effects VALUES ('theirs'); COMMIT",
                );
            });
        }
        Ok(1.into())
    }

    run(async {
        let place = PgAsync::place();
        place.run(
            "CREATE TABLE lines (id int, order_id bigint REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)",
        );
        let rival = Rival::new(&place, 0);
        let mut db = PgAsync::connect(&place).await;
        let error = deferred(&mut db, &intent("k"), &rival).await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Database);
        assert_eq!((rival.bodies(), place.records()), (1, 0));
        place.run("INSERT INTO orders VALUES (99, 1, 1, 'pending')");
        assert!(
            !deferred(&mut db, &intent("k"), &rival)
                .await
                .unwrap()
                .is_replayed()
        );

        let rival = Rival::new(&place, 0);
        let done = cycle(&mut db, &intent("c"), &rival).await.unwrap();
        assert!(!done.is_replayed());
        assert_eq!(rival.bodies(), 2, "the first run must have met the cycle");
        assert_eq!(
            place.number("SELECT count(*) FROM effects WHERE name = 'ours'"),
            1
        );
    });
}

/// A sync method with `&mut self`: the receiver is still there in the second run.
#[test]
fn a_receiver_and_a_busy_database_are_no_obstacle() {
    struct Desk {
        runs: u32,
    }

    /// The cause is found behind it, because it is its source.
    #[derive(Debug, thiserror::Error)]
    #[error("the desk is closed")]
    struct Closed(#[from] Error);

    impl Desk {
        #[idempotent(scope = "tests.desk", ttl = "48h", retries = 2)]
        fn serve(
            &mut self,
            db: &mut diesel::SqliteConnection,
            intent: &Intent,
            name: &str,
        ) -> Result<Outcome<u32>, Closed> {
            self.runs += 1;
            let insert = format!("INSERT INTO effects VALUES ('{name}')");
            db.batch_execute(&insert).map_err(Error::from)?;
            if self.runs < 3 {
                // What SQLite would say to a writer in another database file of this connection.
                let busy: Box<String> = Box::new("database is locked".to_owned());
                let busy = DieselError::DatabaseError(DatabaseErrorKind::Unknown, busy);
                return Err(Error::from(busy).into());
            }
            Ok(self.runs.into())
        }
    }

    let place = SqliteSync::place();
    let mut db = <diesel::SqliteConnection as diesel::Connection>::establish(place.url()).unwrap();
    let mut desk = Desk { runs: 0 };
    assert_eq!(
        desk.serve(&mut db, &intent("k"), "e").unwrap(),
        Outcome::Executed(3)
    );
    assert_eq!((place.effects(), place.records()), (1, 1));
}

/// Case A5: two handlers that claim two keys in opposite order. One of them is the victim of a deadlock, and starts over.
#[test]
fn case_a5_nested_claims_in_opposite_order() {
    use idem_diesel::{Nested, Operation, Retention};
    use tokio::sync::Barrier;

    const INNER: Operation = Operation::new("tests.inner", Retention::literal("48h"))
        .with_policy(Policy::new().nested(Nested::Join));

    #[idempotent(scope = "tests.inner", ttl = "48h", retries = 5)]
    async fn outer(
        db: &mut diesel_async::AsyncPgConnection,
        intent: &Intent,
        #[idempotent(skip)] inner: &str,
        #[idempotent(skip)] meeting: &Barrier,
        #[idempotent(skip)] runs: &AtomicUsize,
    ) -> Result<Outcome<i32>, Error> {
        db.batch_execute("INSERT INTO effects VALUES ('e')").await?;
        if runs.fetch_add(1, Ordering::SeqCst) == 0 {
            // Both hold their first key before either asks for its second.
            meeting.wait().await;
        }
        let key = crate::backend::intent(inner);
        let body = async |db: &mut diesel_async::AsyncPgConnection,
                          _: &idem_diesel::BoundIntent| {
            db.batch_execute("INSERT INTO effects VALUES ('e')").await?;
            Ok::<i32, Error>(1)
        };
        idem_diesel::idempotent(db, &key, &INNER, &(), body).await?;
        Ok(1.into())
    }

    run(async {
        let place = std::sync::Arc::new(PgAsync::place());
        let meeting = std::sync::Arc::new(Barrier::new(2));
        let start = |mine: &'static str, other: &'static str| {
            let (place, meeting) = (
                std::sync::Arc::clone(&place),
                std::sync::Arc::clone(&meeting),
            );
            tokio::spawn(async move {
                let mut db = PgAsync::connect(&place).await;
                let runs = AtomicUsize::new(0);
                let done = outer(&mut db, &intent(mine), other, &meeting, &runs).await;
                (done, runs.into_inner())
            })
        };
        let (a, b) = (start("a", "b"), start("b", "a"));
        let ((a, a_runs), (b, b_runs)) = (a.await.unwrap(), b.await.unwrap());
        // Who comes second finds the key that the other one's inner call has claimed meanwhile.
        let outcomes = [a.unwrap().is_replayed(), b.unwrap().is_replayed()];
        assert_eq!(
            outcomes.iter().filter(|is_replayed| **is_replayed).count(),
            1
        );
        assert_eq!(
            a_runs + b_runs,
            2,
            "the victim replays, so its body does not run again"
        );
        assert_eq!((place.effects(), place.records()), (2, 2));
    });
}

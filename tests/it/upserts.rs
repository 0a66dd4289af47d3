//! Writes that are safe to repeat because of a business key: what they say, whoever comes at once, and what an error leaves.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use diesel::QueryResult;
use diesel::result::{DatabaseErrorKind, Error as DieselError};
use futures_util::FutureExt;
use idem_diesel::{
    Async, Blocking, Claimed, Error, ErrorKind, Execution, Flavor, GotOrInserted,
    IdempotentConnection, UniqueKey, Upserted, begin, get_or_insert, get_or_insert_sync, upsert,
    upsert_sync,
};

use crate::backend::{
    Backend, PERFORM, PgAsync, Place, SqliteAsync, Wait, intent, on_every_backend, run,
};
use crate::drops::poll_at_most;

/// The forms of a flavor: those of a sync connection have names of their own.
pub trait Forms: Flavor {
    fn upsert<C: IdempotentConnection<Flavor = Self>, T>(
        db: &mut C,
        key: &UniqueKey,
        insert: impl AsyncFn(&mut C) -> QueryResult<T>,
        update: impl AsyncFn(&mut C) -> QueryResult<T>,
    ) -> impl Future<Output = Result<Upserted<T>, Error>>;

    fn get_or_insert<C: IdempotentConnection<Flavor = Self>, T>(
        db: &mut C,
        key: &UniqueKey,
        insert: impl AsyncFn(&mut C) -> QueryResult<T>,
        get: impl AsyncFn(&mut C) -> QueryResult<T>,
    ) -> impl Future<Output = Result<GotOrInserted<T>, Error>>;
}

impl Forms for Async {
    fn upsert<C: IdempotentConnection<Flavor = Self>, T>(
        db: &mut C,
        key: &UniqueKey,
        insert: impl AsyncFn(&mut C) -> QueryResult<T>,
        update: impl AsyncFn(&mut C) -> QueryResult<T>,
    ) -> impl Future<Output = Result<Upserted<T>, Error>> {
        upsert(db, key, insert, update)
    }

    fn get_or_insert<C: IdempotentConnection<Flavor = Self>, T>(
        db: &mut C,
        key: &UniqueKey,
        insert: impl AsyncFn(&mut C) -> QueryResult<T>,
        get: impl AsyncFn(&mut C) -> QueryResult<T>,
    ) -> impl Future<Output = Result<GotOrInserted<T>, Error>> {
        get_or_insert(db, key, insert, get)
    }
}

impl Forms for Blocking {
    async fn upsert<C: IdempotentConnection<Flavor = Self>, T>(
        db: &mut C,
        key: &UniqueKey,
        insert: impl AsyncFn(&mut C) -> QueryResult<T>,
        update: impl AsyncFn(&mut C) -> QueryResult<T>,
    ) -> Result<Upserted<T>, Error> {
        upsert_sync(db, key, |db| at_once(insert(db)), |db| at_once(update(db)))
    }

    async fn get_or_insert<C: IdempotentConnection<Flavor = Self>, T>(
        db: &mut C,
        key: &UniqueKey,
        insert: impl AsyncFn(&mut C) -> QueryResult<T>,
        get: impl AsyncFn(&mut C) -> QueryResult<T>,
    ) -> Result<GotOrInserted<T>, Error> {
        get_or_insert_sync(db, key, |db| at_once(insert(db)), |db| at_once(get(db)))
    }
}

/// On a sync connection nothing waits.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().unwrap()
}

type FlavorOf<B> = <<B as Backend>::Conn as IdempotentConnection>::Flavor;

/// A product has a business key, its number in a shop, and a slot that no two have.
const SKU: UniqueKey = UniqueKey::new("products_sku", &["products.shop", "products.sku"]);

const TABLES: &str = "
    CREATE TABLE products (
        shop BIGINT NOT NULL, sku TEXT NOT NULL, slot BIGINT, amount BIGINT NOT NULL,
        CONSTRAINT products_sku UNIQUE (shop, sku), CONSTRAINT products_slot UNIQUE (slot)
    )";

fn products<B: Backend>() -> Place {
    let place = B::place();
    place.run(TABLES);
    place
}

/// Runs a future on a thread that has no runtime yet: one with a closure of the application in it is not known to be `Send`, and so not a task.
fn alone<T>(future: impl Future<Output = T>) -> T {
    let mut result = None;
    run(async { result = Some(future.await) });
    result.unwrap()
}

/// What a write is about: a number in shop 1, and an amount.
type Product = (&'static str, i64);

const HAMMER: Product = ("hammer", 5);

async fn insert<B: Backend>(db: &mut B::Conn, (sku, amount): Product) -> QueryResult<i64> {
    let insert = format!("INSERT INTO products (shop, sku, amount) VALUES (1, '{sku}', {amount})");
    B::sql(db, &insert).await?;
    Ok(amount)
}

async fn update<B: Backend>(db: &mut B::Conn, (sku, amount): Product) -> QueryResult<i64> {
    B::sql(
        db,
        &format!("UPDATE products SET amount = {amount} WHERE sku = '{sku}'"),
    )
    .await?;
    get::<B>(db, (sku, amount)).await
}

async fn get<B: Backend>(db: &mut B::Conn, (sku, _): Product) -> QueryResult<i64> {
    let amount = format!(
        "SELECT coalesce((SELECT CAST(amount AS text) FROM products WHERE sku = '{sku}'), '')"
    );
    B::text(db, &amount)
        .await?
        .parse()
        .map_err(|_| DieselError::NotFound)
}

async fn effect<B: Backend>(db: &mut B::Conn) -> QueryResult<()> {
    B::sql(db, "INSERT INTO effects (name) VALUES ('e')").await
}

async fn put<B: Backend>(db: &mut B::Conn, product: Product) -> Result<Upserted<i64>, Error> {
    FlavorOf::<B>::upsert(
        db,
        &SKU,
        async |db: &mut B::Conn| insert::<B>(db, product).await,
        async |db: &mut B::Conn| update::<B>(db, product).await,
    )
    .await
}

async fn found<B: Backend>(
    db: &mut B::Conn,
    product: Product,
) -> Result<GotOrInserted<i64>, Error> {
    FlavorOf::<B>::get_or_insert(
        db,
        &SKU,
        async |db: &mut B::Conn| insert::<B>(db, product).await,
        async |db: &mut B::Conn| get::<B>(db, product).await,
    )
    .await
}

/// Nothing is open on the connection: neither a transaction nor a savepoint of the library's.
async fn assert_nothing_is_open<B: Backend>(conn: &mut B::Conn) {
    for savepoint in ["idem_body", "idem_call_1"] {
        assert!(
            B::sql(conn, &format!("RELEASE SAVEPOINT {savepoint}"))
                .await
                .is_err(),
            "{savepoint}"
        );
    }
    B::begin(conn).await.unwrap();
    effect::<B>(conn).await.unwrap();
    B::rollback(conn).await.unwrap();
    assert_eq!(
        B::text(
            conn,
            "SELECT CAST(count(*) AS text) FROM effects WHERE name = 'e'"
        )
        .await
        .unwrap(),
        "0"
    );
}

/// A violation of the constraint, as the application sees it.
#[track_caller]
fn assert_violates(error: &Error, what: &str) {
    assert_eq!(error.kind(), &ErrorKind::Database);
    let mut next = std::error::Error::source(error);
    while let Some(error) = next {
        if let Some(DieselError::DatabaseError(kind, information)) =
            error.downcast_ref::<DieselError>()
        {
            assert!(
                matches!(kind, DatabaseErrorKind::UniqueViolation),
                "{kind:?}"
            );
            assert!(
                information.message().contains(what),
                "{}",
                information.message()
            );
            return;
        }
        next = error.source();
    }
    panic!("no error of Diesel's: {error:?}");
}

/// How a database names the constraint of the slots.
fn slot<B: Backend>() -> &'static str {
    if B::is_postgres() {
        "products_slot"
    } else {
        "products.slot"
    }
}

fn serialization_failure() -> DieselError {
    DieselError::DatabaseError(
        DatabaseErrorKind::SerializationFailure,
        Box::new("met another".to_owned()),
    )
}

/// A transaction that a call is in.
async fn in_call<'c, B: Backend>(
    conn: &'c mut B::Conn,
    key: &str,
) -> Option<Execution<'c, B::Conn, ()>> {
    let claimed = begin(conn, &intent(key), &PERFORM, &key);
    let claimed: Result<Claimed<'c, B::Conn, ()>, Error> = FlavorOf::<B>::wait(claimed).await;
    match claimed.unwrap() {
        Claimed::Execute(execution) => Some(execution),
        Claimed::Replay(_) => None,
    }
}

on_every_backend! {
    async fn an_upsert_says_whether_the_row_is_new<B: Backend>() {
        let place = products::<B>();
        let mut conn = B::connect(&place).await;
        assert_eq!(put::<B>(&mut conn, HAMMER).await.unwrap(), Upserted::Inserted(5));
        assert_eq!(put::<B>(&mut conn, HAMMER).await.unwrap(), Upserted::Updated(5));
        assert_eq!(put::<B>(&mut conn, ("hammer", 6)).await.unwrap(), Upserted::Updated(6));
        assert_eq!(put::<B>(&mut conn, ("nail", 1)).await.unwrap(), Upserted::Inserted(1));
        let mut other = B::connect(&place).await;
        assert_eq!(put::<B>(&mut other, ("nail", 2)).await.unwrap(), Upserted::Updated(2));
        assert_eq!(place.number("SELECT count(*) FROM products"), 2);
        assert_eq!(place.number("SELECT amount FROM products WHERE sku = 'hammer'"), 6);
        assert_nothing_is_open::<B>(&mut conn).await;
    }

    async fn get_or_insert_says_whether_the_row_is_new_and_keeps_the_first<B: Backend>() {
        let place = products::<B>();
        let mut conn = B::connect(&place).await;
        assert_eq!(found::<B>(&mut conn, HAMMER).await.unwrap(), GotOrInserted::Inserted(5));
        assert_eq!(found::<B>(&mut conn, ("hammer", 6)).await.unwrap(), GotOrInserted::Got(5));
        let mut other = B::connect(&place).await;
        assert_eq!(found::<B>(&mut other, ("hammer", 7)).await.unwrap(), GotOrInserted::Got(5));
        assert_eq!(place.number("SELECT sum(amount) FROM products"), 5);
        assert_nothing_is_open::<B>(&mut conn).await;
    }

    async fn sixteen_racing_callers_insert_once_and_the_others_find_it<B: Backend>() {
        let place = products::<B>();
        let barrier = Barrier::new(16);
        let calls = |amount: i64| {
            alone(async {
                let mut conn = B::connect(&place).await;
                tokio::task::block_in_place(|| barrier.wait());
                let put = put::<B>(&mut conn, ("hammer", amount)).await.unwrap();
                (put, found::<B>(&mut conn, ("saw", amount)).await.unwrap())
            })
        };
        let calls = &calls;
        let done: Vec<_> = tokio::task::block_in_place(|| {
            std::thread::scope(|scope| {
                let callers: Vec<_> = (0..16).map(|amount| scope.spawn(move || calls(amount))).collect();
                callers.into_iter().map(|caller| caller.join().unwrap()).collect()
            })
        });
        assert_eq!(done.iter().filter(|(put, _)| put.is_inserted()).count(), 1);
        assert_eq!(done.iter().filter(|(_, found)| found.is_inserted()).count(), 1);
        let mut got: Vec<i64> = done.into_iter().map(|(_, found)| found.into_inner()).collect();
        got.dedup();
        assert_eq!((got.len(), place.number("SELECT count(*) FROM products")), (1, 2));
    }

    async fn somebody_who_is_inserting_the_same_row_is_waited_for<B: Backend>() {
        if !B::is_postgres() {
            // SQLite has one writer.
            return;
        }
        for commits in [true, false] {
            let place = products::<B>();
            let mut first = B::connect(&place).await;
            B::begin(&mut first).await.unwrap();
            insert::<B>(&mut first, ("hammer", 1)).await.unwrap();
            let second = tokio::task::block_in_place(|| {
                std::thread::scope(|scope| {
                    let second = scope.spawn(|| {
                        alone(async { put::<B>(&mut B::connect(&place).await, HAMMER).await.unwrap() })
                    });
                    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
                    let started = Instant::now();
                    while place.number(waiting) == 0 {
                        assert!(started.elapsed() < Duration::from_secs(30), "nobody waits");
                        std::thread::yield_now();
                    }
                    let ended = async {
                        if commits { B::commit(&mut first).await } else { B::rollback(&mut first).await }
                    };
                    tokio::runtime::Handle::current().block_on(ended).unwrap();
                    second.join().unwrap()
                })
            });
            assert_eq!(second, if commits { Upserted::Updated(5) } else { Upserted::Inserted(5) });
            assert_eq!(place.number("SELECT amount FROM products"), 5);
        }
    }

    async fn another_constraint_is_the_applications_error_and_nothing_stays<B: Backend>() {
        let place = products::<B>();
        place.run("INSERT INTO products (shop, sku, slot, amount) VALUES (1, 'saw', 7, 1)");
        let mut conn = B::connect(&place).await;
        let update_ran = AtomicU32::new(0);
        let refused = FlavorOf::<B>::upsert(
            &mut conn,
            &SKU,
            async |db: &mut B::Conn| {
                effect::<B>(db).await?;
                B::sql(db, "INSERT INTO products (shop, sku, slot, amount) VALUES (1, 'hammer', 7, 5)").await
            },
            async |_: &mut B::Conn| {
                update_ran.fetch_add(1, Ordering::SeqCst);
                Ok(())
            },
        )
        .await;
        assert_violates(&refused.unwrap_err(), slot::<B>());
        assert_eq!(update_ran.load(Ordering::SeqCst), 0);
        assert_eq!((place.effects(), place.number("SELECT count(*) FROM products")), (0, 1));
        assert_nothing_is_open::<B>(&mut conn).await;
        assert_eq!(put::<B>(&mut conn, HAMMER).await.unwrap(), Upserted::Inserted(5));
    }

    async fn an_error_in_the_update_rolls_everything_back<B: Backend>() {
        let place = products::<B>();
        place.run("INSERT INTO products (shop, sku, slot, amount) VALUES (1, 'saw', 7, 1), (1, 'hammer', 8, 2)");
        let mut conn = B::connect(&place).await;
        let refused = FlavorOf::<B>::upsert(
            &mut conn,
            &SKU,
            async |db: &mut B::Conn| {
                effect::<B>(db).await?;
                insert::<B>(db, HAMMER).await
            },
            async |db: &mut B::Conn| {
                effect::<B>(db).await?;
                update::<B>(db, ("hammer", 9)).await?;
                B::sql(db, "UPDATE products SET slot = 7 WHERE sku = 'hammer'").await?;
                Ok(9)
            },
        )
        .await;
        assert_violates(&refused.unwrap_err(), slot::<B>());
        assert_eq!((place.effects(), place.number("SELECT amount FROM products WHERE sku = 'hammer'")), (0, 2));
        assert_nothing_is_open::<B>(&mut conn).await;
        assert_eq!(put::<B>(&mut conn, HAMMER).await.unwrap(), Upserted::Updated(5));
    }

    async fn the_same_key_violated_in_the_update_is_the_applications_error<B: Backend>() {
        let place = products::<B>();
        place.run("INSERT INTO products (shop, sku, amount) VALUES (1, 'saw', 1), (1, 'hammer', 2)");
        let mut conn = B::connect(&place).await;
        let refused = FlavorOf::<B>::upsert(
            &mut conn,
            &SKU,
            async |db: &mut B::Conn| insert::<B>(db, HAMMER).await,
            async |db: &mut B::Conn| {
                B::sql(db, "UPDATE products SET sku = 'saw' WHERE sku = 'hammer'").await?;
                Ok(0)
            },
        )
        .await;
        assert_violates(&refused.unwrap_err(), if B::is_postgres() { "products_sku" } else { "products.sku" });
        assert_eq!(place.number("SELECT count(DISTINCT sku) FROM products"), 2);
        assert_nothing_is_open::<B>(&mut conn).await;
    }

    async fn what_the_insert_wrote_before_it_found_the_row_is_undone<B: Backend>() {
        let place = products::<B>();
        let mut conn = B::connect(&place).await;
        for expected in [Upserted::Inserted(5), Upserted::Updated(5)] {
            let done = FlavorOf::<B>::upsert(
                &mut conn,
                &SKU,
                async |db: &mut B::Conn| {
                    effect::<B>(db).await?;
                    insert::<B>(db, HAMMER).await
                },
                async |db: &mut B::Conn| update::<B>(db, HAMMER).await,
            )
            .await;
            assert_eq!(done.unwrap(), expected);
            assert_eq!(place.effects(), 1);
        }
    }

    async fn in_the_callers_transaction_it_is_a_savepoint_and_shares_its_fate<B: Backend>() {
        let place = products::<B>();
        place.run("INSERT INTO products (shop, sku, slot, amount) VALUES (1, 'saw', 7, 1)");
        let mut conn = B::connect(&place).await;
        for commits in [false, true] {
            B::begin(&mut conn).await.unwrap();
            assert_eq!(put::<B>(&mut conn, HAMMER).await.unwrap(), Upserted::Inserted(5));
            assert_eq!(put::<B>(&mut conn, ("hammer", 6)).await.unwrap(), Upserted::Updated(6));
            assert_eq!(found::<B>(&mut conn, HAMMER).await.unwrap(), GotOrInserted::Got(6));
            // One that fails undoes itself alone.
            let refused = FlavorOf::<B>::upsert(
                &mut conn,
                &SKU,
                async |db: &mut B::Conn| {
                    effect::<B>(db).await?;
                    B::sql(db, "INSERT INTO products (shop, sku, slot, amount) VALUES (1, 'nail', 7, 5)").await
                },
                async |_: &mut B::Conn| Ok(()),
            )
            .await;
            assert_violates(&refused.unwrap_err(), slot::<B>());
            assert_eq!(get::<B>(&mut conn, HAMMER).await.unwrap(), 6);
            if commits {
                B::commit(&mut conn).await.unwrap();
            } else {
                B::rollback(&mut conn).await.unwrap();
                assert_eq!(place.number("SELECT count(*) FROM products"), 1);
            }
        }
        assert_eq!((place.effects(), place.number("SELECT count(*) FROM products")), (0, 2));
        assert_nothing_is_open::<B>(&mut conn).await;
    }

    async fn no_savepoint_stays_open_in_the_callers_transaction<B: Backend>() {
        let place = products::<B>();
        let mut conn = B::connect(&place).await;
        for savepoint in ["idem_body", "idem_call_1"] {
            for fails in [false, true] {
                B::begin(&mut conn).await.unwrap();
                put::<B>(&mut conn, HAMMER).await.unwrap();
                put::<B>(&mut conn, HAMMER).await.unwrap();
                if fails {
                    let refused = FlavorOf::<B>::upsert(
                        &mut conn,
                        &SKU,
                        async |db: &mut B::Conn| insert::<B>(db, HAMMER).await,
                        async |db: &mut B::Conn| {
                            B::sql(db, "INSERT INTO effects (name) VALUES (NULL)").await?;
                            Ok(0)
                        },
                    )
                    .await;
                    assert_eq!(refused.unwrap_err().kind(), &ErrorKind::Database);
                }
                let released = B::sql(&mut conn, &format!("RELEASE SAVEPOINT {savepoint}")).await;
                assert!(released.is_err(), "{savepoint}");
                B::rollback(&mut conn).await.unwrap();
            }
        }
        assert_nothing_is_open::<B>(&mut conn).await;
    }

    async fn in_an_idempotent_handler_it_commits_with_the_answer<B: Backend>() {
        let place = products::<B>();
        let mut conn = B::connect(&place).await;
        for succeeds in [false, true] {
            let mut execution = in_call::<B>(&mut conn, "k").await.unwrap();
            assert_eq!(put::<B>(execution.connection(), HAMMER).await.unwrap(), Upserted::Inserted(5));
            assert_eq!(put::<B>(execution.connection(), ("hammer", 6)).await.unwrap(), Upserted::Updated(6));
            let result = if succeeds { Ok(()) } else { Err(DieselError::RollbackTransaction) };
            let done = FlavorOf::<B>::wait(execution.finish(result)).await;
            assert_eq!(done.is_ok(), succeeds);
            let rows = i64::from(succeeds);
            assert_eq!((place.number("SELECT count(*) FROM products"), place.records()), (rows, rows));
        }
        assert!(in_call::<B>(&mut conn, "k").await.is_none());
        assert_eq!(place.number("SELECT amount FROM products"), 6);
    }

    async fn a_row_that_is_deleted_in_between_is_inserted_after_all<B: Backend>() {
        let place = products::<B>();
        let mut conn = B::connect(&place).await;
        insert::<B>(&mut conn, ("hammer", 1)).await.unwrap();
        let rounds = AtomicU32::new(0);
        let done = FlavorOf::<B>::upsert(
            &mut conn,
            &SKU,
            async |db: &mut B::Conn| {
                rounds.fetch_add(1, Ordering::SeqCst);
                insert::<B>(db, HAMMER).await
            },
            async |db: &mut B::Conn| {
                if B::is_postgres() {
                    tokio::task::block_in_place(|| place.run("DELETE FROM products"));
                } else if rounds.load(Ordering::SeqCst) == 1 {
                    // Nobody else can delete it meanwhile.
                    return Err(DieselError::NotFound);
                }
                update::<B>(db, HAMMER).await
            },
        )
        .await;
        let expected = if B::is_postgres() { Upserted::Inserted(5) } else { Upserted::Updated(5) };
        assert_eq!((done.unwrap(), rounds.load(Ordering::SeqCst)), (expected, 2));
        assert_eq!(place.number("SELECT amount FROM products"), 5);
    }

    async fn a_row_that_comes_and_goes_is_a_conflict_after_a_bounded_number_of_rounds<B: Backend>() {
        let place = products::<B>();
        let mut conn = B::connect(&place).await;
        insert::<B>(&mut conn, ("hammer", 1)).await.unwrap();
        let rounds = AtomicU32::new(0);
        let refused = FlavorOf::<B>::get_or_insert(
            &mut conn,
            &SKU,
            async |db: &mut B::Conn| {
                rounds.fetch_add(1, Ordering::SeqCst);
                insert::<B>(db, HAMMER).await
            },
            async |_: &mut B::Conn| Err(DieselError::NotFound),
        )
        .await;
        assert_eq!(refused.unwrap_err().kind(), &ErrorKind::Conflict);
        assert_eq!(rounds.load(Ordering::SeqCst), 8);
        assert_nothing_is_open::<B>(&mut conn).await;
    }

    async fn a_row_that_an_older_snapshot_hides_is_a_conflict<B: Backend>() {
        if !B::is_postgres() {
            // A transaction of SQLite that writes has the newest snapshot.
            return;
        }
        let place = products::<B>();
        let mut conn = B::connect(&place).await;
        B::begin(&mut conn).await.unwrap();
        B::sql(&mut conn, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM products").await.unwrap();
        place.run("INSERT INTO products (shop, sku, amount) VALUES (1, 'hammer', 1)");
        assert_eq!(put::<B>(&mut conn, HAMMER).await.unwrap_err().kind(), &ErrorKind::Conflict);
        assert_eq!(found::<B>(&mut conn, HAMMER).await.unwrap_err().kind(), &ErrorKind::Conflict);
        // The caller's transaction goes on.
        effect::<B>(&mut conn).await.unwrap();
        B::commit(&mut conn).await.unwrap();
        assert_eq!((place.effects(), place.number("SELECT amount FROM products")), (1, 1));
        assert_eq!(put::<B>(&mut conn, HAMMER).await.unwrap(), Upserted::Updated(5));
    }

    async fn a_conflict_is_tried_again_only_in_a_transaction_of_its_own<B: Backend>() {
        let place = products::<B>();
        let mut conn = B::connect(&place).await;
        for (conflicts, is_joined, expected) in [(7, false, Some(8)), (8, false, None), (1, true, None)] {
            place.run("DELETE FROM products");
            let rounds = AtomicU32::new(0);
            if is_joined {
                B::begin(&mut conn).await.unwrap();
            }
            let done = FlavorOf::<B>::upsert(
                &mut conn,
                &SKU,
                async |db: &mut B::Conn| {
                    effect::<B>(db).await?;
                    if rounds.fetch_add(1, Ordering::SeqCst) < conflicts {
                        return Err(serialization_failure());
                    }
                    insert::<B>(db, HAMMER).await
                },
                async |db: &mut B::Conn| update::<B>(db, HAMMER).await,
            )
            .await;
            let rounds = rounds.load(Ordering::SeqCst);
            if let Some(expected) = expected {
                assert_eq!((done.unwrap(), rounds), (Upserted::Inserted(5), expected));
            } else {
                assert_eq!(done.unwrap_err().kind(), &ErrorKind::Conflict);
                assert_eq!(rounds, conflicts);
            }
            if is_joined {
                B::rollback(&mut conn).await.unwrap();
            }
            assert_eq!(place.effects(), 1, "what a conflict met is rolled back");
        }
    }

    async fn a_key_is_known_by_whatever_makes_it_unique<B: Backend>() {
        const PARTIAL: UniqueKey = UniqueKey::new("parts_active", &["parts.code"]);
        const EXPRESSION: UniqueKey = UniqueKey::new("parts_lower", &[]);
        const PRIMARY: UniqueKey = UniqueKey::new("parts_pkey", &["parts.id"]);
        let place = B::place();
        place.run(
            "CREATE TABLE parts (id TEXT CONSTRAINT parts_pkey PRIMARY KEY, code TEXT, name TEXT, active BOOLEAN NOT NULL DEFAULT true);
             CREATE UNIQUE INDEX parts_active ON parts (code) WHERE active;
             CREATE UNIQUE INDEX parts_lower ON parts (lower(name))",
        );
        let mut conn = B::connect(&place).await;
        for (key, statement) in [
            (PARTIAL, "INSERT INTO parts (id, code) VALUES ('{}', 'c')"),
            (EXPRESSION, "INSERT INTO parts (id, name) VALUES ('{}', '{NAME}')"),
            (PRIMARY, "INSERT INTO parts (id) VALUES ('one id')"),
        ] {
            for (expected, name) in [(Upserted::Inserted("insert"), "Bolt"), (Upserted::Updated("update"), "BOLT")] {
                let own_id = format!("{} {name}", key.constraint());
                let statement = statement.replace("{}", &own_id).replace("{NAME}", name);
                let done = FlavorOf::<B>::upsert(
                    &mut conn,
                    &key,
                    async |db: &mut B::Conn| B::sql(db, &statement).await.map(|()| "insert"),
                    async |_: &mut B::Conn| Ok("update"),
                )
                .await;
                assert_eq!(done.unwrap(), expected, "{key:?}");
            }
        }
        // Each of them is another one's application error.
        for (key, statement, what) in [
            (PRIMARY, "INSERT INTO parts (id, code) VALUES ('another', 'c')", ["parts_active", "parts.code"]),
            (PARTIAL, "INSERT INTO parts (id, name) VALUES ('another', 'bolt')", ["parts_lower", "parts_lower"]),
            (EXPRESSION, "INSERT INTO parts (id) VALUES ('one id')", ["parts_pkey", "parts.id"]),
        ] {
            let refused = FlavorOf::<B>::upsert(
                &mut conn,
                &key,
                async |db: &mut B::Conn| B::sql(db, statement).await,
                async |_: &mut B::Conn| Ok(()),
            )
            .await;
            assert_violates(&refused.unwrap_err(), what[usize::from(!B::is_postgres())]);
        }
        assert_eq!(place.number("SELECT count(*) FROM parts"), 3);
    }

    async fn a_panic_in_a_closure_leaves_nothing_and_the_connection_goes_on<B: Backend>() {
        let place = products::<B>();
        let mut conn = B::connect(&place).await;
        for panics_in_the_insert in [true, false] {
            let done = FlavorOf::<B>::upsert(
                &mut conn,
                &SKU,
                async |db: &mut B::Conn| {
                    effect::<B>(db).await?;
                    assert!(!panics_in_the_insert, "as the test told it");
                    insert::<B>(db, HAMMER).await
                },
                async |_: &mut B::Conn| panic!("as the test told it"),
            );
            assert!(AssertUnwindSafe(done).catch_unwind().await.is_err());
            assert_nothing_is_open::<B>(&mut conn).await;
            put::<B>(&mut conn, HAMMER).await.unwrap();
            assert_eq!(place.effects(), 0);
        }
    }
}

/// Whatever the await at which it is dropped, there is one row at the end and the connection goes on.
async fn case_b4_an_upsert_is_dropped_at_every_await<B: Backend>(at_least: usize) {
    let mut dropped = 0;
    for polls in 1..=20 {
        let place = products::<B>();
        let mut conn = B::connect(&place).await;
        insert::<B>(&mut conn, ("hammer", 1)).await.unwrap();
        match poll_at_most(polls, put::<B>(&mut conn, HAMMER)).await {
            Some(done) => assert_eq!(done.unwrap(), Upserted::Updated(5)),
            None => dropped += 1,
        }
        // Another session first: what was dropped must not hold the row.
        let mut other = B::connect(&place).await;
        for db in [&mut other, &mut conn] {
            assert_eq!(
                put::<B>(db, ("hammer", 6)).await.unwrap(),
                Upserted::Updated(6),
                "{polls} polls"
            );
        }
        assert_nothing_is_open::<B>(&mut conn).await;
        assert_eq!(place.number("SELECT sum(amount) FROM products"), 6);
    }
    assert!(dropped >= at_least, "dropped {dropped} times");
}

#[test]
fn case_b4_pg_async() {
    run(case_b4_an_upsert_is_dropped_at_every_await::<PgAsync>(3));
}

#[test]
fn case_b4_sqlite_async() {
    run(case_b4_an_upsert_is_dropped_at_every_await::<SqliteAsync>(
        1,
    ));
}

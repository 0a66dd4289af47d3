//! The test kit: a sound handler passes on every connection, and each broken one is reported by its own sentence.

use std::collections::HashMap;
use std::sync::atomic::AtomicI64;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use idem_diesel::testing::{Broken, Report, Scenario};

use crate::backend::{Backend, PgAsync, PgSync, Place, SqliteAsync, SqliteSync, run};

/// A handler, and what is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handler {
    /// Nothing.
    CreateOrder,
    /// Nothing, and the order is a new one each time.
    PayOrder,
    /// Nothing: it declines.
    Decline,
    /// Nothing, but each run writes another text.
    Random,
    /// Nothing, but the table that is compared is not the one that it writes.
    Elsewhere,
    /// The attribute was forgotten.
    Forgotten,
    /// The attribute was forgotten, and running twice does no harm.
    ForgottenUpsert,
    /// It writes on a connection of its own.
    SecondConnection,
    /// It commits the effect, and then what it remembers of it.
    TwoCommits,
    /// It answers a replay with something else.
    OtherAnswer,
    /// It writes on a replay.
    TouchesOnReplay,
    /// What its request asks for is not in the hash.
    SkippedField,
    /// It uses one key for all.
    OneKey,
    /// It always fails.
    Fails,
}

/// Runs what the kit gives for a handler.
macro_rules! check {
    ([async], $check:expr, $handler:path) => {
        $check
            .run_async(async |db, intent, cmd| $handler(db, intent, cmd).await)
            .await
    };
    ([], $check:expr, $handler:path) => {
        $check.run($handler)
    };
}

/// Awaits that are never ready at once, where a call can be dropped.
macro_rules! pause {
    ([async]) => {
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
    };
    ([]) => {};
}

/// A check on connections of a place.
macro_rules! new_check {
    ([async], $place:expr, $connect:path, $tables:expr) => {
        idem_diesel::testing::Check::new_async(async || $connect($place.url()).await, $tables)
    };
    ([], $place:expr, $connect:path, $tables:expr) => {
        idem_diesel::testing::Check::new(|| $connect($place.url()), $tables)
    };
}

/// A request that waits for the database, where the connection does.
macro_rules! request {
    ([async], $check:expr, $request:path) => {
        $check.request_async(async |db| $request(db).await)
    };
    ([], $check:expr, $request:path) => {
        $check.request($request)
    };
}

macro_rules! handlers {
    ($module:ident: $conn:ty, [$($asyncness:ident)?], [$($wait:tt)*], $connect:path, $dsl:path, $simple:path) => {
        mod $module {
            use std::cell::OnceCell;

            use diesel::{ExpressionMethods, QueryDsl, QueryResult};
            use idem_diesel::testing::{Broken, Report};
            use idem_diesel::{
                Claimed, Error, IdempotencyKey, Intent, Operation, Outcome, RequestHash, Retention, Tenant, Verdict, begin,
                idempotent,
            };
            use $dsl;

            use super::{ANSWERS, Handler};
            use crate::backend::Place;
            use crate::shop::*;

            type Conn = $conn;

            const NOTE: Operation = Operation::new("tests.note", Retention::literal("48h"));

            pub $($asyncness)? fn found(place: &Place, handler: Handler) -> Result<Report, Broken> {
                let order = |_: &mut Conn| CreateOrder { account_id: 1, amount_cents: 5 };
                let dearer = |first: &CreateOrder| CreateOrder { amount_cents: 6, ..first.clone() };
                let check = new_check!([$($asyncness)?], place, connect, ["accounts", "orders"]);
                let orders = || {
                    let check = new_check!([$($asyncness)?], place, connect, ["accounts", "orders"]);
                    check.request(order).other_request(dearer)
                };
                let effects = || new_check!([$($asyncness)?], place, connect, ["effects"]);
                match handler {
                    Handler::CreateOrder => check!([$($asyncness)?], orders(), create_order),
                    Handler::PayOrder => {
                        let check = new_check!([$($asyncness)?], place, connect, ["accounts", "orders", "payments"])
                            .ignoring(["payments.order_id"]);
                        let check = request!([$($asyncness)?], check, pending_order)
                            .other_request(|first| ChangeOrder { order_id: first.order_id + 1 });
                        check!([$($asyncness)?], check, pay_order)
                    }
                    Handler::Decline => check!([$($asyncness)?], orders().without_effect(), decline),
                    Handler::Random => {
                        check!([$($asyncness)?], effects().ignoring(["name"]), random_note)?;
                        check!([$($asyncness)?], effects(), random_note)
                    }
                    Handler::Elsewhere => {
                        let check = new_check!([$($asyncness)?], place, connect, ["payments", "effects"]).request(order);
                        check!([$($asyncness)?], check, create_order)
                    }
                    Handler::Forgotten => check!([$($asyncness)?], orders(), forgotten),
                    Handler::ForgottenUpsert => check!([$($asyncness)?], effects().ignoring(["name"]), forgotten_upsert),
                    Handler::SecondConnection => {
                        let url = place.url().to_owned();
                        let check = effects().request(move |_| url.clone());
                        check!([$($asyncness)?], check, on_a_second_connection)
                    }
                    Handler::TwoCommits => check!([$($asyncness)?], effects(), two_commits),
                    Handler::OtherAnswer => check!([$($asyncness)?], effects(), other_answer),
                    Handler::TouchesOnReplay => {
                        check!([$($asyncness)?], check.ignoring(["balance_cents"]), touches_on_replay)
                    }
                    Handler::SkippedField => {
                        let check = effects()
                            .request(|_| Note { text: "a".to_owned() })
                            .other_request(|_| Note { text: "b".to_owned() });
                        check!([$($asyncness)?], check, skipped_field)
                    }
                    Handler::OneKey => check!([$($asyncness)?], orders(), one_key),
                    Handler::Fails => check!([$($asyncness)?], orders(), fails),
                }
            }

            pub $($asyncness)? fn connect(url: &str) -> Conn {
                use $connect as Connect;
                <Conn as Connect>::establish(url) $($wait)* .unwrap()
            }

            $($asyncness)? fn sql(db: &mut Conn, sql: &str) -> QueryResult<()> {
                use $simple;
                db.batch_execute(sql) $($wait)*
            }

            $($asyncness)? fn number(db: &mut Conn, sql: &str) -> QueryResult<i64> {
                diesel::select(diesel::dsl::sql::<diesel::sql_types::BigInt>(&format!("({sql})")))
                    .get_result(db)
                    $($wait)*
            }

            $($asyncness)? fn pending_order(db: &mut Conn) -> ChangeOrder {
                let insert = "INSERT INTO orders (account_id, amount_cents, status) VALUES (1, 5, 'pending')";
                sql(db, insert) $($wait)* .unwrap();
                let order_id = number(db, "SELECT max(id) FROM orders") $($wait)* .unwrap();
                ChangeOrder { order_id }
            }

            #[idempotent(scope = "tests.create", ttl = "48h")]
            $($asyncness)? fn create_order(db: &mut Conn, intent: &Intent, cmd: &CreateOrder) -> Result<Outcome<i64>, ShopError> {
                Ok(order(db, cmd) $($wait)*?.into())
            }

            $($asyncness)? fn order(db: &mut Conn, cmd: &CreateOrder) -> Result<i64, ShopError> {
                diesel::update(accounts::table.find(cmd.account_id))
                    .set(accounts::balance_cents.eq(accounts::balance_cents - cmd.amount_cents))
                    .execute(db)
                    $($wait)*?;
                let row = (
                    orders::account_id.eq(cmd.account_id),
                    orders::amount_cents.eq(cmd.amount_cents),
                    orders::status.eq(OrderStatus::Pending),
                );
                let insert = diesel::insert_into(orders::table).values(row).returning(orders::id);
                Ok(insert.get_result(db) $($wait)*?)
            }

            #[idempotent(
                scope = "tests.pay",
                ttl = "48h",
                transition(OrderStatus::Pending => OrderStatus::Paid, id = cmd.order_id)
            )]
            $($asyncness)? fn pay_order(db: &mut Conn, intent: &Intent, cmd: &ChangeOrder) -> QueryResult<i64> {
                let payment = (payments::order_id.eq(cmd.order_id), payments::amount_cents.eq(5));
                diesel::insert_into(payments::table).values(payment).execute(db) $($wait)*?;
                Ok(cmd.order_id)
            }

            #[idempotent(scope = "tests.decline", ttl = "48h")]
            $($asyncness)? fn decline(
                db: &mut Conn,
                intent: &Intent,
                cmd: &CreateOrder,
            ) -> Result<Outcome<Verdict<i64, Decline>>, ShopError> {
                order(db, cmd) $($wait)*?;
                Ok(Verdict::Failed(Decline::TooExpensive { limit_cents: 1 }).into())
            }

            #[idempotent(scope = "tests.random", ttl = "48h")]
            $($asyncness)? fn random_note(db: &mut Conn, intent: &Intent, _cmd: &()) -> Result<Outcome<()>, ShopError> {
                let name = intent.key().as_str().to_owned();
                Ok(sql(db, &format!("INSERT INTO effects VALUES ('{name}')")) $($wait)*?.into())
            }

            $($asyncness)? fn forgotten(db: &mut Conn, _: &Intent, cmd: &CreateOrder) -> Result<Outcome<i64>, ShopError> {
                Ok(order(db, cmd) $($wait)*?.into())
            }

            $($asyncness)? fn forgotten_upsert(db: &mut Conn, intent: &Intent, _: &()) -> QueryResult<()> {
                let name = intent.key().as_str();
                let insert = format!(
                    "INSERT INTO effects SELECT '{name}' WHERE NOT EXISTS (SELECT 1 FROM effects WHERE name = '{name}')"
                );
                sql(db, &insert) $($wait)*
            }

            #[idempotent(scope = "tests.second", ttl = "48h")]
            $($asyncness)? fn on_a_second_connection(_db: &mut Conn, intent: &Intent, url: &String) -> Result<(), ShopError> {
                let mut second = connect(url) $($wait)*;
                Ok(sql(&mut second, "INSERT INTO effects VALUES ('e')") $($wait)*?)
            }

            $($asyncness)? fn two_commits(db: &mut Conn, intent: &Intent, _: &()) -> QueryResult<()> {
                let (tenant, key) = (intent.tenant().as_str(), intent.key().as_str());
                // Racing calls are kept apart; only a call that is dropped finds it out.
                sql(db, "SELECT pg_advisory_lock(17)") $($wait)*?;
                let known = format!("SELECT count(*) FROM api_idempotency WHERE idempotency_key = '{key}'");
                if number(db, &known) $($wait)*? == 0 {
                    sql(db, "INSERT INTO effects VALUES ('e')") $($wait)*?;
                    pause!([$($asyncness)?]);
                    let record = format!(
                        "INSERT INTO api_idempotency (tenant_id, operation, idempotency_key, request_hash, state, expires_at, forget_at) \
                         VALUES ('{tenant}', 'tests.two', '{key}', '', 'pending', now(), now())"
                    );
                    sql(db, &record) $($wait)*?;
                }
                sql(db, "SELECT pg_advisory_unlock(17)") $($wait)*
            }

            $($asyncness)? fn other_answer(db: &mut Conn, intent: &Intent, _: &()) -> Result<i64, Error> {
                use std::sync::atomic::Ordering;
                let answer = ANSWERS.fetch_add(1, Ordering::Relaxed);
                match begin::<_, i64>(db, intent, &NOTE, &()) $($wait)*? {
                    Claimed::Replay(_) => Ok(answer),
                    Claimed::Execute(mut execution) => {
                        let done = sql(execution.connection(), "INSERT INTO effects VALUES ('e')") $($wait)*;
                        execution.finish(done.map(|()| answer).map_err(Error::from)) $($wait)*
                    }
                }
            }

            $($asyncness)? fn touches_on_replay(db: &mut Conn, intent: &Intent, _: &()) -> Result<i64, Error> {
                const TOUCH: &str = "UPDATE accounts SET balance_cents = balance_cents + 1";
                let answer = match begin::<_, i64>(db, intent, &NOTE, &()) $($wait)*? {
                    Claimed::Replay(replay) => OnceCell::from(replay.answer::<Error>()?),
                    Claimed::Execute(mut execution) => {
                        let cmd = CreateOrder { account_id: 1, amount_cents: 0 };
                        let done = order(execution.connection(), &cmd) $($wait)*;
                        let done = done.map_err(|_| Error::from(idem_diesel::ErrorKind::Database));
                        return execution.finish(done) $($wait)*;
                    }
                };
                sql(db, TOUCH) $($wait)*?;
                Ok(answer.into_inner().unwrap())
            }

            #[derive(RequestHash)]
            struct Note {
                #[request_hash(skip)]
                text: String,
            }

            #[idempotent(scope = "tests.skipped", ttl = "48h")]
            $($asyncness)? fn skipped_field(db: &mut Conn, intent: &Intent, cmd: &Note) -> Result<Outcome<String>, ShopError> {
                sql(db, "INSERT INTO effects VALUES ('e')") $($wait)*?;
                Ok(cmd.text.clone().into())
            }

            $($asyncness)? fn one_key(db: &mut Conn, _: &Intent, cmd: &CreateOrder) -> Result<Outcome<i64>, ShopError> {
                let intent = Intent::new(Tenant::shared("acme").unwrap(), IdempotencyKey::new("one").unwrap());
                create_order(db, &intent, cmd) $($wait)*
            }

            $($asyncness)? fn fails(db: &mut Conn, _: &Intent, _: &CreateOrder) -> QueryResult<i64> {
                number(db, "SELECT a FROM no_table") $($wait)*
            }
        }
    };
}

handlers!(sqlite_sync: diesel::SqliteConnection, [], [], diesel::Connection, diesel::RunQueryDsl, diesel::connection::SimpleConnection);
handlers!(pg_sync: diesel::PgConnection, [], [], diesel::Connection, diesel::RunQueryDsl, diesel::connection::SimpleConnection);
handlers!(
    sqlite_async: diesel_async::sync_connection_wrapper::SyncConnectionWrapper<diesel::SqliteConnection>, [async], [.await],
    diesel_async::AsyncConnection, diesel_async::RunQueryDsl, diesel_async::SimpleAsyncConnection
);
handlers!(
    pg_async: diesel_async::AsyncPgConnection, [async], [.await],
    diesel_async::AsyncConnection, diesel_async::RunQueryDsl, diesel_async::SimpleAsyncConnection
);

/// What the handlers that do not keep to one answer give.
static ANSWERS: AtomicI64 = AtomicI64::new(0);

/// What the kit says of one handler: on the sync connection, and on the async one.
struct Found {
    sqlite: [Result<Report, Broken>; 2],
    postgres: [Result<Report, Broken>; 2],
}

impl Found {
    fn all(self) -> impl Iterator<Item = Result<Report, Broken>> {
        self.sqlite.into_iter().chain(self.postgres)
    }
}

fn found(handler: Handler) -> Found {
    Found {
        sqlite: [
            sqlite_sync::found(&SqliteSync::place(), handler),
            on_runtime(async || sqlite_async::found(&SqliteAsync::place(), handler).await),
        ],
        postgres: [
            pg_sync::found(&PgSync::place(), handler),
            on_runtime(async || pg_async::found(&PgAsync::place(), handler).await),
        ],
    }
}

fn on_runtime<T>(body: impl AsyncFn() -> T) -> T {
    let mut output = None;
    run(async { output = Some(body().await) });
    output.unwrap()
}

/// The handler is reported with the same text on every connection.
#[track_caller]
fn broken(handler: Handler, scenario: Scenario, text: &str) {
    for found in found(handler).all() {
        let broken = found.unwrap_err();
        assert_eq!(broken.to_string(), text);
        assert_eq!(broken.scenario(), scenario);
    }
}

#[track_caller]
fn sound(handler: Handler) {
    let Found { sqlite, postgres } = found(handler);
    for [blocking, asynchronous] in [sqlite, postgres] {
        for found in [&blocking, &asynchronous] {
            let report = found.as_ref().unwrap();
            let held = |scenario: &Scenario| report.has(*scenario);
            assert!(ALL_BUT_DROPPED.iter().all(held), "{report}");
        }
        let text = blocking.unwrap().to_string();
        assert!(
            text.ends_with("dropped calls  not run: a sync call cannot be dropped"),
            "{text}"
        );
        let report = asynchronous.unwrap();
        assert!(report.has(Scenario::DroppedCalls), "{report}");
        println!("{report}");
    }
}

const ALL_BUT_DROPPED: [Scenario; 6] = [
    Scenario::OneCall,
    Scenario::SecondCall,
    Scenario::LostAnswer,
    Scenario::OtherRequest,
    Scenario::RolledBack,
    Scenario::Race,
];

#[test]
fn a_sound_handler_keeps_every_promise() {
    sound(Handler::CreateOrder);
}

#[test]
fn a_request_can_be_made_anew_for_each_scenario() {
    sound(Handler::PayOrder);
}

#[test]
fn a_final_failure_is_an_answer_without_effect() {
    sound(Handler::Decline);
}

#[test]
fn a_forgotten_attribute_is_reported() {
    broken(
        Handler::Forgotten,
        Scenario::SecondCall,
        "the second call changed `accounts.balance_cents`: by -10 where one call changes it by -5\n\
         hint: nothing is recorded under the key: is the handler marked `#[idempotent]`, or does it call `begin`?",
    );
}

#[test]
fn a_forgotten_attribute_is_reported_also_where_it_does_no_harm() {
    broken(
        Handler::ForgottenUpsert,
        Scenario::SecondCall,
        "the second call was not replayed\n\
         hint: nothing is recorded under the key: is the handler marked `#[idempotent]`, or does it call `begin`?",
    );
}

#[test]
fn columns_that_differ_in_every_run_are_ignored_by_name() {
    for found in found(Handler::Random).all() {
        let text = found.unwrap_err().to_string();
        assert!(
            text.starts_with("the first call changed `effects.name`: a new row has 'testing-"),
            "{text}"
        );
        assert!(
            text.ends_with("\nhint: columns that differ in every run are named with `ignoring`"),
            "{text}"
        );
    }
}

#[test]
fn an_effect_on_a_second_connection_is_reported() {
    let Found { sqlite, postgres } = found(Handler::SecondConnection);
    for found in postgres {
        let broken = found.unwrap_err();
        assert_eq!(
            broken.to_string(),
            "a call whose transaction was rolled back left its writes in `effects` (1 new row)\n\
             hint: what is written on another connection, or committed by the body itself, is not rolled back with the call"
        );
        assert_eq!(broken.scenario(), Scenario::RolledBack);
    }
    // SQLite has one writer at a time.
    for found in sqlite {
        let text = found.unwrap_err().to_string();
        assert!(text.starts_with("the first call failed: "), "{text}");
        assert!(text.ends_with("database is locked"), "{text}");
    }
}

#[test]
fn an_effect_that_is_committed_before_its_record_is_found_by_dropping_the_call() {
    let place = PgAsync::place();
    let found = on_runtime(async || pg_async::found(&place, Handler::TwoCommits).await);
    let broken = found.unwrap_err();
    let text = broken.to_string();
    assert!(text.starts_with("a call that was dropped after "), "{text}");
    assert!(
        text.ends_with(
            " polls, with its retry, changed `effects`: 2 new rows where one call leaves 1\n\
             hint: what is written on another connection, or committed by the body itself, is not rolled back with the call"
        ),
        "{text}"
    );
    assert_eq!(broken.scenario(), Scenario::DroppedCalls);
}

#[test]
fn a_replay_with_another_answer_is_reported() {
    for found in found(Handler::OtherAnswer).all() {
        let broken = found.unwrap_err();
        let text = broken.to_string();
        assert!(
            text.starts_with("the second call was answered with "),
            "{text}"
        );
        assert!(
            text.contains(", where the first was answered with "),
            "{text}"
        );
        assert_eq!(broken.scenario(), Scenario::SecondCall);
    }
}

#[test]
fn a_replay_that_writes_is_reported_also_in_an_ignored_column() {
    broken(
        Handler::TouchesOnReplay,
        Scenario::SecondCall,
        "the second call changed `accounts`: 1 changed row where one call changes 0",
    );
}

#[test]
fn a_field_that_is_skipped_although_it_matters_is_reported() {
    broken(
        Handler::SkippedField,
        Scenario::OtherRequest,
        "another request under the same key was not refused, but answered with Executed(\"a\")\n\
         hint: what tells the two requests apart is no part of the request hash: is it skipped, with `#[request_hash(skip)]` or \
         `#[idempotent(skip)]`?",
    );
}

#[test]
fn a_handler_that_does_not_use_its_intent_is_reported() {
    broken(
        Handler::OneKey,
        Scenario::SecondCall,
        "the first call of a new key says that it was replayed\nhint: does the handler use the intent that it is given?",
    );
}

#[test]
fn a_check_of_the_wrong_tables_is_no_check() {
    broken(
        Handler::Elsewhere,
        Scenario::OneCall,
        "one call changed nothing in `payments`, `effects`: name the tables that it writes, or say `without_effect`",
    );
}

#[test]
fn a_handler_that_fails_is_reported_with_its_error() {
    let Found { sqlite, postgres } = found(Handler::Fails);
    for found in sqlite {
        assert_eq!(
            found.unwrap_err().to_string(),
            "the first call failed: no such table: no_table"
        );
    }
    for found in postgres {
        assert_eq!(
            found.unwrap_err().to_string(),
            "the first call failed: relation \"no_table\" does not exist"
        );
    }
}

/// Two calls of one key that both come before either goes on; a call that is alone goes on after a while.
#[derive(Default)]
struct Meeting {
    arrived: Mutex<HashMap<String, usize>>,
    changed: Condvar,
}

impl Meeting {
    fn wait(&self, key: &str) {
        const ALONE: Duration = Duration::from_millis(300);
        let mut arrived = self.arrived.lock().unwrap();
        *arrived.entry(key.to_owned()).or_default() += 1;
        self.changed.notify_all();
        drop(
            self.changed
                .wait_timeout_while(arrived, ALONE, |arrived| arrived[key] < 2)
                .unwrap(),
        );
    }
}

/// It looks first and writes then, as if nobody came in between.
#[test]
fn a_race_is_reported() {
    use diesel::connection::SimpleConnection;
    use idem_diesel::testing::Check;

    let place = PgSync::place();
    let meeting = Meeting::default();
    let broken = Check::new(|| pg_sync::connect(place.url()), ["effects"])
        .ignoring(["name"])
        .racers(2)
        .run(|db: &mut diesel::PgConnection, intent, ()| {
            let (tenant, key) = (intent.tenant().as_str(), intent.key().as_str());
            let known = place.number(&format!("SELECT count(*) FROM effects WHERE name = '{key}'"));
            if known == 0 {
                meeting.wait(key);
                db.batch_execute(&format!(
                    "INSERT INTO effects VALUES ('{key}'); \
                     INSERT INTO api_idempotency (tenant_id, operation, idempotency_key, request_hash, state, expires_at, forget_at) \
                     VALUES ('{tenant}', 'tests.race', '{key}', '', 'pending', now(), now()) ON CONFLICT DO NOTHING"
                ))?;
            }
            diesel::QueryResult::Ok(())
        })
        .unwrap_err();
    assert_eq!(
        broken.to_string(),
        "2 racing calls changed `effects`: 2 new rows where one call leaves 1"
    );
}

#[test]
fn a_name_that_is_not_there_is_told() {
    fn check(place: &Place, tables: [&str; 1], ignored: &str) -> String {
        let connect = || pg_sync::connect(place.url());
        let check = idem_diesel::testing::Check::new(connect, tables).ignoring([ignored]);
        let nothing = |_: &mut diesel::PgConnection, _: &idem_diesel::Intent, (): &()| {
            diesel::QueryResult::Ok(())
        };
        check.run(nothing).unwrap_err().to_string()
    }
    let place = PgSync::place();
    assert_eq!(
        check(&place, ["payment"], "id"),
        "there is no table `payment`"
    );
    assert_eq!(
        check(&place, ["public.payments"], "orders.id"),
        "`orders.id` is to be ignored, but no named table has such a column"
    );
    // Found under its schema, and then that nothing was written.
    assert_eq!(
        check(&place, ["public.payments"], "public.payments.id"),
        "one call changed nothing in `public.payments`: name the tables that it writes, or say `without_effect`"
    );
}

#[test]
#[should_panic(expected = "not idempotent: one call changed nothing in `effects`")]
fn what_broke_is_the_text_of_the_panic() {
    let place = SqliteSync::place();
    let connect = || sqlite_sync::connect(place.url());
    let nothing = |_: &mut diesel::SqliteConnection, _: &idem_diesel::Intent, (): &()| {
        diesel::QueryResult::Ok(())
    };
    idem_diesel::testing::Check::new(connect, ["effects"]).assert_idempotent(nothing);
}

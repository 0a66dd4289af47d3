//! The scenarios: how a handler is called, and what must be true afterwards.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use idem_core::answer::{Answer, Origin};
use idem_core::{ErrorKind, IdempotencyKey, Intent, Tenant};

use super::Check;
use super::caller::{Caller, Refusal, poll_at_most};
use super::difference::{Change, Compared};
use super::image::{Image, Tables, records_of};
use super::report::{Broken, Report, Scenario};
use crate::connection::IdempotentConnection;
use crate::driver::{Driver, open_one_level};

/// How long a call is made again while the library advises it.
const SETTLE_AT_MOST: Duration = Duration::from_secs(10);

/// The longest pause before it is.
const PAUSE_AT_MOST: Duration = Duration::from_millis(20);

/// How long the reader waits for a writer that is just ending, where that is a setting of the connection.
const READER_WAITS: Duration = Duration::from_secs(5);

/// A call that is polled more often than this is not dropped any later.
const POLLS_AT_MOST: usize = 500;

const UNRECORDED: &str = "nothing is recorded under the key: is the handler marked `#[idempotent]`, or does it call `begin`?";

const VOLATILE: &str = "columns that differ in every run are named with `ignoring`";

const ELSEWHERE: &str = "what is written on another connection, or committed by the body itself, is not rolled back with the call";

/// Runs all scenarios, up to the first that does not hold.
pub(super) async fn run<C, R, A, K>(check: &Check<'_, C, R>, caller: K) -> Result<Report, Broken>
where
    C: IdempotentConnection,
    A: Answer + PartialEq + Debug,
    K: Caller<C, R, A>,
{
    let unprepared = |problem| Broken::new(Scenario::OneCall, problem);
    let mut observer = check.connect.connect().await;
    let patient = observer.inner().set_patience(READER_WAITS).await;
    patient.map_err(|error| unprepared(error.to_string()))?;
    let tables = Tables::look_up(&mut observer, &check.tables, &check.volatile)
        .await
        .map_err(unprepared)?;
    let mut stage = Stage {
        check,
        caller,
        observer,
        tables,
        report: Report::default(),
    };
    let one = stage.one_call().await?;
    stage.second_call(&one).await?;
    stage.lost_answer(&one).await?;
    stage.other_request().await?;
    stage.rolled_back(&one).await?;
    stage.race(&one).await?;
    stage.dropped_calls(&one).await?;
    Ok(stage.report)
}

/// What all scenarios need.
struct Stage<'s, 'c, C, R, K> {
    check: &'s Check<'c, C, R>,
    caller: K,
    /// A session that no handler is given.
    observer: C,
    tables: Tables,
    report: Report,
}

/// One scenario: a new key, a new request, and what was there before.
struct Scene<C, R> {
    scenario: Scenario,
    db: C,
    intent: Intent,
    request: R,
    before: Image,
}

impl<C, R> Scene<C, R> {
    fn broken(&self, sentence: impl Into<String>) -> Broken {
        Broken::new(self.scenario, sentence)
    }
}

/// An answer in the form that the executing call gives, so that first and later answers can be compared.
struct Told<A> {
    answer: A,
    /// Absent when the answer does not say.
    is_replayed: Option<bool>,
}

impl<A: Answer + PartialEq> Told<A> {
    fn of(answer: A) -> Self {
        let read = |origin| A::decode(&answer.encode().ok()?, origin).ok();
        match (read(Origin::Executed), read(Origin::Replayed)) {
            (Some(executed), Some(replayed)) if executed != replayed => Self {
                is_replayed: Some(answer == replayed),
                answer: executed,
            },
            // It has no stored form, or none that differs.
            _ => Self {
                answer,
                is_replayed: None,
            },
        }
    }
}

impl<C, R, K> Stage<'_, '_, C, R, K>
where
    C: IdempotentConnection,
{
    // --- The scenarios ---------------------------------------------------------------------------------------------------------

    /// What one call changes: the others are compared with it.
    async fn one_call<A>(&mut self) -> Result<Change, Broken>
    where
        A: Answer + PartialEq + Debug,
        K: Caller<C, R, A>,
    {
        let mut scene = self.scene(Scenario::OneCall).await?;
        let (_, after) = self.first(&mut scene).await?;
        let within = self.change(&scene.before, &after, Compared::WithinOneRun);
        let names = self.tables.names();
        if self.check.has_effect && within.is_empty() && !names.is_empty() {
            return Err(scene.broken(format!(
                "one call changed nothing in {names}: name the tables that it writes, or say `without_effect`"
            )));
        }
        if !self.check.has_effect && !within.is_empty() {
            let changed = within.describe(&self.tables);
            return Err(scene.broken(format!(
                "one call changed {changed}, but was to leave everything as it is"
            )));
        }
        let changed = match within.describe(&self.tables) {
            text if text.is_empty() => "changed nothing in the named tables".to_owned(),
            text => format!("changed {text}"),
        };
        self.report.held(Scenario::OneCall, changed);
        Ok(self.change(&scene.before, &after, Compared::AcrossRuns))
    }

    /// The same call twice, on one connection.
    async fn second_call<A>(&mut self, one: &Change) -> Result<(), Broken>
    where
        A: Answer + PartialEq + Debug,
        K: Caller<C, R, A>,
    {
        let mut scene = self.scene(Scenario::SecondCall).await?;
        let (told, after) = self.first(&mut scene).await?;
        self.expect_one(&scene, "the first call", &after, one)
            .map_err(|broken| broken.hint(VOLATILE))?;
        self.replays(&mut scene, "the second call", &told.answer, &after)
            .await?;
        self.report.held(
            Scenario::SecondCall,
            "changed nothing and was answered like the first".to_owned(),
        );
        Ok(())
    }

    /// The caller is gone before the answer arrives, and its connection with it.
    async fn lost_answer<A>(&mut self, one: &Change) -> Result<(), Broken>
    where
        A: Answer + PartialEq + Debug,
        K: Caller<C, R, A>,
    {
        let mut scene = self.scene(Scenario::LostAnswer).await?;
        let (told, after) = self.first(&mut scene).await?;
        self.expect_one(&scene, "the first call", &after, one)
            .map_err(|broken| broken.hint(VOLATILE))?;
        scene.db = self.check.connect.connect().await;
        self.replays(
            &mut scene,
            "the retry after a lost answer",
            &told.answer,
            &after,
        )
        .await?;
        self.report.held(
            Scenario::LostAnswer,
            "the retry got the first answer, on another connection".to_owned(),
        );
        Ok(())
    }

    /// The same key for something else.
    async fn other_request<A>(&mut self) -> Result<(), Broken>
    where
        A: Answer + PartialEq + Debug,
        K: Caller<C, R, A>,
    {
        let Some(other) = &self.check.other_request else {
            self.report
                .not_run(Scenario::OtherRequest, "no `other_request` was given");
            return Ok(());
        };
        let who = "another request under the same key";
        let mut scene = self.scene(Scenario::OtherRequest).await?;
        let request = other(&scene.request);
        let (told, after) = self.first(&mut scene).await?;
        let called = self.settle(&mut scene.db, &scene.intent, &request).await;
        self.expect_unchanged(&scene, who, &after).await?;
        match called {
            Ok(answer) => {
                let answer = Told::of(answer).answer;
                let skipped = "what tells the two requests apart is no part of the request hash: is it skipped, with \
                               `#[request_hash(skip)]` or `#[idempotent(skip)]`?";
                return Err(scene
                    .broken(format!(
                        "{who} was not refused, but answered with {answer:?}"
                    ))
                    .hint(skipped));
            }
            Err(Refusal {
                kind: Some(ErrorKind::Mismatch),
                ..
            }) => {}
            Err(refusal) => {
                return Err(scene.broken(format!(
                    "{who} was refused for another reason than that: {}",
                    refusal.text
                )));
            }
        }
        self.replays(
            &mut scene,
            "the first request, after another one under its key,",
            &told.answer,
            &after,
        )
        .await?;
        self.report.held(
            Scenario::OtherRequest,
            "was refused and changed nothing".to_owned(),
        );
        Ok(())
    }

    /// The call is done, but its transaction is rolled back, as by a crash before COMMIT.
    async fn rolled_back<A>(&mut self, one: &Change) -> Result<(), Broken>
    where
        A: Answer + PartialEq + Debug,
        K: Caller<C, R, A>,
    {
        let who = "a call whose transaction was rolled back";
        let mut scene = self.scene(Scenario::RolledBack).await?;
        let opened = open_test_transaction(scene.db.inner()).await;
        opened.map_err(|error| scene.broken(error.to_string()))?;
        let called = self
            .settle(&mut scene.db, &scene.intent, &scene.request)
            .await;
        let ended = scene.db.inner().rollback().await;
        match called {
            Ok(_) => {}
            Err(Refusal {
                kind: Some(ErrorKind::Unsupported { .. }),
                ..
            }) => {
                self.report.not_run(
                    Scenario::RolledBack,
                    "the handler cannot be called inside Diesel's test transaction",
                );
                return Ok(());
            }
            Err(refusal) => {
                return Err(scene.broken(format!(
                    "a call inside Diesel's test transaction failed: {}",
                    refusal.text
                )));
            }
        }
        let after = self.look(&scene).await?;
        let left = self.change(&scene.before, &after, Compared::WithinOneRun);
        if !left.is_empty() {
            let left = left.describe(&self.tables);
            return Err(scene
                .broken(format!("{who} left its writes in {left}"))
                .hint(ELSEWHERE));
        }
        if let Err(error) = ended {
            return Err(scene
                .broken(format!("{who} left none to roll back: {error}"))
                .hint(ELSEWHERE));
        }
        let (_, after) = self.first(&mut scene).await?;
        self.expect_one(
            &scene,
            "the retry of a call that was rolled back",
            &after,
            one,
        )?;
        self.report.held(
            Scenario::RolledBack,
            "left nothing, and its key was free".to_owned(),
        );
        Ok(())
    }

    /// Many callers at once.
    async fn race<A>(&mut self, one: &Change) -> Result<(), Broken>
    where
        A: Answer + PartialEq + Debug,
        K: Caller<C, R, A>,
    {
        let racers = self.check.racers;
        let who = format!("{racers} racing calls");
        let mut scene = self.scene(Scenario::Race).await?;
        let mut dbs = Vec::new();
        for _ in 0..racers {
            dbs.push(self.check.connect.connect().await);
        }
        let called = self.caller.race(dbs, &scene.intent, &scene.request).await;
        let (mut answers, mut refused) = (Vec::new(), 0);
        for call in called {
            match call {
                Ok(answer) => answers.push(Told::of(answer)),
                Err(refusal) if refusal.retry_after.is_some() => refused += 1,
                Err(refusal) => {
                    return Err(scene.broken(format!("one of {who} failed: {}", refusal.text)));
                }
            }
        }
        for _ in 0..refused {
            let again = self
                .settle(&mut scene.db, &scene.intent, &scene.request)
                .await;
            let answer = again.map_err(|refusal| {
                scene.broken(format!("one of {who} failed, also later: {}", refusal.text))
            })?;
            answers.push(Told::of(answer));
        }
        let after = self.look(&scene).await?;
        self.expect_one(&scene, &who, &after, one)?;
        let executed = answers
            .iter()
            .filter(|told| told.is_replayed == Some(false))
            .count();
        if executed > 1 {
            return Err(scene.broken(format!("{executed} of {who} say that they executed")));
        }
        for pair in answers.windows(2) {
            if let [one, other] = pair
                && one.answer != other.answer
            {
                return Err(scene.broken(format!(
                    "two of {who} were answered differently: {:?} and {:?}",
                    one.answer, other.answer
                )));
            }
        }
        self.report.held(
            Scenario::Race,
            format!("{racers} calls, one effect, one answer"),
        );
        Ok(())
    }

    /// A client hangs up, at every await.
    async fn dropped_calls<A>(&mut self, one: &Change) -> Result<(), Broken>
    where
        A: Answer + PartialEq + Debug,
        K: Caller<C, R, A>,
    {
        if !K::IS_ASYNC {
            self.report
                .not_run(Scenario::DroppedCalls, "a sync call cannot be dropped");
            return Ok(());
        }
        let (mut drops, mut done) = (0, 0);
        for polls in 1..=POLLS_AT_MOST {
            let mut scene = self.scene(Scenario::DroppedCalls).await?;
            let call = self
                .caller
                .call(&mut scene.db, &scene.intent, &scene.request);
            if let Some(called) = poll_at_most(polls, call).await {
                called
                    .map_err(|refusal| scene.broken(format!("a call failed: {}", refusal.text)))?;
                done += 1;
                // Once more, because how often a call is polled depends on the machine, too.
                if done == 2 {
                    break;
                }
            } else {
                drops += 1;
                self.after_drop(scene, polls, one).await?;
            }
        }
        self.report.held(
            Scenario::DroppedCalls,
            format!("at {drops} awaits: nothing or everything, and one effect after the retry"),
        );
        Ok(())
    }

    async fn after_drop<A>(
        &mut self,
        mut scene: Scene<C, R>,
        polls: usize,
        one: &Change,
    ) -> Result<(), Broken>
    where
        A: Answer + PartialEq + Debug,
        K: Caller<C, R, A>,
    {
        let times = if polls == 1 { "poll" } else { "polls" };
        let who = format!("a call that was dropped after {polls} {times}");
        // The client's connection goes with it.
        scene.db = self.check.connect.connect().await;
        let after = self.look(&scene).await?;
        // Nothing, or everything: COMMIT may have been on its way.
        if after != scene.before {
            self.expect_one(&scene, &who, &after, one)
                .map_err(|broken| broken.hint(ELSEWHERE))?;
        }
        let retry = self
            .settle(&mut scene.db, &scene.intent, &scene.request)
            .await;
        let retry = retry.map_err(|refusal| {
            scene.broken(format!("the retry of {who} failed: {}", refusal.text))
        })?;
        let after = self.look(&scene).await?;
        self.expect_one(&scene, &format!("{who}, with its retry,"), &after, one)
            .map_err(|broken| broken.hint(ELSEWHERE))?;
        let third = format!("the second retry of {who}");
        self.replays(&mut scene, &third, &Told::of(retry).answer, &after)
            .await
    }

    // --- What they are made of -------------------------------------------------------------------------------------------------

    async fn scene(&mut self, scenario: Scenario) -> Result<Scene<C, R>, Broken> {
        let mut db = self.check.connect.connect().await;
        let request = self.check.request.make(&mut db).await;
        let before = self.tables.read(&mut self.observer).await;
        Ok(Scene {
            scenario,
            db,
            intent: Intent::new(
                self.check.tenant.clone().unwrap_or_else(default_tenant),
                fresh_key(),
            ),
            request,
            before: before.map_err(|problem| Broken::new(scenario, problem))?,
        })
    }

    /// The first call of a key, which must execute.
    async fn first<A>(&mut self, scene: &mut Scene<C, R>) -> Result<(Told<A>, Image), Broken>
    where
        A: Answer + PartialEq + Debug,
        K: Caller<C, R, A>,
    {
        let called = self
            .settle(&mut scene.db, &scene.intent, &scene.request)
            .await;
        let answer = called
            .map_err(|refusal| scene.broken(format!("the first call failed: {}", refusal.text)))?;
        let told = Told::of(answer);
        if told.is_replayed == Some(true) {
            return Err(scene
                .broken("the first call of a new key says that it was replayed")
                .hint("does the handler use the intent that it is given?"));
        }
        let after = self.look(scene).await?;
        Ok((told, after))
    }

    /// A later call of a key, which must change nothing and be answered like the first.
    async fn replays<A>(
        &mut self,
        scene: &mut Scene<C, R>,
        who: &str,
        first: &A,
        after: &Image,
    ) -> Result<(), Broken>
    where
        A: Answer + PartialEq + Debug,
        K: Caller<C, R, A>,
    {
        let called = self
            .settle(&mut scene.db, &scene.intent, &scene.request)
            .await;
        let held = self.is_replay(scene, who, called, first, after).await;
        let records = records_of(&mut self.observer, &scene.intent).await;
        match (held, records) {
            (Err(broken), Ok(0)) => Err(broken.hint(UNRECORDED)),
            // It can be harmless to run twice and still have no record: the first answer would be lost.
            (Ok(None), Ok(0)) => Err(scene
                .broken(format!("{who} was not replayed"))
                .hint(UNRECORDED)),
            (Ok(_), Err(problem)) => Err(scene.broken(problem)),
            (held, _) => held.map(drop),
        }
    }

    /// Gives whether the answer itself says that it is one.
    async fn is_replay<A>(
        &mut self,
        scene: &Scene<C, R>,
        who: &str,
        called: Result<A, Refusal>,
        first: &A,
        after: &Image,
    ) -> Result<Option<bool>, Broken>
    where
        A: Answer + PartialEq + Debug,
    {
        self.expect_unchanged(scene, who, after).await?;
        let answer = called.map_err(|refusal| {
            scene.broken(format!(
                "{who} failed, where the first was answered: {}",
                refusal.text
            ))
        })?;
        let told = Told::of(answer);
        if told.answer != *first {
            return Err(scene.broken(format!(
                "{who} was answered with {:?}, where the first was answered with {first:?}",
                told.answer
            )));
        }
        if told.is_replayed == Some(false) {
            return Err(scene.broken(format!("{who} says that it executed")));
        }
        Ok(told.is_replayed)
    }

    /// Makes a call, again as long as the library advises that.
    async fn settle<A>(&self, db: &mut C, intent: &Intent, request: &R) -> Result<A, Refusal>
    where
        K: Caller<C, R, A>,
    {
        let start = Instant::now();
        loop {
            match self.caller.call(db, intent, request).await {
                Err(Refusal {
                    retry_after: Some(pause),
                    ..
                }) if start.elapsed() < SETTLE_AT_MOST => {
                    // Also in an async test: whoever is to go on meanwhile is on another thread, or on the server.
                    std::thread::sleep(pause.min(PAUSE_AT_MOST));
                }
                called => return called,
            }
        }
    }

    async fn look(&mut self, scene: &Scene<C, R>) -> Result<Image, Broken> {
        let image = self.tables.read(&mut self.observer).await;
        image.map_err(|problem| scene.broken(problem))
    }

    fn change(&self, before: &Image, after: &Image, compared: Compared) -> Change {
        Change::between(&self.tables, before, after, compared)
    }

    /// The scene so far has the effect of one call.
    fn expect_one(
        &self,
        scene: &Scene<C, R>,
        who: &str,
        after: &Image,
        one: &Change,
    ) -> Result<(), Broken> {
        let found = self.change(&scene.before, after, Compared::AcrossRuns);
        match found.difference(one, &self.tables) {
            None => Ok(()),
            Some(difference) => Err(scene.broken(format!("{who} changed {difference}"))),
        }
    }

    /// Nothing has changed since `after`, in no column.
    async fn expect_unchanged(
        &mut self,
        scene: &Scene<C, R>,
        who: &str,
        after: &Image,
    ) -> Result<(), Broken> {
        let now = self.look(scene).await?;
        if now == *after {
            return Ok(());
        }
        let one = self.change(&scene.before, after, Compared::WithinOneRun);
        let found = self.change(&scene.before, &now, Compared::WithinOneRun);
        let difference = found.difference(&one, &self.tables);
        Err(scene.broken(format!(
            "{who} changed {}",
            difference.unwrap_or_else(|| self.tables.names())
        )))
    }
}

/// Opens what Diesel calls a test transaction: the one kind that a call joins without being told to.
async fn open_test_transaction<D: Driver>(db: &mut D) -> diesel::QueryResult<()> {
    db.batch("BEGIN").await?;
    open_one_level(db);
    db.status().set_test_transaction_flag();
    Ok(())
}

/// A key that no scenario of any run had before.
fn fresh_key() -> IdempotencyKey {
    static KEYS: AtomicU64 = AtomicU64::new(0);
    let number = KEYS.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanoseconds = now.unwrap_or_default().as_nanos();
    let key = format!("testing-{}-{nanoseconds}-{number}", std::process::id());
    match IdempotencyKey::new(key) {
        Ok(key) => key,
        Err(invalid) => unreachable!("letters, digits and dashes are a key: {invalid}"),
    }
}

fn default_tenant() -> Tenant {
    match Tenant::shared("idem-testing") {
        Ok(tenant) => tenant,
        Err(invalid) => unreachable!("letters and a dash are a tenant: {invalid}"),
    }
}

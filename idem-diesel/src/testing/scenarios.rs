//! The scenarios: how a handler is called, and what must be true afterwards.

use std::fmt::Debug;
use std::time::Duration;

use idem_core::{Answer, ErrorKind};

use super::Check;
use super::caller::{Caller, Refusal, poll_at_most};
use super::difference::{Change, Compared};
use super::image::Tables;
use super::report::{Broken, Report, Scenario};
use super::stage::{Scene, Stage, Told};
use crate::connection::IdempotentConnection;
use crate::driver::{Driver, open_one_level};

/// How long the reader waits for a writer that is just ending, where that is a setting of the connection.
const READER_WAITS: Duration = Duration::from_secs(5);

/// How often the awaits are gone through: an await is no place to be dropped when what it waits for is there already, which depends on the
/// machine.
const PASSES: usize = 3;

/// A call that is polled more often than this is not dropped any later.
const POLLS_AT_MOST: usize = 500;

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

impl<C, R, K> Stage<'_, '_, C, R, K>
where
    C: IdempotentConnection,
{
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
        let mut drops = 0;
        for _ in 0..PASSES {
            for polls in 1..=POLLS_AT_MOST {
                let mut scene = self.scene(Scenario::DroppedCalls).await?;
                let call = self
                    .caller
                    .call(&mut scene.db, &scene.intent, &scene.request);
                if let Some(called) = poll_at_most(polls, call).await {
                    called.map_err(|refusal| {
                        scene.broken(format!("a call failed: {}", refusal.text))
                    })?;
                    break;
                }
                drops += 1;
                self.after_drop(scene, polls, one).await?;
            }
        }
        self.report.held(
            Scenario::DroppedCalls,
            format!(
                "{drops} drops, each left nothing or everything, and one effect after the retry"
            ),
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
}

/// Opens what Diesel calls a test transaction: the one kind that a call joins without being told to.
async fn open_test_transaction<D: Driver>(db: &mut D) -> diesel::QueryResult<()> {
    db.batch("BEGIN").await?;
    open_one_level(db);
    db.status().set_test_transaction_flag();
    Ok(())
}

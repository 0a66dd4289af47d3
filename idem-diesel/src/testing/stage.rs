//! What the scenarios are made of: a call, a look at the tables, and the checks that more than one of them makes.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use idem_core::answer::{Answer, Origin};
use idem_core::{IdempotencyKey, Intent, Tenant};

use super::Check;
use super::caller::{Caller, Refusal};
use super::difference::{Change, Compared};
use super::image::{Image, Tables, records_of};
use super::report::{Broken, Report, Scenario};
use crate::connection::IdempotentConnection;

/// How long a call is made again while the library advises it.
const SETTLE_AT_MOST: Duration = Duration::from_secs(10);

/// The longest pause before it is.
const PAUSE_AT_MOST: Duration = Duration::from_millis(20);

const UNRECORDED: &str = "nothing is recorded under the key: is the handler marked `#[idempotent]`, or does it call `begin`?";

/// What all scenarios need.
pub(super) struct Stage<'s, 'c, C, R, K> {
    pub(super) check: &'s Check<'c, C, R>,
    pub(super) caller: K,
    /// A session that no handler is given.
    pub(super) observer: C,
    pub(super) tables: Tables,
    pub(super) report: Report,
}

/// One scenario: a new key, a new request, and what was there before.
pub(super) struct Scene<C, R> {
    pub(super) scenario: Scenario,
    pub(super) db: C,
    pub(super) intent: Intent,
    pub(super) request: R,
    pub(super) before: Image,
}

impl<C, R> Scene<C, R> {
    pub(super) fn broken(&self, sentence: impl Into<String>) -> Broken {
        Broken::new(self.scenario, sentence)
    }
}

/// An answer in the form that the executing call gives, so that first and later answers can be compared.
pub(super) struct Told<A> {
    pub(super) answer: A,
    /// Absent when the answer does not say.
    pub(super) is_replayed: Option<bool>,
}

impl<A: Answer + PartialEq> Told<A> {
    pub(super) fn of(answer: A) -> Self {
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
    pub(super) async fn scene(&mut self, scenario: Scenario) -> Result<Scene<C, R>, Broken> {
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
    pub(super) async fn first<A>(
        &mut self,
        scene: &mut Scene<C, R>,
    ) -> Result<(Told<A>, Image), Broken>
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
    pub(super) async fn replays<A>(
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
    pub(super) async fn is_replay<A>(
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
    pub(super) async fn settle<A>(
        &self,
        db: &mut C,
        intent: &Intent,
        request: &R,
    ) -> Result<A, Refusal>
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

    pub(super) async fn look(&mut self, scene: &Scene<C, R>) -> Result<Image, Broken> {
        let image = self.tables.read(&mut self.observer).await;
        image.map_err(|problem| scene.broken(problem))
    }

    pub(super) fn change(&self, before: &Image, after: &Image, compared: Compared) -> Change {
        Change::between(&self.tables, before, after, compared)
    }

    /// The scene so far has the effect of one call.
    pub(super) fn expect_one(
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
    pub(super) async fn expect_unchanged(
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

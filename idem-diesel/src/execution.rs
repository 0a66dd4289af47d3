//! The guard: the first of the three layers, and what the other two are made of.

use std::marker::PhantomData;

use idem_core::answer::{Answer, Origin, StoredAnswer};
use idem_core::{BoundIntent, ErrorKind, Intent, Operation, RequestHash, Transition};

use crate::after_commit::AfterCommit;
use crate::connection::{Flavor, IdempotentConnection, Run};
use crate::driver::Driver;
use crate::error::Error;
use crate::fault::{Point, reach};
use crate::guard::{self, Begun, Request, Running};
use crate::transaction::Transaction;
use crate::transition::{EntityKey, StateColumn, advance};

/// What a claim led to.
#[must_use = "an execution that is dropped is rolled back"]
pub enum Claimed<'c, C: IdempotentConnection, A> {
    /// The key was new: do the work on [`Execution::connection`], then [`finish`](Execution::finish).
    Execute(Execution<'c, C, A>),
    /// The key has an answer.
    Replay(Replay<A>),
}

/// Claims the key of `intent` for `operation` and `request`, and opens the transaction in which the work is done.
///
/// `intent` may be absent: the work then runs in the same transaction, guarded but unrecorded.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::{Claimed, Error, IdempotencyKey, Intent, Operation, Retention, Tenant, begin};
///
/// const CREATE: Operation = Operation::new("orders.create", Retention::literal("48h"));
///
/// fn create(db: &mut SqliteConnection, intent: &Intent, amount: i64) -> Result<String, Error> {
///     match begin(db, intent, &CREATE, &amount)? {
///         Claimed::Execute(mut execution) => {
///             let result = diesel::sql_query("INSERT INTO orders (amount) VALUES (7)")
///                 .execute(execution.connection())
///                 .map(|rows| format!("{rows} order"))
///                 .map_err(Error::from);
///             execution.finish(result)
///         }
///         Claimed::Replay(replay) => replay.answer(),
///     }
/// }
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # idem_diesel::ensure_schema(&mut db)?;
/// # diesel::sql_query("CREATE TABLE orders (amount INTEGER)").execute(&mut db)?;
/// let intent = Intent::new(Tenant::of("acme", "alice")?, IdempotencyKey::new("order-17")?);
/// assert_eq!(create(&mut db, &intent, 7)?, "1 order");
/// assert_eq!(create(&mut db, &intent, 7)?, "1 order");
/// let rows: i64 = diesel::select(diesel::dsl::sql::<diesel::sql_types::BigInt>("(SELECT count(*) FROM orders)"))
///     .get_result(&mut db)?;
/// assert_eq!(rows, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Everything of [`ErrorKind`] that can happen before the work; the transaction is closed then.
///
/// # Cancellation
///
/// Dropping the future, or the execution it gives, rolls back and frees the key: on PostgreSQL ROLLBACK is on the wire when the
/// drop returns, behind a statement that is still running unless a `Canceller` cancels that. (On a current-thread runtime diesel-async panics when a future is dropped while a
/// statement of SQLite runs.)
pub fn begin<'c, 'i, C, A>(
    db: &'c mut C,
    intent: impl Into<Option<&'i Intent>>,
    operation: &Operation,
    request: &(impl RequestHash + ?Sized),
) -> Run<'c, C, Result<Claimed<'c, C, A>, Error>>
where
    C: IdempotentConnection,
    A: Answer + 'c,
{
    // Key and hash are taken now, so that the future borrows the connection alone.
    let request = Request::new(operation, intent.into(), &request, A::MAY_FAIL);
    C::Flavor::run(claim(db, request))
}

pub(crate) async fn claim<C, A>(
    db: &mut C,
    request: Result<Request, Error>,
) -> Result<Claimed<'_, C, A>, Error>
where
    C: IdempotentConnection,
    A: Answer,
{
    let request = request?;
    let operation = request.operation_name();
    Ok(match guard::begin(db, request).await? {
        Begun::Execute(transaction, running) => Claimed::Execute(Execution {
            transaction,
            running,
            after_commit: AfterCommit::default(),
            answer: PhantomData,
        }),
        Begun::Replay(stored) => Claimed::Replay(Replay {
            stored,
            operation,
            answer: PhantomData,
        }),
    })
}

/// An answer that an earlier call stored.
#[derive(Debug)]
pub struct Replay<A> {
    stored: StoredAnswer,
    operation: &'static str,
    answer: PhantomData<fn() -> A>,
}

impl<A> Replay<A> {
    /// The bytes as they were stored, also when they no longer decode.
    pub fn stored(&self) -> &StoredAnswer {
        &self.stored
    }

    /// The answer.
    ///
    /// # Errors
    ///
    /// [`Undecodable`](ErrorKind::Undecodable) when the stored bytes are not of the type that the handler returns now.
    pub fn answer<E: From<Error>>(&self) -> Result<A, E>
    where
        A: Answer,
    {
        A::decode(&self.stored, Origin::Replayed)
            .map_err(|error| E::from(error.in_operation(self.operation).into()))
    }
}

/// A claimed key and its open transaction. Dropping it rolls back and frees the key.
#[must_use = "an execution that is dropped is rolled back"]
pub struct Execution<'c, C: IdempotentConnection, A> {
    transaction: Transaction<'c, C>,
    running: Running,
    after_commit: AfterCommit,
    answer: PhantomData<fn() -> A>,
}

impl<'c, C: IdempotentConnection, A: Answer> Execution<'c, C, A> {
    /// The connection, inside the transaction. What is done on any other is not protected.
    pub fn connection(&mut self) -> &mut C {
        self.transaction.connection()
    }

    /// The intent with its operation; `None` when the call came without one.
    pub fn intent(&self) -> Option<&BoundIntent> {
        self.running.intent()
    }

    /// Changes the state of an entity, if it is in one of the states the transition starts from.
    ///
    /// # Errors
    ///
    /// [`AlreadyApplied`](ErrorKind::AlreadyApplied), [`IllegalTransition`](ErrorKind::IllegalTransition),
    /// [`EntityNotFound`](ErrorKind::EntityNotFound), or what the database says.
    ///
    /// # Cancellation
    ///
    /// As for [`begin`]: a dropped future changes nothing once the execution is dropped, too.
    pub fn transition<S>(
        &mut self,
        transition: Transition<S>,
        id: impl EntityKey,
    ) -> Run<'_, C, Result<(), Error>>
    where
        S: StateColumn,
    {
        let key = id.into_values();
        C::Flavor::run(async move { self.advance(&transition, key).await })
    }

    pub(crate) async fn advance<S: StateColumn>(
        &mut self,
        transition: &Transition<S>,
        key: Vec<crate::transition::KeyValue>,
    ) -> Result<(), Error> {
        advance_in(&mut self.transaction, &self.running, transition, key).await
    }

    /// Runs `hook` once, after COMMIT was answered; never on a replay, a rollback, or an unknown outcome.
    ///
    /// Inside a transaction of the caller's ([`Nested::Join`](crate::Nested::Join)) nothing is durable when this execution ends: the hooks are
    /// dropped unless the caller takes them with [`take_after_commit`](Self::take_after_commit) and runs them after its own commit.
    ///
    /// ```
    /// # use diesel::prelude::*;
    /// # use idem_diesel::*;
    /// # use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
    /// # const OPERATION: Operation = Operation::new("mails.send", Retention::literal("48h"));
    /// # let mut db = SqliteConnection::establish(":memory:")?;
    /// # ensure_schema(&mut db)?;
    /// # let intent = Intent::new(Tenant::shared("acme")?, IdempotencyKey::new("k")?);
    /// let mails = Arc::new(AtomicU32::new(0));
    /// for _ in 0..2 {
    ///     if let Claimed::Execute(mut execution) = begin(&mut db, &intent, &OPERATION, &1)? {
    ///         let mails = Arc::clone(&mails);
    ///         execution.after_commit(move || { mails.fetch_add(1, Ordering::Relaxed); });
    ///         execution.finish(Ok::<_, Error>(7))?;
    ///     }
    /// }
    /// assert_eq!(mails.load(Ordering::Relaxed), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn after_commit(&mut self, hook: impl FnOnce() + Send + 'static) {
        self.after_commit.push(hook);
    }

    /// Takes the hooks, for a caller whose own commit is the durable one.
    pub fn take_after_commit(&mut self) -> AfterCommit {
        std::mem::take(&mut self.after_commit)
    }

    /// Ends the execution: stores an `Ok` with the effects and commits, or rolls an `Err` back.
    ///
    /// The value that comes back was decoded from the bytes that were stored, so it equals what replays give.
    ///
    /// # Errors
    ///
    /// The `Err` that was given; or, made into `E`, why the answer could not be stored. In every case but
    /// [`OutcomeUnknown`](ErrorKind::OutcomeUnknown) everything is rolled back.
    ///
    /// # Cancellation
    ///
    /// A future dropped before COMMIT is sent rolls back; after that, everything may have happened. The same key finds out.
    pub fn finish<E>(self, result: Result<A, E>) -> Run<'c, C, Result<A, E>>
    where
        A: Send + 'c,
        E: From<Error> + Send + 'c,
    {
        C::Flavor::run(self.settle(result))
    }

    pub(crate) async fn settle<E: From<Error>>(self, result: Result<A, E>) -> Result<A, E> {
        self.settle_and_look(result).await.0
    }

    /// Also whether the transaction met a conflict that Diesel knows of, however the body reported it.
    pub(crate) async fn settle_and_look<E: From<Error>>(
        self,
        result: Result<A, E>,
    ) -> (Result<A, E>, bool) {
        let Self {
            mut transaction,
            running,
            after_commit,
            ..
        } = self;
        let met_conflict = transaction.inner().met_conflict();
        let settled = match result {
            Err(error) => {
                guard::release(transaction, running).await;
                Err(error)
            }
            Ok(answer) => match to_store(&answer, running.operation()) {
                Err(error) => {
                    guard::release(transaction, running).await;
                    Err(error.into())
                }
                Ok((stored, answer)) => {
                    guard::complete(transaction, running, Some(stored), after_commit)
                        .await
                        .map(|()| answer)
                        .map_err(E::from)
                }
            },
        };
        (settled, met_conflict)
    }

    /// Ends the execution without an answer: everything is rolled back and the key is free.
    ///
    /// # Cancellation
    ///
    /// A dropped future rolls back, too.
    pub fn release(self) -> Run<'c, C, ()>
    where
        A: 'c,
    {
        C::Flavor::run(self.give_up())
    }

    pub(crate) async fn give_up(self) {
        guard::release(self.transaction, self.running).await;
    }
}

// Without the bound on the answer: one that cannot be stored is reported once, where the call begins.
impl<C: IdempotentConnection, A> Execution<'_, C, A> {
    #[doc(hidden)]
    pub fn __parts(&mut self) -> (&mut C, &BoundIntent) {
        let Self {
            transaction,
            running,
            ..
        } = self;
        match running.intent() {
            Some(intent) => (transaction.connection(), intent),
            None => unreachable!("I7: a handler with an intent has a bound intent"),
        }
    }

    #[doc(hidden)]
    pub fn __optional_parts(&mut self) -> (&mut C, Option<&BoundIntent>) {
        (self.transaction.connection(), self.running.intent())
    }
}

/// Changes the state of an entity, in a call that runs.
pub(crate) async fn advance_in<C: IdempotentConnection, S: StateColumn>(
    transaction: &mut Transaction<'_, C>,
    running: &Running,
    transition: &Transition<S>,
    key: Vec<crate::transition::KeyValue>,
) -> Result<(), Error> {
    let operation = running.operation().name();
    let moved = match advance(transaction.inner(), transition, key).await {
        Ok(()) => reach(Point::AfterGuard, operation).await,
        refused => refused,
    };
    moved.map_err(|error| error.into_core().in_operation(operation).into())
}

/// The bytes of an answer, and the answer as these bytes give it back.
fn to_store<A: Answer>(answer: &A, operation: &Operation) -> Result<(StoredAnswer, A), Error> {
    let name = operation.name();
    let stored = answer.encode().map_err(|error| error.in_operation(name))?;
    let (bytes, limit) = (stored.body().len(), operation.policy().get_answer_bytes());
    if bytes > limit {
        let error = idem_core::Error::new(ErrorKind::AnswerTooLarge { bytes, limit });
        return Err(error.in_operation(name).into());
    }
    let answer = A::decode(&stored, Origin::Executed).map_err(|error| {
        error
            .into_kind(ErrorKind::NotReplayable {
                answer: std::any::type_name::<A>(),
            })
            .in_operation(name)
    })?;
    Ok((stored, answer))
}

/// Runs `body` once for `intent`, on an async connection; every later call with the same request gets the same answer.
///
/// The second layer: [`begin`] and [`Execution::finish`] around a closure. The attribute writes the same.
///
/// ```
/// use diesel::SqliteConnection;
/// use diesel::Connection;
/// # use idem_diesel::*;
/// const PAY: Operation = Operation::new("orders.pay", Retention::literal("48h"));
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # ensure_schema(&mut db)?;
/// let intent = Intent::new(Tenant::of("acme", "alice")?, IdempotencyKey::new("pay-17")?);
/// // The sync form; the async one is `idempotent(&mut db, &intent, &PAY, &17, async |db, intent| …).await`.
/// let mut pay = || idem_diesel::idempotent_sync(&mut db, &intent, &PAY, &17, |_db, intent| {
///     Ok::<_, Error>(Outcome::from(intent.downstream("card").to_string()))
/// });
/// let first = pay()?;
/// let second = pay()?;
/// assert!(second.is_replayed());
/// assert_eq!(first.get(), second.get());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// What `body` returns, after everything was rolled back; or, made into `E`, what [`begin`] and [`Execution::finish`] say.
///
/// # Cancellation
///
/// A dropped future rolls back and frees the key; once COMMIT is on the wire, the same key finds out.
pub async fn idempotent<C, A, E, F>(
    db: &mut C,
    intent: &Intent,
    operation: &Operation,
    request: &impl RequestHash,
    body: F,
) -> Result<A, E>
where
    C: IdempotentConnection<Flavor = crate::Async>,
    A: Answer,
    E: From<Error>,
    F: AsyncFnOnce(&mut C, &BoundIntent) -> Result<A, E>,
{
    let request = Request::new(operation, Some(intent), request, A::MAY_FAIL);
    match claim(db, request).await? {
        Claimed::Replay(replay) => replay.answer(),
        Claimed::Execute(mut execution) => {
            let (db, intent) = execution.__parts();
            let result = body(db, intent).await;
            execution.settle(result).await
        }
    }
}

/// [`idempotent`](fn@idempotent) for a sync connection.
///
/// # Errors
///
/// What `body` returns, after everything was rolled back; or, made into `E`, what [`begin`] and [`Execution::finish`] say.
pub fn idempotent_sync<C, A, E, F>(
    db: &mut C,
    intent: &Intent,
    operation: &Operation,
    request: &impl RequestHash,
    body: F,
) -> Result<A, E>
where
    C: IdempotentConnection<Flavor = crate::Blocking>,
    A: Answer,
    E: From<Error>,
    F: FnOnce(&mut C, &BoundIntent) -> Result<A, E>,
{
    crate::connection::run_blocking(async {
        let request = Request::new(operation, Some(intent), request, A::MAY_FAIL);
        match claim(db, request).await? {
            Claimed::Replay(replay) => replay.answer(),
            Claimed::Execute(mut execution) => {
                let (db, intent) = execution.__parts();
                let result = body(db, intent);
                execution.settle(result).await
            }
        }
    })
}

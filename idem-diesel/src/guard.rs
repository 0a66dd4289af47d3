//! START READING HERE: the protocol of one call, in the order in which it happens.
//!
//! 1. [`begin`] hashes the request. Nothing has been sent yet.
//! 2. It opens a transaction that states its isolation level, and tries to take the locks of the key without waiting for them.
//! 3. A second statement, with a snapshot that is younger than the locks, reads the row of the key and the time.
//! 4. [`decide`](idem_core::decide()) says what follows from record, call and time: execute, take over, replay, or an error.
//!    Somebody else having the key is waited for, with one deadline over all of step 2 to 4.
//! 5. Execute: a savepoint if the answer may be a final failure, the transition, the body, RELEASE or ROLLBACK TO, the store,
//!    COMMIT. Replay and errors: ROLLBACK of a transaction that wrote nothing.
//!
//! Whoever has the lock of the key sees every committed record of it, because locks are given back after a commit is visible. So a key without
//! a row is held by its lock alone, and the store inserts the row with the answer in it. Where that is not so, a pending row is written first: on SQLite,
//! which has one write lock and no others, and above READ COMMITTED, where the snapshot is older than the locks.
//!
//! On a connection that pipelines, steps 2 and 3 are one wait for the server, and so are the store and COMMIT.
//!
//! The three ends of an execution are [`complete`], which stores a result or a final failure, [`release`], which stores
//! nothing, and being dropped, which [`Transaction`] turns into a rollback.
//!
//! The functions are written once for all connections; on blocking ones their futures never wait.

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use diesel::QueryResult;
use diesel::query_builder::{QueryFragment, QueryId};
use diesel::result::{DatabaseErrorKind, Error as DieselError};
use idem_core::answer::{self, StoredAnswer};
use idem_core::limits::RETRY_AFTER;
use idem_core::{BoundIntent, ErrorKind, Intent, Isolation, Operation, RequestDigest, RequestHash};

use crate::after_commit::AfterCommit;
use crate::claim::{self, Claiming, Won, WonRow};
use crate::connection::IdempotentConnection;
use crate::dialect::Dialect;
use crate::driver::{Call, Driver, Entry, Last, Opening, Refused, is_same};
use crate::error::{Error, kind_of};
use crate::fault::{Pace, Point, pace, reach};
use crate::migrations::explain_on;
use crate::running::{Place, Runs};
use crate::store::{Claim, End, Horizons, Insert, Probe, Read, RowKey, StillIn, TABLE};
use crate::texts::Sql;
use crate::transaction::{Levels, Transaction};
use crate::wake;

/// A call, before anything was sent for it.
pub(crate) struct Request {
    operation: Operation,
    /// `None`: it runs in the same transaction, without a record.
    recorded: Option<Recorded>,
    may_fail: bool,
}

/// What is recorded of a call.
struct Recorded {
    intent: BoundIntent,
    key: RowKey,
    digest: RequestDigest,
}

impl Request {
    /// Step 1.
    pub(crate) fn new(
        operation: &Operation,
        intent: Option<&Intent>,
        request: &dyn RequestHash,
        may_fail: bool,
    ) -> Result<Self, Error> {
        let recorded = match intent {
            Some(intent) => {
                let intent = intent.bind(operation.name());
                Some(Recorded {
                    key: RowKey::of(&intent),
                    digest: RequestDigest::of(request)?,
                    intent,
                })
            }
            None => None,
        };
        Ok(Self {
            operation: *operation,
            recorded,
            may_fail,
        })
    }

    pub(crate) fn operation_name(&self) -> &'static str {
        self.operation.name()
    }
}

/// No two calls have the same: a random number of the process, and one that counts.
fn name_of_a_call() -> String {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let process = PROCESS.get_or_init(|| RandomState::new().build_hasher().finish());
    format!("{process:x}.{:x}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// What the transaction of a call begins with.
fn opening(request: &Request, entry: Entry) -> Result<Opening, Error> {
    let recorded = request.recorded.as_ref();
    let intent = recorded.map(|recorded| &*recorded.intent);
    let call = recorded.map(|recorded| Call {
        name: name_of_a_call(),
        locks: recorded.key.locks(),
    });
    let plain = opening_of(&request.operation, intent, entry)?;
    Ok(Opening { call, ..plain })
}

/// What the transaction of an operation begins with: what its policy says, and whose it is.
pub(crate) fn opening_of(
    operation: &Operation,
    intent: Option<&Intent>,
    entry: Entry,
) -> Result<Opening, Error> {
    let policy = operation.policy();
    let is_nested = matches!(entry, Entry::Joined { is_test: false, .. });
    if is_nested && policy.get_isolation() != Isolation::ReadCommitted {
        let what = "an isolation level of its own inside the caller's transaction";
        return Err(ErrorKind::Unsupported { what }.into());
    }
    let tenant = match (policy.get_tenant_setting(), intent) {
        // The caller's transaction has the caller's tenant.
        _ if is_nested => None,
        (Some(setting), Some(intent)) => {
            if !is_setting_name(setting) {
                let what =
                    "a tenant setting with characters other than letters, digits, `_` and `.`";
                return Err(ErrorKind::Unsupported { what }.into());
            }
            Some((setting, intent.tenant().as_str().to_owned()))
        }
        _ => None,
    };
    Ok(Opening {
        isolation: policy.get_isolation(),
        max_idle: policy.get_max_idle(),
        tenant,
        ..Opening::PLAIN
    })
}

/// How long a call of this operation waits for others; not at all is no time.
pub(crate) fn patience(operation: &Operation) -> Duration {
    operation.policy().get_wait().unwrap_or_default()
}

/// The name of a setting stands in SQL text.
fn is_setting_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    !name.is_empty()
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
}

/// What is known of an execution until it ends.
pub(crate) struct Running {
    operation: Operation,
    holding: Holding,
    has_savepoint: bool,
}

/// What an execution holds until it ends. In boxes, because it is carried through everything that a body does.
enum Holding {
    /// Nothing: the call has no intent.
    Nothing(Runs),
    /// A key.
    Key(Box<Claimed>),
    /// A message.
    Message(Box<ClaimedMessage>),
}

struct Claimed {
    recorded: Recorded,
    opening: Opening,
    won: Won,
}

/// A message whose mark is written in the transaction.
pub(crate) struct ClaimedMessage {
    /// What the subscriber means to do about it, if its handler asked for that.
    pub(crate) intent: Option<BoundIntent>,
    /// When the transaction of the mark began.
    pub(crate) began_at: i64,
    pub(crate) runs: Runs,
}

impl Running {
    /// The handling of a message that was claimed. The savepoint around the body is opened here, where there is one.
    pub(crate) async fn of_message<C: IdempotentConnection>(
        transaction: &mut Transaction<'_, C>,
        operation: &Operation,
        claimed: ClaimedMessage,
    ) -> Result<Self, Error> {
        let holding = Holding::Message(Box::new(claimed));
        Self::with(transaction, operation, holding, false).await
    }

    async fn with<C: IdempotentConnection>(
        transaction: &mut Transaction<'_, C>,
        operation: &Operation,
        holding: Holding,
        may_fail: bool,
    ) -> Result<Self, Error> {
        let has_savepoint = may_fail || <C::Inner as Driver>::Dialect::ALWAYS_SAVEPOINT;
        if has_savepoint {
            transaction.inner().open_body().await?;
        }
        reach(Point::BeforeGuard, operation.name()).await?;
        Ok(Self {
            operation: *operation,
            holding,
            has_savepoint,
        })
    }

    pub(crate) fn intent(&self) -> Option<&BoundIntent> {
        match &self.holding {
            Holding::Nothing(_) => None,
            Holding::Key(claimed) => Some(&claimed.recorded.intent),
            Holding::Message(claimed) => claimed.intent.as_ref(),
        }
    }

    /// The key that is held, if it is one.
    fn key(&self) -> Option<&Claimed> {
        match &self.holding {
            Holding::Key(claimed) => Some(claimed),
            Holding::Nothing(_) | Holding::Message(_) => None,
        }
    }

    fn has_published(&self) -> bool {
        match &self.holding {
            Holding::Nothing(runs) => runs,
            Holding::Key(claimed) => &claimed.won.runs,
            Holding::Message(claimed) => &claimed.runs,
        }
        .has_published()
    }

    pub(crate) fn operation(&self) -> &Operation {
        &self.operation
    }
}

/// What a claim led to.
pub(crate) enum Begun<'c, C: IdempotentConnection> {
    Execute(Transaction<'c, C>, Running),
    Replay(StoredAnswer),
}

/// A step as a future of one type for all handlers of a connection, so that what is compiled for each handler stays small.
pub(crate) type Step<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Steps 2 to 4, and the savepoint of step 5.
pub(crate) fn begin<C: IdempotentConnection>(
    db: &mut C,
    request: Request,
) -> Step<'_, Result<Begun<'_, C>, Error>> {
    Box::pin(async move {
        let name = request.operation.name();
        try_begin(db, request)
            .await
            .map_err(|error| error.into_core().in_operation(name).into())
    })
}

async fn try_begin<C: IdempotentConnection>(
    db: &mut C,
    request: Request,
) -> Result<Begun<'_, C>, Error> {
    let mut transaction = Transaction::new(db, request.operation.policy().get_nested())?;
    let (operation, may_fail) = (request.operation, request.may_fail);
    transaction.set_patience(patience(&operation)).await?;
    let begun = claim_or_open(&mut transaction, request).await;
    transaction.restore_patience().await?;
    let holding = match begun {
        Ok(Began::Replay(answer)) => return Ok(Begun::Replay(answer)),
        Ok(Began::Execute(holding)) => holding,
        Err(error) => return Err(explain_on(transaction.inner(), error, &[TABLE]).await),
    };
    let running = Running::with(&mut transaction, &operation, holding, may_fail).await?;
    Ok(Begun::Execute(transaction, running))
}

enum Began {
    Execute(Holding),
    Replay(StoredAnswer),
}

async fn claim_or_open<C: IdempotentConnection>(
    transaction: &mut Transaction<'_, C>,
    request: Request,
) -> Result<Began, Error> {
    let opening = opening(&request, transaction.entry())?;
    let Some(recorded) = request.recorded else {
        transaction.open(&opening, None).await?;
        let runs = Place::of(transaction.inner()).run(None);
        return Ok(Began::Execute(Holding::Nothing(runs)));
    };
    let claiming = Claiming {
        key: &recorded.key,
        digest: &recorded.digest,
        operation: &request.operation,
        opening: &opening,
    };
    Ok(match claiming.claim(transaction).await? {
        claim::Step::Replay(answer) => Began::Replay(answer),
        claim::Step::Execute(won) => Began::Execute(Holding::Key(Box::new(Claimed {
            recorded,
            opening,
            won,
        }))),
        claim::Step::Contended => {
            return Err(ErrorKind::InFlight {
                retry_after: RETRY_AFTER,
            }
            .into());
        }
    })
}

/// The end of an execution with an answer, which is stored together with the effects, or nothing is. What has no record has no answer to store.
pub(crate) fn complete<C: IdempotentConnection>(
    transaction: Transaction<'_, C>,
    running: Running,
    answer: Option<StoredAnswer>,
    after_commit: AfterCommit,
) -> Step<'_, Result<(), Error>> {
    Box::pin(try_complete(transaction, running, answer, after_commit))
}

async fn try_complete<C: IdempotentConnection>(
    mut transaction: Transaction<'_, C>,
    running: Running,
    answer: Option<StoredAnswer>,
    after_commit: AfterCommit,
) -> Result<(), Error> {
    let name = running.operation.name();
    if let Err(error) = end(&mut transaction, &running, answer).await {
        transaction.rollback().await;
        mark_orphan(&mut transaction, &running).await;
        return Err(error.into_core().in_operation(name).into());
    }
    reach(Point::AfterCommit, name).await?;
    // In a transaction of the caller's nothing is durable yet.
    if !transaction.is_joined() {
        after_commit.run();
        if running.has_published() {
            wake::after_publish();
        }
    }
    Ok(())
}

async fn end<C: IdempotentConnection>(
    transaction: &mut Transaction<'_, C>,
    running: &Running,
    answer: Option<StoredAnswer>,
) -> Result<(), Error> {
    reach(Point::AfterBody, running.operation.name()).await?;
    check(transaction)?;
    let end = answer
        .as_ref()
        .map_or(answer::End::Completed, StoredAnswer::end);
    let close = running.has_savepoint.then_some(end);
    let (Claimed { recorded, won, .. }, answer) = match (&running.holding, answer) {
        (Holding::Key(claimed), Some(answer)) => (&**claimed, answer),
        // Where there is a savepoint, its end says whether the body has ended the transaction.
        (Holding::Message(message), _) if !running.has_savepoint => {
            let began_at = message.began_at;
            let (store, rows) = (StillIn { began_at }, None);
            return end_with(transaction, running, Last { close, store, rows }).await;
        }
        _ => {
            // Nothing is stored, but a statement that failed in the body must still come to light.
            let (store, rows) = (Probe, None);
            return end_with(transaction, running, Last { close, store, rows }).await;
        }
    };
    let key = recorded.key.clone();
    let horizons = Horizons::of(running.operation.retention());
    match won.row {
        WonRow::None { began_at } => {
            let request_hash = recorded.digest.to_hex();
            let store = Insert {
                key,
                request_hash,
                began_at,
                answer,
                horizons,
            };
            let rows = Some(1);
            end_with(transaction, running, Last { close, store, rows }).await
        }
        WonRow::Pending { attempt } => {
            let store = End {
                key,
                attempt: i64::from(attempt),
                answer,
                horizons,
                is_joined: i64::from(transaction.is_joined()),
            };
            let rows = Some(<C::Inner as Driver>::Dialect::STORED_ROWS);
            end_with(transaction, running, Last { close, store, rows }).await
        }
    }
}

/// Whether the transaction is as a body must leave it.
fn check<C: IdempotentConnection>(transaction: &mut Transaction<'_, C>) -> Result<(), Error> {
    // A conflict is never an answer, also where the body took it for one.
    if transaction.inner().met_conflict() {
        return Err(ErrorKind::Conflict.into());
    }
    // Diesel has given the connection up: the session ended under a body that went on regardless.
    transaction.inner().status().transaction_state()?;
    match transaction.levels_left_open() {
        // A future of Diesel's that the body dropped may have left a flag at which Diesel's COMMIT would stop.
        Levels::AsOpened => transaction.forget_levels_of_the_body(),
        Levels::More => return Err(ErrorKind::UnfinishedTransaction.into()),
        Levels::Fewer => return Err(ErrorKind::RecordLost.into()),
    }
    Ok(())
}

async fn end_with<C, S>(
    transaction: &mut Transaction<'_, C>,
    running: &Running,
    last: Last<S>,
) -> Result<(), Error>
where
    C: IdempotentConnection,
    S: QueryFragment<<C::Inner as Driver>::Dialect> + QueryId + Send + 'static,
{
    let name = running.operation.name();
    let is_together =
        C::Inner::PIPELINES && !transaction.is_joined() && pace(name) == Pace::Together;
    let refused = if is_together {
        match transaction.store_and_commit(last).await {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        }
    } else {
        match store(transaction, last).await {
            Ok(()) => {
                reach(Point::AfterStore, name).await?;
                match transaction.commit(patience(&running.operation)).await {
                    Ok(()) => return Ok(()),
                    Err(error) => Refused::Commit(error),
                }
            }
            Err(refused) => refused,
        }
    };
    // What the server says now to any statement; after COMMIT it has nothing to say.
    let again = if is_together {
        None
    } else {
        Some(transaction.inner().probe().await)
    };
    transaction.rollback().await;
    let is_commit_sent = is_together || matches!(refused, Refused::Commit(_));
    let (kind, error) = why_refused(transaction, running, refused, again).await;
    let kind = match kind {
        ErrorKind::ConnectionLost if is_commit_sent => ErrorKind::OutcomeUnknown,
        kind => kind,
    };
    let core = idem_core::Error::new(kind);
    Err(match error {
        Some(error) => core.with_source(error).into(),
        None => core.into(),
    })
}

/// The end of the savepoint, and the store.
async fn store<C, S>(transaction: &mut Transaction<'_, C>, last: Last<S>) -> Result<(), Refused>
where
    C: IdempotentConnection,
    S: QueryFragment<<C::Inner as Driver>::Dialect> + QueryId + Send + 'static,
{
    let db = transaction.inner();
    if let Some(end) = last.close {
        db.close_body(end).await.map_err(Refused::Close)?;
    }
    let rows = db.execute(last.store).await.map_err(Refused::Store)?;
    if last.rows.is_some_and(|expected| expected != rows) {
        return Err(Refused::NothingStored);
    }
    Ok(())
}

/// What it means that the database refused one of the last statements. Nothing is open any more but a transaction of the caller's.
async fn why_refused<C: IdempotentConnection>(
    transaction: &mut Transaction<'_, C>,
    running: &Running,
    refused: Refused,
    again: Option<QueryResult<()>>,
) -> (ErrorKind, Option<DieselError>) {
    let (error, is_close) = match refused {
        Refused::NothingStored => return (ErrorKind::RecordLost, None),
        Refused::Commit(error) => return (kind_of(&error), Some(error)),
        Refused::Close(error) => (error, true),
        Refused::Store(error) => (error, false),
    };
    let kind = match &error {
        DieselError::DatabaseError(DatabaseErrorKind::CheckViolation, information)
            if matches!(
                information.constraint_name(),
                Some("api_idempotency_state" | "processed_messages_state")
            ) =>
        {
            ErrorKind::RecordLost
        }
        DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, information)
            if information.constraint_name() == Some("api_idempotency_pkey") =>
        {
            met_a_row(transaction, running).await
        }
        error => match kind_of(error) {
            ErrorKind::Database => match &again {
                Some(Err(again)) if kind_of(again) == ErrorKind::ConnectionLost => {
                    ErrorKind::ConnectionLost
                }
                Some(again) if is_same(again, error) => ErrorKind::StatementFailed,
                // Behind COMMIT a lost connection has been found out already.
                None if transaction.inner().says_aborted(error).await => ErrorKind::StatementFailed,
                // There is no such savepoint any more, or no transaction.
                _ if is_close => ErrorKind::RecordLost,
                _ => ErrorKind::Database,
            },
            kind => kind,
        },
    };
    (kind, Some(error))
}

/// The key had no row at the claim and has one at the store: its snapshot was older than the lock, as it can be in a transaction of the caller's, or its
/// row is hidden from this role.
async fn met_a_row<C: IdempotentConnection>(
    transaction: &mut Transaction<'_, C>,
    running: &Running,
) -> ErrorKind {
    let Some(Claimed {
        recorded, opening, ..
    }) = running.key()
    else {
        return ErrorKind::Database;
    };
    // A snapshot of the caller's shows what it has shown before.
    if transaction.is_joined() {
        return ErrorKind::Conflict;
    }
    let opening = Opening {
        call: None,
        ..opening.clone()
    };
    let key = recorded.key.clone();
    let found = transaction
        .open_and_read(&opening, None, Read { key })
        .await;
    transaction.rollback().await;
    match found.map(crate::store::Found::from_row) {
        Ok(Ok(found)) if found.record.is_some() => ErrorKind::Conflict,
        _ => ErrorKind::RecordHidden,
    }
}

/// Makes a body that sent COMMIT by itself known to later calls: they must not run it again. That its transaction was committed, not rolled back, shows in a
/// setting of the session. Where a pending row was committed with it, there is nothing to do; and nothing can be done that the database refuses.
async fn mark_orphan<C: IdempotentConnection>(
    transaction: &mut Transaction<'_, C>,
    running: &Running,
) {
    let Some(Claimed {
        recorded, opening, ..
    }) = running.key()
    else {
        return;
    };
    let (Some(query), Some(call), false) = (
        <C::Inner as Driver>::Dialect::COMMITTED_CALL,
        &opening.call,
        transaction.is_joined(),
    ) else {
        return;
    };
    let newest = transaction.inner().texts(Sql(query)).await;
    let committed = newest.ok().and_then(|mut texts| texts.pop()).flatten();
    let prefix = format!("{}-", call.name);
    if !committed.is_some_and(|committed| committed.starts_with(&prefix)) {
        return;
    }
    let opening = Opening {
        call: None,
        ..opening.clone()
    };
    let claim = Claim {
        key: recorded.key.clone(),
        request_hash: recorded.digest.to_hex(),
        horizons: Horizons::of(running.operation.retention()),
    };
    if transaction.open(&opening, None).await.is_ok() {
        match transaction.inner().execute(claim).await {
            Ok(_) => drop(transaction.commit(patience(&running.operation)).await),
            Err(_) => transaction.rollback().await,
        }
    }
}

/// The end of an execution without an answer: everything is rolled back, and the key is free, unless the body has committed by itself.
pub(crate) fn release<C: IdempotentConnection>(
    mut transaction: Transaction<'_, C>,
    running: Running,
) -> Step<'_, ()> {
    Box::pin(async move {
        transaction.rollback().await;
        mark_orphan(&mut transaction, &running).await;
    })
}

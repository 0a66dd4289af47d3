//! START READING HERE: the protocol of one call, in the order in which it happens.
//!
//! 1. [`begin`] hashes the request. Nothing has been sent yet.
//! 2. It opens a transaction that states its isolation level.
//! 3. It claims the key: inserts its row unless it is there or somebody is inserting it now. If the row is not won, a second
//!    statement reads it with a snapshot of its own.
//! 4. [`decide`](idem_core::decide()) says what follows from record, call and time: execute, take over, replay, or an error.
//!    Somebody else holding the key is waited for, with one deadline over all of step 2 to 4.
//! 5. Execute: a savepoint if the answer may be a final failure, the transition, the body, RELEASE or ROLLBACK TO, the store,
//!    COMMIT. Replay and errors: ROLLBACK of a transaction that wrote nothing.
//!
//! The three ends of an execution are [`complete`], which stores a result or a final failure, [`release`], which stores
//! nothing, and being dropped, which [`Transaction`] turns into a rollback.
//!
//! The functions are written once for all connections; on blocking ones their futures never wait.

use std::time::Duration;

use diesel::result::{DatabaseErrorKind, Error as DieselError};
use idem_core::answer::StoredAnswer;
use idem_core::limits::RETRY_AFTER;
use idem_core::{BoundIntent, ErrorKind, Intent, Isolation, Operation, RequestDigest, RequestHash};

use crate::after_commit::AfterCommit;
use crate::claim::{Claiming, Step};
use crate::connection::IdempotentConnection;
use crate::dialect::Dialect;
use crate::driver::{Driver, Entry, Opening};
use crate::error::{Error, kind_of};
use crate::fault::{Point, reach};
use crate::migrations::explain;
use crate::store::{End, Horizons, RowKey};
use crate::transaction::{Levels, Transaction};

/// A call, before anything was sent for it.
pub(crate) struct Request {
    operation: Operation,
    /// `None`: it runs in the same transaction, without a record.
    recorded: Option<(BoundIntent, RequestDigest)>,
    may_fail: bool,
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
            Some(intent) => Some((intent.bind(operation.name()), RequestDigest::of(request)?)),
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

/// What the transaction of a call begins with.
fn opening(request: &Request, entry: Entry) -> Result<Opening, Error> {
    let policy = request.operation.policy();
    let is_nested = matches!(entry, Entry::Joined { is_test: false, .. });
    if is_nested && policy.get_isolation() != Isolation::ReadCommitted {
        let what = "an isolation level of its own inside the caller's transaction";
        return Err(ErrorKind::Unsupported { what }.into());
    }
    let tenant = match (policy.get_tenant_setting(), &request.recorded) {
        // The caller's transaction has the caller's tenant.
        _ if is_nested => None,
        (Some(setting), Some((intent, _))) => {
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
        lock_wait: request
            .recorded
            .as_ref()
            .map(|_| patience(&request.operation).max(SHORTEST_LOCK_WAIT)),
    })
}

/// How long a call of this operation waits for others; not at all is no time.
fn patience(operation: &Operation) -> Duration {
    operation.policy().get_wait().unwrap_or_default()
}

/// How long a statement of a claim that does not wait still waits for a lock that is none of ours: an operator's, or a purge's.
const SHORTEST_LOCK_WAIT: Duration = Duration::from_millis(50);

/// The name of a setting stands in SQL text.
fn is_setting_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    !name.is_empty()
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
}

/// What is known of an execution until it ends.
pub(crate) struct Running {
    operation: Operation,
    claimed: Option<Claimed>,
    has_savepoint: bool,
}

struct Claimed {
    intent: BoundIntent,
    key: RowKey,
    attempt: u32,
}

impl Running {
    pub(crate) fn intent(&self) -> Option<&BoundIntent> {
        self.claimed.as_ref().map(|claimed| &claimed.intent)
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

/// Steps 2 to 4, and the savepoint of step 5.
pub(crate) async fn begin<C: IdempotentConnection>(
    db: &mut C,
    request: Request,
) -> Result<Begun<'_, C>, Error> {
    let name = request.operation.name();
    try_begin(db, request)
        .await
        .map_err(|error| error.into_core().in_operation(name).into())
}

async fn try_begin<C: IdempotentConnection>(
    db: &mut C,
    request: Request,
) -> Result<Begun<'_, C>, Error> {
    let mut transaction = Transaction::new(db, request.operation.policy().get_nested())?;
    transaction
        .set_patience(patience(&request.operation))
        .await?;
    let begun = claim_or_open(&mut transaction, &request).await;
    transaction.restore_patience().await?;
    let claimed = match begun {
        Ok(Won::Replay(answer)) => return Ok(Begun::Replay(answer)),
        Ok(Won::Execute(claimed)) => claimed,
        Err(error) => return Err(explain(transaction.inner(), error).await),
    };
    let has_savepoint = request.may_fail || <C::Inner as Driver>::Dialect::ALWAYS_SAVEPOINT;
    if has_savepoint {
        transaction.inner().open_body().await?;
    }
    reach(Point::BeforeGuard, request.operation.name()).await?;
    let running = Running {
        operation: request.operation,
        claimed,
        has_savepoint,
    };
    Ok(Begun::Execute(transaction, running))
}

enum Won {
    Execute(Option<Claimed>),
    Replay(StoredAnswer),
}

async fn claim_or_open<C: IdempotentConnection>(
    transaction: &mut Transaction<'_, C>,
    request: &Request,
) -> Result<Won, Error> {
    let opening = opening(request, transaction.entry())?;
    let Some((intent, digest)) = &request.recorded else {
        transaction.open(&opening, None).await?;
        return Ok(Won::Execute(None));
    };
    let claiming = Claiming {
        key: RowKey::of(intent),
        digest,
        operation: &request.operation,
        opening: &opening,
    };
    Ok(match claiming.claim(transaction).await? {
        Step::Replay(answer) => Won::Replay(answer),
        Step::Execute { attempt } => Won::Execute(Some(Claimed {
            intent: intent.clone(),
            key: claiming.key,
            attempt,
        })),
        Step::Contended => {
            return Err(ErrorKind::InFlight {
                retry_after: RETRY_AFTER,
            }
            .into());
        }
    })
}

/// The end of an execution with an answer: it is stored together with the effects, or nothing is.
pub(crate) async fn complete<C: IdempotentConnection>(
    mut transaction: Transaction<'_, C>,
    running: Running,
    answer: StoredAnswer,
    after_commit: AfterCommit,
) -> Result<(), Error> {
    let name = running.operation.name();
    let in_operation = |error: Error| error.into_core().in_operation(name).into();
    let stored = async {
        reach(Point::AfterBody, name).await?;
        store(&mut transaction, &running, answer).await?;
        reach(Point::AfterStore, name).await
    };
    if let Err(error) = stored.await {
        transaction.rollback().await;
        return Err(in_operation(error));
    }
    // In a transaction of the caller's nothing is durable yet.
    let is_durable = !transaction.is_joined();
    match transaction.commit(patience(&running.operation)).await {
        Ok(()) => {
            reach(Point::AfterCommit, name).await?;
            if is_durable {
                after_commit.run();
            }
            Ok(())
        }
        Err(error) => {
            let kind = match kind_of(&error) {
                ErrorKind::ConnectionLost => ErrorKind::OutcomeUnknown,
                kind => kind,
            };
            Err(in_operation(
                idem_core::Error::new(kind).with_source(error).into(),
            ))
        }
    }
}

/// Everything of step 5 that comes after the body and before COMMIT.
async fn store<C: IdempotentConnection>(
    transaction: &mut Transaction<'_, C>,
    running: &Running,
    answer: StoredAnswer,
) -> Result<(), Error> {
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
    if running.has_savepoint {
        let closed = transaction.inner().close_body(answer.end()).await;
        if let Err(error) = closed {
            return Err(why_refused(transaction, error).await);
        }
    }
    let Some(claimed) = &running.claimed else {
        // Nothing is stored, but a statement that failed in the body must still come to light.
        return match transaction.inner().probe().await {
            Ok(()) => Ok(()),
            Err(error) => Err(why_refused(transaction, error).await),
        };
    };
    let end = End {
        key: claimed.key.clone(),
        attempt: i64::from(claimed.attempt),
        answer,
        horizons: Horizons::of(running.operation.retention()),
        is_joined: i64::from(transaction.is_joined()),
    };
    match transaction.inner().execute(end).await {
        Ok(rows) if rows == <C::Inner as Driver>::Dialect::STORED_ROWS => Ok(()),
        Ok(_) => Err(ErrorKind::RecordLost.into()),
        Err(error) => Err(why_refused(transaction, error).await),
    }
}

/// What it means that the database refused a statement which only fails for reasons that the body gave.
async fn why_refused<C: IdempotentConnection>(
    transaction: &mut Transaction<'_, C>,
    error: DieselError,
) -> Error {
    let kind = match &error {
        DieselError::DatabaseError(DatabaseErrorKind::CheckViolation, information)
            if information.constraint_name() == Some("api_idempotency_state") =>
        {
            ErrorKind::RecordLost
        }
        error => match kind_of(error) {
            // A transaction in which a statement failed takes no other; where none is open any more, one is taken.
            ErrorKind::Database => match transaction.inner().probe().await {
                Ok(()) => ErrorKind::RecordLost,
                Err(probe) if kind_of(&probe) == ErrorKind::ConnectionLost => {
                    ErrorKind::ConnectionLost
                }
                Err(_) => ErrorKind::StatementFailed,
            },
            kind => kind,
        },
    };
    idem_core::Error::new(kind).with_source(error).into()
}

/// The end of an execution without an answer: everything is rolled back, and the key is free.
pub(crate) async fn release<C: IdempotentConnection>(mut transaction: Transaction<'_, C>) {
    transaction.rollback().await;
}

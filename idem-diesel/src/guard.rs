//! START READING HERE: the protocol of one call, in the order in which it happens.
//!
//! 1. [`begin`] hashes the request. Nothing has been sent yet.
//! 2. It opens a transaction that states its isolation level.
//! 3. It claims the key: inserts its row unless it is there or somebody is inserting it now. If the row is not won, a second
//!    statement reads it with a snapshot of its own.
//! 4. [`decide`] says what follows from record, call and time: execute, take over, replay, or an error.
//!    Somebody else holding the key is waited for, with one deadline over all of step 2 to 4.
//! 5. Execute: a savepoint if the answer may be a final failure, the transition, the body, RELEASE or ROLLBACK TO, the store,
//!    COMMIT. Replay and errors: ROLLBACK of a transaction that wrote nothing.
//!
//! The three ends of an execution are [`complete`], which stores a result or a final failure, [`release`], which stores
//! nothing, and being dropped, which [`Transaction`] turns into a rollback.
//!
//! The functions are written once for all connections; on blocking ones their futures never wait.

use std::time::{Duration, Instant};

use diesel::result::{DatabaseErrorKind, Error as DieselError};
use idem_core::answer::StoredAnswer;
use idem_core::decide::{Call, Decision, Lapsed};
use idem_core::limits::RETRY_AFTER;
use idem_core::{
    BoundIntent, ErrorKind, Intent, Isolation, Nested, Operation, Policy, RequestDigest,
    RequestHash, Writer, decide,
};

use crate::connection::IdempotentConnection;
use crate::dialect::Dialect;
use crate::driver::{Begin, Driver};
use crate::error::{Error, kind_of};
use crate::migrations::table_exists;
use crate::store::{Claim, End, Found, Horizons, Read, RowKey, TABLE, TakeOver};
use crate::transaction::{Levels, Transaction};

/// How often a claim starts anew: after waiting, or after a conflict with a concurrent transaction.
const MAX_ROUNDS: u32 = 32;

/// How often a row that was there and then was not is looked for within one round.
const MAX_READS: u32 = 4;

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
        refuse_unsupported(operation.policy())?;
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

/// What a policy can say and this version does not do.
fn refuse_unsupported(policy: &Policy) -> Result<(), Error> {
    let what = if policy.get_isolation() != Isolation::ReadCommitted {
        "an isolation level other than READ COMMITTED"
    } else if policy.get_nested() == Nested::Join {
        "joining the caller's transaction"
    } else if policy.get_max_idle().is_some() {
        "max_idle"
    } else if policy.get_tenant_setting().is_some() {
        "tenant_setting"
    } else {
        return Ok(());
    };
    Err(ErrorKind::Unsupported { what }.into())
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
    let mut transaction = Transaction::new(db)?;
    let patience = request.operation.policy().get_wait().unwrap_or_default();
    transaction.set_patience(patience).await?;
    let begun = claim_or_open(&mut transaction, &request).await;
    transaction.restore_patience().await?;
    let claimed = match begun {
        Ok(Won::Replay(answer)) => return Ok(Begun::Replay(answer)),
        Ok(Won::Execute(claimed)) => claimed,
        Err(error) => return Err(explain(&mut transaction, error).await),
    };
    let has_savepoint = request.may_fail || <C::Inner as Driver>::Dialect::ALWAYS_SAVEPOINT;
    if has_savepoint {
        transaction.inner().open_body().await?;
    }
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
    let Some((intent, digest)) = &request.recorded else {
        transaction.open(Begin::AtOnce).await?;
        return Ok(Won::Execute(None));
    };
    let claiming = Claiming {
        key: RowKey::of(intent),
        digest,
        operation: &request.operation,
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

/// What one look at a key led to.
enum Step {
    Execute {
        attempt: u32,
    },
    Replay(StoredAnswer),
    /// Somebody else is changing the row now.
    Contended,
}

/// What a claim needs to know of its call.
struct Claiming<'r> {
    key: RowKey,
    digest: &'r RequestDigest,
    operation: &'r Operation,
}

impl Claiming<'_> {
    /// Claims the key, waiting for others as long as the policy allows. A transaction is open if and only if the key was won.
    async fn claim<C: IdempotentConnection>(
        &self,
        transaction: &mut Transaction<'_, C>,
    ) -> Result<Step, Error> {
        let deadline = Deadline::after(self.operation.policy().get_wait());
        if <C::Inner as Driver>::Dialect::READS_BEFORE_BEGIN && !transaction.is_joined() {
            let found = self.read(transaction).await?;
            // Everything else writes, so it is decided again under the write lock.
            if let Decision::Replay(answer) = self.decide(&found)? {
                return Ok(Step::Replay(answer.clone()));
            }
        }
        let mut begin = Begin::AtOnce;
        for _ in 0..MAX_ROUNDS {
            if let Err(error) = transaction.open(begin).await {
                let kind = kind_of(&error);
                let was_waiting = begin != Begin::AtOnce;
                if was_waiting && kind != ErrorKind::ConnectionLost {
                    // The wait was too long, or met a deadlock: the row is read again either way.
                    begin = Begin::AtOnce;
                    continue;
                }
                return Err(error.into());
            }
            match self.look(transaction).await {
                Ok(won @ Step::Execute { .. }) => return Ok(won),
                Ok(replay @ Step::Replay(_)) => {
                    transaction.rollback().await;
                    return Ok(replay);
                }
                Ok(Step::Contended) => {
                    transaction.rollback().await;
                    let Some(at_most) = deadline.left() else {
                        return Ok(Step::Contended);
                    };
                    begin = Begin::Waiting {
                        lock: self.key.lock(),
                        at_most,
                    };
                }
                Err(error) => {
                    transaction.rollback().await;
                    if error.kind() != &ErrorKind::Conflict {
                        return Err(error);
                    }
                    begin = Begin::AtOnce;
                }
            }
        }
        Ok(Step::Contended)
    }

    /// One claim inside an open transaction: insert, else read and decide.
    async fn look<C: IdempotentConnection>(
        &self,
        transaction: &mut Transaction<'_, C>,
    ) -> Result<Step, Error> {
        for _ in 0..MAX_READS {
            let claim = Claim {
                key: self.key.clone(),
                request_hash: self.digest.to_hex(),
                horizons: Horizons::of(self.operation.retention()),
            };
            if transaction.inner().execute(claim).await? == 1 {
                return Ok(Step::Execute { attempt: 1 });
            }
            let found = self.read(transaction).await?;
            if found.record.is_none() && !found.is_locked {
                return Ok(Step::Contended);
            }
            match self.decide(&found)? {
                Decision::Replay(answer) => return Ok(Step::Replay(answer.clone())),
                // The row went away between the two statements, or it is hidden.
                Decision::Execute => {}
                Decision::TakeOver { .. } if !found.is_locked => return Ok(Step::Contended),
                Decision::TakeOver { attempt } => {
                    if self.take_over(transaction, attempt).await? {
                        return Ok(Step::Execute { attempt });
                    }
                }
                Decision::Wait { .. } | Decision::Reject(_) => {
                    unreachable!("I4: `decide` has made these errors")
                }
            }
        }
        Err(ErrorKind::RecordHidden.into())
    }

    async fn read<C: IdempotentConnection>(
        &self,
        transaction: &mut Transaction<'_, C>,
    ) -> Result<Found, Error> {
        // A transaction that was opened for this call has written nothing before its claim.
        let writer = if transaction.is_joined() {
            Writer::ThisTransaction
        } else {
            Writer::Committed
        };
        let read = Read {
            key: self.key.clone(),
        };
        let row = transaction.inner().read(read).await?;
        Found::from_row(row, writer).map_err(|malformed| {
            ErrorKind::SchemaWrong {
                problem: malformed.0.to_owned(),
            }
            .into()
        })
    }

    /// Step 4. Whatever lets nothing run is an error.
    fn decide<'f>(&self, found: &'f Found) -> Result<Decision<'f>, Error> {
        let call = Call {
            request_hashes: std::slice::from_ref(self.digest),
            late: self.operation.policy().get_late(),
            lapsed: Lapsed::Park,
        };
        match decide(found.record.as_ref(), &call, found.now) {
            Decision::Reject(rejection) => Err(idem_core::Error::from(rejection).into()),
            Decision::Wait { lease_left } => Err(ErrorKind::InFlight {
                retry_after: lease_left,
            }
            .into()),
            decision => Ok(decision),
        }
    }

    /// Whether the ended row is now this call's, as attempt `attempt`.
    async fn take_over<C: IdempotentConnection>(
        &self,
        transaction: &mut Transaction<'_, C>,
        attempt: u32,
    ) -> Result<bool, Error> {
        let take_over = TakeOver {
            key: self.key.clone(),
            seen_attempt: i64::from(attempt) - 1,
            request_hash: self.digest.to_hex(),
            horizons: Horizons::of(self.operation.retention()),
        };
        Ok(transaction.inner().execute(take_over).await? == 1)
    }
}

/// Until when a claim may wait.
struct Deadline(Option<Instant>);

impl Deadline {
    fn after(wait: Option<Duration>) -> Self {
        Self(wait.and_then(|wait| Instant::now().checked_add(wait)))
    }

    /// How long it is until then; `None` when it is over, or when there is no waiting at all.
    fn left(&self) -> Option<Duration> {
        let left = self.0?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

/// The end of an execution with an answer: it is stored together with the effects, or nothing is.
pub(crate) async fn complete<C: IdempotentConnection>(
    mut transaction: Transaction<'_, C>,
    running: Running,
    answer: StoredAnswer,
) -> Result<(), Error> {
    let name = running.operation.name();
    let in_operation = |error: Error| error.into_core().in_operation(name).into();
    if let Err(error) = store(&mut transaction, &running, answer).await {
        transaction.rollback().await;
        return Err(in_operation(error));
    }
    match transaction.commit().await {
        Ok(()) => Ok(()),
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
    match transaction.levels_left_open() {
        Levels::AsOpened => {}
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
            ErrorKind::Database => {
                // A transaction in which a statement failed takes no other; where none is open any more, one is taken.
                if transaction.inner().probe().await.is_ok() {
                    ErrorKind::RecordLost
                } else {
                    ErrorKind::StatementFailed
                }
            }
            kind => kind,
        },
    };
    idem_core::Error::new(kind).with_source(error).into()
}

/// The end of an execution without an answer: everything is rolled back, and the key is free.
pub(crate) async fn release<C: IdempotentConnection>(mut transaction: Transaction<'_, C>) {
    transaction.rollback().await;
}

/// A statement that the database refused before the body: is it the table that is missing?
async fn explain<C: IdempotentConnection>(
    transaction: &mut Transaction<'_, C>,
    error: Error,
) -> Error {
    if error.kind() != &ErrorKind::Database {
        return error;
    }
    match table_exists(transaction.inner()).await {
        Ok(false) => error
            .into_core()
            .into_kind(ErrorKind::TableMissing { table: TABLE })
            .into(),
        _ => error,
    }
}

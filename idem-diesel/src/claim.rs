//! Steps 2 to 4 of a call: lock the key, read what it holds and decide, waiting for others within one deadline.

use std::time::{Duration, Instant};

use diesel::QueryResult;
use idem_core::answer::StoredAnswer;
use idem_core::decide::{Call, Decision, Lapsed};
use idem_core::limits::RETRY_AFTER;
use idem_core::{
    ErrorKind, Isolation, Operation, Record, RecordState, RequestDigest, Writer, decide,
};

use crate::connection::IdempotentConnection;
use crate::dialect::Dialect;
use crate::driver::{Driver, Opening, Wait};
use crate::error::{Error, has_text_alone, kind_of};
use crate::fault::{Pace, Point, pace, reach};
use crate::running::{Place, Runs};
use crate::store::{Claim, Found, Horizons, KeyLock, Read, Row, RowKey, TakeOver};
use crate::transaction::Transaction;

/// How often a claim starts anew: after waiting, or after a conflict with a concurrent transaction.
const MAX_ROUNDS: u32 = 32;

/// How often a row that changed under a takeover is read again within one round.
const MAX_READS: u32 = 4;

/// How long a takeover of a call that does not wait still waits for a lock that is none of ours: an operator's, or a purge's.
const SHORTEST_LOCK_WAIT: Duration = Duration::from_millis(50);

/// What one look at a key led to.
pub(crate) enum Step {
    Execute(Won),
    Replay(StoredAnswer),
    /// Somebody else is changing the row now.
    Contended,
}

/// A key that is this call's until its transaction ends.
pub(crate) struct Won {
    pub(crate) row: WonRow,
    pub(crate) runs: Runs,
}

/// What there is of its record before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WonRow {
    /// Nothing: the lock alone holds the key, in the transaction that began then.
    None { began_at: i64 },
    /// A pending row of this attempt.
    Pending { attempt: u32 },
}

/// What a claim needs to know of its call.
pub(crate) struct Claiming<'r> {
    pub(crate) key: &'r RowKey,
    pub(crate) digest: &'r RequestDigest,
    pub(crate) operation: &'r Operation,
    pub(crate) opening: &'r Opening,
}

impl Claiming<'_> {
    /// Claims the key, waiting for others as long as the policy allows. A transaction is open if and only if the key was won.
    pub(crate) async fn claim<C: IdempotentConnection>(
        &self,
        transaction: &mut Transaction<'_, C>,
    ) -> Result<Step, Error> {
        let deadline = Deadline::after(self.operation.policy().get_wait());
        let mut collisions = 0_u32;
        let place = Place::of(transaction.inner());
        if place.is_running(self.key) {
            self.decide(&self.inside_itself())?;
        }
        if self.reads_first::<C>() && !transaction.is_joined() {
            let row = transaction.inner().read(self.read()).await?;
            // Everything else writes, so it is decided again under the lock.
            if let Decision::Replay(answer) = self.decide(&self.found(row).await?)? {
                return Ok(Step::Replay(answer.clone()));
            }
        }
        let mut wait = None;
        let mut rounds = 0;
        while rounds < MAX_ROUNDS {
            // A round that waited is bounded by the deadline.
            rounds += u32::from(wait.is_none());
            reach(Point::BeforeBegin, self.operation.name()).await?;
            let looked = match self.open(transaction, wait).await {
                Ok(looked) => looked,
                Err(error) => {
                    let may_go_on = match kind_of(&error) {
                        ErrorKind::ConnectionLost => false,
                        ErrorKind::Conflict => !transaction.is_joined(),
                        _ => wait.is_some(),
                    };
                    if !may_go_on {
                        return Err(error.into());
                    }
                    // The wait was too long, or met a deadlock: the row is read again either way.
                    wait = None;
                    continue;
                }
            };
            match looked {
                Ok(Look::Won(row)) => {
                    let runs = place.run(Some(self.key.clone()));
                    return Ok(Step::Execute(Won { row, runs }));
                }
                Ok(Look::Replay(answer)) => {
                    transaction.leave().await;
                    return Ok(Step::Replay(answer));
                }
                Ok(Look::Taken(KeyLock::AnotherKeys)) => {
                    transaction.leave().await;
                    // A call of this key that has only just taken its first lock looks the same, so it is looked at twice. Another key may delay
                    // this one; it is never taken for one.
                    if collisions > 0 {
                        let Some(at_most) = deadline.left() else {
                            let retry_after = RETRY_AFTER;
                            return Err(ErrorKind::Busy { retry_after }.into());
                        };
                        wait = Some(Wait { at_most });
                    }
                    collisions += 1;
                }
                Ok(Look::Taken(_)) => {
                    transaction.leave().await;
                    let Some(at_most) = deadline.left() else {
                        return Ok(Step::Contended);
                    };
                    wait = Some(Wait { at_most });
                }
                Ok(Look::TimedOut) => {
                    transaction.rollback().await;
                    if deadline.left().is_none() {
                        return Ok(Step::Contended);
                    }
                    wait = None;
                }
                Err(error) => {
                    transaction.rollback().await;
                    // In a transaction of the caller's the snapshot stays, and the conflict with it.
                    if error.kind() != &ErrorKind::Conflict || transaction.is_joined() {
                        return Err(error);
                    }
                    wait = None;
                }
            }
        }
        Ok(Step::Contended)
    }

    /// Whether a replay is looked for before BEGIN.
    fn reads_first<C: IdempotentConnection>(&self) -> bool {
        let policy = self.operation.policy();
        // Outside of a transaction there is no tenant for row-level security.
        <C::Inner as Driver>::Dialect::READS_BEFORE_BEGIN
            || (policy.get_read_first() && policy.get_tenant_setting().is_none())
    }

    fn read(&self) -> Read {
        Read {
            key: self.key.clone(),
        }
    }

    /// Opens the transaction, tries the key's locks and looks at its row. The outer result is about a transaction that could not be opened.
    async fn open<C: IdempotentConnection>(
        &self,
        transaction: &mut Transaction<'_, C>,
        wait: Option<Wait>,
    ) -> QueryResult<Result<Look, Error>> {
        let name = self.operation.name();
        if pace(name) == Pace::Together && !<C::Inner as Driver>::Dialect::CLAIMS_BY_ROW {
            let row = transaction
                .open_and_read(self.opening, wait, self.read())
                .await?;
            return Ok(self.look(transaction, row).await);
        }
        transaction.open(self.opening, wait).await?;
        Ok(self.look_inside(transaction).await)
    }

    /// The rest of [`open`](Self::open), inside the transaction.
    async fn look_inside<C: IdempotentConnection>(
        &self,
        transaction: &mut Transaction<'_, C>,
    ) -> Result<Look, Error> {
        reach(Point::AfterBegin, self.operation.name()).await?;
        // Where the row is the claim, the insert tells as well as a read whether there was one.
        let is_claim = <C::Inner as Driver>::Dialect::CLAIMS_BY_ROW;
        if is_claim && transaction.inner().execute(self.pending()).await? == 1 {
            reach(Point::AfterRead, self.operation.name()).await?;
            reach(Point::AfterClaim, self.operation.name()).await?;
            return Ok(Look::Won(WonRow::Pending { attempt: 1 }));
        }
        let row = transaction.inner().read(self.read()).await?;
        self.look(transaction, row).await
    }

    /// Whether a takeover ended because somebody outside of the protocol holds the row: an operator, or a purge. The error says so only in the
    /// server's own language, so it is known by what it has not, and by how long it took.
    fn is_lock_timeout(&self, error: &Error, started: Instant) -> bool {
        has_text_alone(error) && started.elapsed() >= self.lock_wait()
    }

    /// How long a takeover waits for locks.
    fn lock_wait(&self) -> Duration {
        let wait = self.operation.policy().get_wait().unwrap_or_default();
        wait.max(SHORTEST_LOCK_WAIT)
    }

    /// One claim inside an open transaction: decides about the row, and takes over what has expired.
    async fn look<C: IdempotentConnection>(
        &self,
        transaction: &mut Transaction<'_, C>,
        mut row: Row,
    ) -> Result<Look, Error> {
        for _ in 0..MAX_READS {
            let found = self.found(row).await?;
            let won = match self.decide(&found)? {
                Decision::Replay(answer) => return Ok(Look::Replay(answer.clone())),
                Decision::Execute | Decision::TakeOver { .. } if found.lock != KeyLock::Mine => {
                    return Ok(Look::Taken(found.lock));
                }
                Decision::Execute => self.begin_row(transaction, &found).await?,
                Decision::TakeOver { attempt } => {
                    let Some(seen) = &found.record else {
                        unreachable!("I4: what is taken over is there");
                    };
                    let started = Instant::now();
                    match self.take_over(transaction, seen, attempt).await {
                        Err(error) if self.is_lock_timeout(&error, started) => {
                            return Ok(Look::TimedOut);
                        }
                        taken => taken?,
                    }
                }
                Decision::Wait { .. } | Decision::Reject(_) => {
                    unreachable!("I4: `decide` has made these errors")
                }
            };
            if let Some(won) = won {
                reach(Point::AfterClaim, self.operation.name()).await?;
                return Ok(Look::Won(won));
            }
            row = transaction.inner().read(self.read()).await?;
        }
        Err(ErrorKind::RecordHidden.into())
    }

    async fn found(&self, row: Row) -> Result<Found, Error> {
        reach(Point::AfterRead, self.operation.name()).await?;
        Found::from_row(row).map_err(|malformed| {
            ErrorKind::SchemaWrong {
                problem: malformed.0.to_owned(),
            }
            .into()
        })
    }

    /// What a key holds whose call runs on this very connection, around this one.
    fn inside_itself(&self) -> Found {
        let state = RecordState::Pending {
            writer: Writer::ThisTransaction,
            lease: None,
        };
        Found {
            lock: KeyLock::Mine,
            now: std::time::SystemTime::UNIX_EPOCH,
            began_at: 0,
            record: Some(Record {
                request_hash: self.digest.clone(),
                state,
                attempt: 1,
                expires_at: std::time::SystemTime::UNIX_EPOCH,
            }),
        }
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

    /// A key without a row: its lock holds it, or a pending row where there is no lock of a key.
    async fn begin_row<C: IdempotentConnection>(
        &self,
        transaction: &mut Transaction<'_, C>,
        found: &Found,
    ) -> Result<Option<WonRow>, Error> {
        // Above READ COMMITTED the snapshot is older than the lock, and a row may be there that it does not see. The insert meets it.
        let is_exact = self.operation.policy().get_isolation() == Isolation::ReadCommitted;
        if is_exact && !<C::Inner as Driver>::Dialect::CLAIMS_BY_ROW {
            return Ok(Some(WonRow::None {
                began_at: found.began_at,
            }));
        }
        let inserted = transaction.inner().execute(self.pending()).await?;
        Ok((inserted == 1).then_some(WonRow::Pending { attempt: 1 }))
    }

    /// The pending row of a first attempt.
    fn pending(&self) -> Claim {
        Claim {
            key: self.key.clone(),
            request_hash: self.digest.to_hex(),
            horizons: Horizons::of(self.operation.retention()),
        }
    }

    /// The ended row becomes this call's, as attempt `attempt`, if it is still as it was read.
    async fn take_over<C: IdempotentConnection>(
        &self,
        transaction: &mut Transaction<'_, C>,
        seen: &Record,
        attempt: u32,
    ) -> Result<Option<WonRow>, Error> {
        let take_over = TakeOver {
            key: self.key.clone(),
            seen_attempt: i64::from(attempt) - 1,
            seen_request_hash: seen.request_hash.to_hex(),
            request_hash: self.digest.to_hex(),
            horizons: Horizons::of(self.operation.retention()),
        };
        let db = transaction.inner();
        db.bound_locks(self.lock_wait()).await?;
        let updated = db.execute(take_over).await?;
        // Whatever came of it: without a row this transaction may still win the key in another way. An error rolls the bound back.
        db.unbound_locks().await?;
        Ok((updated == 1).then_some(WonRow::Pending { attempt }))
    }
}

/// What one look at a row led to.
enum Look {
    Won(WonRow),
    Replay(StoredAnswer),
    /// Somebody else has the lock.
    Taken(KeyLock),
    /// Somebody outside of the protocol holds the row.
    TimedOut,
}

/// Until when a claim may wait.
enum Deadline {
    Never,
    Until(Instant),
}

/// A wait that is longer than this is this long: what the settings of a database can hold, 24 days.
const LONGEST_WAIT: Duration = Duration::from_millis(i32::MAX as u64);

impl Deadline {
    fn after(wait: Option<Duration>) -> Self {
        match wait {
            None => Self::Never,
            Some(wait) => Self::Until(Instant::now() + wait.min(LONGEST_WAIT)),
        }
    }

    /// How long it is until then; `None` when it is over, or when there is no waiting at all.
    fn left(&self) -> Option<Duration> {
        let Self::Until(end) = self else {
            return None;
        };
        let left = end.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

//! Steps 2 to 4 of a call: claim the key, or read what it holds and decide, waiting for others within one deadline.

use std::time::{Duration, Instant};

use idem_core::answer::StoredAnswer;
use idem_core::decide::{Call, Decision, Lapsed};
use idem_core::{ErrorKind, Operation, Record, RequestDigest, Writer, decide};

use crate::connection::IdempotentConnection;
use crate::dialect::Dialect;
use crate::driver::{Driver, Opening, Wait};
use crate::error::{Error, has_text_alone, kind_of};
use crate::fault::{Point, reach};
use crate::store::{Claim, Found, Horizons, Read, RowKey, TakeOver};
use crate::transaction::Transaction;

/// How often a claim starts anew: after waiting, or after a conflict with a concurrent transaction.
const MAX_ROUNDS: u32 = 32;

/// How often a row that was there and then was not is looked for within one round.
const MAX_READS: u32 = 4;

/// What one look at a key led to.
pub(crate) enum Step {
    Execute {
        attempt: u32,
    },
    Replay(StoredAnswer),
    /// Somebody else is changing the row now.
    Contended,
}

/// What a claim needs to know of its call.
pub(crate) struct Claiming<'r> {
    pub(crate) key: RowKey,
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
        if <C::Inner as Driver>::Dialect::READS_BEFORE_BEGIN && !transaction.is_joined() {
            let found = self.read(transaction).await?;
            // Everything else writes, so it is decided again under the write lock.
            if let Decision::Replay(answer) = self.decide(&found)? {
                return Ok(Step::Replay(answer.clone()));
            }
        }
        let mut wait = None;
        let mut rounds = 0;
        while rounds < MAX_ROUNDS {
            // A round that waited is bounded by the deadline.
            rounds += u32::from(wait.is_none());
            reach(Point::BeforeBegin, self.operation.name()).await?;
            if let Err(error) = transaction.open(self.opening, wait).await {
                let kind = kind_of(&error);
                let is_final = kind == ErrorKind::ConnectionLost
                    || (transaction.is_joined() && kind == ErrorKind::Conflict);
                if wait.is_none() || is_final {
                    return Err(error.into());
                }
                // The wait was too long, or met a deadlock: the row is read again either way.
                wait = None;
                continue;
            }
            let started = Instant::now();
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
                    wait = Some(Wait {
                        lock: self.key.lock(),
                        at_most,
                    });
                }
                Err(error) => {
                    transaction.rollback().await;
                    if self.is_lock_timeout(&error, started) {
                        if deadline.left().is_none() {
                            return Ok(Step::Contended);
                        }
                        wait = None;
                        continue;
                    }
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

    /// Whether a statement of the claim ended because somebody outside of the protocol holds the row: an operator, or a purge. The error says so only in the
    /// server's own language, so it is known by what it has not, and by how long it took.
    fn is_lock_timeout(&self, error: &Error, started: Instant) -> bool {
        let bound = self.opening.lock_wait.unwrap_or(Duration::MAX);
        has_text_alone(error) && started.elapsed() >= bound
    }

    /// One claim inside an open transaction: insert, else read and decide.
    async fn look<C: IdempotentConnection>(
        &self,
        transaction: &mut Transaction<'_, C>,
    ) -> Result<Step, Error> {
        reach(Point::AfterBegin, self.operation.name()).await?;
        for _ in 0..MAX_READS {
            let claim = Claim {
                key: self.key.clone(),
                request_hash: self.digest.to_hex(),
                horizons: Horizons::of(self.operation.retention()),
            };
            let inserted = transaction.inner().execute(claim).await?;
            reach(Point::AfterClaim, self.operation.name()).await?;
            if inserted == 1 {
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
                    let Some(seen) = &found.record else {
                        unreachable!("I4: what is taken over is there");
                    };
                    if self.take_over(transaction, seen, attempt).await? {
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
        reach(Point::AfterRead, self.operation.name()).await?;
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
        seen: &Record,
        attempt: u32,
    ) -> Result<bool, Error> {
        let take_over = TakeOver {
            key: self.key.clone(),
            seen_attempt: i64::from(attempt) - 1,
            seen_request_hash: seen.request_hash.to_hex(),
            request_hash: self.digest.to_hex(),
            horizons: Horizons::of(self.operation.retention()),
        };
        Ok(transaction.inner().execute(take_over).await? == 1)
    }
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

//! The policy: what a call may do, given what its key holds.
//!
//! ```
//! use std::time::SystemTime;
//! use idem_core::decide::{Call, Decision, Lapsed, Rejection};
//! use idem_core::{Answer, Late, Record, RecordState, RequestDigest, decide};
//!
//! let [paid, other] = [RequestDigest::of(&("order-17", 500))?, RequestDigest::of(&("order-17", 600))?];
//! let record = Record {
//!     request_hash: paid,
//!     state: RecordState::Retained(().encode()?),
//!     attempt: 1,
//!     expires_at: SystemTime::now(),
//! };
//! let call = Call { request_hashes: &[other], late: Late::Reject, lapsed: Lapsed::Park };
//! assert_eq!(
//!     decide(Some(&record), &call, SystemTime::UNIX_EPOCH),
//!     Decision::Reject(Rejection::Mismatch),
//! );
//! # Ok::<(), idem_core::Error>(())
//! ```

use std::time::{Duration, SystemTime};

use crate::answer::StoredAnswer;
use crate::error::{Error, ErrorKind};
use crate::policy::Late;
use crate::record::{Record, RecordState, Writer};
use crate::request_hash::RequestDigest;

/// What a call brings to the decision.
///
/// ```
/// use idem_core::decide::{Call, Lapsed};
/// use idem_core::{Late, RequestDigest};
///
/// let hashes = [RequestDigest::of(&("order-17", 500))?];
/// let call = Call { request_hashes: &hashes, late: Late::default(), lapsed: Lapsed::default() };
/// assert_eq!((call.late, call.lapsed), (Late::Reject, Lapsed::Park));
/// # Ok::<(), idem_core::HashError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The hash of its request under every scheme this build knows, the current one first.
    pub request_hashes: &'a [RequestDigest],
    /// What it gets when it is late.
    pub late: Late,
    /// What it does about a call whose lease is over.
    pub lapsed: Lapsed,
}

/// What happens to a call whose lease is over.
///
/// ```
/// use std::time::SystemTime;
/// use idem_core::decide::{Call, Decision, Lapsed, Rejection, decide};
/// use idem_core::{Late, Lease, Record, RecordState, RequestDigest, Writer};
///
/// let now = SystemTime::now();
/// let hashes = [RequestDigest::of(&17)?];
/// let lease = Lease { owner: "worker 3".into(), expires_at: now };
/// let abandoned = Record {
///     request_hash: hashes[0].clone(),
///     state: RecordState::Pending { writer: Writer::Committed, lease: Some(lease) },
///     attempt: 1,
///     expires_at: now,
/// };
/// let with = |lapsed| decide(Some(&abandoned), &Call { request_hashes: &hashes, late: Late::Reject, lapsed }, now);
/// assert_eq!(with(Lapsed::TakeOver), Decision::TakeOver { attempt: 2 });
/// assert_eq!(with(Lapsed::Park), Decision::Reject(Rejection::Parked));
/// # Ok::<(), idem_core::HashError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lapsed {
    /// The next caller goes on as the next attempt.
    TakeOver,
    /// A person must decide.
    #[default]
    Park,
}

/// What happens next.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use idem_core::decide::{Call, Decision, Lapsed, decide};
/// use idem_core::{Answer, Late, Record, RecordState, RequestDigest};
///
/// let now = SystemTime::now();
/// let hashes = [RequestDigest::of(&17)?];
/// let call = Call { request_hashes: &hashes, late: Late::Reject, lapsed: Lapsed::Park };
/// let answer = "paid".to_owned().encode()?;
/// let record = Record {
///     request_hash: hashes[0].clone(),
///     state: RecordState::Retained(answer.clone()),
///     attempt: 1,
///     expires_at: now + Duration::from_secs(60),
/// };
/// assert_eq!(decide(None, &call, now), Decision::Execute);
/// assert_eq!(decide(Some(&record), &call, now), Decision::Replay(&answer));
/// # Ok::<(), idem_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision<'r> {
    /// The key is new: run the handler.
    Execute,
    /// Run the handler as attempt `attempt`, if the row is still as it was read.
    TakeOver {
        /// The number of the new attempt.
        attempt: u32,
    },
    /// Give back what the first run stored.
    Replay(&'r StoredAnswer),
    /// Another process runs this call now and holds it for so long.
    Wait {
        /// How long its lease still lasts.
        lease_left: Duration,
    },
    /// Nothing may run.
    Reject(Rejection),
}

/// Why nothing may run.
///
/// ```
/// use idem_core::decide::Rejection;
/// use idem_core::{Advice, Error, ErrorKind};
///
/// // Each becomes the kind of error that has its name.
/// let error = Error::from(Rejection::Orphaned);
/// assert_eq!(error.kind(), &ErrorKind::Orphaned);
/// assert_eq!(error.advice(), Advice::AskOperator);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// The call is running inside itself.
    Reentrant,
    /// A claim was committed without its answer.
    Orphaned,
    /// The key was used for another request.
    Mismatch,
    /// The stored request hash has a scheme that this build does not know.
    SchemeChanged {
        /// The stored scheme byte.
        stored: u8,
    },
    /// The call was abandoned by its owner; a person must decide.
    Parked,
    /// The record has expired.
    Expired,
}

/// The one policy: pure and total. `now` is the database's time, read with the row.
///
/// | record found | decision |
/// |---|---|
/// | none | execute |
/// | pending, no lease, written by this transaction | reject: reentrant |
/// | pending, no lease, committed | reject: orphaned |
/// | pending, lease alive | wait |
/// | other hash scheme, known | compared under that scheme |
/// | other hash scheme, unknown | reject: scheme changed |
/// | other request hash | reject: mismatch |
/// | pending, lease over | take over, or reject: parked |
/// | expired (exactly at `expires_at`, too) or tombstone, late calls rejected | reject: expired |
/// | expired or tombstone, late calls execute | take over |
/// | completed or failed | replay |
///
/// The hash stands above the lease that is over, so that another request never goes on with an abandoned call.
///
/// ```
/// use std::time::SystemTime;
/// use idem_core::decide::{Call, Decision, Lapsed, decide};
/// use idem_core::{Late, RequestDigest};
///
/// let hashes = [RequestDigest::of(&17_i64)?];
/// let call = Call { request_hashes: &hashes, late: Late::Reject, lapsed: Lapsed::Park };
/// assert_eq!(decide(None, &call, SystemTime::UNIX_EPOCH), Decision::Execute);
/// # Ok::<(), idem_core::HashError>(())
/// ```
pub fn decide<'r>(record: Option<&'r Record>, call: &Call<'_>, now: SystemTime) -> Decision<'r> {
    let Some(record) = record else {
        return Decision::Execute;
    };
    if let RecordState::Pending { writer, lease } = &record.state {
        match (lease, writer) {
            (None, Writer::ThisTransaction) => return Decision::Reject(Rejection::Reentrant),
            (None, Writer::Committed) => return Decision::Reject(Rejection::Orphaned),
            (Some(lease), _) => {
                if let Some(lease_left) = time_left(lease.expires_at, now) {
                    return Decision::Wait { lease_left };
                }
            }
        }
    }
    if let Err(rejection) = compare(&record.request_hash, call.request_hashes) {
        return Decision::Reject(rejection);
    }
    let next_attempt = Decision::TakeOver {
        attempt: record.attempt.saturating_add(1),
    };
    match &record.state {
        RecordState::Pending { .. } => match call.lapsed {
            Lapsed::TakeOver => next_attempt,
            Lapsed::Park => Decision::Reject(Rejection::Parked),
        },
        RecordState::Retained(answer) if time_left(record.expires_at, now).is_some() => {
            Decision::Replay(answer)
        }
        RecordState::Retained(_) | RecordState::Tombstone => match call.late {
            Late::Reject => Decision::Reject(Rejection::Expired),
            Late::Execute => next_attempt,
        },
    }
}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Self {
        Self::new(match rejection {
            Rejection::Reentrant => ErrorKind::Reentrant,
            Rejection::Orphaned => ErrorKind::Orphaned,
            Rejection::Mismatch => ErrorKind::Mismatch,
            Rejection::SchemeChanged { stored } => ErrorKind::SchemeChanged { stored },
            Rejection::Parked => ErrorKind::Parked,
            Rejection::Expired => ErrorKind::Expired,
        })
    }
}

/// How long it is until `end`; `None` from `end` on.
fn time_left(end: SystemTime, now: SystemTime) -> Option<Duration> {
    end.duration_since(now).ok().filter(|left| !left.is_zero())
}

/// A stored hash is compared with the call's hash of the same scheme, never by anything weaker.
fn compare(stored: &RequestDigest, of_call: &[RequestDigest]) -> Result<(), Rejection> {
    let same_scheme = of_call.iter().find(|hash| hash.scheme() == stored.scheme());
    match same_scheme {
        None => Err(Rejection::SchemeChanged {
            stored: stored.scheme(),
        }),
        Some(hash) if hash != stored => Err(Rejection::Mismatch),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;

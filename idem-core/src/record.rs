//! What a key can hold.
//!
//! ```
//! use std::time::SystemTime;
//! use idem_core::{Answer, Record, RecordState, RequestDigest};
//!
//! let mut record = Record {
//!     request_hash: RequestDigest::of(&("order-17", 500))?,
//!     state: RecordState::Retained("paid".to_owned().encode()?),
//!     attempt: 1,
//!     expires_at: SystemTime::now(),
//! };
//! // What is left when the answer is deleted still tells a late retry from a new key.
//! record.state = RecordState::Tombstone;
//! assert_eq!(record.request_hash, RequestDigest::of(&("order-17", 500))?);
//! # Ok::<(), idem_core::Error>(())
//! ```

use std::time::SystemTime;

use crate::answer::StoredAnswer;
use crate::request_hash::RequestDigest;

/// The stored row of a key, as the database shows it to one caller.
///
/// ```
/// use std::time::SystemTime;
/// use idem_core::decide::{Call, Decision, Lapsed, Rejection, decide};
/// use idem_core::{Answer, Late, Record, RecordState, RequestDigest};
///
/// let (now, hashes) = (SystemTime::now(), [RequestDigest::of(&17)?]);
/// let record = Record {
///     request_hash: hashes[0].clone(),
///     state: RecordState::Retained("paid".to_owned().encode()?),
///     attempt: 1,
///     expires_at: now,
/// };
/// // The answer is still there, but it is not replayed from `expires_at` on.
/// let call = Call { request_hashes: &hashes, late: Late::Reject, lapsed: Lapsed::Park };
/// assert_eq!(decide(Some(&record), &call, now), Decision::Reject(Rejection::Expired));
/// # Ok::<(), idem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The hash of the request that claimed the key.
    pub request_hash: RequestDigest,
    /// How far its call is.
    pub state: RecordState,
    /// Which attempt holds it, counted from 1.
    pub attempt: u32,
    /// From this moment on the answer is not replayed any more.
    pub expires_at: SystemTime,
}

/// How far the call of a record is.
///
/// ```
/// use idem_core::{RecordState, Writer};
///
/// let transactional = RecordState::Pending { writer: Writer::Committed, lease: None };
/// assert_ne!(transactional, RecordState::Tombstone);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordState {
    /// Claimed, without an answer.
    Pending {
        /// Who wrote the row.
        writer: Writer,
        /// Until when its owner runs it; `None` in transactional mode.
        lease: Option<Lease>,
    },
    /// Ended, and the answer is there.
    Retained(StoredAnswer),
    /// Ended, and only key and request hash are left.
    Tombstone,
}

/// Who wrote a pending row.
///
/// ```
/// use std::time::SystemTime;
/// use idem_core::decide::{Call, Decision, Lapsed, Rejection, decide};
/// use idem_core::{Late, Record, RecordState, RequestDigest, Writer};
///
/// let (now, hashes) = (SystemTime::now(), [RequestDigest::of(&17)?]);
/// let call = Call { request_hashes: &hashes, late: Late::Reject, lapsed: Lapsed::Park };
/// let rejection = |writer| {
///     let state = RecordState::Pending { writer, lease: None };
///     let record = Record { request_hash: hashes[0].clone(), state, attempt: 1, expires_at: now };
///     match decide(Some(&record), &call, now) {
///         Decision::Reject(rejection) => Some(rejection),
///         _ => None,
///     }
/// };
/// assert_eq!(rejection(Writer::ThisTransaction), Some(Rejection::Reentrant));
/// assert_eq!(rejection(Writer::Committed), Some(Rejection::Orphaned));
/// # Ok::<(), idem_core::HashError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// The transaction that is reading it now.
    ThisTransaction,
    /// Another one, which has committed.
    Committed,
}

/// Who runs a call outside of a transaction, and until when.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use idem_core::decide::{Call, Decision, Lapsed, decide};
/// use idem_core::{Late, Lease, Record, RecordState, RequestDigest, Writer};
///
/// let (now, half_a_minute) = (SystemTime::now(), Duration::from_secs(30));
/// let hashes = [RequestDigest::of(&17)?];
/// let lease = Lease { owner: "worker 3".into(), expires_at: now + half_a_minute };
/// let running = Record {
///     request_hash: hashes[0].clone(),
///     state: RecordState::Pending { writer: Writer::Committed, lease: Some(lease) },
///     attempt: 1,
///     expires_at: now,
/// };
/// let call = Call { request_hashes: &hashes, late: Late::Reject, lapsed: Lapsed::Park };
/// assert_eq!(decide(Some(&running), &call, now), Decision::Wait { lease_left: half_a_minute });
/// # Ok::<(), idem_core::HashError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Who runs it.
    pub owner: String,
    /// From this moment on it is over.
    pub expires_at: SystemTime,
}

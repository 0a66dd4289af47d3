//! What a key can hold.

use std::time::SystemTime;

use crate::answer::StoredAnswer;
use crate::request_hash::RequestDigest;

/// The stored row of a key, as the database shows it to one caller.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// The transaction that is reading it now.
    ThisTransaction,
    /// Another one, which has committed.
    Committed,
}

/// Who runs a call outside of a transaction, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Who runs it.
    pub owner: String,
    /// From this moment on it is over.
    pub expires_at: SystemTime,
}

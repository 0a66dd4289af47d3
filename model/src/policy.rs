//! Step 4: the decision. It is `idem_core::decide`, called with a real record, so the model checks what the library does.

use std::slice;
use std::time::{Duration, SystemTime};

use idem_core::answer::End;
use idem_core::decide::{Call, Decision, Lapsed, Rejection};
use idem_core::{Record, RecordState, RequestDigest, StoredAnswer, Writer, decide};

use crate::caller::{Payload, Receipt, Told, Who};
use crate::database::{Row, RowState, Tick};
use crate::mutant::Mutant;

/// How long a tick is. The protocol only compares times, so any length will do.
const TICK: Duration = Duration::from_secs(3600);

/// What a call does next, in the words of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Run the body.
    Execute,
    /// Take the row over.
    TakeOver {
        /// As which attempt.
        attempt: u32,
    },
    /// Give back what is stored.
    Replay(End, Receipt),
    /// End with an error.
    Reject(Told),
}

/// The policy with the request hashes of the two payloads.
#[derive(Debug)]
pub struct Policy {
    right: RequestDigest,
    wrong: RequestDigest,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            right: digest("a1"),
            wrong: digest("b2"),
        }
    }
}

/// A digest under the present scheme, whose 32 bytes are all the same.
fn digest(byte: &str) -> RequestDigest {
    let scheme = RequestDigest::CURRENT_SCHEME;
    RequestDigest::from_hex(&format!("{scheme:02x}{}", byte.repeat(32)))
        .unwrap_or_else(|| unreachable!("33 bytes in hexadecimal are a digest"))
}

impl Policy {
    /// What `who` does about the row that it sees.
    pub fn next(&self, row: Option<&Row>, who: Who, now: Tick, mutant: Option<Mutant>) -> Next {
        let now = time(now);
        let mut record = row.map(|row| self.record(row));
        let mut request_hash = self.digest(who.payload());
        match (mutant, &mut record) {
            (Some(Mutant::NoHashCompare), Some(record)) if self.wrong == record.request_hash => {
                request_hash = &self.wrong;
            }
            (Some(Mutant::NoHashCompare), Some(_)) => request_hash = &self.right,
            (Some(Mutant::ExpiryBeforeState), Some(record)) if record.expires_at <= now => {
                record.state = RecordState::Tombstone;
            }
            _ => {}
        }
        let call = Call {
            request_hashes: slice::from_ref(request_hash),
            late: who.late(),
            lapsed: Lapsed::Park,
        };
        match decide(record.as_ref(), &call, now) {
            Decision::Execute => Next::Execute,
            Decision::TakeOver { attempt } => Next::TakeOver { attempt },
            Decision::Replay(stored) => Next::Replay(stored.end(), receipt(stored)),
            Decision::Reject(Rejection::Mismatch) => Next::Reject(Told::Mismatch),
            Decision::Reject(Rejection::Expired) => Next::Reject(Told::Expired),
            Decision::Reject(Rejection::Orphaned) => Next::Reject(Told::Orphaned),
            Decision::Reject(_) | Decision::Wait { .. } => Next::Reject(Told::Unexpected),
        }
    }

    fn digest(&self, payload: Payload) -> &RequestDigest {
        match payload {
            Payload::Right => &self.right,
            Payload::Wrong => &self.wrong,
        }
    }

    fn record(&self, row: &Row) -> Record {
        let state = match row.state {
            // A transaction that was opened for this call has written nothing before its claim.
            RowState::Pending => RecordState::Pending {
                writer: Writer::Committed,
                lease: None,
            },
            RowState::Ended(end, Receipt(number)) => {
                RecordState::Retained(StoredAnswer::json(end, number.to_string().into_bytes()))
            }
            RowState::Tombstone => RecordState::Tombstone,
        };
        Record {
            request_hash: self.digest(row.payload).clone(),
            state,
            attempt: row.attempt,
            expires_at: time(row.expires_at),
        }
    }
}

/// What the caller reads in the stored bytes.
fn receipt(stored: &StoredAnswer) -> Receipt {
    let number = std::str::from_utf8(stored.body()).ok();
    let number = number.and_then(|number| number.parse().ok());
    Receipt(number.unwrap_or_else(|| unreachable!("the bytes of an answer are those of a receipt")))
}

fn time(tick: Tick) -> SystemTime {
    SystemTime::UNIX_EPOCH + TICK * u32::from(tick)
}

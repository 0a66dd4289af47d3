//! What went wrong, as a caller can act on it.
//!
//! ```
//! use std::time::Duration;
//! use idem_core::{Advice, Error, ErrorKind};
//!
//! let what_next = |error: &Error| match error.advice() {
//!     Advice::RetrySameKey { after } => format!("Retry-After: {}", after.as_secs()),
//!     other => other.to_string(),
//! };
//! let in_flight = Error::new(ErrorKind::InFlight { retry_after: Duration::from_secs(2) });
//! assert_eq!(what_next(&in_flight), "Retry-After: 2");
//! assert_eq!(what_next(&Error::new(ErrorKind::Mismatch)), "a new intent takes a new key");
//! ```

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::invalid::Invalid;
use crate::limits::RETRY_AFTER;
use crate::request_hash::HashError;

/// What a call ended with instead of an answer.
///
/// [`kind`](Self::kind) says what happened, [`key_state`](Self::key_state) whether the key is free,
/// [`advice`](Self::advice) what to do. The text has no payload and no key in it.
///
/// ```
/// use idem_core::{Advice, Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Mismatch).in_operation("orders.pay");
/// assert_eq!(
///     error.to_string(),
///     "orders.pay: the idempotency key was used before with another request"
/// );
/// assert_eq!(error.advice(), Advice::ChangeKey);
/// assert!(!error.is_retryable());
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    operation: Option<&'static str>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// What happened. Each kind says when it occurs and whether the key is free.
///
/// ```
/// use std::time::Duration;
/// use idem_core::ErrorKind;
///
/// // What the draft of the `Idempotency-Key` header says; it leaves all others to the resource (section 2.7,
/// // <https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/>).
/// let status = |kind: &ErrorKind| match kind {
///     ErrorKind::InFlight { .. } => Some(409),
///     ErrorKind::Mismatch => Some(422),
///     _ => None,
/// };
/// assert_eq!(status(&ErrorKind::Mismatch), Some(422));
/// assert_eq!(status(&ErrorKind::InFlight { retry_after: Duration::from_secs(1) }), Some(409));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another call of the same key was running for as long as this one was willing to wait. The key is held; the same
    /// key may be retried after `retry_after`.
    InFlight {
        /// When to come back.
        retry_after: Duration,
    },
    /// Another writer held the database (SQLite has one at a time), or a call of another key held a lock that has by accident the same number. Nothing was written; the key is as it was.
    Busy {
        /// When to come back.
        retry_after: Duration,
    },
    /// The key was used before with another request. The stored record is untouched; a new intent needs a new key.
    Mismatch,
    /// The stored request hash was made under a scheme that this build does not know, so the requests cannot be compared.
    SchemeChanged {
        /// The stored scheme byte.
        stored: u8,
    },
    /// The retry came after its record expired, so the first answer is not given any more and nothing ran again.
    Expired,
    /// The call was made inside itself, under the same key.
    Reentrant,
    /// A claim was committed without an answer, because a body ended the transaction by itself. Its effects may be there;
    /// a person must look, then remove the row with `idem_diesel::admin::forget`.
    Orphaned,
    /// The call was abandoned by its owner, or the message was given up after too many failed attempts. It waits for a person's decision.
    Parked,
    /// The row of the key exists but cannot be seen: row-level security or privileges hide it. Whatever ran was rolled back.
    RecordHidden,
    /// The transaction of the claim was gone when the answer was to be stored, because the body ended it, or the claim, because the body deleted its
    /// own record. What was left was rolled back.
    RecordLost,
    /// A statement of the body failed, and the body went on as if it had not. PostgreSQL takes no further statement then, so
    /// everything was rolled back, and the key is free. (On SQLite a failed statement undoes itself alone.)
    StatementFailed,
    /// The connection arrived inside an unfinished transaction, so nothing done here would be durable. Nothing ran.
    UnfinishedTransaction,
    /// The answer has no stored form, or does not survive being stored. Everything was rolled back; the key is free.
    NotReplayable {
        /// The answer's type.
        answer: &'static str,
    },
    /// The answer is larger than the policy allows. Everything was rolled back; the key is free.
    AnswerTooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The largest size in bytes.
        limit: usize,
    },
    /// The stored answer does not decode as the type that the handler returns now. Nothing ran again.
    Undecodable {
        /// The type that was expected.
        answer: &'static str,
        /// How the answer was stored.
        codec: String,
    },
    /// The request has no hash, such as one with a NaN in it. Nothing was sent to the database.
    Unhashable,
    /// A key, tenant, operation, message id or event could not be one; see `source()`. Nothing was sent to the database.
    Invalid,
    /// The intent that a consumer was given is not that of its message, so its downstream keys would differ from delivery to delivery. Nothing ran.
    WrongIntent,
    /// An event was to be published outside of a transaction, where it could not commit together with anything. Nothing was written.
    NotInTransaction,
    /// The entity is in the target state already: a second payment of a paid order. Everything was rolled back; the key
    /// is free.
    AlreadyApplied {
        /// The state it is in, and was to reach.
        state: String,
    },
    /// The entity is in a state that this transition does not start from. Everything was rolled back; the key is free.
    IllegalTransition {
        /// The state it is in now.
        current: String,
        /// The state it was to reach.
        to: &'static str,
    },
    /// The transition is not one of the state machine's. Nothing was written for it.
    UndeclaredTransition {
        /// The state it was to start from.
        from: &'static str,
        /// The state it was to reach.
        to: &'static str,
    },
    /// There is no entity with this id. Everything was rolled back; the key is free.
    EntityNotFound {
        /// The state machine that was asked for.
        entity: &'static str,
    },
    /// The transaction met a concurrent one (serialization failure, deadlock). It was rolled back; the key is free.
    Conflict,
    /// The database takes no writes: a replica, or a file that is read-only. Nothing ran; the key is free.
    ReadOnly,
    /// The connection was lost before COMMIT was sent: nothing was stored and the key is free.
    ConnectionLost,
    /// The connection was lost while COMMIT was on its way, so it is not known whether it happened. The same key finds out.
    OutcomeUnknown,
    /// A table of this library is missing.
    TableMissing {
        /// Its name.
        table: &'static str,
    },
    /// A table of this library is not as it must be.
    SchemaWrong {
        /// What is wrong, and where.
        problem: String,
    },
    /// Something that this version does not do.
    Unsupported {
        /// What was asked for.
        what: &'static str,
    },
    /// The database refused a statement for another reason; see `source()`. Everything was rolled back; the key is free.
    Database,
}

/// Whether a key can be used.
///
/// ```
/// use idem_core::{Error, ErrorKind, KeyState};
///
/// let state = |kind| Error::new(kind).key_state();
/// assert_eq!(state(ErrorKind::Conflict), KeyState::Free);
/// assert_eq!(state(ErrorKind::Mismatch), KeyState::Used);
/// assert_eq!(state(ErrorKind::OutcomeUnknown), KeyState::Unknown);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyState {
    /// Nothing is stored under it by this call: it may be used again.
    Free,
    /// Another call is using it.
    Held,
    /// It has a record.
    Used,
    /// Only the database knows.
    Unknown,
}

/// What to do next.
///
/// ```
/// use std::time::Duration;
/// use idem_core::{Advice, Error, ErrorKind};
///
/// let advice = Error::new(ErrorKind::Conflict).advice();
/// assert_eq!(advice, Advice::RetrySameKey { after: Duration::ZERO });
/// assert_eq!(advice.to_string(), "send the same request with the same key again");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// Send the same request with the same key again.
    RetrySameKey {
        /// Not before so long; zero: at once.
        after: Duration,
    },
    /// The key stands for something else: a new intent takes a new key.
    ChangeKey,
    /// The request cannot be carried out as things are; the key stays free.
    ChangeRequest,
    /// The program is wrong: code, policy or types.
    FixProgram,
    /// A person with access to the database must act.
    AskOperator,
}

impl ErrorKind {
    /// The one table of what each kind means for the key and for the caller.
    const fn consequences(&self) -> (KeyState, Advice) {
        const AT_ONCE: Advice = Advice::RetrySameKey {
            after: Duration::ZERO,
        };
        match self {
            Self::InFlight { retry_after } => (
                KeyState::Held,
                Advice::RetrySameKey {
                    after: *retry_after,
                },
            ),
            Self::Busy { retry_after } => (
                KeyState::Unknown,
                Advice::RetrySameKey {
                    after: *retry_after,
                },
            ),
            Self::Conflict => (KeyState::Free, AT_ONCE),
            Self::ConnectionLost => (KeyState::Free, Advice::RetrySameKey { after: RETRY_AFTER }),
            Self::OutcomeUnknown => (
                KeyState::Unknown,
                Advice::RetrySameKey { after: RETRY_AFTER },
            ),
            Self::Mismatch | Self::Expired => (KeyState::Used, Advice::ChangeKey),
            Self::SchemeChanged { .. } | Self::Undecodable { .. } => {
                (KeyState::Used, Advice::FixProgram)
            }
            Self::Reentrant => (KeyState::Held, Advice::FixProgram),
            Self::Orphaned | Self::Parked => (KeyState::Used, Advice::AskOperator),
            Self::RecordHidden => (KeyState::Unknown, Advice::AskOperator),
            Self::RecordLost => (KeyState::Unknown, Advice::FixProgram),
            Self::StatementFailed
            | Self::UnfinishedTransaction
            | Self::NotInTransaction
            | Self::WrongIntent
            | Self::NotReplayable { .. }
            | Self::AnswerTooLarge { .. }
            | Self::Unsupported { .. }
            | Self::UndeclaredTransition { .. } => (KeyState::Free, Advice::FixProgram),
            Self::Unhashable
            | Self::Invalid
            | Self::AlreadyApplied { .. }
            | Self::IllegalTransition { .. }
            | Self::EntityNotFound { .. } => (KeyState::Free, Advice::ChangeRequest),
            Self::TableMissing { .. }
            | Self::SchemaWrong { .. }
            | Self::ReadOnly
            | Self::Database => (KeyState::Free, Advice::AskOperator),
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RetrySameKey { after } if after.is_zero() => {
                f.write_str("send the same request with the same key again")
            }
            Self::RetrySameKey { after } => {
                write!(
                    f,
                    "send the same request with the same key again after {after:?}"
                )
            }
            Self::ChangeKey => f.write_str("a new intent takes a new key"),
            Self::ChangeRequest => {
                f.write_str("the request cannot be carried out as things are; its key is free")
            }
            Self::FixProgram => f.write_str("the program must be changed"),
            Self::AskOperator => f.write_str("a person with access to the database must act"),
        }
    }
}

impl Error {
    /// An error of this kind.
    ///
    /// ```
    /// use idem_core::{Error, ErrorKind};
    ///
    /// let error = Error::new(ErrorKind::Expired);
    /// assert_eq!(error.to_string(), "the retry came after the record of its key expired");
    /// ```
    pub fn new(kind: ErrorKind) -> Self {
        Self(Box::new(Inner {
            kind,
            operation: None,
            source: None,
        }))
    }

    /// The same error, with the operation it happened in. The first name stays, whatever the error passes through later.
    ///
    /// ```
    /// use idem_core::{Error, ErrorKind};
    ///
    /// let error = Error::new(ErrorKind::Conflict).in_operation("orders.pay").in_operation("checkout");
    /// assert_eq!(error.operation(), Some("orders.pay"));
    /// ```
    #[must_use]
    pub fn in_operation(mut self, operation: &'static str) -> Self {
        self.0.operation.get_or_insert(operation);
        self
    }

    /// The same error, with what caused it.
    ///
    /// ```
    /// use std::error::Error as _;
    /// use idem_core::{Error, ErrorKind};
    ///
    /// let error = Error::new(ErrorKind::Database).with_source("disk full");
    /// assert_eq!(error.source().map(ToString::to_string), Some("disk full".into()));
    /// assert_eq!(error.to_string(), "the database refused a statement");
    /// ```
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The same cause in the same operation, seen as another kind.
    ///
    /// ```
    /// use std::error::Error as _;
    /// use idem_core::{Error, ErrorKind};
    ///
    /// // A lost connection means something else once COMMIT was sent.
    /// let lost = Error::new(ErrorKind::ConnectionLost).with_source("broken pipe");
    /// let error = lost.into_kind(ErrorKind::OutcomeUnknown);
    /// assert_eq!(error.kind(), &ErrorKind::OutcomeUnknown);
    /// assert!(error.source().is_some());
    /// ```
    #[must_use]
    pub fn into_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// What happened.
    ///
    /// ```
    /// use idem_core::{Error, ErrorKind};
    ///
    /// let error = Error::from(ErrorKind::AlreadyApplied { state: "paid".into() });
    /// assert!(matches!(error.kind(), ErrorKind::AlreadyApplied { state } if state == "paid"));
    /// ```
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// In which operation, when it is known.
    ///
    /// ```
    /// use idem_core::{Error, ErrorKind};
    ///
    /// let error = Error::new(ErrorKind::Mismatch);
    /// assert_eq!(error.operation(), None);
    /// assert_eq!(error.in_operation("orders.pay").operation(), Some("orders.pay"));
    /// ```
    pub fn operation(&self) -> Option<&'static str> {
        self.0.operation
    }

    /// Whether the key can be used.
    ///
    /// ```
    /// use idem_core::{Error, ErrorKind, KeyState};
    ///
    /// let error = Error::new(ErrorKind::AnswerTooLarge { bytes: 2_000_000, limit: 1_048_576 });
    /// assert_eq!(error.key_state(), KeyState::Free);
    /// ```
    pub fn key_state(&self) -> KeyState {
        self.0.kind.consequences().0
    }

    /// What to do next.
    ///
    /// ```
    /// use idem_core::{Advice, Error, ErrorKind};
    ///
    /// assert_eq!(Error::new(ErrorKind::Expired).advice(), Advice::ChangeKey);
    /// assert_eq!(Error::new(ErrorKind::Orphaned).advice(), Advice::AskOperator);
    /// ```
    pub fn advice(&self) -> Advice {
        self.0.kind.consequences().1
    }

    /// Whether the same request may be sent again with the same key.
    ///
    /// ```
    /// use idem_core::{Error, ErrorKind};
    ///
    /// assert!(Error::new(ErrorKind::OutcomeUnknown).is_retryable());
    /// assert!(!Error::new(ErrorKind::Mismatch).is_retryable());
    /// ```
    pub fn is_retryable(&self) -> bool {
        self.retry_after().is_some()
    }

    /// How long to wait before sending the same request with the same key, zero for at once; `None` when that would not help.
    ///
    /// ```
    /// use std::time::Duration;
    /// use idem_core::{Error, ErrorKind};
    ///
    /// let busy = Error::new(ErrorKind::Busy { retry_after: Duration::from_millis(250) });
    /// assert_eq!(busy.retry_after(), Some(Duration::from_millis(250)));
    /// assert_eq!(Error::new(ErrorKind::Conflict).retry_after(), Some(Duration::ZERO));
    /// assert_eq!(Error::new(ErrorKind::Expired).retry_after(), None);
    /// ```
    pub fn retry_after(&self) -> Option<Duration> {
        match self.advice() {
            Advice::RetrySameKey { after } => Some(after),
            _ => None,
        }
    }

    /// Whether the entity is in the target state already, so that there is nothing left to do.
    ///
    /// ```
    /// use idem_core::{Error, ErrorKind};
    ///
    /// let second_payment = Error::new(ErrorKind::AlreadyApplied { state: "paid".into() });
    /// assert!(second_payment.is_already_applied());
    /// let payment_of_cancelled = ErrorKind::IllegalTransition { current: "cancelled".into(), to: "paid" };
    /// assert!(!Error::new(payment_of_cancelled).is_already_applied());
    /// ```
    pub fn is_already_applied(&self) -> bool {
        matches!(self.0.kind, ErrorKind::AlreadyApplied { .. })
    }

    /// Takes the cause out, to give it on as the type that it is.
    ///
    /// ```
    /// use std::io;
    /// use idem_core::{Error, ErrorKind};
    ///
    /// let cause = io::Error::from(io::ErrorKind::BrokenPipe);
    /// let source = Error::new(ErrorKind::ConnectionLost).with_source(cause).into_source();
    /// assert!(source.is_some_and(|source| source.is::<io::Error>()));
    /// ```
    pub fn into_source(self) -> Option<Box<dyn StdError + Send + Sync>> {
        self.0.source
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self::new(kind)
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::new(ErrorKind::Invalid).with_source(invalid)
    }
}

impl From<HashError> for Error {
    fn from(error: HashError) -> Self {
        Self::new(ErrorKind::Unhashable).with_source(error)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InFlight { .. } => f.write_str("another call with this idempotency key is running"),
            Self::Busy { .. } => f.write_str("another writer held the database for too long"),
            Self::Mismatch => {
                f.write_str("the idempotency key was used before with another request")
            }
            Self::SchemeChanged { stored } => write!(
                f,
                "the stored request hash has scheme {stored}, which this build does not know"
            ),
            Self::Expired => f.write_str("the retry came after the record of its key expired"),
            Self::Reentrant => f.write_str("the handler was called inside itself with the same idempotency key"),
            Self::Orphaned => f.write_str(
                "a claim was committed without an answer: check its effects, then remove its row with idem_diesel::admin::forget",
            ),
            Self::Parked => f.write_str("the call or message was given up and waits for a person's decision"),
            Self::RecordHidden => f.write_str(
                "the row of the idempotency key cannot be seen: check row-level security and privileges",
            ),
            Self::RecordLost => f.write_str(
                "the claim was gone when the answer was to be stored: the body deleted it or ended the transaction",
            ),
            Self::StatementFailed => {
                f.write_str("a statement failed in the handler, which went on regardless; all was rolled back")
            }
            Self::UnfinishedTransaction => f.write_str(
                "the connection is inside an unfinished transaction: commit or roll it back before the call",
            ),
            Self::NotReplayable { answer } => {
                write!(f, "an answer of type {answer} does not survive being stored")
            }
            Self::AnswerTooLarge { bytes, limit } => {
                write!(f, "the answer has {bytes} bytes, at most {limit} are stored")
            }
            Self::Undecodable { answer, codec } => {
                write!(f, "the stored answer ({codec}) does not decode as {answer}")
            }
            Self::Unhashable => f.write_str("the request has no hash"),
            Self::Invalid => f.write_str("a key, a tenant, an operation, a message id or an event is not one"),
            Self::WrongIntent => f.write_str(
                "the intent is not that of the message: make it with Intent::of_message",
            ),
            Self::NotInTransaction => f.write_str(
                "an event is published inside the transaction of what it tells of, and none is open",
            ),
            Self::AlreadyApplied { state } => write!(f, "the entity is {state} already"),
            Self::IllegalTransition { current, to } => {
                write!(f, "the entity is {current} and cannot become {to} from there")
            }
            Self::UndeclaredTransition { from, to } => {
                write!(f, "the state machine has no transition from {from} to {to}")
            }
            Self::EntityNotFound { entity } => write!(f, "there is no entity of {entity} with this id"),
            Self::Conflict => f.write_str("the transaction met a concurrent one and was rolled back"),
            Self::ReadOnly => f.write_str("the database takes no writes: is it a replica?"),
            Self::ConnectionLost => f.write_str("the connection was lost before the commit"),
            Self::OutcomeUnknown => f.write_str(
                "the connection was lost during the commit: retry with the same idempotency key to find out",
            ),
            Self::TableMissing { table } => {
                write!(f, "the table {table} is missing: call ensure_schema or run the migrations")
            }
            Self::SchemaWrong { problem } => f.write_str(problem),
            Self::Unsupported { what } => write!(f, "{what} is not supported by this version"),
            Self::Database => f.write_str("the database refused a statement"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = self.0.operation {
            write!(f, "{operation}: ")?;
        }
        self.0.kind.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("operation", &self.0.operation)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_cross_threads() {
        fn crosses<T: Send + Sync + 'static>() {}
        crosses::<Error>();
    }

    #[test]
    fn only_what_a_retry_can_mend_is_retryable() {
        let second = Duration::from_secs(1);
        for (kind, retryable) in [
            (
                ErrorKind::InFlight {
                    retry_after: second,
                },
                true,
            ),
            (
                ErrorKind::Busy {
                    retry_after: second,
                },
                true,
            ),
            (ErrorKind::Conflict, true),
            (ErrorKind::ConnectionLost, true),
            (ErrorKind::OutcomeUnknown, true),
            (ErrorKind::Mismatch, false),
            (ErrorKind::Expired, false),
            (ErrorKind::Database, false),
        ] {
            assert_eq!(
                Error::new(kind.clone()).is_retryable(),
                retryable,
                "{kind:?}"
            );
        }
    }
}

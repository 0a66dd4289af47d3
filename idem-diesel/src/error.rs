//! The error of this crate: what core says, and where Diesel's errors become its kinds.

use std::error::Error as StdError;
use std::fmt;
use std::ops::Deref;

use diesel::result::{DatabaseErrorKind, Error as DieselError};
use idem_core::limits::RETRY_AFTER;
use idem_core::{ErrorKind, HashError, Invalid};

/// What a call ended with instead of an answer; see [`idem_core::Error`], which it derefs to.
///
/// A handler's error type must be made from it: `impl From<idem_diesel::Error> for ShopError`. `diesel::result::Error` is, so a
/// handler may return `QueryResult<T>`; [`Error::find`] gets it back from there.
///
/// ```
/// use idem_diesel::{Error, ErrorKind};
///
/// let error = Error::from(ErrorKind::Mismatch);
/// let through_diesel = diesel::result::Error::from(error);
/// let found = Error::find(&through_diesel).expect("it is the source");
/// assert_eq!(found.kind(), &ErrorKind::Mismatch);
/// ```
pub struct Error(Inner);

/// Core's error as the next link of a chain. It is there to be found behind an error type that shows [`Error`] as itself
/// (`#[error(transparent)]`), and says what the text before it has not said: what to do.
struct Inner(idem_core::Error);

impl Error {
    /// The error of this library in a chain of sources, however an application wrapped it.
    pub fn find<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e idem_core::Error> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref::<Self>() {
                return Some(found);
            }
            if let Some(found) = error.downcast_ref::<Inner>() {
                return Some(&found.0);
            }
            if let Some(found) = error.downcast_ref::<idem_core::Error>() {
                return Some(found);
            }
            next = match error.downcast_ref::<DieselError>() {
                // Diesel does not give it as its source.
                Some(DieselError::QueryBuilderError(inner)) => Some(inner.as_ref()),
                _ => error.source(),
            };
        }
        None
    }

    /// Core's error.
    pub fn into_core(self) -> idem_core::Error {
        self.0.0
    }
}

impl Deref for Error {
    type Target = idem_core::Error;

    fn deref(&self) -> &idem_core::Error {
        &self.0.0
    }
}

impl From<idem_core::Error> for Error {
    fn from(error: idem_core::Error) -> Self {
        Self(Inner(error))
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        idem_core::Error::from(kind).into()
    }
}

impl From<HashError> for Error {
    fn from(error: HashError) -> Self {
        idem_core::Error::from(error).into()
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        idem_core::Error::from(invalid).into()
    }
}

impl From<DieselError> for Error {
    fn from(error: DieselError) -> Self {
        idem_core::Error::new(kind_of(&error))
            .with_source(error)
            .into()
    }
}

impl From<Error> for DieselError {
    /// A database error comes back as it was; everything else is carried inside.
    fn from(error: Error) -> Self {
        let is_databases_own = matches!(
            error.kind(),
            ErrorKind::Database | ErrorKind::Conflict | ErrorKind::ConnectionLost
        );
        if !is_databases_own {
            return Self::QueryBuilderError(Box::new(error));
        }
        let kind = error.kind().clone();
        let carried =
            |error: idem_core::Error| Self::QueryBuilderError(Box::new(Error::from(error)));
        let Some(source) = error.into_core().into_source() else {
            return carried(kind.into());
        };
        match source.downcast::<Self>() {
            Ok(original) => *original,
            Err(other) => carried(idem_core::Error::new(kind).with_source(other)),
        }
    }
}

/// What an error of Diesel means before COMMIT was sent.
///
/// Diesel gives no SQLSTATE and translated messages, so only its kinds count; SQLite's messages are constants of its
/// library and are not translated.
pub(crate) fn kind_of(error: &DieselError) -> ErrorKind {
    match error {
        DieselError::DatabaseError(DatabaseErrorKind::SerializationFailure, _) => {
            ErrorKind::Conflict
        }
        DieselError::DatabaseError(
            DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand,
            _,
        )
        | DieselError::BrokenTransactionManager => ErrorKind::ConnectionLost,
        DieselError::DatabaseError(DatabaseErrorKind::ReadOnlyTransaction, _) => {
            ErrorKind::ReadOnly
        }
        DieselError::DatabaseError(_, information)
            if information.message() == "attempt to write a readonly database" =>
        {
            ErrorKind::ReadOnly
        }
        DieselError::DatabaseError(DatabaseErrorKind::Unknown, information)
            if information.details().is_some_and(is_deadlock) =>
        {
            ErrorKind::Conflict
        }
        DieselError::DatabaseError(_, information) if is_sqlite_busy(information.message()) => {
            ErrorKind::Busy {
                retry_after: RETRY_AFTER,
            }
        }
        DieselError::AlreadyInTransaction => ErrorKind::UnfinishedTransaction,
        DieselError::DatabaseError(_, information)
            if information.message() == "cannot start a transaction within a transaction" =>
        {
            ErrorKind::UnfinishedTransaction
        }
        _ => ErrorKind::Database,
    }
}

/// Whether a conflict with a concurrent transaction stands anywhere in a chain of sources.
pub(crate) fn is_conflict(error: &(dyn StdError + 'static)) -> bool {
    let means_conflict =
        |kind: &ErrorKind| matches!(kind, ErrorKind::Conflict | ErrorKind::Busy { .. });
    if Error::find(error).is_some_and(|found| means_conflict(found.kind())) {
        return true;
    }
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<DieselError>() {
            return means_conflict(&kind_of(found));
        }
        next = error.source();
    }
    false
}

/// Whether a database says no more than a text, as it does when a statement took too long.
pub(crate) fn has_text_alone(error: &Error) -> bool {
    let source = error
        .0
        .source()
        .and_then(|source| source.downcast_ref::<DieselError>());
    let Some(DieselError::DatabaseError(DatabaseErrorKind::Unknown, information)) = source else {
        return false;
    };
    information.details().is_none()
        && information.table_name().is_none()
        && information.column_name().is_none()
        && information.constraint_name().is_none()
        && information.statement_position().is_none()
}

/// Whether the details of an error are those of a deadlock on PostgreSQL, in whatever language: a line for each process in the circle, with the
/// untranslated name of a lock's mode and the numbers of who waits and who is waited for.
fn is_deadlock(details: &str) -> bool {
    let mut lines = 0;
    for line in details.lines() {
        let numbers = line
            .split(|c: char| !c.is_ascii_digit())
            .filter(|digits| !digits.is_empty())
            .count();
        if numbers < 2 || !line.contains("Lock") {
            return false;
        }
        lines += 1;
    }
    lines >= 2
}

fn is_sqlite_busy(message: &str) -> bool {
    // With a shared cache the name of the table follows.
    message == "database is locked" || message.starts_with("database table is locked")
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.0.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.0.fmt(f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.0)
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.advice().fmt(f)
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Inner {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use super::is_deadlock;

    #[test]
    fn a_deadlock_is_known_in_every_language() {
        let english = "Process 31 waits for ShareLock on transaction 7; blocked by process 32.\n\
                       Process 32 waits for ShareLock on transaction 8; blocked by process 31.";
        let german = "Prozess 31 wartet auf ShareLock-Sperre auf Transaktion 7; blockiert von Prozess 32.\n\
                      Prozess 32 wartet auf ExclusiveLock-Sperre auf Advisory-Sperre [5,1,2,2]; blockiert von Prozess 31.";
        assert!(is_deadlock(english));
        assert!(is_deadlock(german));
        assert!(!is_deadlock("Key (id)=(17) already exists."));
        assert!(!is_deadlock(
            "Failing row contains (1, Lock 2, 3).\nKey (id)=(1) is missing."
        ));
        assert!(!is_deadlock(""));
    }
}

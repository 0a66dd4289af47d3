//! A name that cannot be one: which, and what is wrong with it.
//!
//! ```
//! use idem_core::{Advice, Error, IdempotencyKey};
//!
//! fn key_of_header(text: &str) -> Result<IdempotencyKey, Error> {
//!     Ok(IdempotencyKey::new(text)?)
//! }
//!
//! let error = key_of_header("").unwrap_err();
//! assert_eq!(error.advice(), Advice::ChangeRequest);
//! assert_eq!(std::error::Error::source(&error).map(ToString::to_string), Some("idempotency key is empty".into()));
//! ```

use std::fmt;

/// Why a key, an account, a principal, an operation, a message id or the name of an event was refused when it was made.
///
/// Nothing was sent to a database, and the value itself is not repeated: it may be a secret.
///
/// ```
/// use idem_core::{IdempotencyKey, Invalid};
///
/// let error: Invalid = IdempotencyKey::new("").unwrap_err();
/// assert_eq!(error.to_string(), "idempotency key is empty");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invalid {
    what: &'static str,
    problem: Problem,
}

/// What is wrong with the value.
///
/// ```
/// use idem_core::IdempotencyKey;
/// use idem_core::invalid::Problem;
///
/// let problem = |key: &str| IdempotencyKey::new(key).unwrap_err().problem();
/// assert_eq!(problem("order\t17"), Problem::BadByte { position: 5 });
/// assert_eq!(problem("order-17 "), Problem::OuterSpace);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// There is none.
    Absent,
    /// It has no bytes.
    Empty,
    /// It has nothing but spaces.
    Blank,
    /// It has more bytes than fit.
    TooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The longest length in bytes.
        limit: usize,
    },
    /// A byte that may not stand there.
    BadByte {
        /// Its position, counted from 0.
        position: usize,
    },
    /// A space at the start or the end.
    OuterSpace,
}

impl Invalid {
    pub(crate) const fn new(what: &'static str, problem: Problem) -> Self {
        Self { what, problem }
    }

    /// Which value was refused, such as `"idempotency key"`.
    ///
    /// ```
    /// use idem_core::Tenant;
    ///
    /// let error = Tenant::of("acme", "").unwrap_err();
    /// assert_eq!(error.what(), "principal");
    /// ```
    pub const fn what(&self) -> &'static str {
        self.what
    }

    /// What is wrong with it.
    ///
    /// ```
    /// use idem_core::IdempotencyKey;
    /// use idem_core::invalid::Problem;
    ///
    /// let error = IdempotencyKey::new("k".repeat(300)).unwrap_err();
    /// assert_eq!(error.problem(), Problem::TooLong { bytes: 300, limit: 255 });
    /// ```
    pub const fn problem(&self) -> Problem {
        self.problem
    }
}

/// The text, if it can be a name: 1 to 255 bytes without control characters.
///
/// ```
/// use idem_core::invalid::checked_name;
///
/// assert_eq!(checked_name("event type", "order.placed"), Ok("order.placed"));
/// assert_eq!(checked_name("event type", "").unwrap_err().to_string(), "event type is empty");
/// ```
///
/// # Errors
///
/// [`Invalid`], which calls it `what`.
pub fn checked_name<'t>(what: &'static str, text: &'t str) -> Result<&'t str, Invalid> {
    match crate::scope::check_name(text) {
        Ok(()) => Ok(text),
        Err(problem) => Err(Invalid::new(what, problem)),
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = self.what;
        match self.problem {
            Problem::Absent => write!(f, "{what} is absent"),
            Problem::Empty => write!(f, "{what} is empty"),
            Problem::Blank => write!(f, "{what} is blank"),
            Problem::TooLong { bytes, limit } => {
                write!(f, "{what} has {bytes} bytes, at most {limit} fit")
            }
            Problem::BadByte { position } => {
                write!(
                    f,
                    "{what} has a character that is not allowed at byte {position}"
                )
            }
            Problem::OuterSpace => write!(f, "{what} starts or ends with a space"),
        }
    }
}

impl std::error::Error for Invalid {}

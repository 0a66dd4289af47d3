//! What a consumer receives, and what became of it.
//!
//! ```
//! use idem_core::{Consumed, MessageId, Retention, Subscription};
//!
//! const BILLING: Subscription = Subscription::new("billing", Retention::literal("7d"));
//!
//! let id = MessageId::required(Some("evt-17"))?;
//! assert_eq!((BILLING.subscriber(), id.as_str()), ("billing", "evt-17"));
//! assert!(MessageId::required(None).is_err());
//! assert_ne!(Consumed::Processed(7), Consumed::Duplicate);
//! # Ok::<(), idem_core::Invalid>(())
//! ```

use std::fmt;
use std::str::FromStr;

use crate::invalid::{Invalid, Problem};
use crate::operation::Operation;
use crate::policy::Policy;
use crate::retention::Retention;
use crate::scope::check_name;

const WHAT: &str = "message id";

/// The id under which a broker or a producer delivers one message, the same on every delivery.
///
/// 1 to 255 bytes without control characters, and not of spaces alone. A producer that gives every delivery a new id has no
/// message id; what a consumer can do then is to take one from the message itself, such as the id of the event in it.
///
/// ```
/// use idem_core::MessageId;
///
/// assert_eq!(MessageId::new("evt-17")?.as_str(), "evt-17");
/// assert_eq!(MessageId::new("  ").unwrap_err().to_string(), "message id is blank");
/// # Ok::<(), idem_core::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(String);

impl MessageId {
    /// The id with this text.
    ///
    /// ```
    /// use idem_core::MessageId;
    ///
    /// assert!(MessageId::new("8e03978e-40d5-43e8-bc93-6894a57f9324").is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`] for what is empty or blank, longer than 255 bytes, or has a control character in it.
    pub fn new(id: impl Into<String>) -> Result<Self, Invalid> {
        let id = id.into();
        check(&id).map_err(|problem| Invalid::new(WHAT, problem))?;
        Ok(Self(id))
    }

    /// The id that a delivery must have: absent is a mistake with a name, too.
    ///
    /// ```
    /// use idem_core::MessageId;
    ///
    /// let error = MessageId::required(None).unwrap_err();
    /// assert_eq!(error.to_string(), "message id is absent");
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`] when there is none, and as for [`new`](Self::new).
    pub fn required(id: Option<&str>) -> Result<Self, Invalid> {
        match id {
            Some(id) => Self::new(id),
            None => Err(Invalid::new(WHAT, Problem::Absent)),
        }
    }

    /// The text.
    ///
    /// ```
    /// use idem_core::MessageId;
    ///
    /// assert_eq!(MessageId::new("evt-17")?.as_str().len(), 6);
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check(id: &str) -> Result<(), Problem> {
    check_name(id)?;
    if id.trim().is_empty() {
        return Err(Problem::Blank);
    }
    Ok(())
}

impl FromStr for MessageId {
    type Err = Invalid;

    fn from_str(id: &str) -> Result<Self, Invalid> {
        Self::new(id)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A subscriber of messages: its stable name, how long it remembers them, and how often it tries.
///
/// ```
/// use idem_core::{Retention, Subscription};
///
/// const BILLING: Subscription = Subscription::new("billing", Retention::literal("7d"))
///     .redelivered_for(Retention::literal("24h"))
///     .with_max_attempts(5);
/// assert_eq!(BILLING.max_attempts(), 5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscription {
    operation: Operation,
    max_attempts: u32,
}

impl Subscription {
    /// A subscriber, which remembers each message for `retention` after it was processed.
    ///
    /// ```
    /// use idem_core::{Retention, Subscription};
    ///
    /// const MAIL: Subscription = Subscription::new("mail", Retention::literal("7d"));
    /// assert_eq!(MAIL.retention(), Retention::literal("7d"));
    /// ```
    ///
    /// # Panics
    ///
    /// When the name is empty, longer than 255 bytes, or has control characters or outer spaces. In a `const` that does not compile.
    pub const fn new(subscriber: &'static str, retention: Retention) -> Self {
        Self {
            operation: Operation::new(subscriber, retention),
            max_attempts: crate::limits::DEFAULT_MAX_ATTEMPTS,
        }
    }

    /// Declares how long the broker may still deliver a message again. Remembering it for less would let it run twice.
    ///
    /// ```
    /// use idem_core::{Retention, Subscription};
    ///
    /// let day = Retention::literal("24h");
    /// let refused = std::panic::catch_unwind(|| {
    ///     Subscription::new("billing", Retention::literal("1h")).redelivered_for(day)
    /// });
    /// assert!(refused.is_err());
    /// ```
    ///
    /// # Panics
    ///
    /// When that is longer than the retention. In a `const` that does not compile.
    #[must_use]
    pub const fn redelivered_for(self, horizon: Retention) -> Self {
        assert!(
            horizon.as_secs() <= self.operation.retention().as_secs(),
            "the retention of a subscription must be at least as long as the broker may deliver a message again"
        );
        self
    }

    /// The same subscription, which gives a message up after so many failed attempts; at least one.
    ///
    /// ```
    /// use idem_core::{Retention, Subscription};
    ///
    /// let mail = Subscription::new("mail", Retention::literal("7d"));
    /// assert_eq!(mail.with_max_attempts(0).max_attempts(), 1);
    /// ```
    #[must_use]
    pub const fn with_max_attempts(self, attempts: u32) -> Self {
        let max_attempts = if attempts == 0 { 1 } else { attempts };
        Self {
            max_attempts,
            ..self
        }
    }

    /// The same subscription under another policy: how long a second copy waits for the first, isolation, idle time, tenant setting.
    ///
    /// ```
    /// use idem_core::{Policy, Retention, Subscription};
    ///
    /// let mail = Subscription::new("mail", Retention::literal("7d")).with_policy(Policy::new().wait(None));
    /// assert_eq!(mail.operation().policy().get_wait(), None);
    /// ```
    #[must_use]
    pub const fn with_policy(self, policy: Policy) -> Self {
        Self {
            operation: self.operation.with_policy(policy),
            ..self
        }
    }

    /// The subscriber's name.
    ///
    /// ```
    /// # use idem_core::{Retention, Subscription};
    /// assert_eq!(Subscription::new("mail", Retention::literal("7d")).subscriber(), "mail");
    /// ```
    pub const fn subscriber(&self) -> &'static str {
        self.operation.name()
    }

    /// How long a processed message is remembered.
    ///
    /// ```
    /// # use idem_core::{Retention, Subscription};
    /// assert_eq!(Subscription::new("mail", Retention::literal("7d")).retention().as_secs(), 604_800);
    /// ```
    pub const fn retention(&self) -> Retention {
        self.operation.retention()
    }

    /// After how many failed attempts a message is given up.
    ///
    /// ```
    /// # use idem_core::{Retention, Subscription};
    /// assert_eq!(Subscription::new("mail", Retention::literal("7d")).max_attempts(), 5);
    /// ```
    pub const fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// The handling of a message as an operation: the subscriber's name is what its downstream keys are bound to.
    ///
    /// ```
    /// # use idem_core::{Retention, Subscription};
    /// assert_eq!(Subscription::new("mail", Retention::literal("7d")).operation().name(), "mail");
    /// ```
    pub const fn operation(&self) -> &Operation {
        &self.operation
    }
}

/// What became of a delivered message. In each case it is consumed: the broker may forget it.
///
/// ```
/// use idem_core::Consumed;
///
/// let first = Consumed::from(7);
/// assert_eq!(first, Consumed::Processed(7));
/// assert!(!first.is_duplicate() && Consumed::<i32>::Duplicate.is_duplicate());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Consumed<T = ()> {
    /// The handler ran, and its effects are committed.
    Processed(T),
    /// The message was processed before; the handler did not run.
    Duplicate,
    /// Another message or command had brought the entity to the target state already; the handler did not run.
    AlreadyApplied,
}

impl<T> Consumed<T> {
    /// Whether the message was processed before.
    ///
    /// ```
    /// assert!(idem_core::Consumed::<()>::Duplicate.is_duplicate());
    /// ```
    pub const fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate)
    }

    /// What the handler gave, if it ran.
    ///
    /// ```
    /// use idem_core::Consumed;
    ///
    /// assert_eq!(Consumed::Processed(7).processed(), Some(7));
    /// assert_eq!(Consumed::<i32>::AlreadyApplied.processed(), None);
    /// ```
    pub fn processed(self) -> Option<T> {
        match self {
            Self::Processed(value) => Some(value),
            Self::Duplicate | Self::AlreadyApplied => None,
        }
    }
}

impl<T> From<T> for Consumed<T> {
    fn from(value: T) -> Self {
        Self::Processed(value)
    }
}

/// What a consumer gives: `Consumed<T>`, or `()` for one that does not care what became of the message.
///
/// ```
/// use idem_core::Consumed;
/// use idem_core::message::ConsumerAnswer;
///
/// assert_eq!(Consumed::<u8>::duplicate(), Consumed::Duplicate);
/// let () = ConsumerAnswer::already_applied();
/// ```
#[diagnostic::on_unimplemented(
    message = "a consumer cannot give `{Self}`",
    label = "neither `Consumed<T>` nor `()`",
    note = "a duplicate runs nothing and has no value: return `Result<Consumed<{Self}>, E>`, and end with `Ok(value.into())`"
)]
pub trait ConsumerAnswer: Sized {
    /// For a message that was processed before.
    fn duplicate() -> Self;
    /// For a message whose transition was applied before.
    fn already_applied() -> Self;
}

impl ConsumerAnswer for () {
    fn duplicate() -> Self {}
    fn already_applied() -> Self {}
}

impl<T> ConsumerAnswer for Consumed<T> {
    fn duplicate() -> Self {
        Self::Duplicate
    }

    fn already_applied() -> Self {
        Self::AlreadyApplied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_id(id: Option<&str>, expected: Result<(), &str>) {
        let checked = MessageId::required(id).map(drop);
        assert_eq!(
            checked.map_err(|invalid| invalid.to_string()),
            expected.map_err(str::to_owned)
        );
    }

    #[test]
    fn absent_empty_and_blank_ids_are_refused_by_name() {
        check_id(Some("evt-17"), Ok(()));
        check_id(Some(&"e".repeat(255)), Ok(()));
        check_id(None, Err("message id is absent"));
        check_id(Some(""), Err("message id is empty"));
        check_id(Some("  "), Err("message id is blank"));
        check_id(Some("\u{a0}"), Err("message id is blank"));
        check_id(
            Some("a\nb"),
            Err("message id has a character that is not allowed at byte 1"),
        );
        check_id(
            Some(&"e".repeat(256)),
            Err("message id has 256 bytes, at most 255 fit"),
        );
    }
}

//! A command by its stable name, with how long it is remembered and under which policy it runs.

use crate::invalid::Invalid;
use crate::policy::Policy;
use crate::retention::Retention;
use crate::scope::check_name;

/// The stable name of a command, how long its answers are kept, and its policy.
///
/// The name is chosen once and stays when functions are renamed or moved: it is part of every stored key.
///
/// ```
/// use idem_core::{Operation, Retention};
///
/// const PAY: Operation = Operation::new("orders.pay", Retention::literal("48h"));
/// assert_eq!(PAY.name(), "orders.pay");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    name: &'static str,
    retention: Retention,
    policy: Policy,
}

impl Operation {
    /// An operation under the default [`Policy`].
    ///
    /// # Panics
    ///
    /// When the name is empty, longer than 255 bytes or has a control character; in a `const` that is a compile error.
    pub const fn new(name: &'static str, retention: Retention) -> Self {
        match Self::try_new(name, retention) {
            Ok(operation) => operation,
            Err(_) => panic!("an operation's name has 1 to 255 bytes and no control characters"),
        }
    }

    /// [`new`](Self::new) for names that are not constants.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when the name is empty, longer than 255 bytes or has a control character.
    pub const fn try_new(name: &'static str, retention: Retention) -> Result<Self, Invalid> {
        match check_name(name) {
            Ok(()) => Ok(Self {
                name,
                retention,
                policy: Policy::new(),
            }),
            Err(problem) => Err(Invalid::new("operation", problem)),
        }
    }

    /// The same operation under another policy.
    #[must_use]
    pub const fn with_policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// The name, as the column `operation` holds it.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// How long an answer is kept.
    pub const fn retention(&self) -> Retention {
        self.retention
    }

    /// Under which policy it runs.
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_checked_when_the_operation_is_made() {
        let retention = Retention::literal("1d");
        assert!(Operation::try_new("orders.pay", retention).is_ok());
        assert_eq!(
            Operation::try_new("", retention).unwrap_err().to_string(),
            "operation is empty"
        );
        assert!(Operation::try_new("a\nb", retention).is_err());
    }
}

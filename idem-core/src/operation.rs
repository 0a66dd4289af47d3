//! A command by its stable name, with how long it is remembered and under which policy it runs.
//!
//! ```
//! use idem_core::{Operation, Policy, Retention};
//!
//! const PAY: Operation = Operation::new("orders.pay", Retention::literal("48h"));
//! const PAY_AT_ONCE: Operation = PAY.with_policy(Policy::new().wait(None));
//! assert_eq!(PAY_AT_ONCE.name(), PAY.name());
//! assert_ne!(PAY_AT_ONCE, PAY);
//! ```

use crate::invalid::{Invalid, Problem};
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
    /// ```
    /// use idem_core::{Operation, Policy, Retention};
    ///
    /// const REFUND: Operation = Operation::new("orders.refund", Retention::literal("30d"));
    /// assert_eq!(REFUND.policy(), &Policy::new());
    /// ```
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
    /// ```
    /// use idem_core::{Operation, Retention};
    ///
    /// let day = Retention::literal("1d");
    /// assert_eq!(Operation::try_new("orders.pay", day)?.name(), "orders.pay");
    /// assert_eq!(Operation::try_new("", day).unwrap_err().to_string(), "operation is empty");
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`] when the name is empty, longer than 255 bytes or has a control character.
    pub const fn try_new(name: &'static str, retention: Retention) -> Result<Self, Invalid> {
        if let [b' ', ..] | [.., b' '] = name.as_bytes() {
            return Err(Invalid::new("operation", Problem::OuterSpace));
        }
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
    ///
    /// ```
    /// use idem_core::{Late, Operation, Policy, Retention};
    ///
    /// const SYNC: Operation = Operation::new("stock.sync", Retention::literal("1d"))
    ///     .with_policy(Policy::new().late(Late::Execute));
    /// assert_eq!(SYNC.policy().get_late(), Late::Execute);
    /// ```
    #[must_use]
    pub const fn with_policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// The name, as the column `operation` holds it.
    ///
    /// ```
    /// use idem_core::{Operation, Retention};
    ///
    /// assert_eq!(Operation::new("orders.pay", Retention::literal("48h")).name(), "orders.pay");
    /// ```
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// How long an answer is kept.
    ///
    /// ```
    /// use idem_core::{Operation, Retention};
    ///
    /// let pay = Operation::new("orders.pay", Retention::literal("48h"));
    /// assert_eq!(pay.retention().as_secs(), 172_800);
    /// ```
    pub const fn retention(&self) -> Retention {
        self.retention
    }

    /// Under which policy it runs.
    ///
    /// ```
    /// use idem_core::{Operation, Retention};
    ///
    /// let pay = Operation::new("orders.pay", Retention::literal("48h"));
    /// assert_eq!(pay.policy().get_answer_bytes(), 1024 * 1024);
    /// ```
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
        assert!(Operation::try_new("a b", retention).is_ok());
        assert!(Operation::try_new(" a", retention).is_err());
        assert!(Operation::try_new(" ", retention).is_err());
    }
}

//! How a claim is checked: what was found, beside what was expected.

use std::fmt::Debug;

use anyhow::bail;
use idem_diesel::Verdict;

use crate::shop::{Decline, Payment, ShopError};

#[expect(
    clippy::needless_pass_by_value,
    reason = "the scenes read better without a `&` at every value"
)]
pub(crate) fn check<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> anyhow::Result<()> {
    if found != expected {
        bail!("{what}: expected {expected:?}, found {found:?}");
    }
    Ok(())
}

/// The payment of an order that was not declined.
pub(crate) fn paid(verdict: Verdict<Payment, Decline>) -> anyhow::Result<Payment> {
    match verdict {
        Verdict::Completed(payment) => Ok(payment),
        Verdict::Failed(decline) => bail!("answer: expected a payment, found {decline:?}"),
    }
}

/// What the library said instead of giving an answer.
pub(crate) fn refusal<T: Debug>(call: Result<T, ShopError>) -> anyhow::Result<idem_diesel::Error> {
    match call {
        Err(ShopError::Idempotency(refusal)) => Ok(refusal),
        Err(other) => Err(other.into()),
        Ok(answer) => bail!("call: expected a refusal, found {answer:?}"),
    }
}

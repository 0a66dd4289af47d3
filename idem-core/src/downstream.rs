//! The keys under which a handler calls other systems.
//!
//! ```
//! use idem_core::{IdempotencyKey, Intent, Tenant};
//!
//! // Customers choose their keys for themselves, so two of them may choose one; towards Stripe they still differ.
//! let [acme, zeta] = ["acme", "zeta"].map(Tenant::shared);
//! let key = IdempotencyKey::new("order-17")?;
//! let of = |tenant| Intent::new(tenant, key.clone()).bind("orders.pay").downstream("stripe.charge");
//! assert_ne!(of(acme?), of(zeta?));
//! # Ok::<(), idem_core::Invalid>(())
//! ```

use std::fmt;

use sha2::{Digest, Sha256};

use crate::intent::Intent;
use crate::key::{hex, update_with_length};

/// An idempotency key for a call that a handler makes to another system.
///
/// 35 visible ASCII bytes: `d1-` and 128 bits of a SHA-256 over tenant, operation, key and name, in hexadecimal. That fits
/// what Stripe (255), PayPal (108), Adyen and Amazon EC2 (64), Square payments (45) and Amazon ECS (36) publish as the
/// longest key or client token; see [`MAX_DOWNSTREAM_BYTES`](crate::limits::MAX_DOWNSTREAM_BYTES).
/// Equal intent, operation and name give the equal key on every attempt and machine; `d1` changes when the rule would.
///
/// ```
/// use idem_core::{IdempotencyKey, Intent, Tenant};
///
/// let intent = Intent::new(Tenant::of("acme", "alice")?, IdempotencyKey::new("order-17")?);
/// let key = intent.bind("orders.pay").downstream("stripe.charge");
/// assert_eq!(key.as_str(), "d1-72effbaabee258e78f6a643fc07dd26e");
/// # Ok::<(), idem_core::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DownstreamKey(String);

impl DownstreamKey {
    pub(crate) fn derive(intent: &Intent, operation: &str, name: &str) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(b"idem downstream 1\0");
        for text in [
            intent.tenant().as_str(),
            operation,
            intent.key().as_str(),
            name,
        ] {
            update_with_length(&mut hasher, text);
        }
        let digest: [u8; 32] = hasher.finalize().into();
        let (first, _) = digest.split_at(16);
        Self(format!("d1-{}", hex(first)))
    }

    /// The key as it is sent.
    ///
    /// ```
    /// use idem_core::{IdempotencyKey, Intent, Tenant};
    ///
    /// let intent = Intent::new(Tenant::of("acme", "alice")?, IdempotencyKey::new("order-17")?);
    /// let key = intent.bind("orders.pay").downstream("stripe.refund");
    /// assert!(key.as_str().starts_with("d1-"));
    /// assert_eq!(key.as_str().len(), 35);
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for DownstreamKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DownstreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::limits::MAX_DOWNSTREAM_BYTES;
    use crate::{IdempotencyKey, Intent, Tenant};

    fn derive(tenant: &str, operation: &'static str, key: &str, name: &str) -> String {
        let tenant = Tenant::shared(tenant).unwrap();
        let key = IdempotencyKey::new(key).unwrap();
        Intent::new(tenant, key)
            .bind(operation)
            .downstream(name)
            .to_string()
    }

    #[test]
    fn downstream_keys_never_change() {
        assert_eq!(
            derive("a", "b", "c", "d"),
            "d1-08c51c11b6f88706c1e1cec92a2357e3"
        );
        assert_eq!(
            derive("a", "b", "c", ""),
            "d1-a321a23413d4f6c1f16d1be5db7f4aca"
        );
    }

    #[test]
    fn every_part_counts_and_parts_do_not_run_together() {
        let all = [
            derive("a", "b", "c", "d"),
            derive("a2", "b", "c", "d"),
            derive("a", "b2", "c", "d"),
            derive("a", "b", "c2", "d"),
            derive("a", "b", "c", "d2"),
            derive("a", "bc", "c", "d"),
            derive("ab", "b", "c", "d"),
        ];
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn they_fit_the_narrowest_published_token() {
        let key = derive(&"t".repeat(255), "o", &"k".repeat(255), &"n".repeat(9000));
        assert!(key.len() <= MAX_DOWNSTREAM_BYTES);
        assert!(key.bytes().all(|b| b.is_ascii_graphic()));
    }
}

//! What one caller means to do once.
//!
//! ```
//! use idem_core::{IdempotencyKey, Intent, Tenant};
//!
//! let alice = Tenant::of("acme", "alice")?;
//! let [first, retry, other] = ["order-17", "order-17", "order-18"].map(IdempotencyKey::new);
//! let of = |key| Intent::new(alice.clone(), key);
//! let first = of(first?);
//! assert_eq!(first, of(retry?));
//! assert_ne!(first, of(other?));
//! # Ok::<(), idem_core::Invalid>(())
//! ```

use std::ops::Deref;

use crate::downstream::DownstreamKey;
use crate::key::IdempotencyKey;
use crate::scope::Tenant;

/// A tenant and its idempotency key: "I mean to do this once".
///
/// ```
/// use idem_core::{IdempotencyKey, Intent, Tenant};
///
/// let intent = Intent::new(Tenant::of("acme", "alice")?, IdempotencyKey::new("order-17")?);
/// assert_eq!(intent.key().as_str(), "order-17");
/// # Ok::<(), idem_core::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Intent {
    tenant: Tenant,
    key: IdempotencyKey,
}

impl Intent {
    /// The intent of `tenant` under `key`.
    ///
    /// ```
    /// use idem_core::{IdempotencyKey, Intent, Tenant};
    ///
    /// let key = IdempotencyKey::new("order-17")?;
    /// let alice = Intent::new(Tenant::of("acme", "alice")?, key.clone());
    /// let bob = Intent::new(Tenant::of("acme", "bob")?, key);
    /// assert_ne!(alice, bob);
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    pub fn new(tenant: Tenant, key: IdempotencyKey) -> Self {
        Self { tenant, key }
    }

    /// Who owns the key.
    ///
    /// ```
    /// use idem_core::{IdempotencyKey, Intent, Tenant};
    ///
    /// let intent = Intent::new(Tenant::of("acme", "alice")?, IdempotencyKey::new("order-17")?);
    /// assert_eq!(intent.tenant().as_str(), "acme/alice");
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// The key.
    ///
    /// ```
    /// use idem_core::{IdempotencyKey, Intent, Tenant};
    ///
    /// let intent = Intent::new(Tenant::of("acme", "alice")?, IdempotencyKey::new("order-17")?);
    /// assert_eq!(intent.key().to_string(), "order-17");
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    pub fn key(&self) -> &IdempotencyKey {
        &self.key
    }

    /// The intent inside the operation that carries it out. The attribute does this for the body.
    ///
    /// ```
    /// use idem_core::{IdempotencyKey, Intent, Tenant};
    ///
    /// // The same intent in two operations: two records, and other keys for whatever they call.
    /// let intent = Intent::new(Tenant::shared("acme")?, IdempotencyKey::new("order-17")?);
    /// let [pay, refund] = ["orders.pay", "orders.refund"].map(|operation| intent.bind(operation));
    /// assert_ne!(pay.downstream("stripe"), refund.downstream("stripe"));
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    pub fn bind(&self, operation: &'static str) -> BoundIntent {
        BoundIntent {
            intent: self.clone(),
            operation,
        }
    }
}

/// An intent together with the operation that carries it out: what the body of a handler sees.
///
/// It derefs to [`Intent`] and derives the keys of downstream calls.
///
/// ```
/// use idem_core::{IdempotencyKey, Intent, Tenant};
///
/// let intent = Intent::new(Tenant::shared("acme")?, IdempotencyKey::new("order-17")?);
/// let bound = intent.bind("orders.pay");
/// assert_eq!(*bound, intent);
/// assert_eq!(bound.key().as_str(), "order-17");
/// # Ok::<(), idem_core::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BoundIntent {
    intent: Intent,
    operation: &'static str,
}

impl BoundIntent {
    /// The operation's name.
    ///
    /// ```
    /// use idem_core::{IdempotencyKey, Intent, Tenant};
    ///
    /// let intent = Intent::new(Tenant::shared("acme")?, IdempotencyKey::new("order-17")?);
    /// assert_eq!(intent.bind("orders.pay").operation(), "orders.pay");
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// The idempotency key for a call to another system, the same on every attempt of this intent.
    ///
    /// `name` tells the downstream calls of one handler apart. See [`DownstreamKey`] for its form.
    ///
    /// A workflow engine runs an activity again after a crash; its run id and activity id are the stable name of that
    /// activity (<https://docs.temporal.io/activity-definition#idempotency>), so the same rule serves there:
    ///
    /// ```
    /// use idem_core::{IdempotencyKey, Intent, Tenant};
    ///
    /// let (run_id, activity_id) = ("7f4c1c1e-0a8e-4d0b-9a0c-0d2f7a1b2c3d", "5");
    /// let key = IdempotencyKey::from_parts([run_id, activity_id])?;
    /// let intent = Intent::new(Tenant::shared("billing-workflows")?, key).bind("workflow.charge");
    ///
    /// let first_attempt = intent.downstream("stripe.charge");
    /// let after_a_crash = intent.downstream("stripe.charge");
    /// assert_eq!(first_attempt, after_a_crash);
    /// assert_ne!(first_attempt, intent.downstream("stripe.refund"));
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    pub fn downstream(&self, name: &str) -> DownstreamKey {
        DownstreamKey::derive(&self.intent, self.operation, name)
    }
}

impl Deref for BoundIntent {
    type Target = Intent;

    fn deref(&self) -> &Intent {
        &self.intent
    }
}

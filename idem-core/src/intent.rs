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
use crate::message::MessageId;
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

    /// What a subscriber means to do about a message: the same on every delivery, so that downstream calls keep their keys.
    ///
    /// Its key is the server's own. No client can send it, because it begins with a character that is not ASCII.
    ///
    /// ```
    /// use idem_core::{IdempotencyKey, Intent, MessageId, Tenant};
    ///
    /// let (acme, id) = (Tenant::shared("acme")?, MessageId::new("evt-17")?);
    /// let [first, again] = [(); 2].map(|()| Intent::of_message(acme.clone(), "billing", &id));
    /// assert_eq!(first, again);
    /// assert_ne!(first, Intent::of_message(acme, "mail", &id));
    /// assert!(IdempotencyKey::new(first.key().as_str()).is_err());
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    pub fn of_message(tenant: Tenant, subscriber: &str, id: &MessageId) -> Self {
        Self::new(tenant, key_of_message(subscriber, id))
    }

    /// Whether this is what `subscriber` means to do about the message, whoever the tenant is.
    ///
    /// ```
    /// use idem_core::{Intent, MessageId, Tenant};
    ///
    /// let (acme, id) = (Tenant::shared("acme")?, MessageId::new("evt-17")?);
    /// let intent = Intent::of_message(acme, "billing", &id);
    /// assert!(intent.is_of_message("billing", &id) && !intent.is_of_message("mail", &id));
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    pub fn is_of_message(&self, subscriber: &str, id: &MessageId) -> bool {
        self.key == key_of_message(subscriber, id)
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

fn key_of_message(subscriber: &str, id: &MessageId) -> IdempotencyKey {
    IdempotencyKey::of_server("message", &[subscriber, id.as_str()])
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

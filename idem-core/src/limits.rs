//! Every bound of the protocol, by name.
//!
//! ```
//! use idem_core::limits::{DEFAULT_MAX_IDLE, DEFAULT_WAIT, LONGEST_RETENTION};
//!
//! assert!(DEFAULT_WAIT < DEFAULT_MAX_IDLE && DEFAULT_MAX_IDLE < LONGEST_RETENTION);
//! ```

use std::time::Duration;

/// Bytes of an [`IdempotencyKey`](crate::IdempotencyKey): the common ground of published contracts (Stripe: up to 255 characters,
/// <https://docs.stripe.com/api/idempotent_requests>).
///
/// ```
/// use idem_core::IdempotencyKey;
/// use idem_core::limits::MAX_KEY_BYTES;
///
/// assert!(IdempotencyKey::new("k".repeat(MAX_KEY_BYTES)).is_ok());
/// assert!(IdempotencyKey::new("k".repeat(MAX_KEY_BYTES + 1)).is_err());
/// ```
pub const MAX_KEY_BYTES: usize = 255;

/// Bytes of an account, a principal or an operation.
///
/// ```
/// use idem_core::Tenant;
/// use idem_core::limits::MAX_NAME_BYTES;
///
/// assert!(Tenant::shared("a".repeat(MAX_NAME_BYTES)).is_ok());
/// assert!(Tenant::shared("a".repeat(MAX_NAME_BYTES + 1)).is_err());
/// ```
pub const MAX_NAME_BYTES: usize = 255;

/// Bytes of a [`DownstreamKey`](crate::DownstreamKey): fits Amazon EC2 client tokens (64), Square payments (45) and, the narrowest
/// known, Amazon ECS `CreateService` (36, <https://docs.aws.amazon.com/AmazonECS/latest/APIReference/ECS_Idempotency.html>).
///
/// ```
/// use idem_core::limits::{MAX_DOWNSTREAM_BYTES, MAX_KEY_BYTES};
/// use idem_core::{IdempotencyKey, Intent, Tenant};
///
/// let longest = IdempotencyKey::new("k".repeat(MAX_KEY_BYTES))?;
/// let intent = Intent::new(Tenant::shared("acme")?, longest).bind("orders.pay");
/// assert!(intent.downstream("stripe.charge").as_str().len() <= MAX_DOWNSTREAM_BYTES);
/// # Ok::<(), idem_core::Invalid>(())
/// ```
pub const MAX_DOWNSTREAM_BYTES: usize = 36;

/// Bytes of a stored answer unless the policy says otherwise: 1 MiB.
///
/// ```
/// use idem_core::Policy;
/// use idem_core::limits::DEFAULT_ANSWER_BYTES;
///
/// assert_eq!(DEFAULT_ANSWER_BYTES, 1_048_576);
/// assert_eq!(Policy::new().get_answer_bytes(), DEFAULT_ANSWER_BYTES);
/// ```
pub const DEFAULT_ANSWER_BYTES: usize = 1024 * 1024;

/// The largest limit that a [`Policy`](crate::Policy) can set for an answer: half of what a value of PostgreSQL can be.
///
/// ```
/// use idem_core::Policy;
/// use idem_core::limits::MAX_ANSWER_BYTES;
///
/// assert_eq!(Policy::new().answer_bytes(usize::MAX).get_answer_bytes(), MAX_ANSWER_BYTES);
/// ```
pub const MAX_ANSWER_BYTES: usize = 512 * 1024 * 1024;

/// How long a claim waits for another call of the same key unless the policy says otherwise.
///
/// ```
/// use idem_core::Policy;
/// use idem_core::limits::DEFAULT_WAIT;
///
/// assert_eq!(DEFAULT_WAIT.as_secs(), 5);
/// assert_eq!(Policy::new().get_wait(), Some(DEFAULT_WAIT));
/// ```
pub const DEFAULT_WAIT: Duration = Duration::from_secs(5);

/// How long the server lets a call's transaction sit idle unless the policy says otherwise: what bounds a client host that
/// vanished.
///
/// ```
/// use idem_core::Policy;
/// use idem_core::limits::DEFAULT_MAX_IDLE;
///
/// assert_eq!(DEFAULT_MAX_IDLE.as_secs(), 60);
/// assert_eq!(Policy::new().get_max_idle(), Some(DEFAULT_MAX_IDLE));
/// ```
pub const DEFAULT_MAX_IDLE: Duration = Duration::from_secs(60);

/// How long a caller should wait before it comes back, where nothing better is known: after
/// [`InFlight`](crate::ErrorKind::InFlight), [`Busy`](crate::ErrorKind::Busy),
/// [`ConnectionLost`](crate::ErrorKind::ConnectionLost) and [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown).
///
/// ```
/// use idem_core::limits::RETRY_AFTER;
/// use idem_core::{Error, ErrorKind};
///
/// assert_eq!(RETRY_AFTER.as_secs(), 1);
/// assert_eq!(Error::new(ErrorKind::OutcomeUnknown).retry_after(), Some(RETRY_AFTER));
/// ```
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The longest retention: ten years of 366 days. A longer one is rather a slip of the unit than a decision.
///
/// ```
/// use idem_core::Retention;
/// use idem_core::limits::LONGEST_RETENTION;
///
/// let longest = LONGEST_RETENTION.as_secs();
/// assert_eq!(Retention::from_secs(longest), Some(Retention::literal("3660d")));
/// assert_eq!(Retention::from_secs(longest + 1), None);
/// ```
pub const LONGEST_RETENTION: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

/// Failed attempts after which a message or an event is given up, unless its subscription or its relay says otherwise.
///
/// ```
/// use idem_core::limits::DEFAULT_MAX_ATTEMPTS;
/// use idem_core::{Retention, Subscription};
///
/// let mail = Subscription::new("mail", Retention::literal("7d"));
/// assert_eq!(mail.max_attempts(), DEFAULT_MAX_ATTEMPTS);
/// ```
pub const DEFAULT_MAX_ATTEMPTS: u32 = 5;

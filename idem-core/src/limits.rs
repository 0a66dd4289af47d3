//! Every bound of the protocol, by name.

use std::time::Duration;

/// Bytes of an [`IdempotencyKey`](crate::IdempotencyKey): the common ground of published contracts (Stripe: up to 255 characters,
/// <https://docs.stripe.com/api/idempotent_requests>).
pub const MAX_KEY_BYTES: usize = 255;

/// Bytes of an account, a principal or an operation.
pub const MAX_NAME_BYTES: usize = 255;

/// Bytes of a [`DownstreamKey`](crate::DownstreamKey): fits Amazon EC2 client tokens (64), Square (45) and Amazon ECS `CreateService` (36).
pub const MAX_DOWNSTREAM_BYTES: usize = 36;

/// Bytes of a stored answer unless the policy says otherwise: 1 MiB.
pub const DEFAULT_ANSWER_BYTES: usize = 1024 * 1024;

/// How long a claim waits for another call of the same key unless the policy says otherwise.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(5);

/// When a caller should come back after [`InFlight`](crate::ErrorKind::InFlight) or [`Busy`](crate::ErrorKind::Busy).
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The shortest retention that needs no written reason: clients retry hours later when a connection comes back.
pub const SHORTEST_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest retention: ten years.
pub const LONGEST_RETENTION: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

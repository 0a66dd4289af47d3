//! How a call behaves where there is a choice.

use std::time::Duration;

use crate::limits::{DEFAULT_ANSWER_BYTES, DEFAULT_WAIT};

/// What a late retry gets: one that arrives when its record has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Late {
    /// It is told so ([`Expired`](crate::ErrorKind::Expired)) and has no effect.
    #[default]
    Reject,
    /// It executes again, as the next attempt, with the same downstream keys.
    Execute,
}

/// The isolation level of the transaction that a call opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// READ COMMITTED.
    #[default]
    ReadCommitted,
    /// REPEATABLE READ.
    RepeatableRead,
    /// SERIALIZABLE.
    Serializable,
}

/// What happens on a connection that is inside an open transaction already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Nested {
    /// The call is refused: its answer would not be durable when it returns.
    #[default]
    Refuse,
    /// The call becomes a savepoint; the caller's commit is the durable one.
    Join,
}

/// How a call behaves where there is a choice. One value serves the guard, the closure and the attribute.
///
/// ```
/// use std::time::Duration;
/// use idem_core::{Late, Policy};
///
/// const IMPATIENT: Policy = Policy::new().wait(None).late(Late::Execute);
/// assert_eq!(IMPATIENT.get_wait(), None);
/// assert_eq!(Policy::new().get_wait(), Some(Duration::from_secs(5)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    wait: Option<Duration>,
    late: Late,
    isolation: Isolation,
    nested: Nested,
    max_idle: Option<Duration>,
    tenant_setting: Option<&'static str>,
    answer_bytes: usize,
}

impl Policy {
    /// Waits 5 s for another call of the same key, rejects late retries, runs at READ COMMITTED, refuses open
    /// transactions, and stores answers of up to 1 MiB.
    pub const fn new() -> Self {
        Self {
            wait: Some(DEFAULT_WAIT),
            late: Late::Reject,
            isolation: Isolation::ReadCommitted,
            nested: Nested::Refuse,
            max_idle: None,
            tenant_setting: None,
            answer_bytes: DEFAULT_ANSWER_BYTES,
        }
    }

    /// How long the whole claim may wait for another call of the same key; `None` answers at once. Milliseconds count.
    #[must_use]
    pub const fn wait(self, wait: Option<Duration>) -> Self {
        Self { wait, ..self }
    }

    /// What a late retry gets.
    #[must_use]
    pub const fn late(self, late: Late) -> Self {
        Self { late, ..self }
    }

    /// The isolation level of the transaction.
    #[must_use]
    pub const fn isolation(self, isolation: Isolation) -> Self {
        Self { isolation, ..self }
    }

    /// What happens inside an open transaction.
    #[must_use]
    pub const fn nested(self, nested: Nested) -> Self {
        Self { nested, ..self }
    }

    /// How long the server lets a vanished client's transaction sit idle.
    #[must_use]
    pub const fn max_idle(self, max_idle: Duration) -> Self {
        Self {
            max_idle: Some(max_idle),
            ..self
        }
    }

    /// The database setting that row-level security reads the tenant from.
    #[must_use]
    pub const fn tenant_setting(self, name: &'static str) -> Self {
        Self {
            tenant_setting: Some(name),
            ..self
        }
    }

    /// The largest answer that is stored, in bytes.
    #[must_use]
    pub const fn answer_bytes(self, limit: usize) -> Self {
        Self {
            answer_bytes: limit,
            ..self
        }
    }

    /// How long a claim may wait; `None`: not at all.
    pub const fn get_wait(&self) -> Option<Duration> {
        self.wait
    }

    /// What a late retry gets.
    pub const fn get_late(&self) -> Late {
        self.late
    }

    /// The isolation level of the transaction.
    pub const fn get_isolation(&self) -> Isolation {
        self.isolation
    }

    /// What happens inside an open transaction.
    pub const fn get_nested(&self) -> Nested {
        self.nested
    }

    /// How long a vanished client's transaction may sit idle; `None`: as the session says.
    pub const fn get_max_idle(&self) -> Option<Duration> {
        self.max_idle
    }

    /// The setting that row-level security reads the tenant from.
    pub const fn get_tenant_setting(&self) -> Option<&'static str> {
        self.tenant_setting
    }

    /// The largest answer that is stored, in bytes.
    pub const fn get_answer_bytes(&self) -> usize {
        self.answer_bytes
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

//! How a call behaves where there is a choice.
//!
//! ```
//! use idem_core::{Late, Operation, Policy, Retention};
//!
//! const AT_ONCE: Policy = Policy::new().wait(None).late(Late::Execute);
//! const SYNC: Operation = Operation::new("stock.sync", Retention::literal("1d")).with_policy(AT_ONCE);
//! assert_eq!(SYNC.policy(), &AT_ONCE);
//! ```

use std::time::Duration;

use crate::limits::{DEFAULT_ANSWER_BYTES, DEFAULT_MAX_IDLE, DEFAULT_WAIT, MAX_ANSWER_BYTES};

/// What a late retry gets: one that arrives when its record has expired.
///
/// ```
/// use std::time::SystemTime;
/// use idem_core::decide::{Call, Decision, Lapsed, Rejection, decide};
/// use idem_core::{Late, Record, RecordState, RequestDigest};
///
/// let (now, hashes) = (SystemTime::now(), [RequestDigest::of(&17)?]);
/// let expired = Record {
///     request_hash: hashes[0].clone(),
///     state: RecordState::Tombstone,
///     attempt: 1,
///     expires_at: now,
/// };
/// let with = |late| decide(Some(&expired), &Call { request_hashes: &hashes, late, lapsed: Lapsed::Park }, now);
/// assert_eq!(with(Late::Reject), Decision::Reject(Rejection::Expired));
/// assert_eq!(with(Late::Execute), Decision::TakeOver { attempt: 2 });
/// # Ok::<(), idem_core::HashError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Late {
    /// It is told so ([`Expired`](crate::ErrorKind::Expired)) and has no effect.
    #[default]
    Reject,
    /// It executes again, as the next attempt, with the same downstream keys.
    Execute,
}

/// The isolation level of the transaction that a call opens.
///
/// ```
/// use idem_core::{Isolation, Policy};
///
/// assert_eq!(Policy::new().get_isolation(), Isolation::ReadCommitted);
/// ```
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
///
/// ```
/// use idem_core::{Nested, Policy};
///
/// assert_eq!(Policy::new().get_nested(), Nested::Refuse);
/// ```
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
    read_first: bool,
}

impl Policy {
    /// Waits 5 s for another call of the same key, bounds a vanished client at 60 s, rejects late retries, runs at READ COMMITTED, refuses open
    /// transactions, and stores answers of up to 1 MiB.
    ///
    /// ```
    /// use idem_core::{Late, Policy};
    ///
    /// let policy = Policy::new();
    /// assert_eq!(policy.get_late(), Late::Reject);
    /// assert_eq!(policy, Policy::default());
    /// ```
    pub const fn new() -> Self {
        Self {
            wait: Some(DEFAULT_WAIT),
            late: Late::Reject,
            isolation: Isolation::ReadCommitted,
            nested: Nested::Refuse,
            max_idle: Some(DEFAULT_MAX_IDLE),
            tenant_setting: None,
            answer_bytes: DEFAULT_ANSWER_BYTES,
            read_first: false,
        }
    }

    /// How long the whole claim may wait for another call of the same key; `None` answers at once. Milliseconds count.
    ///
    /// ```
    /// use std::time::Duration;
    /// use idem_core::Policy;
    ///
    /// const PATIENT: Policy = Policy::new().wait(Some(Duration::from_secs(30)));
    /// assert_eq!(PATIENT.get_wait(), Some(Duration::from_secs(30)));
    /// ```
    #[must_use]
    pub const fn wait(self, wait: Option<Duration>) -> Self {
        Self { wait, ..self }
    }

    /// What a late retry gets.
    ///
    /// ```
    /// use idem_core::{Late, Policy};
    ///
    /// const STOCK: Policy = Policy::new().late(Late::Execute);
    /// assert_eq!(STOCK.get_late(), Late::Execute);
    /// ```
    #[must_use]
    pub const fn late(self, late: Late) -> Self {
        Self { late, ..self }
    }

    /// The isolation level of the transaction on PostgreSQL. (SQLite has one level, and it is the strictest.)
    ///
    /// ```
    /// use idem_core::{Isolation, Policy};
    ///
    /// const STRICT: Policy = Policy::new().isolation(Isolation::Serializable);
    /// assert_eq!(STRICT.get_isolation(), Isolation::Serializable);
    /// ```
    #[must_use]
    pub const fn isolation(self, isolation: Isolation) -> Self {
        Self { isolation, ..self }
    }

    /// What happens inside an open transaction.
    ///
    /// ```
    /// use idem_core::{Nested, Policy};
    ///
    /// const INNER: Policy = Policy::new().nested(Nested::Join);
    /// assert_eq!(INNER.get_nested(), Nested::Join);
    /// ```
    #[must_use]
    pub const fn nested(self, nested: Nested) -> Self {
        Self { nested, ..self }
    }

    /// How long the server lets a vanished client's transaction sit idle (PostgreSQL's `idle_in_transaction_session_timeout`).
    /// `None`: as long as the session's own setting says.
    ///
    /// ```
    /// use std::time::Duration;
    /// use idem_core::Policy;
    ///
    /// const WATCHED: Policy = Policy::new().max_idle(Some(Duration::from_secs(10)));
    /// assert_eq!(WATCHED.get_max_idle(), Some(Duration::from_secs(10)));
    /// ```
    #[must_use]
    pub const fn max_idle(self, max_idle: Option<Duration>) -> Self {
        Self { max_idle, ..self }
    }

    /// Looks for an answer before the transaction is opened. It makes a replay cheaper, and every first call dearer by the one read: for operations that are
    /// mostly replayed. (On SQLite it is always so, because a reader needs no lock there.)
    ///
    /// ```
    /// use idem_core::Policy;
    ///
    /// const MOSTLY_REPLAYED: Policy = Policy::new().read_first();
    /// assert!(MOSTLY_REPLAYED.get_read_first());
    /// ```
    #[must_use]
    pub const fn read_first(self) -> Self {
        Self {
            read_first: true,
            ..self
        }
    }

    /// The setting of PostgreSQL that row-level security reads the tenant from, such as `app.tenant_id`. It is set for the transaction, between
    /// BEGIN and the claim, to the text of [`Tenant::as_str`](crate::Tenant::as_str).
    ///
    /// ```
    /// use idem_core::Policy;
    ///
    /// const ROWS_OF_ONE: Policy = Policy::new().tenant_setting("app.tenant");
    /// assert_eq!(ROWS_OF_ONE.get_tenant_setting(), Some("app.tenant"));
    /// ```
    #[must_use]
    pub const fn tenant_setting(self, name: &'static str) -> Self {
        Self {
            tenant_setting: Some(name),
            ..self
        }
    }

    /// The largest answer that is stored, in bytes; at most [`MAX_ANSWER_BYTES`].
    ///
    /// ```
    /// use idem_core::Policy;
    ///
    /// const REPORTS: Policy = Policy::new().answer_bytes(16 * 1024 * 1024);
    /// assert_eq!(REPORTS.get_answer_bytes(), 16_777_216);
    /// ```
    #[must_use]
    pub const fn answer_bytes(self, limit: usize) -> Self {
        let answer_bytes = if limit > MAX_ANSWER_BYTES {
            MAX_ANSWER_BYTES
        } else {
            limit
        };
        Self {
            answer_bytes,
            ..self
        }
    }

    /// Whether an answer is looked for before the transaction is opened.
    ///
    /// ```
    /// use idem_core::Policy;
    ///
    /// assert!(!Policy::new().get_read_first());
    /// ```
    pub const fn get_read_first(&self) -> bool {
        self.read_first
    }

    /// How long a claim may wait; `None`: not at all.
    ///
    /// ```
    /// use idem_core::Policy;
    ///
    /// assert_eq!(Policy::new().wait(None).get_wait(), None);
    /// ```
    pub const fn get_wait(&self) -> Option<Duration> {
        self.wait
    }

    /// What a late retry gets.
    ///
    /// ```
    /// use idem_core::{Late, Policy};
    ///
    /// assert_eq!(Policy::new().get_late(), Late::Reject);
    /// ```
    pub const fn get_late(&self) -> Late {
        self.late
    }

    /// The isolation level of the transaction.
    ///
    /// ```
    /// use idem_core::{Isolation, Policy};
    ///
    /// assert_eq!(Policy::new().get_isolation(), Isolation::default());
    /// ```
    pub const fn get_isolation(&self) -> Isolation {
        self.isolation
    }

    /// What happens inside an open transaction.
    ///
    /// ```
    /// use idem_core::{Nested, Policy};
    ///
    /// assert_eq!(Policy::new().get_nested(), Nested::default());
    /// ```
    pub const fn get_nested(&self) -> Nested {
        self.nested
    }

    /// How long a vanished client's transaction may sit idle; `None`: as the session says.
    ///
    /// ```
    /// use idem_core::Policy;
    ///
    /// assert_eq!(Policy::new().get_max_idle().map(|bound| bound.as_secs()), Some(60));
    /// ```
    pub const fn get_max_idle(&self) -> Option<Duration> {
        self.max_idle
    }

    /// The setting that row-level security reads the tenant from.
    ///
    /// ```
    /// use idem_core::Policy;
    ///
    /// assert_eq!(Policy::new().get_tenant_setting(), None);
    /// ```
    pub const fn get_tenant_setting(&self) -> Option<&'static str> {
        self.tenant_setting
    }

    /// The largest answer that is stored, in bytes.
    ///
    /// ```
    /// use idem_core::Policy;
    /// use idem_core::limits::DEFAULT_ANSWER_BYTES;
    ///
    /// assert_eq!(Policy::new().get_answer_bytes(), DEFAULT_ANSWER_BYTES);
    /// ```
    pub const fn get_answer_bytes(&self) -> usize {
        self.answer_bytes
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

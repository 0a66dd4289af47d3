//! What operators do with records: look at one, list some, remove one.
//!
//! Each function is one statement and one span of [`tracing`] at level INFO, with the target `idem_diesel::admin`: an audit record
//! with the fields `what`, `tenant`, `operation`, `key` and, at the end, `rows` or `error`. A span of your own around the call says who
//! asked. Under row-level security they see what the connection's role sees.
//!
//! ```
//! use std::time::Duration;
//! use diesel::prelude::*;
//! use idem_diesel::admin::{self, Filter, State};
//!
//! # let mut db = SqliteConnection::establish(":memory:")?;
//! # idem_diesel::ensure_schema(&mut db)?;
//! # diesel::sql_query(
//! #     "INSERT INTO api_idempotency (tenant_id, operation, idempotency_key, request_hash, state, created_at, expires_at, forget_at)
//! #      VALUES ('acme/alice', 'orders.pay', 'order-17', '00', 'pending', '2024-01-01 00:00:00.000', '2024-01-03 00:00:00.000', '2024-01-05 00:00:00.000')",
//! # ).execute(&mut db)?;
//! // A claim that somebody else can see without an answer, and without a lease, was committed by a body: the key's calls are
//! // told `Orphaned`. First a person finds out whether the effects are there, then the row goes.
//! let orphans = Filter::new().state(State::Pending).older_than(Duration::from_secs(3600));
//! for orphan in admin::list(&mut db, &orphans)? {
//!     if orphan.owner.is_none() {
//!         assert!(admin::forget(&mut db, &orphan.intent()?, &orphan.operation)?);
//!     }
//! }
//! assert!(admin::list(&mut db, &orphans)?.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::time::{Duration, SystemTime};

use idem_core::limits::RETRY_AFTER;
use idem_core::{ErrorKind, IdempotencyKey, Intent, Invalid, Tenant};
use tracing::{Instrument, Span, field};

use crate::connection::{Flavor, IdempotentConnection, Run};
use crate::driver::Driver;
use crate::error::Error;
use crate::migrations::explain_on;
use crate::store::{Matching, Records, Remove, RowKey, TABLE, info};

/// The most rows that [`list`] gives.
///
/// ```
/// use idem_diesel::admin::{Filter, MAX_LISTED};
///
/// assert_eq!(Filter::new().limit(u32::MAX), Filter::new().limit(MAX_LISTED));
/// ```
pub const MAX_LISTED: u32 = 1000;

/// How many rows [`list`] gives unless the filter says otherwise.
///
/// ```
/// use idem_diesel::admin::{DEFAULT_LISTED, Filter};
///
/// assert_eq!(Filter::new(), Filter::new().limit(DEFAULT_LISTED));
/// ```
pub const DEFAULT_LISTED: u32 = 100;

/// A hundred years: nothing is older, and every backend can count so far back.
const OLDEST_SECONDS: i64 = 100 * 366 * 24 * 60 * 60;

/// The column `state` of a record.
///
/// ```
/// use idem_diesel::admin::State;
///
/// assert_eq!(State::Failed.to_string(), "failed");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// Claimed, without an answer. In transactional mode nobody else ever sees that, unless a body committed by itself.
    Pending,
    /// Ended with an answer, which may be blanked by now.
    Completed,
    /// Ended with a final failure, which may be blanked by now.
    Failed,
}

impl State {
    /// Its text in the database.
    ///
    /// ```
    /// use idem_diesel::admin::State;
    ///
    /// assert_eq!(State::Pending.name(), "pending");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Pending, Self::Completed, Self::Failed]
            .into_iter()
            .find(|state| state.name() == name)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is known of a record. The answer itself is not here: a person reads it in the view `api_idempotency_readable`.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::admin::{self, State};
/// # use idem_diesel::*;
/// # const PAY: Operation = Operation::new("orders.pay", Retention::literal("48h"));
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # ensure_schema(&mut db)?;
/// # let intent = Intent::new(Tenant::of("acme", "alice")?, IdempotencyKey::new("order-17")?);
/// # idempotent_sync(&mut db, &intent, &PAY, &17, |_, _| Ok::<_, Error>("paid".to_owned()))?;
///
/// let record = admin::find(&mut db, &intent, PAY.name())?.ok_or("it is there")?;
/// assert_eq!((record.state, record.attempt), (State::Completed, 1));
/// assert_eq!((record.codec.as_deref(), record.body_bytes), (Some("json"), Some(6)));
/// let completed_at = record.completed_at.ok_or("it has ended")?;
/// assert_eq!(record.expires_at.duration_since(completed_at)?, PAY.retention().as_duration());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordInfo {
    /// The owner of the key, as it is stored; see [`Tenant::as_str`].
    pub tenant_id: String,
    /// The operation's name.
    pub operation: String,
    /// The key.
    pub idempotency_key: String,
    /// The request hash, in hexadecimal: the scheme byte, then SHA-256.
    pub request_hash: String,
    /// How far its call is.
    pub state: State,
    /// Which attempt holds it, counted from 1.
    pub attempt: u32,
    /// How the answer is stored; `None` without one, as after it was blanked.
    pub codec: Option<String>,
    /// The size of the stored answer in bytes.
    pub body_bytes: Option<u64>,
    /// When this attempt claimed it.
    pub created_at: SystemTime,
    /// When it ended.
    pub completed_at: Option<SystemTime>,
    /// From here on the answer may be blanked.
    pub expires_at: SystemTime,
    /// From here on the row may go.
    pub forget_at: SystemTime,
    /// Who runs it, in leased mode.
    pub owner: Option<String>,
    /// Until when, in leased mode.
    pub lease_expires_at: Option<SystemTime>,
}

impl RecordInfo {
    /// The intent of the record: what [`find`] and [`forget`] take.
    ///
    /// ```
    /// use diesel::prelude::*;
    /// use idem_diesel::admin::{self, Filter};
    /// # use idem_diesel::*;
    /// # const PAY: Operation = Operation::new("orders.pay", Retention::literal("48h"));
    /// # let mut db = SqliteConnection::establish(":memory:")?;
    /// # ensure_schema(&mut db)?;
    /// let intent = Intent::new(Tenant::of("acme/eu", "100%")?, IdempotencyKey::new("order-17")?);
    /// # idempotent_sync(&mut db, &intent, &PAY, &17, |_, _| Ok::<_, Error>("paid".to_owned()))?;
    ///
    /// for record in admin::list(&mut db, &Filter::new())? {
    ///     assert_eq!(record.intent()?, intent);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`] when tenant or key are not ones that a call could have: somebody else wrote the row.
    pub fn intent(&self) -> Result<Intent, Invalid> {
        let tenant = match self.tenant_id.split_once('/') {
            Some((account, principal)) => Tenant::of(decoded(account), decoded(principal)),
            None => Tenant::shared(decoded(&self.tenant_id)),
        }?;
        Ok(Intent::new(
            tenant,
            IdempotencyKey::new(self.idempotency_key.as_str())?,
        ))
    }
}

/// A part of a tenant before it was written as [`Tenant::as_str`] says.
fn decoded(part: &str) -> String {
    part.replace("%2F", "/").replace("%25", "%")
}

/// Which records [`list`] gives: all, or those that match everything that is said here.
///
/// ```
/// use std::time::Duration;
/// use idem_diesel::admin::{Filter, State};
/// use idem_diesel::Tenant;
///
/// let unfinished = Filter::new()
///     .tenant(&Tenant::of("acme", "alice")?)
///     .operation("orders.pay")
///     .state(State::Pending)
///     .older_than(Duration::from_secs(3600))
///     .limit(20);
/// assert_ne!(unfinished, Filter::new());
/// # Ok::<(), idem_diesel::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a filter does nothing by itself"]
pub struct Filter(Matching);

impl Filter {
    /// All records, at most 100 of them.
    ///
    /// ```
    /// use idem_diesel::admin::Filter;
    ///
    /// assert_eq!(Filter::new(), Filter::default());
    /// ```
    pub const fn new() -> Self {
        Self(Matching {
            tenant_id: None,
            operation: None,
            state: None,
            seconds_after_now: None,
            limit: DEFAULT_LISTED,
        })
    }

    /// Only of this owner. The primary key starts with it, so this is what makes a look cheap.
    ///
    /// ```
    /// use idem_diesel::{Tenant, admin::Filter};
    ///
    /// let alice = Filter::new().tenant(&Tenant::of("acme", "alice")?);
    /// assert_ne!(alice, Filter::new().tenant(&Tenant::of("acme", "bob")?));
    /// # Ok::<(), idem_diesel::Invalid>(())
    /// ```
    pub fn tenant(mut self, tenant: &Tenant) -> Self {
        self.0.tenant_id = Some(tenant.as_str().to_owned());
        self
    }

    /// Only of the operation with this name.
    ///
    /// ```
    /// use idem_diesel::admin::Filter;
    ///
    /// assert_ne!(Filter::new().operation("orders.pay"), Filter::new());
    /// ```
    pub fn operation(mut self, name: impl Into<String>) -> Self {
        self.0.operation = Some(name.into());
        self
    }

    /// Only in this state.
    ///
    /// ```
    /// use idem_diesel::admin::{Filter, State};
    ///
    /// assert_ne!(Filter::new().state(State::Failed), Filter::new());
    /// ```
    pub fn state(mut self, state: State) -> Self {
        self.0.state = Some(state);
        self
    }

    /// Only claimed at least so long ago, by the database's time; whole seconds count.
    ///
    /// ```
    /// use std::time::Duration;
    /// use idem_diesel::admin::Filter;
    ///
    /// assert_ne!(Filter::new().older_than(Duration::from_secs(60)), Filter::new());
    /// ```
    pub fn older_than(mut self, age: Duration) -> Self {
        let seconds = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
        self.0.seconds_after_now = Some(-seconds.min(OLDEST_SECONDS));
        self
    }

    /// At most so many, and never more than [`MAX_LISTED`].
    ///
    /// ```
    /// use idem_diesel::admin::Filter;
    ///
    /// assert_eq!(Filter::new().limit(5000), Filter::new().limit(1000));
    /// ```
    pub fn limit(mut self, rows: u32) -> Self {
        self.0.limit = rows.min(MAX_LISTED);
        self
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self::new()
    }
}

/// What the record of `intent` in the operation named `operation` says; `None` without a record.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::{Intent, IdempotencyKey, Tenant, admin};
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # idem_diesel::ensure_schema(&mut db)?;
/// let intent = Intent::new(Tenant::of("acme", "alice")?, IdempotencyKey::new("order-17")?);
/// assert_eq!(admin::find(&mut db, &intent, "orders.pay")?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`TableMissing`](ErrorKind::TableMissing); [`SchemaWrong`](ErrorKind::SchemaWrong) for a row that this version cannot have
/// written; what the database says.
///
/// # Cancellation
///
/// It only reads.
///
/// # SQL
///
/// ```sql
/// SELECT … FROM api_idempotency WHERE tenant_id = $1 AND operation = $2 AND idempotency_key = $3
/// ```
pub fn find<'c, C: IdempotentConnection>(
    db: &'c mut C,
    intent: &Intent,
    operation: &str,
) -> Run<'c, C, Result<Option<RecordInfo>, Error>> {
    let key = RowKey::named(intent, operation);
    C::Flavor::run(async move {
        let [tenant, operation, name] = key.texts().map(Some);
        let span = audit("find", tenant, operation, name);
        let found = async { Ok(look(db.inner(), Records::Of(key)).await?.pop()) };
        audited(span, found, |found| usize::from(found.is_some())).await
    })
}

/// The records that match, those that were claimed first before the others.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::admin::{self, Filter, State};
/// # use idem_diesel::*;
/// # const PAY: Operation = Operation::new("orders.pay", Retention::literal("48h"));
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # ensure_schema(&mut db)?;
/// # for key in ["order-17", "order-18"] {
/// #     let intent = Intent::new(Tenant::of("acme", "alice")?, IdempotencyKey::new(key)?);
/// #     idempotent_sync(&mut db, &intent, &PAY, &17, |_, _| Ok::<_, Error>("paid".to_owned()))?;
/// # }
///
/// assert_eq!(admin::list(&mut db, &Filter::new().state(State::Completed))?.len(), 2);
/// assert_eq!(admin::list(&mut db, &Filter::new().operation("orders.refund"))?.len(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`find`].
///
/// # Cancellation
///
/// It only reads.
///
/// # SQL
///
/// ```sql
/// SELECT … FROM api_idempotency WHERE tenant_id = $1 AND … AND created_at <= … ORDER BY created_at, … LIMIT 100
/// ```
///
/// Without a tenant it reads the whole table.
pub fn list<'c, C: IdempotentConnection>(
    db: &'c mut C,
    filter: &Filter,
) -> Run<'c, C, Result<Vec<RecordInfo>, Error>> {
    let Filter(matching) = filter.clone();
    C::Flavor::run(async move {
        let (tenant, operation) = (&matching.tenant_id, &matching.operation);
        let span = audit("list", tenant.as_deref(), operation.as_deref(), None);
        let found = look(db.inner(), Records::Matching(matching));
        audited(span, found, Vec::len).await
    })
}

/// Deletes the record of `intent` in the operation named `operation`, whatever its state; `false` without a record.
///
/// The key is new afterwards: its next call executes. So this is for a record whose effects a person has looked at, above all one
/// whose calls are told [`Orphaned`](ErrorKind::Orphaned). Inside a transaction of yours it is part of that.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::admin;
/// # use idem_diesel::*;
/// # const PAY: Operation = Operation::new("orders.pay", Retention::literal("48h"));
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # ensure_schema(&mut db)?;
/// # let intent = Intent::new(Tenant::of("acme", "alice")?, IdempotencyKey::new("order-17")?);
/// # idempotent_sync(&mut db, &intent, &PAY, &17, |_, _| Ok::<_, Error>("paid".to_owned()))?;
///
/// assert!(admin::forget(&mut db, &intent, PAY.name())?);
/// assert!(!admin::forget(&mut db, &intent, PAY.name())?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`InFlight`](ErrorKind::InFlight) when a call of the key is running on PostgreSQL, [`Busy`](ErrorKind::Busy) when somebody writes
/// on SQLite: nothing was deleted. Otherwise as [`find`].
///
/// # Cancellation
///
/// A dropped future may have deleted the record; [`find`] tells.
///
/// # SQL
///
/// ```sql
/// DELETE FROM api_idempotency WHERE tenant_id = $1 AND … AND pg_try_advisory_xact_lock(…)
/// ```
///
/// If that deleted nothing, the statement of [`find`] tells a record that is held from one that is not there.
pub fn forget<'c, C: IdempotentConnection>(
    db: &'c mut C,
    intent: &Intent,
    operation: &str,
) -> Run<'c, C, Result<bool, Error>> {
    let key = RowKey::named(intent, operation);
    C::Flavor::run(async move {
        let [tenant, operation, name] = key.texts().map(Some);
        let span = audit("forget", tenant, operation, name);
        let removed = remove(db.inner(), key);
        audited(span, removed, |removed| usize::from(*removed)).await
    })
}

/// The audit record of one statement.
fn audit(what: &str, tenant: Option<&str>, operation: Option<&str>, key: Option<&str>) -> Span {
    let (rows, error) = (field::Empty, field::Empty);
    tracing::info_span!("admin", what, tenant, operation, key, rows, error)
}

/// Does it inside its audit record, and says there what came of it.
async fn audited<T>(
    span: Span,
    work: impl Future<Output = Result<T, Error>>,
    rows: impl FnOnce(&T) -> usize,
) -> Result<T, Error> {
    let done = work.instrument(span.clone()).await;
    match &done {
        Ok(value) => span.record("rows", rows(value)),
        Err(error) => span.record("error", field::display(error)),
    };
    done
}

async fn look<D: Driver>(db: &mut D, records: Records) -> Result<Vec<RecordInfo>, Error> {
    let rows = match db.records(records).await {
        Ok(rows) => rows,
        Err(error) => return Err(explain_on(db, error.into(), &[TABLE]).await),
    };
    let infos: Result<_, _> = rows.into_iter().map(info).collect();
    infos.map_err(|malformed| {
        ErrorKind::SchemaWrong {
            problem: malformed.0.to_owned(),
        }
        .into()
    })
}

async fn remove<D: Driver>(db: &mut D, key: RowKey) -> Result<bool, Error> {
    let removed = db.execute(Remove { key: key.clone() }).await;
    match removed {
        Ok(0) if look(db, Records::Of(key)).await?.is_empty() => Ok(false),
        Ok(0) => Err(ErrorKind::InFlight {
            retry_after: RETRY_AFTER,
        }
        .into()),
        Ok(_) => Ok(true),
        Err(error) => Err(explain_on(db, error.into(), &[TABLE]).await),
    }
}

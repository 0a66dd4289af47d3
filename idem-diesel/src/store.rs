//! The statements on this library's tables, and the only place where their columns become types.
//!
//! Each file is one statement. They own what they bind, because a statement outlives the call that builds it on async
//! connections, and they know nothing of policy.

mod batch;
mod blank;
mod claim;
mod delivered;
mod end;
mod extent;
mod forget;
mod insert;
mod look;
mod messages;
mod outbox;
mod probe;
mod purge_lock;
mod read;
mod records;
mod remove;
mod table;
mod take_over;

pub(crate) use batch::Batch;
pub(crate) use blank::Blank;
pub(crate) use claim::Claim;
pub(crate) use delivered::{ForgetDelivered, ForgetEvents, LookForDelivered};
pub(crate) use end::End;
pub(crate) use extent::Extent;
pub(crate) use forget::Forget;
pub(crate) use insert::Insert;
pub(crate) use look::Look;
pub(crate) use messages::{
    Dead, Failed, FailedState, ForgetDead, Mark, MarkAll, MessageKey, NoMark, Retake, Revive, Seen,
    SeenAll, SeenState, StillIn,
};
pub(crate) use outbox::{
    Backlog, DeadEvents, DropDead, Enqueue, Enqueued, EventKey, InsertEvent, Lease, Redrive,
    RemoveEvent, Settle,
};
pub(crate) use probe::Probe;
pub(crate) use purge_lock::PurgeLock;
pub(crate) use read::{Found, KeyLock, Read, Row};
pub(crate) use records::{Matching, RecordRow, Records, info};
pub(crate) use remove::Remove;
pub(crate) use table::{Aged, DELIVERIES, MESSAGES, RECORDS, TABLE, TABLES, Table};
pub(crate) use take_over::TakeOver;

use std::borrow::Cow;
use std::sync::Arc;

use diesel::QueryResult;
use diesel::query_builder::AstPass;
use idem_core::{BoundIntent, Intent, MessageId};
use sha2::{Digest, Sha256};

use crate::dialect::Dialect;

/// The primary key of a row, and the numbers under which it is locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowKey(Arc<Columns>);

#[derive(Debug, PartialEq, Eq)]
struct Columns {
    tenant_id: String,
    operation: Cow<'static, str>,
    idempotency_key: String,
    locks: KeyLocks,
}

/// The two numbers of a key, each in a class of its own. The first is the key's lock. Another key may have the same by accident, and then
/// the second, which every call tries as well, tells the two apart.
pub(crate) type KeyLocks = [i32; 2];

impl RowKey {
    /// The row of `intent`.
    pub fn of(intent: &BoundIntent) -> Self {
        Self::new(intent, Cow::Borrowed(intent.operation()))
    }

    /// The row of `intent` in an operation that is known by its name only.
    pub(crate) fn named(intent: &Intent, operation: &str) -> Self {
        Self::new(intent, Cow::Owned(operation.to_owned()))
    }

    /// The processing of a message, whose tenant is known if its handler asked for an intent. It has no row; it stands for what runs.
    pub(crate) fn of_message(
        intent: Option<&Intent>,
        subscriber: &'static str,
        id: &MessageId,
    ) -> Self {
        let tenant = intent.map_or("", |intent| intent.tenant().as_str());
        Self::of_columns(tenant, Cow::Borrowed(subscriber), id.as_str())
    }

    fn new(intent: &Intent, operation: Cow<'static, str>) -> Self {
        Self::of_columns(intent.tenant().as_str(), operation, intent.key().as_str())
    }

    fn of_columns(tenant_id: &str, operation: Cow<'static, str>, idempotency_key: &str) -> Self {
        let (tenant_id, idempotency_key) = (tenant_id.to_owned(), idempotency_key.to_owned());
        let locks = locks(&[&tenant_id, &operation, &idempotency_key]);
        Self(Arc::new(Columns {
            tenant_id,
            operation,
            idempotency_key,
            locks,
        }))
    }

    /// The numbers under which the key is locked.
    pub fn locks(&self) -> KeyLocks {
        self.0.locks
    }

    /// Tenant, operation and key, for a person.
    pub(crate) fn texts(&self) -> [&str; 3] {
        [
            &self.0.tenant_id,
            &self.0.operation,
            &self.0.idempotency_key,
        ]
    }

    /// `tenant, operation, key`, as a list of values.
    fn push_values<'b, DB: Dialect>(&'b self, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        DB::push_text(out, &self.0.tenant_id)?;
        out.push_sql(", ");
        DB::push_text(out, &self.0.operation)?;
        out.push_sql(", ");
        DB::push_text(out, &self.0.idempotency_key)
    }

    /// The condition that selects the row.
    fn push_is_row<'b, DB: Dialect>(&'b self, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("tenant_id = ");
        DB::push_text(out, &self.0.tenant_id)?;
        out.push_sql(" AND operation = ");
        DB::push_text(out, &self.0.operation)?;
        out.push_sql(" AND idempotency_key = ");
        DB::push_text(out, &self.0.idempotency_key)
    }
}

/// Twice 32 bits of a SHA-256 over the parts with their lengths, as signed numbers: equal in every process.
pub(crate) fn locks(parts: &[&str]) -> KeyLocks {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let digest: [u8; 32] = hasher.finalize().into();
    let mut numbers = digest.chunks_exact(4).map(|chunk| {
        chunk
            .iter()
            .fold(0_i32, |number, byte| number << 8 | i32::from(*byte))
    });
    std::array::from_fn(|_| numbers.next().unwrap_or_default())
}

/// How long a row is kept, as the two horizons that are written with it, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Horizons {
    expires: i64,
    forget: i64,
}

impl Horizons {
    /// A row expires after `retention` and may be forgotten after twice that.
    pub(crate) fn of(retention: idem_core::Retention) -> Self {
        // A retention is at most ten years, so neither number comes near the bounds of i64.
        let expires = i64::try_from(retention.as_secs()).unwrap_or(i64::MAX / 4);
        Self {
            expires,
            forget: expires * 2,
        }
    }
}

/// Statements whose text never changes can be prepared once per connection.
macro_rules! static_statement {
    ($($statement:ty),+) => {$(
        impl diesel::query_builder::QueryId for $statement {
            type QueryId = $statement;
            const HAS_STATIC_QUERY_ID: bool = true;
        }
    )+};
}
use static_statement;

#[cfg(test)]
mod tests {
    use idem_core::{IdempotencyKey, Intent, Tenant};

    use super::*;

    #[test]
    fn a_row_is_locked_under_the_same_numbers_in_every_process() {
        let intent = Intent::new(
            Tenant::shared("acme").unwrap(),
            IdempotencyKey::new("k").unwrap(),
        );
        assert_eq!(
            RowKey::of(&intent.bind("orders.pay")).locks(),
            [1_206_090_683, -476_447_476]
        );
        assert_ne!(
            RowKey::of(&intent.bind("orders.pay")).locks(),
            RowKey::of(&intent.bind("orders.pa")).locks()
        );
    }
}

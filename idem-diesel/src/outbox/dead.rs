//! For the person who looks after events that were given up.

use idem_core::Nested;
use idem_core::limits::DEFAULT_WAIT;

use super::EventId;
use super::delivery::{Leased, OutboxEvent};
use crate::connection::{Flavor, IdempotentConnection, Run};
use crate::driver::{Driver, Opening};
use crate::error::Error;
use crate::migrations::explain;
use crate::store::{DeadEvents, DropDead, EventKey, Redrive, RemoveEvent};
use crate::transaction::{Transaction, alone};

/// An event that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadEvent {
    /// The event; its id alone if that is all that is left.
    pub event: Result<OutboxEvent, EventId>,
    /// Whose it is; empty when it was published outside of a call.
    pub tenant: String,
    /// How often it was tried.
    pub attempts: u32,
    /// How the last attempt failed; absent when no attempt lived to say so.
    pub last_error: Option<String>,
}

impl DeadEvent {
    /// The id of the event.
    pub fn id(&self) -> EventId {
        match &self.event {
            Ok(event) => event.id,
            Err(id) => *id,
        }
    }
}

/// Lists at most so many dead events, in the order in which they were published.
///
/// ```
/// # use diesel::prelude::*;
/// # use idem_diesel::*;
/// # #[derive(serde::Serialize)]
/// # struct Paid;
/// # impl Event for Paid {
/// #     fn event_type(&self) -> &'static str { "order.paid" }
/// #     fn aggregate_type(&self) -> &'static str { "order" }
/// #     fn aggregate_id(&self) -> String { "7".to_owned() }
/// # }
/// use std::time::Duration;
/// use idem_diesel::outbox::{Dead, Lease, Settled, dead, drop_dead, lease, redrive, settle};
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # ensure_schema(&mut db)?;
/// # db.transaction(|db| outbox::publish(db, &Paid))?;
/// # let terms = Lease { owner: "relay-1".to_owned(), duration: Duration::from_secs(30), at_most: 100, dead: Dead::Block };
/// let give_up = |db: &mut SqliteConnection| {
///     let leased = lease(db, &terms)?;
///     settle(db, &[leased[0].settlement(Settled::Dead { error: "the broker refused it".to_owned() })])
/// };
/// give_up(&mut db)?;
/// let found = dead(&mut db, 10)?;
/// assert_eq!(found[0].last_error.as_deref(), Some("the broker refused it"));
///
/// // The broker takes it now, so it is tried again ...
/// assert!(redrive(&mut db, &found[0])?);
/// give_up(&mut db)?;
/// // ... or it never will.
/// assert!(drop_dead(&mut db, &found[0])?);
/// assert!(dead(&mut db, 10)?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// What the database says.
///
/// # Cancellation
///
/// It only reads.
pub fn dead<C: IdempotentConnection>(
    db: &mut C,
    at_most: u32,
) -> Run<'_, C, Result<Vec<DeadEvent>, Error>> {
    C::Flavor::run(async move {
        let query = DeadEvents {
            at_most: at_most.into(),
        };
        let texts = alone(db, query).await?;
        let rows = texts.iter().map(|text| {
            let leased = Leased::from_text(text)?;
            Ok(DeadEvent {
                event: leased.event,
                tenant: leased.tenant,
                attempts: leased.attempt,
                last_error: leased.last_error,
            })
        });
        rows.collect()
    })
}

/// Lets a dead event be published after all, in its old place, and says whether it was still dead. Those behind it in its aggregate that went on without it stay where they are.
///
/// # Errors
///
/// What the database says.
///
/// # Cancellation
///
/// One statement: the event is dead or it waits.
pub fn redrive<'c, C: IdempotentConnection>(
    db: &'c mut C,
    event: &DeadEvent,
) -> Run<'c, C, Result<bool, Error>> {
    let key = EventKey::new(event.tenant.clone(), event.id().0);
    C::Flavor::run(async move { Ok(!alone(db, Redrive { key }).await?.is_empty()) })
}

/// Removes a dead event for good, and says whether it was still dead. Those that it held up go on.
///
/// # Errors
///
/// What the database says; nothing is removed then.
///
/// # Cancellation
///
/// One transaction: the event is gone or it is not.
pub fn drop_dead<'c, C: IdempotentConnection>(
    db: &'c mut C,
    event: &DeadEvent,
) -> Run<'c, C, Result<bool, Error>> {
    let key = EventKey::new(event.tenant.clone(), event.id().0);
    C::Flavor::run(async move {
        let mut transaction = Transaction::new(db, Nested::Refuse)?;
        transaction.set_patience(DEFAULT_WAIT).await?;
        let opened = transaction.open(&Opening::PLAIN, None).await;
        transaction.restore_patience().await?;
        opened?;
        let db = transaction.inner();
        let dropped = async {
            let was_dead = db.execute(DropDead { key: key.clone() }).await? > 0;
            if was_dead {
                db.execute(RemoveEvent { key }).await?;
            }
            Ok::<_, diesel::result::Error>(was_dead)
        };
        match dropped.await {
            Ok(was_dead) => {
                transaction.commit(DEFAULT_WAIT).await?;
                Ok(was_dead)
            }
            Err(error) => {
                transaction.rollback().await;
                Err(explain(transaction.inner(), error.into()).await)
            }
        }
    })
}

//! The inbox: a message has its effects once for each subscriber, however often it is delivered.
//!
//! 1. BEGIN, and in the same message the mark: the row of subscriber and message id is inserted into `processed_messages`, before the handler runs.
//! 2. If the row is there already, the message is a duplicate, and nothing runs. If another transaction is inserting it, this one waits for how that ends.
//! 3. The transition, the handler, COMMIT. Mark and effects commit together, or neither does.
//! 4. The broker is told. A crash before that means a redelivery, which step 2 turns away.
//!
//! The same content is part of the bargain: another message under the id of a processed one is a [`Mismatch`](ErrorKind::Mismatch), not a duplicate.
//!
//! Three layers, as for idempotency keys: [`begin`] and [`Consumption::finish`]; the closure of [`consume`](fn@consume) and [`consume_sync`]; and the
//! attribute [`#[consumer]`](macro@crate::consumer). [`begin_batch`] marks many messages at once.
//!
//! # Messages that keep failing
//!
//! A failed handler leaves nothing, so who counts its failures? The broker, if it says how often it has delivered; otherwise a row that is written outside of the
//! work, and only after something went wrong. [`attempt`] says whether there is a further attempt, [`failed`] notes how one ended, and [`dead`], [`redrive`] and
//! [`forget_dead`] are for the person who looks after those that were given up. The loops of `idem-relay` do all of this by themselves.
//!
//! # When no inbox is needed
//!
//! When the effect is one write that is idempotent by itself: an [`upsert`](mod@crate::upsert) by a business key that the message carries, or a [transition](crate::transition)
//! of one entity. Then the redelivery changes nothing. As soon as there is a second effect (an event, a counter, a row without a business key), the inbox is what ties them together.

mod attempts;
mod batch;
mod claim;
mod dead;

pub(crate) use attempts::shown;
pub use attempts::{Attempt, DeliveryCount, Fate, attempt, failed, give_up};
pub use batch::{Batch, BatchItem, begin_batch};
pub use dead::{DeadMessage, dead, forget_dead, redrive};

use idem_core::{
    BoundIntent, ErrorKind, Intent, MessageId, RequestDigest, RequestHash, Subscription, Transition,
};

use crate::after_commit::AfterCommit;
use crate::connection::{Async, Blocking, Flavor, IdempotentConnection, Run};
use crate::error::Error;
use crate::execution::advance_in;
use crate::guard::{self, Running};
use crate::store::MessageKey;
use crate::transaction::Transaction;
use crate::transition::{EntityKey, KeyValue, StateColumn};

/// What a delivered message led to.
#[must_use = "a consumption that is dropped is rolled back"]
pub enum Claimed<'c, C: IdempotentConnection> {
    /// It is new: do the work on [`Consumption::connection`], then [`finish`](Consumption::finish).
    Execute(Consumption<'c, C>),
    /// It was processed before.
    Duplicate,
}

/// What is delivered, before anything was sent for it.
pub(crate) struct Delivered {
    subscription: Subscription,
    id: MessageId,
    key: MessageKey,
    request_hash: String,
    intent: Option<BoundIntent>,
}

impl Delivered {
    pub(crate) fn new(
        subscription: &Subscription,
        id: &MessageId,
        intent: Option<&Intent>,
        message: &dyn RequestHash,
    ) -> Result<Self, Error> {
        let subscriber = subscription.subscriber();
        let in_subscription = |error: idem_core::Error| Error::from(error.in_operation(subscriber));
        if intent.is_some_and(|intent| !intent.is_of_message(subscriber, id)) {
            return Err(in_subscription(ErrorKind::WrongIntent.into()));
        }
        let digest = RequestDigest::of(message).map_err(|error| in_subscription(error.into()))?;
        Ok(Self {
            subscription: *subscription,
            id: id.clone(),
            key: MessageKey::new(subscriber, id),
            request_hash: digest.to_hex(),
            intent: intent.map(|intent| intent.bind(subscriber)),
        })
    }
}

/// Marks the message as processed by `subscription`, and opens the transaction in which it is.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::{Error, MessageId, Retention, Subscription, inbox};
///
/// const BILLING: Subscription = Subscription::new("billing", Retention::literal("7d"));
///
/// fn on_paid(db: &mut SqliteConnection, id: &MessageId, cents: i64) -> Result<bool, Error> {
///     match inbox::begin(db, &BILLING, id, &cents)? {
///         inbox::Claimed::Execute(mut consumption) => {
///             let result = diesel::sql_query("INSERT INTO invoices DEFAULT VALUES").execute(consumption.connection());
///             consumption.finish(result.map(|_| true).map_err(Error::from))
///         }
///         inbox::Claimed::Duplicate => Ok(false),
///     }
/// }
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # idem_diesel::ensure_schema(&mut db)?;
/// # diesel::sql_query("CREATE TABLE invoices (id INTEGER PRIMARY KEY)").execute(&mut db)?;
/// let id = MessageId::new("evt-17")?;
/// assert!(on_paid(&mut db, &id, 500)?);
/// assert!(!on_paid(&mut db, &id, 500)?);
/// assert_eq!(on_paid(&mut db, &id, 501).unwrap_err().kind(), &idem_diesel::ErrorKind::Mismatch);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`InFlight`](ErrorKind::InFlight) when another copy was being processed for as long as the policy waits, [`Mismatch`](ErrorKind::Mismatch) for another message under
/// the id of a processed one, [`Parked`](ErrorKind::Parked) for one that was given up, [`Reentrant`](ErrorKind::Reentrant) inside its own processing, or what the database
/// says. Nothing is open then.
///
/// # Cancellation
///
/// Dropping the future, or the consumption it gives, rolls back: the message is as new.
///
/// # SQL
///
/// ```sql
/// INSERT INTO processed_messages (subscriber_id, message_id, …) VALUES (…) ON CONFLICT DO NOTHING
/// ```
pub fn begin<'c, C: IdempotentConnection>(
    db: &'c mut C,
    subscription: &Subscription,
    id: &MessageId,
    message: &(impl RequestHash + ?Sized),
) -> Run<'c, C, Result<Claimed<'c, C>, Error>> {
    let delivered = Delivered::new(subscription, id, None, &message);
    C::Flavor::run(claimed(db, delivered))
}

pub(crate) async fn claimed<C: IdempotentConnection>(
    db: &mut C,
    delivered: Result<Delivered, Error>,
) -> Result<Claimed<'_, C>, Error> {
    let delivered = delivered?;
    let subscriber = delivered.subscription.subscriber();
    let claimed = claim::claim(db, delivered).await;
    let claimed = claimed.map_err(|error| error.into_core().in_operation(subscriber))?;
    Ok(match claimed {
        Some((transaction, running)) => Claimed::Execute(Consumption {
            transaction,
            running,
            after_commit: AfterCommit::default(),
        }),
        None => Claimed::Duplicate,
    })
}

/// A marked message and its open transaction. Dropping it rolls back, and the message is as new.
#[must_use = "a consumption that is dropped is rolled back"]
pub struct Consumption<'c, C: IdempotentConnection> {
    transaction: Transaction<'c, C>,
    running: Running,
    after_commit: AfterCommit,
}

impl<'c, C: IdempotentConnection> Consumption<'c, C> {
    /// The connection, inside the transaction. What is done on any other is not protected.
    pub fn connection(&mut self) -> &mut C {
        self.transaction.connection()
    }

    /// Changes the state of an entity, if it is in one of the states the transition starts from.
    ///
    /// # Errors
    ///
    /// [`AlreadyApplied`](ErrorKind::AlreadyApplied): the message has nothing left to do, so finish with `Ok`;
    /// [`IllegalTransition`](ErrorKind::IllegalTransition), [`EntityNotFound`](ErrorKind::EntityNotFound), or what the database says.
    ///
    /// # Cancellation
    ///
    /// As for [`begin`].
    pub fn transition<S: StateColumn>(
        &mut self,
        transition: Transition<S>,
        id: impl EntityKey,
    ) -> Run<'_, C, Result<(), Error>> {
        let key = id.into_values();
        C::Flavor::run(async move { self.advance(&transition, key).await })
    }

    pub(crate) async fn advance<S: StateColumn>(
        &mut self,
        transition: &Transition<S>,
        key: Vec<KeyValue>,
    ) -> Result<(), Error> {
        advance_in(&mut self.transaction, &self.running, transition, key).await
    }

    /// Runs `hook` once, after COMMIT was answered; never on a duplicate, a rollback, or an unknown outcome.
    pub fn after_commit(&mut self, hook: impl FnOnce() + Send + 'static) {
        self.after_commit.push(hook);
    }

    /// Ends the processing: commits an `Ok` together with the mark, or rolls an `Err` back.
    ///
    /// # Errors
    ///
    /// The `Err` that was given; or, made into `E`, why it could not be committed. In every case but
    /// [`OutcomeUnknown`](ErrorKind::OutcomeUnknown) everything is rolled back.
    ///
    /// # Cancellation
    ///
    /// A future dropped before COMMIT is sent rolls back; after that, everything may have happened. The redelivery finds out.
    pub fn finish<T, E>(self, result: Result<T, E>) -> Run<'c, C, Result<T, E>>
    where
        T: Send + 'c,
        E: From<Error> + Send + 'c,
    {
        C::Flavor::run(self.settle(result))
    }

    pub(crate) async fn settle<T, E: From<Error>>(self, result: Result<T, E>) -> Result<T, E> {
        let Self {
            transaction,
            running,
            after_commit,
        } = self;
        match result {
            Ok(value) => guard::complete(transaction, running, None, after_commit)
                .await
                .map(|()| value)
                .map_err(E::from),
            Err(error) => {
                guard::release(transaction, running).await;
                Err(error)
            }
        }
    }

    #[doc(hidden)]
    pub fn __parts(&mut self) -> (&mut C, &BoundIntent) {
        match self.__optional_parts() {
            (db, Some(intent)) => (db, intent),
            _ => unreachable!("I7: a handler with an intent has a bound intent"),
        }
    }

    #[doc(hidden)]
    pub fn __optional_parts(&mut self) -> (&mut C, Option<&BoundIntent>) {
        (self.transaction.connection(), self.running.intent())
    }
}

/// Runs `body` once for the message, on an async connection; every later delivery gives [`Consumed::Duplicate`](crate::Consumed).
///
/// ```
/// use diesel::{Connection, SqliteConnection};
/// use idem_diesel::{Consumed, Error, MessageId, Retention, Subscription, inbox};
///
/// const BILLING: Subscription = Subscription::new("billing", Retention::literal("7d"));
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # idem_diesel::ensure_schema(&mut db)?;
/// let id = MessageId::new("evt-17")?;
/// // The sync form; the async one is `inbox::consume(&mut db, &BILLING, &id, &500, async |db| …).await`.
/// let mut deliver = || inbox::consume_sync(&mut db, &BILLING, &id, &500, |_db| Ok::<_, Error>("invoiced"));
/// assert_eq!(deliver()?, Consumed::Processed("invoiced"));
/// assert_eq!(deliver()?, Consumed::Duplicate);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// What `body` returns, after everything was rolled back; or, made into `E`, what [`begin`] and [`Consumption::finish`] say.
///
/// # Cancellation
///
/// A dropped future rolls back; once COMMIT is on the wire, the redelivery finds out.
pub async fn consume<C, T, E, F>(
    db: &mut C,
    subscription: &Subscription,
    id: &MessageId,
    message: &impl RequestHash,
    body: F,
) -> Result<crate::Consumed<T>, E>
where
    C: IdempotentConnection<Flavor = Async>,
    E: From<Error>,
    F: AsyncFnOnce(&mut C) -> Result<T, E>,
{
    let delivered = Delivered::new(subscription, id, None, message);
    match claimed(db, delivered).await? {
        Claimed::Duplicate => Ok(crate::Consumed::Duplicate),
        Claimed::Execute(mut consumption) => {
            let result = body(consumption.connection()).await;
            Ok(consumption.settle(result).await?.into())
        }
    }
}

/// [`consume`](fn@consume) for a sync connection.
///
/// # Errors
///
/// What `body` returns, after everything was rolled back; or, made into `E`, what [`begin`] and [`Consumption::finish`] say.
pub fn consume_sync<C, T, E, F>(
    db: &mut C,
    subscription: &Subscription,
    id: &MessageId,
    message: &impl RequestHash,
    body: F,
) -> Result<crate::Consumed<T>, E>
where
    C: IdempotentConnection<Flavor = Blocking>,
    E: From<Error>,
    F: FnOnce(&mut C) -> Result<T, E>,
{
    let delivered = Delivered::new(subscription, id, None, message);
    crate::connection::run_blocking(async {
        match claimed(db, delivered).await? {
            Claimed::Duplicate => Ok(crate::Consumed::Duplicate),
            Claimed::Execute(mut consumption) => {
                let result = body(consumption.connection());
                Ok(consumption.settle(result).await?.into())
            }
        }
    })
}

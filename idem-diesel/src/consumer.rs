//! What `#[consumer]` writes: calls of these functions, and nothing of the protocol.

#![expect(
    clippy::missing_errors_doc,
    reason = "called by generated code, which returns what it gets"
)]

use idem_core::message::ConsumerAnswer;
use idem_core::{Intent, MessageId, RequestHash, Subscription};

use crate::connection::{Async, Blocking, FlavoredConnection, IdempotentConnection, run_blocking};
use crate::error::Error;
use crate::handler::HandlerError;
use crate::inbox::{Claimed, Consumption, Delivered, claimed};
use crate::transition::{EntityKey, StateColumn};

/// What a consumer returns: `Result<Consumed<T>, E>` or `Result<(), E>`, also through an alias.
///
/// ```
/// use idem_diesel::{Consumed, ConsumerResult};
///
/// let result: diesel::QueryResult<Consumed<u8>> = ConsumerResult::from_result(Ok(Consumed::Duplicate));
/// assert_eq!(result.into_result(), Ok(Consumed::Duplicate));
/// ```
#[diagnostic::on_unimplemented(
    message = "a consumer returns `Result<Consumed<T>, E>` or `Result<(), E>`, not `{Self}`",
    label = "write `Result<Consumed<T>, E>` here",
    note = "`E` has `impl From<idem_diesel::Error>`; `diesel::result::Error` has it"
)]
pub trait ConsumerResult {
    /// What it gives.
    type Answer: ConsumerAnswer;
    /// The error.
    type Error: HandlerError;

    /// The result itself.
    ///
    /// ```
    /// use idem_diesel::ConsumerResult;
    ///
    /// assert_eq!(ConsumerResult::into_result(diesel::QueryResult::Ok(())), Ok(()));
    /// ```
    fn into_result(self) -> Result<Self::Answer, Self::Error>;

    /// The consumer's type of a result.
    ///
    /// ```
    /// use idem_diesel::ConsumerResult;
    ///
    /// let result: diesel::QueryResult<()> = ConsumerResult::from_result(Err(diesel::NotFound));
    /// assert_eq!(result, Err(diesel::NotFound));
    /// ```
    fn from_result(result: Result<Self::Answer, Self::Error>) -> Self;
}

impl<A: ConsumerAnswer, E: HandlerError> ConsumerResult for Result<A, E> {
    type Answer = A;
    type Error = E;

    fn into_result(self) -> Self {
        self
    }

    fn from_result(result: Self) -> Self {
        result
    }
}

/// What a duplicate gives.
pub fn duplicate<R: ConsumerResult>() -> R {
    R::from_result(Ok(R::Answer::duplicate()))
}

/// An error of the library, as the consumer returns it.
pub fn fail<R: ConsumerResult>(error: Error) -> R {
    R::from_result(Err(error.into()))
}

/// The end after a refused transition: there is nothing left to do if it was applied before, and the message is consumed.
async fn refuse<R, C>(consumption: Consumption<'_, C>, error: Error) -> R
where
    R: ConsumerResult,
    C: IdempotentConnection,
{
    let result = if error.is_already_applied() {
        Ok(R::Answer::already_applied())
    } else {
        Err(error.into())
    };
    R::from_result(consumption.settle(result).await)
}

/// For `async fn`.
pub mod asynchronous {
    use super::{
        Async, Claimed, ConsumerResult, Consumption, Delivered, EntityKey, Error,
        FlavoredConnection, Intent, MessageId, RequestHash, StateColumn, Subscription, claimed,
    };

    /// The mark. Its future borrows the connection alone, so that it is `Send` whatever the message is.
    pub fn begin<'c, R, C>(
        db: &'c mut C,
        subscription: &Subscription,
        id: &MessageId,
        intent: Option<&Intent>,
        message: &dyn RequestHash,
    ) -> impl Future<Output = Result<Claimed<'c, C>, Error>> + use<'c, R, C>
    where
        R: ConsumerResult,
        C: FlavoredConnection<Async>,
    {
        claimed(db, Delivered::new(subscription, id, intent, message))
    }

    /// The transition, before the body.
    pub async fn transition<S, C, const N: usize>(
        consumption: &mut Consumption<'_, C>,
        to: S,
        from: &[S; N],
        id: impl EntityKey,
    ) -> Result<(), Error>
    where
        S: StateColumn,
        C: FlavoredConnection<Async>,
    {
        let key = id.into_values();
        consumption.advance(&to.from(*from), key).await
    }

    /// The end after a refused transition.
    pub async fn refuse<R, C>(consumption: Consumption<'_, C>, error: Error) -> R
    where
        R: ConsumerResult,
        C: FlavoredConnection<Async>,
    {
        super::refuse(consumption, error).await
    }

    /// The end after the body.
    pub async fn finish<R, C>(consumption: Consumption<'_, C>, result: R) -> R
    where
        R: ConsumerResult,
        C: FlavoredConnection<Async>,
    {
        R::from_result(consumption.settle(result.into_result()).await)
    }
}

/// For `fn`.
pub mod blocking {
    use super::{
        Blocking, Claimed, ConsumerResult, Consumption, Delivered, EntityKey, Error,
        FlavoredConnection, Intent, MessageId, RequestHash, StateColumn, Subscription, claimed,
        run_blocking,
    };

    /// The mark.
    pub fn begin<'c, R, C>(
        db: &'c mut C,
        subscription: &Subscription,
        id: &MessageId,
        intent: Option<&Intent>,
        message: &dyn RequestHash,
    ) -> Result<Claimed<'c, C>, Error>
    where
        R: ConsumerResult,
        C: FlavoredConnection<Blocking>,
    {
        let delivered = Delivered::new(subscription, id, intent, message);
        run_blocking(claimed(db, delivered))
    }

    /// The transition, before the body.
    pub fn transition<S, C, const N: usize>(
        consumption: &mut Consumption<'_, C>,
        to: S,
        from: &[S; N],
        id: impl EntityKey,
    ) -> Result<(), Error>
    where
        S: StateColumn,
        C: FlavoredConnection<Blocking>,
    {
        let key = id.into_values();
        run_blocking(consumption.advance(&to.from(*from), key))
    }

    /// The end after a refused transition.
    pub fn refuse<R, C>(consumption: Consumption<'_, C>, error: Error) -> R
    where
        R: ConsumerResult,
        C: FlavoredConnection<Blocking>,
    {
        run_blocking(super::refuse(consumption, error))
    }

    /// The end after the body.
    pub fn finish<R, C>(consumption: Consumption<'_, C>, result: R) -> R
    where
        R: ConsumerResult,
        C: FlavoredConnection<Blocking>,
    {
        R::from_result(run_blocking(consumption.settle(result.into_result())))
    }
}

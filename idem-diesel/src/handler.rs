//! What the attribute writes: calls of these functions, and nothing of the protocol.

#![expect(
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    reason = "called by generated code, which hands over what it has and returns what it gets"
)]

use idem_core::answer::Answer;
use idem_core::request_hash::Encoder;
use idem_core::{Intent, Operation, RequestHash};

use crate::connection::{Async, Blocking, FlavoredConnection, IdempotentConnection, run_blocking};
use crate::driver::Driver;
use crate::error::{Error, is_conflict};
use crate::execution::{Claimed, Execution, Replay, claim};
use crate::guard::Request;
use crate::transition::{EntityKey, StateColumn};

/// What an idempotent handler returns: `Result<A, E>`, also through an alias.
///
/// ```
/// use idem_diesel::HandlerResult;
///
/// let result: diesel::QueryResult<u8> = HandlerResult::from_result(Ok(7));
/// assert_eq!(result.into_result(), Ok(7));
/// ```
#[diagnostic::on_unimplemented(
    message = "an idempotent handler returns `Result<T, E>`, not `{Self}`",
    label = "write `Result<T, E>` here",
    note = "`T` derives serde::Serialize and serde::Deserialize, or is an `Outcome` or a `Verdict` of such types",
    note = "`E` has `impl From<idem_diesel::Error>`; `diesel::result::Error` has it"
)]
pub trait HandlerResult {
    /// The answer.
    type Answer: Answer;
    /// The error.
    type Error: HandlerError;

    /// The result itself.
    ///
    /// ```
    /// use idem_diesel::HandlerResult;
    ///
    /// assert_eq!(HandlerResult::into_result(diesel::QueryResult::Ok(7)), Ok(7));
    /// ```
    fn into_result(self) -> Result<Self::Answer, Self::Error>;

    /// The handler's type of a result.
    ///
    /// ```
    /// use idem_diesel::HandlerResult;
    ///
    /// let result: diesel::QueryResult<u8> = HandlerResult::from_result(Err(diesel::NotFound));
    /// assert_eq!(result, Err(diesel::NotFound));
    /// ```
    fn from_result(result: Result<Self::Answer, Self::Error>) -> Self;
}

impl<A: Answer, E: HandlerError> HandlerResult for Result<A, E> {
    type Answer = A;
    type Error = E;

    fn into_result(self) -> Self {
        self
    }

    fn from_result(result: Self) -> Self {
        result
    }
}

/// The error of an idempotent handler: made from [`Error`].
///
/// ```
/// use idem_diesel::{Error, ErrorKind, HandlerError};
///
/// #[derive(Debug, thiserror::Error)]
/// #[error(transparent)]
/// struct ShopError(#[from] Error);
///
/// fn as_handlers_do<E: HandlerError>(error: Error) -> E {
///     error.into()
/// }
///
/// let error: ShopError = as_handlers_do(ErrorKind::Mismatch.into());
/// assert_eq!(Error::find(&error).map(|found| found.kind()), Some(&ErrorKind::Mismatch));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of an idempotent handler",
    label = "this error cannot hold what the library reports",
    note = "write `impl From<idem_diesel::Error> for {Self}`, or with thiserror a variant `#[error(transparent)] Idempotency(#[from] idem_diesel::Error)`"
)]
pub trait HandlerError: From<Error> {}

#[diagnostic::do_not_recommend]
impl<E: From<Error>> HandlerError for E {}

/// Several parameters, hashed as a struct with these fields.
pub struct Fields<'a>(pub &'a [(&'a str, &'a dyn RequestHash)]);

impl RequestHash for Fields<'_> {
    fn encode(&self, into: &mut Encoder) {
        into.structure(|fields| {
            for (name, value) in self.0 {
                fields.field(name, *value);
            }
        });
    }
}

/// The answer of a replay, as the handler returns it.
pub fn replay<R: HandlerResult>(replay: Replay<R::Answer>) -> R {
    R::from_result(replay.answer())
}

/// An error of the library, as the handler returns it.
pub fn fail<R: HandlerResult>(error: Error) -> R {
    R::from_result(Err(error.into()))
}

/// For `async fn`.
pub mod asynchronous {
    use super::{
        Answer, Async, Claimed, EntityKey, Error, Execution, FlavoredConnection, HandlerResult,
        Intent, Operation, RequestHash, Retries, RetryableError, StateColumn, claim,
    };

    /// The claim. Its future borrows the connection alone, so that it is `Send` whatever the request is.
    pub fn begin<'c, R, C>(
        db: &'c mut C,
        intent: Option<&Intent>,
        operation: &Operation,
        request: &dyn RequestHash,
    ) -> impl Future<Output = Result<Claimed<'c, C, R::Answer>, Error>> + use<'c, R, C>
    where
        R: HandlerResult,
        C: FlavoredConnection<Async>,
    {
        let request = super::request::<R>(intent, operation, request);
        claim(db, request)
    }

    /// The transition, before the body.
    pub async fn transition<S, C, A, const N: usize>(
        execution: &mut Execution<'_, C, A>,
        to: S,
        from: &[S; N],
        id: impl EntityKey,
    ) -> Result<(), Error>
    where
        S: StateColumn,
        C: FlavoredConnection<Async>,
        A: Answer,
    {
        let key = id.into_values();
        execution.advance(&to.from(*from), key).await
    }

    /// The end after a refused transition.
    pub async fn refuse<R, C>(execution: Execution<'_, C, R::Answer>, error: Error) -> R
    where
        R: HandlerResult,
        C: FlavoredConnection<Async>,
    {
        execution.give_up().await;
        super::fail(error)
    }

    /// The end after the body.
    pub async fn finish<R, C>(execution: Execution<'_, C, R::Answer>, result: R) -> R
    where
        R: HandlerResult,
        C: FlavoredConnection<Async>,
    {
        R::from_result(execution.settle_and_look(result.into_result()).await.0)
    }

    /// The end after a refused transition; `None`: it was a conflict, and the body may run again.
    pub async fn refuse_or_retry<R, C>(
        execution: Execution<'_, C, R::Answer>,
        error: Error,
        retries: &mut Retries,
    ) -> Option<R>
    where
        R: HandlerResult<Error: RetryableError>,
        C: FlavoredConnection<Async>,
    {
        super::refuse_or_retry(execution, error, retries).await
    }

    /// The end after the body; `None`: it met a conflict, and may run again.
    pub async fn finish_or_retry<R, C>(
        execution: Execution<'_, C, R::Answer>,
        result: R,
        retries: &mut Retries,
    ) -> Option<R>
    where
        R: HandlerResult<Error: RetryableError>,
        C: FlavoredConnection<Async>,
    {
        super::finish_or_retry(execution, result, retries).await
    }
}

/// For `fn`.
pub mod blocking {
    use super::{
        Answer, Blocking, Claimed, EntityKey, Error, Execution, FlavoredConnection, HandlerResult,
        Intent, Operation, RequestHash, Retries, RetryableError, StateColumn, claim, run_blocking,
    };

    /// The claim.
    pub fn begin<'c, R, C>(
        db: &'c mut C,
        intent: Option<&Intent>,
        operation: &Operation,
        request: &dyn RequestHash,
    ) -> Result<Claimed<'c, C, R::Answer>, Error>
    where
        R: HandlerResult,
        C: FlavoredConnection<Blocking>,
    {
        run_blocking(claim(db, super::request::<R>(intent, operation, request)))
    }

    /// The transition, before the body.
    pub fn transition<S, C, A, const N: usize>(
        execution: &mut Execution<'_, C, A>,
        to: S,
        from: &[S; N],
        id: impl EntityKey,
    ) -> Result<(), Error>
    where
        S: StateColumn,
        C: FlavoredConnection<Blocking>,
        A: Answer,
    {
        let key = id.into_values();
        run_blocking(execution.advance(&to.from(*from), key))
    }

    /// The end after a refused transition.
    pub fn refuse<R, C>(execution: Execution<'_, C, R::Answer>, error: Error) -> R
    where
        R: HandlerResult,
        C: FlavoredConnection<Blocking>,
    {
        run_blocking(execution.give_up());
        super::fail(error)
    }

    /// The end after the body.
    pub fn finish<R, C>(execution: Execution<'_, C, R::Answer>, result: R) -> R
    where
        R: HandlerResult,
        C: FlavoredConnection<Blocking>,
    {
        R::from_result(run_blocking(execution.settle(result.into_result())))
    }

    /// The end after a refused transition; `None`: it was a conflict, and the body may run again.
    pub fn refuse_or_retry<R, C>(
        execution: Execution<'_, C, R::Answer>,
        error: Error,
        retries: &mut Retries,
    ) -> Option<R>
    where
        R: HandlerResult<Error: RetryableError>,
        C: FlavoredConnection<Blocking>,
    {
        run_blocking(super::refuse_or_retry(execution, error, retries))
    }

    /// The end after the body; `None`: it met a conflict, and may run again.
    pub fn finish_or_retry<R, C>(
        execution: Execution<'_, C, R::Answer>,
        result: R,
        retries: &mut Retries,
    ) -> Option<R>
    where
        R: HandlerResult<Error: RetryableError>,
        C: FlavoredConnection<Blocking>,
    {
        run_blocking(super::finish_or_retry(execution, result, retries))
    }
}

/// The error of a handler whose body may run again: a conflict in it is found through `source()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a handler with `retries`",
    label = "a conflict inside of this error cannot be found",
    note = "`retries` looks for conflicts through `source()`: implement `std::error::Error` for it, without borrowed fields"
)]
pub trait RetryableError: std::error::Error + 'static {}

#[diagnostic::do_not_recommend]
impl<E: std::error::Error + 'static> RetryableError for E {}

/// How often a body may still run again, and after which pauses.
pub struct Retries(backon::ExponentialBackoff);

impl Retries {
    /// So many times, after pauses of 5 to 10 ms, twice that, and so on, up to a second.
    pub fn new(times: usize) -> Self {
        let pauses = backon::ExponentialBuilder::new()
            .with_min_delay(std::time::Duration::from_millis(5))
            .with_max_delay(std::time::Duration::from_secs(1))
            .with_jitter()
            .with_max_times(times);
        Self(backon::BackoffBuilder::build(pauses))
    }
}

async fn finish_or_retry<R, C>(
    execution: Execution<'_, C, R::Answer>,
    result: R,
    retries: &mut Retries,
) -> Option<R>
where
    R: HandlerResult<Error: RetryableError>,
    C: IdempotentConnection,
{
    let (result, met_conflict) = execution.settle_and_look(result.into_result()).await;
    let is_conflict = match &result {
        Ok(_) => false,
        Err(error) => met_conflict || is_conflict(error),
    };
    if is_conflict && let Some(pause) = retries.0.next() {
        <C::Inner as Driver>::pause(pause).await;
        return None;
    }
    Some(R::from_result(result))
}

async fn refuse_or_retry<R, C>(
    execution: Execution<'_, C, R::Answer>,
    error: Error,
    retries: &mut Retries,
) -> Option<R>
where
    R: HandlerResult<Error: RetryableError>,
    C: IdempotentConnection,
{
    let result = R::from_result(Err(error.into()));
    finish_or_retry(execution, result, retries).await
}

fn request<R: HandlerResult>(
    intent: Option<&Intent>,
    operation: &Operation,
    request: &dyn RequestHash,
) -> Result<Request, Error> {
    Request::new(operation, intent, request, R::Answer::MAY_FAIL)
}

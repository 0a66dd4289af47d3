//! How a handler is called: on a blocking connection or an async one, alone or racing, and what its errors say.

use std::error::Error as StdError;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Barrier;
use std::task::Poll;
use std::time::Duration;

use diesel::result::{DatabaseErrorKind, Error as DieselError};
use idem_core::{Advice, ErrorKind, Intent};

use crate::error::Error;

/// A future of the user's, which need not be `Send`: everything runs in the task of the test.
pub(super) type Pending<'s, T> = Pin<Box<dyn Future<Output = T> + 's>>;

/// Makes connections.
pub(super) trait Connect<C> {
    fn connect<'s>(&'s self) -> Pending<'s, C>
    where
        C: 's;
}

/// Makes the request of a scenario.
pub(super) trait MakeRequest<C, R> {
    fn make<'s>(&'s self, db: &'s mut C) -> Pending<'s, R>
    where
        R: 's;
}

/// Makes another request of one.
pub(super) type Other<'a, R> = Box<dyn Fn(&R) -> R + 'a>;

/// A closure of a user's that gives its value at once.
pub(super) struct AtOnce<F>(pub(super) F);

/// A closure of a user's that waits.
pub(super) struct Waiting<F>(pub(super) F);

impl<C, F: Fn() -> C> Connect<C> for AtOnce<F> {
    fn connect<'s>(&'s self) -> Pending<'s, C>
    where
        C: 's,
    {
        Box::pin(std::future::ready((self.0)()))
    }
}

impl<C, F: AsyncFn() -> C> Connect<C> for Waiting<F> {
    fn connect<'s>(&'s self) -> Pending<'s, C>
    where
        C: 's,
    {
        Box::pin(async move { (self.0)().await })
    }
}

impl<C, R, F: Fn(&mut C) -> R> MakeRequest<C, R> for AtOnce<F> {
    fn make<'s>(&'s self, db: &'s mut C) -> Pending<'s, R>
    where
        R: 's,
    {
        Box::pin(std::future::ready((self.0)(db)))
    }
}

impl<C, R, F: AsyncFn(&mut C) -> R> MakeRequest<C, R> for Waiting<F> {
    fn make<'s>(&'s self, db: &'s mut C) -> Pending<'s, R>
    where
        R: 's,
    {
        Box::pin(async move { (self.0)(db).await })
    }
}

/// Why a call gave no answer.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The error and its sources.
    pub(super) text: String,
    /// What the library said, if it was the library.
    pub(super) kind: Option<ErrorKind>,
    /// When the same call may be made again.
    pub(super) retry_after: Option<Duration>,
}

impl Refusal {
    pub(super) fn of(error: impl Into<Box<dyn StdError>>) -> Self {
        let error: Box<dyn StdError> = error.into();
        let found = Error::find(error.as_ref());
        let retry_after = match found.map(idem_core::Error::advice) {
            Some(Advice::RetrySameKey { after }) => Some(after),
            Some(_) => None,
            None => is_conflict(error.as_ref()).then_some(Duration::ZERO),
        };
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            let line = error.to_string();
            // A transparent wrapper says the same once more.
            if !text.ends_with(&line) {
                text = format!("{text}: {line}");
            }
            source = error.source();
        }
        Self {
            text,
            kind: found.map(|error| error.kind().clone()),
            retry_after,
        }
    }
}

/// Whether a statement of the body met a concurrent transaction.
fn is_conflict(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(DieselError::DatabaseError(DatabaseErrorKind::SerializationFailure, _)) =
            error.downcast_ref()
        {
            return true;
        }
        next = error.source();
    }
    false
}

/// Calls a handler.
pub(super) trait Caller<C, R, A> {
    /// Whether a call is a future, which can be dropped.
    const IS_ASYNC: bool;

    async fn call(&self, db: &mut C, intent: &Intent, request: &R) -> Result<A, Refusal>;

    /// One call on each connection, at once.
    async fn race(&self, dbs: Vec<C>, intent: &Intent, request: &R) -> Vec<Result<A, Refusal>>;
}

/// A handler that is a `fn`.
pub(super) struct Blocking<H>(pub(super) H);

/// A handler that is an `async fn`.
pub(super) struct Asynchronous<H>(pub(super) H);

impl<C, R, A, H> Caller<C, R, A> for Blocking<H>
where
    C: Send,
    R: Sync,
    A: Send,
    H: Fn(&mut C, &Intent, &R) -> Result<A, Refusal> + Sync,
{
    const IS_ASYNC: bool = false;

    async fn call(&self, db: &mut C, intent: &Intent, request: &R) -> Result<A, Refusal> {
        (self.0)(db, intent, request)
    }

    async fn race(&self, dbs: Vec<C>, intent: &Intent, request: &R) -> Vec<Result<A, Refusal>> {
        let barrier = Barrier::new(dbs.len());
        std::thread::scope(|scope| {
            let start = |mut db: C| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    (self.0)(&mut db, intent, request)
                })
            };
            let threads: Vec<_> = dbs.into_iter().map(start).collect();
            threads
                .into_iter()
                .map(|thread| match thread.join() {
                    Ok(called) => called,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
                .collect()
        })
    }
}

impl<C, R, A, H> Caller<C, R, A> for Asynchronous<H>
where
    H: AsyncFn(&mut C, &Intent, &R) -> Result<A, Refusal>,
{
    const IS_ASYNC: bool = true;

    async fn call(&self, db: &mut C, intent: &Intent, request: &R) -> Result<A, Refusal> {
        (self.0)(db, intent, request).await
    }

    async fn race(&self, dbs: Vec<C>, intent: &Intent, request: &R) -> Vec<Result<A, Refusal>> {
        let start = |mut db: C| async move { (self.0)(&mut db, intent, request).await };
        all(dbs.into_iter().map(start).collect()).await
    }
}

/// Polls all futures in turn until all are done.
async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures
        .into_iter()
        .map(|future| (Box::pin(future), None))
        .collect();
    std::future::poll_fn(|context| {
        for (future, output) in &mut futures {
            if output.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *output = Some(value);
            }
        }
        if futures.iter().all(|(_, output)| output.is_some()) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    futures
        .into_iter()
        .filter_map(|(_, output)| output)
        .collect()
}

/// Polls a future at most `polls` times, then drops it. `None`: it was dropped before it was done.
pub(super) async fn poll_at_most<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        left = left.saturating_sub(1);
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            // Without a poll left there is nothing to wait for.
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

//! The boundaries of a call by name, and what a test lets happen at each. Without the feature `fault-injection` nothing can.

use crate::error::Error;

/// How a call goes from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pace {
    /// As it does in production: statements that need no answer before the next are sent together, on connections that can.
    Together,
    /// One by one, so that the boundaries between them can be reached.
    Apart,
}

/// A boundary of a call: the place between two of its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Point {
    /// Nothing was sent yet.
    BeforeBegin,
    /// The transaction is open and has the key's locks, if nobody else has them; the read comes next. Only [apart](Pace::Apart).
    AfterBegin,
    /// It is known whether the key has a row, and what is in it.
    AfterRead,
    /// The key is won: nobody has it, or its expired row was taken over.
    AfterClaim,
    /// The savepoint is open, if there is one; the guard comes next, or the body.
    BeforeGuard,
    /// The entity is in its new state; the body comes next.
    AfterGuard,
    /// The body has ended with an answer; the store comes next.
    AfterBody,
    /// The answer is stored; COMMIT comes next. Only [apart](Pace::Apart).
    AfterStore,
    /// COMMIT was answered; the caller knows nothing yet.
    AfterCommit,
}

impl Point {
    /// Every boundary, in the order in which a call comes to them.
    pub const ALL: [Self; 9] = [
        Self::BeforeBegin,
        Self::AfterBegin,
        Self::AfterRead,
        Self::AfterClaim,
        Self::BeforeGuard,
        Self::AfterGuard,
        Self::AfterBody,
        Self::AfterStore,
        Self::AfterCommit,
    ];
}

#[cfg(not(feature = "fault-injection"))]
pub(crate) fn pace(_: &'static str) -> Pace {
    Pace::Together
}

#[cfg(not(feature = "fault-injection"))]
pub(crate) async fn reach(_: Point, _: &'static str) -> Result<(), Error> {
    Ok(())
}

#[cfg(feature = "fault-injection")]
pub use armed::{Armed, Fault, arm};
#[cfg(feature = "fault-injection")]
pub(crate) use armed::{pace, reach};

#[cfg(feature = "fault-injection")]
mod armed {
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

    use idem_core::ErrorKind;

    use super::{Error, Pace, Point};

    /// What happens at a boundary.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Fault {
        /// Nothing: the call goes on.
        None,
        /// The step fails.
        Error,
        /// The step panics.
        Panic,
        /// The step never ends, so that the call can be dropped there.
        Hang,
    }

    type Hook = Arc<dyn Fn(Point) -> Fault + Send + Sync>;

    type Hooks = HashMap<&'static str, (Pace, Hook)>;

    fn hooks() -> MutexGuard<'static, Hooks> {
        static HOOKS: OnceLock<Mutex<Hooks>> = OnceLock::new();
        HOOKS
            .get_or_init(Mutex::default)
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks `hook` at every boundary of the operation's calls, in this process, until the value is dropped.
    pub fn arm(
        operation: &'static str,
        pace: Pace,
        hook: impl Fn(Point) -> Fault + Send + Sync + 'static,
    ) -> Armed {
        hooks().insert(operation, (pace, Arc::new(hook)));
        Armed(operation)
    }

    /// While it lives, the hook is asked.
    #[must_use = "the hook is asked while this lives"]
    pub struct Armed(&'static str);

    impl Drop for Armed {
        fn drop(&mut self) {
            hooks().remove(self.0);
        }
    }

    pub(crate) fn pace(operation: &'static str) -> Pace {
        hooks()
            .get(operation)
            .map_or(Pace::Together, |(pace, _)| *pace)
    }

    pub(crate) async fn reach(point: Point, operation: &'static str) -> Result<(), Error> {
        let hook = hooks().get(operation).cloned();
        match hook.map_or(Fault::None, |(_, hook)| hook(point)) {
            Fault::None => Ok(()),
            Fault::Error => Err(idem_core::Error::new(ErrorKind::Database)
                .with_source(format!("injected at {point:?}"))
                .into()),
            Fault::Panic => panic!("injected at {point:?}"),
            Fault::Hang => std::future::pending().await,
        }
    }
}

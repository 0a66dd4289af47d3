//! How much is done: enough for figures, or just enough to see that everything still works.

use std::time::Duration;

/// How much is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// For figures.
    Full,
    /// For `tests/run`.
    Smoke,
}

impl Effort {
    /// Rounds that count. An even number, so that each side is first equally often.
    pub(crate) fn rounds(self) -> u32 {
        match self {
            Self::Full => 10,
            Self::Smoke => 1,
        }
    }

    /// Calls of one connection in one round.
    pub(crate) fn calls(self, full: u32) -> u32 {
        match self {
            Self::Full => full,
            Self::Smoke => 5,
        }
    }

    /// Rows that are there before.
    pub(crate) fn rows(self, full: u32) -> u32 {
        match self {
            Self::Full => full,
            Self::Smoke => 2000,
        }
    }

    /// How long one side of a pair lasts where time is fixed and calls are counted.
    pub(crate) fn window(self) -> Duration {
        match self {
            Self::Full => Duration::from_secs(5),
            Self::Smoke => Duration::from_millis(200),
        }
    }

    /// The same where what comes of it shows only over time.
    pub(crate) fn long_window(self) -> Duration {
        match self {
            Self::Full => Duration::from_secs(20),
            Self::Smoke => Duration::from_millis(400),
        }
    }
}

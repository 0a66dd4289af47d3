//! The sweep of the outbox: events that were delivered long enough ago, with their deliveries.
//!
//! An index holds what was delivered in the order of that, so there is no walk: those that were delivered first go first, until a
//! batch is not full.

use std::time::Instant;

use diesel::QueryResult;
use idem_core::Retention;

use super::run::Changed;
use crate::driver::Driver;
use crate::store::{ForgetDelivered, ForgetEvents, LookForDelivered};

/// How far a run has come in the outbox.
#[derive(Debug)]
pub(super) struct Sweep {
    kept_for: Retention,
    started: Instant,
    is_over: bool,
}

impl Sweep {
    pub(super) fn new(kept_for: Retention, started: Instant) -> Self {
        Self {
            kept_for,
            started,
            is_over: false,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// A batch was not full, so nothing is left but what somebody else held.
    pub(super) fn pass(&mut self) {
        self.is_over = true;
    }

    /// Is anything due?
    pub(super) async fn look<D: Driver>(&self, db: &mut D) -> QueryResult<bool> {
        let seconds_after_now = self.seconds_after_now();
        let due = db.texts(LookForDelivered { seconds_after_now }).await?;
        Ok(!due.is_empty())
    }

    /// Deletes deliveries, and then the events that these were for. It counts the deliveries: somebody may have removed an event by hand.
    pub(super) async fn change<D: Driver>(&self, db: &mut D, at_most: u32) -> QueryResult<Changed> {
        let delivered = ForgetDelivered {
            seconds_after_now: self.seconds_after_now(),
            at_most: at_most.into(),
        };
        let keys: Vec<String> = db.texts(delivered).await?.into_iter().flatten().collect();
        let forgotten = Changed::count(keys.len());
        if forgotten > 0 {
            let keys = format!("[{}]", keys.join(","));
            db.execute(ForgetEvents { keys }).await?;
        }
        Ok(Changed {
            forgotten,
            blanked: 0,
        })
    }

    /// What comes of age while it runs is for the next run, so that a run ends however fast events are delivered.
    fn seconds_after_now(&self) -> i64 {
        let kept_for = self.kept_for.as_secs();
        let age = kept_for.saturating_add(self.started.elapsed().as_secs());
        // A retention is at most ten years, so this comes nowhere near the bounds of i64.
        -i64::try_from(age).unwrap_or(i64::MAX)
    }
}

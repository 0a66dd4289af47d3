//! Which calls run on which connection of this process: so that a call inside itself is told so instead of running again, and so that
//! an event knows what caused it.
//!
//! Nothing in the database tells: a key's lock is the session's, and the record of a new key is written at its end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::store::RowKey;

type Running = HashMap<usize, Vec<Run>>;

/// A call that runs.
struct Run {
    number: u64,
    /// A call without an intent has none.
    key: Option<RowKey>,
    /// Whether an event was published in it, or in a call inside of it.
    has_published: bool,
}

fn running() -> MutexGuard<'static, Running> {
    static RUNNING: OnceLock<Mutex<Running>> = OnceLock::new();
    RUNNING
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// A connection by its place in memory, where it stays as long as a call borrows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(usize);

impl Place {
    pub(crate) fn of<D>(db: &mut D) -> Self {
        Self(std::ptr::from_mut(db).addr())
    }

    /// Whether a call of the key runs on the connection.
    pub(crate) fn is_running(self, key: &RowKey) -> bool {
        running()
            .get(&self.0)
            .is_some_and(|runs| runs.iter().any(|run| run.key.as_ref() == Some(key)))
    }

    /// Notes that an event is published on the connection, and gives the key of the innermost call that has one.
    pub(crate) fn publish(self) -> Option<RowKey> {
        let mut running = running();
        let runs = running.get_mut(&self.0)?;
        for run in &mut *runs {
            run.has_published = true;
        }
        runs.iter().rev().find_map(|run| run.key.clone())
    }

    /// A connection without a transaction runs nothing, whatever was never told to have ended.
    pub(crate) fn forget(self) {
        running().remove(&self.0);
    }

    /// Until the value is dropped, a call runs on the connection, under this key if it has one.
    pub(crate) fn run(self, key: Option<RowKey>) -> Runs {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        running().entry(self.0).or_default().push(Run {
            number,
            key,
            has_published: false,
        });
        Runs {
            place: self,
            number,
        }
    }
}

/// While it lives, its call runs.
#[derive(Debug)]
pub(crate) struct Runs {
    place: Place,
    number: u64,
}

impl Runs {
    /// Whether an event was published in the call.
    pub(crate) fn has_published(&self) -> bool {
        let running = running();
        let mut runs = running.get(&self.place.0).into_iter().flatten();
        runs.any(|run| run.number == self.number && run.has_published)
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let mut running = running();
        if let Some(runs) = running.get_mut(&self.place.0) {
            runs.retain(|run| run.number != self.number);
            if runs.is_empty() {
                running.remove(&self.place.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use idem_core::{IdempotencyKey, Intent, Tenant};

    use super::*;

    fn key(key: &str) -> RowKey {
        let tenant = Tenant::shared("acme").unwrap();
        RowKey::of(&Intent::new(tenant, IdempotencyKey::new(key).unwrap()).bind("orders.pay"))
    }

    #[test]
    fn a_key_runs_on_its_connection_until_it_ends() {
        let (mut one, mut other) = (1_u8, 2_u8);
        let (place, elsewhere) = (Place::of(&mut one), Place::of(&mut other));
        let runs = place.run(Some(key("a")));
        let inside = place.run(Some(key("b")));
        assert!(place.is_running(&key("a")) && place.is_running(&key("b")));
        assert!(!place.is_running(&key("c")) && !elsewhere.is_running(&key("a")));
        drop(inside);
        assert!(place.is_running(&key("a")) && !place.is_running(&key("b")));
        drop(runs);
        assert!(!place.is_running(&key("a")));
    }

    #[test]
    fn an_event_is_caused_by_the_innermost_call_that_has_a_key() {
        let mut one = 1_u8;
        let place = Place::of(&mut one);
        assert_eq!(place.publish(), None);
        let outer = place.run(Some(key("a")));
        assert!(!outer.has_published());
        let inner = place.run(None);
        assert_eq!(place.publish(), Some(key("a")));
        assert!(outer.has_published() && inner.has_published());
        assert!(!place.run(Some(key("b"))).has_published());
    }

    #[test]
    fn what_never_ended_is_forgotten_with_the_transaction() {
        let mut one = 1_u8;
        let place = Place::of(&mut one);
        std::mem::forget(place.run(Some(key("a"))));
        place.forget();
        assert!(!place.is_running(&key("a")));
    }
}

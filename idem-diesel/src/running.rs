//! Which keys run on which connection of this process, so that a call inside itself is told so instead of running again.
//!
//! Nothing in the database tells: a key's lock is the session's, and the record of a new key is written at its end.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::store::RowKey;

type Running = HashMap<usize, Vec<RowKey>>;

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
            .is_some_and(|keys| keys.contains(key))
    }

    /// A connection without a transaction runs nothing, whatever was never told to have ended.
    pub(crate) fn forget(self) {
        running().remove(&self.0);
    }

    /// Until the value is dropped, the key runs on the connection.
    pub(crate) fn run(self, key: RowKey) -> Runs {
        running().entry(self.0).or_default().push(key.clone());
        Runs { place: self, key }
    }
}

/// While it lives, its key runs.
#[derive(Debug)]
pub(crate) struct Runs {
    place: Place,
    key: RowKey,
}

impl Drop for Runs {
    fn drop(&mut self) {
        let mut running = running();
        if let Some(keys) = running.get_mut(&self.place.0) {
            keys.retain(|key| *key != self.key);
            if keys.is_empty() {
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
        let runs = place.run(key("a"));
        let inside = place.run(key("b"));
        assert!(place.is_running(&key("a")) && place.is_running(&key("b")));
        assert!(!place.is_running(&key("c")) && !elsewhere.is_running(&key("a")));
        drop(inside);
        assert!(place.is_running(&key("a")) && !place.is_running(&key("b")));
        drop(runs);
        assert!(!place.is_running(&key("a")));
    }

    #[test]
    fn what_never_ended_is_forgotten_with_the_transaction() {
        let mut one = 1_u8;
        let place = Place::of(&mut one);
        std::mem::forget(place.run(key("a")));
        place.forget();
        assert!(!place.is_running(&key("a")));
    }
}

//! Who wants to know at once that an event was published: relays in this process.
//!
//! They are woken after the COMMIT of a call that published something, never before, and once for each call. A relay that misses it finds the event when it
//! looks the next time, so nothing depends on it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

type Hook = dyn Fn() + Send + Sync;

fn hooks() -> MutexGuard<'static, Vec<Weak<Hook>>> {
    static HOOKS: OnceLock<Mutex<Vec<Weak<Hook>>>> = OnceLock::new();
    HOOKS
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// As long as it lives, its function is called after each commit that published an event.
#[must_use = "a hook that is dropped is never called"]
pub struct WakeUp {
    _hook: Arc<Hook>,
}

/// Calls `hook` after every commit, in this process, of a call that published an event: once for each call, never before the commit, and never for a rollback.
///
/// It should do no more than wake somebody. Events that are published in a plain transaction, outside of a call of this library, wake nobody, and neither do those of
/// other processes: a relay looks by itself from time to time.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use diesel::{Connection, SqliteConnection};
/// # use idem_diesel::*;
/// # #[derive(serde::Serialize)]
/// # struct Paid;
/// # impl Event for Paid {
/// #     fn event_type(&self) -> &'static str { "order.paid" }
/// #     fn aggregate_type(&self) -> &'static str { "order" }
/// #     fn aggregate_id(&self) -> String { "7".to_owned() }
/// # }
/// # const PAY: Operation = Operation::new("orders.pay", Retention::literal("48h"));
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # ensure_schema(&mut db)?;
/// # let intent = Intent::new(Tenant::shared("acme")?, IdempotencyKey::new("k")?);
/// let woken = Arc::new(AtomicU32::new(0));
/// let counter = Arc::clone(&woken);
/// let wake_up = outbox::on_publish(move || { counter.fetch_add(1, Ordering::Relaxed); });
/// idempotent_sync(&mut db, &intent, &PAY, &7, |db, _| outbox::publish(db, &Paid).map(drop))?;
/// assert_eq!(woken.load(Ordering::Relaxed), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn on_publish(hook: impl Fn() + Send + Sync + 'static) -> WakeUp {
    let hook: Arc<Hook> = Arc::new(hook);
    let mut hooks = hooks();
    hooks.retain(|hook| hook.strong_count() > 0);
    hooks.push(Arc::downgrade(&hook));
    WakeUp { _hook: hook }
}

/// A commit was answered in whose call an event was published.
pub(crate) fn after_publish() {
    // They are called without the lock: what they do is not ours.
    let awake: Vec<Arc<Hook>> = hooks().iter().filter_map(Weak::upgrade).collect();
    for hook in awake {
        hook();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_hook_is_called_until_it_is_dropped() {
        let count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&count);
        let wake_up = on_publish(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        after_publish();
        let seen = count.load(Ordering::Relaxed);
        assert!(seen >= 1);
        drop(wake_up);
        after_publish();
        assert_eq!(count.load(Ordering::Relaxed), seen);
    }
}

//! The protocol of one key as a model, small enough that every one of its states is visited.
//!
//! Tests against a database sample the orders in which things can happen; the model has all of them, for one key, three callers and
//! a handful of faults. It is one page of each:
//!
//! * [`database`]: what PostgreSQL does for the protocol. A committed row, transactions, snapshots, the key's lock, the purge.
//! * [`caller`]: who calls, with what, and how far each call is.
//! * [`call`]: the steps of a call, as they stand in `guard.rs` and `claim.rs` of idem-diesel.
//! * [`policy`]: the decision, which is [`idem_core::decide`](fn@idem_core::decide) itself.
//! * [`system`]: what can happen next in a state, faults and time included.
//! * [`promise`] and [`witness`]: what must hold in every state, and what must happen in some.
//! * [`mutant`]: mistakes that somebody could make, each of which must break a promise.
//! * [`report`]: the visit of every state, and what came of it.
//!
//! | step of the protocol | in the model |
//! |---|---|
//! | begin, try the key's lock | [`Phase::Lock`] |
//! | read: the snapshot, then the time and the decision | [`Phase::Read`], [`Phase::Decide`] |
//! | takeover by compare-and-set | [`Phase::TakeOver`] |
//! | wait for the key's lock, with a deadline | [`Phase::Wait`] |
//! | savepoint, transition, body, RELEASE or ROLLBACK TO, store, COMMIT | [`Phase::Run`] with a [`Step`] each |
//! | the body has ended the transaction by itself: mark the key | [`Phase::Mark`] |
//! | COMMIT has happened, its answer is on the way | [`Phase::Answer`] |
//!
//! A body may send COMMIT by itself, which gives the key's lock back. What is not promised is what happens before the key is marked: a
//! call that reads it then sees no row and begins, and if nobody stores an answer or a mark, it is free. An answer is refused behind a
//! mark, so nothing is stored twice; only another body that commits by itself asks nobody.
//!
//! What is not in it: leases, savepoints inside a transaction of the caller's, isolation above READ COMMITTED (whose snapshot is older than
//! the lock: a body may run in vain), a mark that the database refuses, an operator who forgets a key, and SQLite, where one
//! write lock leaves fewer orders than here.
//!
//! ```
//! use idem_model::{Protocol, State};
//! use stateright::Model as _;
//!
//! let protocol = Protocol::as_built();
//! let mut actions = Vec::new();
//! protocol.actions(&State::default(), &mut actions);
//! // Each of the three may call first, or time may pass.
//! assert_eq!(actions.len(), 4);
//! ```

pub mod call;
pub mod caller;
pub mod database;
pub mod mutant;
pub mod policy;
pub mod promise;
pub mod report;
pub mod system;
pub mod witness;

pub use call::Step;
pub use caller::{Phase, Told, Who};
pub use database::{Database, Row};
pub use mutant::Mutant;
pub use system::{Action, Protocol, State};

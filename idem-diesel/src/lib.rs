//! (the crate documentation is the README)

pub mod connection;
mod dialect;
mod driver;
mod error;
mod execution;
mod guard;
mod handler;
pub mod migrations;
mod store;
mod texts;
mod transaction;
pub mod transition;

pub use connection::{Async, Blocking, Flavor, FlavoredConnection, IdempotentConnection, Run};
pub use dialect::Dialect;
pub use error::Error;
pub use execution::{Claimed, Execution, Replay, begin, idempotent, idempotent_sync};
pub use handler::{HandlerError, HandlerResult};
pub use idem_core::{
    Advice, Answer, BoundIntent, DownstreamKey, ErrorKind, HashError, Horizon, IdempotencyKey,
    Intent, Invalid, Isolation, KeyState, Late, Nested, Operation, Outcome, Policy, RequestDigest,
    RequestHash, Retention, StateMachine, StoredAnswer, Tenant, Transition, Verdict, answer,
    decide, limits, request_hash, state_machine,
};
pub use idem_macros::{RequestHash, StateMachine, idempotent};
pub use migrations::{check_schema, ensure_schema};
pub use transition::{ApplyTransition, EntityKey, StateColumn};

/// What the macros write; not for use by hand, and free to change.
#[doc(hidden)]
pub mod __private {
    pub use crate::handler::{Fields, asynchronous, blocking, fail, replay};
    pub use crate::transition::column_holds_state;
    pub use diesel;
    pub use idem_core::state_machine::has_edge;
}

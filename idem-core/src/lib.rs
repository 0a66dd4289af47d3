//! The protocol of idempotent commands, without a database, a clock or async.
//!
//! One page of words; each is a type of this crate, a column of the tables, and the word the errors use.
//!
//! * An [`Intent`] is what one caller means to do once: a [`Tenant`] and an [`IdempotencyKey`].
//! * An [`Operation`] is the stable name of a command, with how long its answers are kept ([`Retention`]) and its
//!   [`Policy`]. Tenant and operation are the scope in which a key is unique.
//! * [`RequestHash`] turns a command into canonical bytes; their [`RequestDigest`] tells a retry from another request.
//! * A [`Record`] is what the database holds for a key. [`decide`](fn@decide) is the one policy: record, call and time in, the next
//!   thing to do out.
//! * An [`Answer`] is what a handler returns and a replay returns again; [`Outcome`] says which of the two it was, and a
//!   [`Verdict`] may be a final failure, which is replayed too.
//! * A [`Subscription`] receives messages by their [`MessageId`]; [`Consumed`] says what became of one. An [`Event`] is what a handler tells others.
//! * [`StateMachine`] names the states of an entity and the transitions between them.
//! * [`Error`] says what happened, whether the key is free, and what to do next.
//!
//! Applications use these through `idem-diesel`, which re-exports them. Without a database around them they read so:
//!
//! ```
//! use std::time::SystemTime;
//! use idem_core::decide::{Call, Decision, Lapsed, decide};
//! use idem_core::{IdempotencyKey, Intent, Operation, RequestDigest, Retention, Tenant};
//!
//! const PAY: Operation = Operation::new("orders.pay", Retention::literal("48h"));
//!
//! let intent = Intent::new(Tenant::of("acme", "alice")?, IdempotencyKey::new("order-17")?);
//! let request_hashes = [RequestDigest::of(&("order-17", 500))?];
//! let late = PAY.policy().get_late();
//! let call = Call { request_hashes: &request_hashes, late, lapsed: Lapsed::Park };
//!
//! // The key holds nothing yet, so the handler runs and may charge under a key of its own.
//! assert_eq!(decide(None, &call, SystemTime::now()), Decision::Execute);
//! assert_eq!(intent.bind(PAY.name()).downstream("stripe.charge").as_str().len(), 35);
//! # Ok::<(), idem_core::Error>(())
//! ```

pub mod answer;
pub mod decide;
pub mod downstream;
pub mod error;
pub mod event;
mod hex;
pub mod intent;
pub mod invalid;
pub mod key;
pub mod limits;
pub mod message;
pub mod operation;
pub mod outcome;
pub mod policy;
pub mod record;
pub mod request_hash;
pub mod retention;
pub mod scope;
pub mod state_machine;

pub use answer::{Answer, StoredAnswer};
pub use decide::{Call, Decision, Rejection, decide};
pub use downstream::DownstreamKey;
pub use error::{Advice, Error, ErrorKind, KeyState};
pub use event::Event;
pub use intent::{BoundIntent, Intent};
pub use invalid::Invalid;
pub use key::IdempotencyKey;
pub use message::{Consumed, MessageId, Subscription};
pub use operation::Operation;
pub use outcome::{Outcome, Verdict};
pub use policy::{Isolation, Late, Nested, Policy};
pub use record::{Lease, Record, RecordState, Writer};
pub use request_hash::{HashError, RequestDigest, RequestHash};
pub use retention::{Horizon, Retention};
pub use scope::Tenant;
pub use state_machine::{StateMachine, Transition};

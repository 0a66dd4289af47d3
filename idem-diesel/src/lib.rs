#![doc = include_str!("../../README.md")]

pub mod admin;
mod after_commit;
#[cfg(feature = "async-postgres")]
mod canceller;
mod claim;
pub mod connection;
mod consumer;
mod dialect;
mod driver;
mod error;
mod execution;
#[doc(hidden)]
pub mod fault;
mod guard;
mod handler;
pub mod inbox;
pub mod migrations;
pub mod outbox;
pub mod retention;
mod running;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod texts;
mod transaction;
pub mod transition;
pub mod upsert;
mod wake;

pub use after_commit::AfterCommit;
#[cfg(feature = "async-postgres")]
pub use canceller::Canceller;
pub use connection::{Async, Blocking, Flavor, FlavoredConnection, IdempotentConnection, Run};
pub use consumer::ConsumerResult;
pub use dialect::Dialect;
pub use error::Error;
pub use execution::{Claimed, Execution, Replay, begin, idempotent, idempotent_sync};
pub use handler::{HandlerError, HandlerResult};
pub use idem_core::{
    Advice, Answer, BoundIntent, Consumed, DownstreamKey, ErrorKind, Event, HashError, Horizon,
    IdempotencyKey, Intent, Invalid, Isolation, KeyState, Late, MessageId, Nested, Operation,
    Outcome, Policy, RequestDigest, RequestHash, Retention, StateMachine, StoredAnswer,
    Subscription, Tenant, Transition, Verdict, answer, decide, limits, message, request_hash,
    state_machine,
};

/// Derives the request hash of a command; see the trait [`RequestHash`](trait@RequestHash) for what counts and for its attributes.
///
/// ```
/// use idem_diesel::{RequestDigest, RequestHash};
///
/// #[derive(RequestHash)]
/// struct Pay {
///     order_id: i64,
///     note: Option<String>,
///     #[request_hash(skip)]
///     trace_id: String,
/// }
///
/// let pay = |trace_id: &str| Pay { order_id: 7, note: None, trace_id: trace_id.to_owned() };
/// assert_eq!(RequestDigest::of(&pay("a"))?, RequestDigest::of(&pay("b"))?);
/// # Ok::<(), idem_diesel::HashError>(())
/// ```
pub use idem_macros::RequestHash;

/// Derives the states of an entity and the transitions between them.
///
/// On the enum, `#[state_machine(…)]`, all optional:
///
/// | word | meaning |
/// |---|---|
/// | `table = orders, column = status` | where the state is stored; gives the Diesel mapping, `transition(…)` and [`ApplyTransition`] |
/// | `key(tenant_id, order_id)` | the columns that select one entity; `id` if left out |
/// | `sql_type = path` | the column is a native enum of this Diesel type; text if left out |
/// | `rename_all = "…"` | how a state's name is stored; `snake_case` if left out |
/// | `crate = path` | where this library is, if it was renamed |
///
/// On each state, `#[state(…)]`: `initial` on one of them, `to(A, B)` with the states that may follow, or `terminal`, and
/// `rename = "…"` for its stored text. A state that cannot be reached, and one that is not there, do not compile.
///
/// ```
/// use idem_diesel::StateMachine;
///
/// #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
/// enum OrderStatus {
///     #[state(initial, to(Paid, Cancelled))]
///     Pending,
///     #[state(terminal)]
///     Paid,
///     #[state(terminal, rename = "gone")]
///     Cancelled,
/// }
///
/// assert!(OrderStatus::Pending.can_become(OrderStatus::Paid));
/// assert_eq!(OrderStatus::Cancelled.name(), "gone");
/// ```
pub use idem_macros::StateMachine;

/// Makes a handler idempotent: its effects and its answer commit together, once for each intent.
///
/// The function stays as it is written: its signature is the one that is called, and its body returns the declared type. One
/// parameter is the connection (the only `&mut` besides `self`, or `conn = name`), one the intent (by its type, or `intent = name`);
/// all others are the request. Inside the body the connection is in the transaction, and the intent is a [`BoundIntent`].
///
/// | word | meaning |
/// |---|---|
/// | `scope = "orders.pay"` | the operation's stable name: part of every stored key, so it outlives renames of the function |
/// | `ttl = "48h"`, `ttl = PATH` | how long the answer is kept: a literal (`s`, `m`, `h`, `d`, `w`), or a `const` [`Retention`] |
/// | `short_ttl = "reason"` | why less than 24 h is enough; without it that does not compile |
/// | `transition(A => B, id = expr)` | the entity `id` goes from `A` to `B` before the body; `A1 \| A2 => B` from one of several |
/// | `retries = 3` | after a conflict with a concurrent transaction the call starts over, so often at most; what the body takes by value is cloned |
/// | `policy = PATH` | a `const` [`Policy`]: waiting, late retries, limits |
/// | `conn = name`, `intent = name` | which parameters these are, where it cannot be seen |
/// | `crate = path` | where this library is, if it was renamed |
///
/// With `retries`, a conflict is looked for in the error and behind it, through `source()`. An error that shows `diesel::result::Error` as itself
/// (`#[error(transparent)]`) hides it there; one that has it as its source (`#[error("…")]` with `#[from]` or `#[source]`) does not.
///
/// On a parameter: `#[idempotent(skip)]` is not part of the request; `#[idempotent(name = "…")]` is its name in the hash, for
/// patterns and renamed parameters. One request parameter is hashed as it is, several as a struct with these names.
///
/// It returns `Result<A, E>`: `A` is a serde type, an [`Outcome`], or a [`Verdict`]; `E` has `From<idem_diesel::Error>`.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::{Error, IdempotencyKey, Intent, Late, Outcome, Policy, Tenant, idempotent};
///
/// const LATE: Policy = Policy::new().late(Late::Execute);
///
/// #[idempotent(scope = "notes.add", ttl = "7d", policy = LATE)]
/// fn add(
///     db: &mut SqliteConnection,
///     intent: &Intent,
///     text: &str,
///     #[idempotent(skip)] trace_id: &str,
/// ) -> Result<Outcome<usize>, Error> {
///     let _ = trace_id;
///     let query = diesel::sql_query("INSERT INTO notes VALUES (?)").bind::<diesel::sql_types::Text, _>(text);
///     Ok(query.execute(db)?.into())
/// }
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # idem_diesel::ensure_schema(&mut db)?;
/// # diesel::sql_query("CREATE TABLE notes (text TEXT)").execute(&mut db)?;
/// let intent = Intent::new(Tenant::of("acme", "alice")?, IdempotencyKey::new("note-1")?);
/// assert!(!add(&mut db, &intent, "hello", "trace 1")?.is_replayed());
/// assert!(add(&mut db, &intent, "hello", "trace 2")?.is_replayed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// What the body returns, after everything was rolled back; or an [`Error`] made into `E`: see [`ErrorKind`] for each.
///
/// # Cancellation
///
/// Dropping the future of an `async fn` rolls back and frees the key, as [`begin`] says; once COMMIT is on the wire, everything may
/// have happened, and the same key finds out. A panic in the body is the same as a drop.
pub use idem_macros::idempotent;

/// Makes a handler of messages idempotent: its effects and the mark of the message commit together, once for each subscriber.
///
/// The function stays as it is written, as with [`#[idempotent]`](macro@idempotent). One parameter is the connection, one the
/// [`MessageId`]; all others are the message. One may be the intent, [`Intent::of_message`], for keys that downstream calls keep on every delivery.
///
/// | word | meaning |
/// |---|---|
/// | `subscriber = "billing"` | the subscriber's stable name: part of every stored row |
/// | `retention = "7d"`, `retention = PATH` | how long a processed message is remembered: a literal, or a `const` [`Retention`] |
/// | `redelivery = "24h"`, `redelivery = PATH` | how long the broker may deliver a message again; a shorter retention does not compile |
/// | `subscription = PATH` | a `const` [`Subscription`] in place of these three and `policy` |
/// | `transition(A => B, id = expr)` | the entity `id` goes from `A` to `B` before the body; if it is there already, the message is consumed without running |
/// | `policy = PATH` | a `const` [`Policy`]: how long a second copy waits for the first, isolation, idle time, tenant setting |
/// | `conn = name`, `message_id = name`, `intent = name` | which parameters these are, where it cannot be seen |
/// | `crate = path` | where this library is, if it was renamed |
///
/// On a parameter: `#[consumer(skip)]` is not part of the message's hash; `#[consumer(name = "…")]` is its name in it.
///
/// It returns `Result<Consumed<T>, E>`, or `Result<(), E>` when it does not matter what became of the message; `E` has `From<idem_diesel::Error>`.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::{Consumed, Error, MessageId, consumer};
///
/// #[consumer(subscriber = "billing", retention = "7d", redelivery = "24h")]
/// fn on_order_paid(db: &mut SqliteConnection, id: &MessageId, order_id: i64) -> Result<Consumed, Error> {
///     diesel::sql_query(format!("INSERT INTO invoices VALUES ({order_id})")).execute(db)?;
///     Ok(Consumed::Processed(()))
/// }
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # idem_diesel::ensure_schema(&mut db)?;
/// # diesel::sql_query("CREATE TABLE invoices (order_id BIGINT)").execute(&mut db)?;
/// let id = MessageId::new("evt-17")?;
/// assert_eq!(on_order_paid(&mut db, &id, 7)?, Consumed::Processed(()));
/// assert_eq!(on_order_paid(&mut db, &id, 7)?, Consumed::Duplicate);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// What the body returns, after everything was rolled back; or what [`inbox::begin`] and [`inbox::Consumption::finish`] say.
///
/// # Cancellation
///
/// Dropping the future of an `async fn` rolls back, and the message is as new; once COMMIT is on the wire, the redelivery finds out.
pub use idem_macros::consumer;

/// Derives what an event says of itself for the outbox; see the trait [`Event`](trait@Event).
///
/// `#[event(type = "…", aggregate_type = "…")]` on a struct, and `#[event(aggregate_id)]` on the field whose text is the aggregate's id. On an enum
/// `aggregate_type` stands on the enum, `type` on each variant, and `aggregate_id` on a field of each.
///
/// ```
/// use idem_diesel::Event;
/// use serde::Serialize;
///
/// #[derive(Serialize, Event)]
/// #[event(type = "order.placed", aggregate_type = "order")]
/// struct OrderPlaced {
///     #[event(aggregate_id)]
///     order_id: i64,
///     cents: i64,
/// }
///
/// let event = OrderPlaced { order_id: 7, cents: 500 };
/// assert_eq!((event.event_type(), event.aggregate_id().as_str()), ("order.placed", "7"));
/// ```
pub use idem_macros::Event;

pub use migrations::{check_schema, ensure_schema};
pub use transition::{ApplyTransition, EntityKey, StateColumn};
pub use upsert::{
    GotOrInserted, UniqueKey, Upserted, get_or_insert, get_or_insert_sync, upsert, upsert_sync,
};

/// What the macros write; not for use by hand, and free to change.
#[doc(hidden)]
pub mod __private {
    /// For `#[consumer]`.
    pub mod consumer {
        pub use crate::consumer::{asynchronous, blocking, duplicate, fail};
    }
    pub use crate::handler::{Fields, Retries, asynchronous, blocking, fail, replay};
    pub use crate::transition::column_holds_state;
    pub use diesel;
    pub use idem_core::state_machine::has_edge;
}

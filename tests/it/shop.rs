//! A small shop: its tables, its commands, and what its handlers answer. The handlers themselves are in `backend`.

use std::sync::{Condvar, Mutex, MutexGuard};

use idem_diesel::{RequestHash, StateMachine};
use serde::{Deserialize, Serialize};

diesel::table! {
    accounts { id -> BigInt, balance_cents -> BigInt, }
}

diesel::table! {
    orders { id -> BigInt, account_id -> BigInt, amount_cents -> BigInt, status -> Text, }
}

diesel::table! {
    payments { id -> BigInt, order_id -> BigInt, amount_cents -> BigInt, }
}

/// The tables; `{auto}` is the type of a key that the database counts.
pub const TABLES: &str = "
    CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance_cents BIGINT NOT NULL);
    CREATE TABLE orders (id {auto}, account_id BIGINT NOT NULL, amount_cents BIGINT NOT NULL, status TEXT NOT NULL);
    CREATE TABLE payments (id {auto}, order_id BIGINT NOT NULL, amount_cents BIGINT NOT NULL);
    CREATE TABLE effects (name TEXT NOT NULL);
    INSERT INTO accounts VALUES (1, 10000);
";

#[derive(Debug, Clone, RequestHash)]
pub struct CreateOrder {
    pub account_id: i64,
    pub amount_cents: i64,
}

#[derive(Debug, Clone, RequestHash)]
pub struct ChangeOrder {
    pub order_id: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub id: i64,
    pub amount_cents: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub order_id: i64,
    pub status: String,
    pub balance_cents: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decline {
    TooExpensive { limit_cents: i64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(table = orders, column = status)]
pub enum OrderStatus {
    #[state(initial, to(Paid, Cancelled))]
    Pending,
    #[state(to(Shipped, Refunded))]
    Paid,
    #[state(to(Refunded))]
    Shipped,
    #[state(terminal)]
    Refunded,
    #[state(terminal)]
    Cancelled,
}

#[derive(Debug, thiserror::Error)]
pub enum ShopError {
    #[error(transparent)]
    Idempotency(#[from] idem_diesel::Error),
    #[error("the database refused")]
    Database(#[from] diesel::result::Error),
    #[error("the shop said no")]
    No,
}

impl ShopError {
    /// What the library said.
    pub fn kind(&self) -> Option<&idem_diesel::ErrorKind> {
        Some(idem_diesel::Error::find(self)?.kind())
    }
}

/// Holds a body back until the test lets it go on.
#[derive(Debug)]
pub struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    entered: usize,
    is_open: bool,
}

impl Gate {
    /// A wait that is longer than this is a failure.
    const AT_MOST: std::time::Duration = std::time::Duration::from_secs(60);

    /// Bodies pass at once.
    pub fn open() -> Self {
        let gate = Self::closed();
        gate.release();
        gate
    }

    /// Bodies stop until [`release`](Self::release).
    pub fn closed() -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// In a body: says that it is there, and waits.
    pub fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.entered += 1;
        self.changed.notify_all();
        self.block_while(state, |state| !state.is_open);
    }

    /// In a test: waits until a body is at the gate.
    pub fn wait_until_entered(&self) {
        let state = self.state.lock().unwrap();
        self.block_while(state, |state| state.entered == 0);
    }

    /// Sync and async bodies wait in the same way: the runtime gets another thread meanwhile.
    fn block_while(&self, state: MutexGuard<'_, GateState>, is_so: impl Fn(&GateState) -> bool) {
        tokio::task::block_in_place(|| {
            let waited = self
                .changed
                .wait_timeout_while(state, Self::AT_MOST, |state| is_so(state))
                .unwrap();
            assert!(!waited.1.timed_out(), "nobody comes to the gate");
        });
    }

    /// How many bodies came.
    pub fn entered(&self) -> usize {
        self.state.lock().unwrap().entered
    }

    /// Lets all bodies go on.
    pub fn release(&self) {
        self.state.lock().unwrap().is_open = true;
        self.changed.notify_all();
    }
}

/// What a body does, statement by statement, as a test tells it.
#[derive(Debug, Clone, RequestHash)]
pub struct Script {
    /// Run in this order.
    pub statements: Vec<String>,
    /// Whether an error of a statement is ignored, as a careless handler would.
    pub swallows: bool,
    /// What the body ends with.
    pub ending: Ending,
    /// An order that is paid before the body, if it is pending.
    pub pays: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, RequestHash)]
pub enum Ending {
    Answer,
    Error,
    Panic,
    /// Never, so that the call can only be dropped. Sync handlers have no such thing.
    Hang,
}

impl Script {
    /// Writes `name` into `effects`, and answers.
    pub fn effect(name: &str) -> Self {
        Self::of([format!("INSERT INTO effects (name) VALUES ('{name}')")])
    }

    /// These statements, and an answer.
    pub fn of<S: Into<String>>(statements: impl IntoIterator<Item = S>) -> Self {
        Self {
            statements: statements.into_iter().map(Into::into).collect(),
            swallows: false,
            ending: Ending::Answer,
            pays: None,
        }
    }

    pub fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }

    pub fn paying(self, order_id: i64) -> Self {
        Self {
            pays: Some(order_id),
            ..self
        }
    }

    pub fn swallowing(self) -> Self {
        Self {
            swallows: true,
            ..self
        }
    }
}

//! The shop: its tables, its commands, the states of an order, and what its handlers answer.

use std::sync::Arc;

use diesel::prelude::*;
use idem_diesel::{RequestHash, StateMachine};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

diesel::table! {
    accounts { id -> BigInt, balance_cents -> BigInt, }
}

diesel::table! {
    orders { id -> BigInt, account_id -> BigInt, amount_cents -> BigInt, status -> Text, }
}

diesel::table! {
    payments { id -> BigInt, order_id -> BigInt, amount_cents -> BigInt, }
}

/// The same tables in SQL. `{id}` is a number that the database counts; each backend spells it its own way.
pub(crate) const TABLES: &str = "
    CREATE TABLE accounts (
        id {id},
        balance_cents BIGINT NOT NULL
    );
    CREATE TABLE orders (
        id {id},
        account_id BIGINT NOT NULL REFERENCES accounts (id),
        amount_cents BIGINT NOT NULL,
        status TEXT NOT NULL
    );
    CREATE TABLE payments (
        id {id},
        order_id BIGINT NOT NULL REFERENCES orders (id),
        amount_cents BIGINT NOT NULL
    );
";

// What callers ask for. `RequestHash` lets the library notice a key that comes back with another request.

#[derive(Debug, RequestHash)]
pub(crate) struct CreateOrder {
    pub(crate) account_id: i64,
    pub(crate) amount_cents: i64,
}

#[derive(Debug, RequestHash)]
pub(crate) struct PayOrder {
    pub(crate) order_id: i64,
}

#[derive(Debug, RequestHash)]
pub(crate) struct ShipOrder {
    pub(crate) order_id: i64,
}

#[derive(Debug, RequestHash)]
pub(crate) struct RefundOrder {
    pub(crate) order_id: i64,
}

/// The life of an order: `pending`, `paid` and so on, in the column as in answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, StateMachine)]
#[serde(rename_all = "snake_case")]
#[state_machine(table = orders, column = status)]
pub(crate) enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(to(Shipped, Refunded))]
    Paid,
    #[state(to(Refunded))]
    Shipped,
    #[state(terminal)]
    Refunded,
}

// What callers are answered. An answer is stored as JSON, so that a retry gets the same one.

#[derive(Debug, PartialEq, Queryable, Selectable, Serialize, Deserialize)]
#[diesel(table_name = orders)]
pub(crate) struct Order {
    pub(crate) id: i64,
    pub(crate) account_id: i64,
    pub(crate) amount_cents: i64,
    pub(crate) status: OrderStatus,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Payment {
    pub(crate) order_id: i64,
    pub(crate) amount_cents: i64,
    /// What is left on the account.
    pub(crate) balance_cents: i64,
}

/// A "no" for good: it is an answer, too, and a retry gets it again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Decline {
    InsufficientFunds { missing_cents: i64 },
}

/// Why there is no answer. Whether the same key may be tried again, `idem_diesel::Error` says with `advice()`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShopError {
    #[error(transparent)]
    Idempotency(#[from] idem_diesel::Error),
    #[error(transparent)]
    Database(#[from] diesel::result::Error),
    #[error("the fraud check cannot be reached")]
    FraudCheckUnreachable,
}

/// A service outside, which looks at an order before it is paid.
///
/// It is asked a question and changes nothing, so a call that is rolled back leaves nothing behind there.
#[derive(Debug)]
pub(crate) enum FraudCheck {
    Passes,
    Unreachable,
    /// Says that it was asked, and never answers.
    Hangs(Arc<Notify>),
}

impl FraudCheck {
    pub(crate) async fn ask(&self, _order: &Order) -> Result<(), ShopError> {
        match self {
            Self::Passes => Ok(()),
            Self::Unreachable => Err(ShopError::FraudCheckUnreachable),
            Self::Hangs(asked) => {
                asked.notify_one();
                std::future::pending().await
            }
        }
    }
}

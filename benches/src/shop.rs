//! The measured work: an account pays for an order, in two statements.

pub(crate) mod database;
pub(crate) mod outbox;

use std::sync::Arc;

use anyhow::Result;
use idem_diesel::{Event, IdempotencyKey, Intent, MessageId, RequestHash, Tenant};
use serde::{Deserialize, Serialize};

pub(crate) use self::tables::{
    accounts, api_idempotency, article_idempotency, orders, processed_messages,
};

/// The operation of every handler here.
pub(crate) const PLACE_ORDER: &str = "orders.place";

/// The subscriber of every consumer here.
pub(crate) const SUBSCRIBER: &str = "orders";

/// Accounts of one client. No two clients share one, so that they wait for the machine alone.
const ACCOUNTS_OF_ONE: u32 = 100;

/// The most clients there are.
pub(crate) const CLIENTS: u32 = 8;

/// What one order costs.
pub(crate) const PRICE_CENTS: i64 = 5;

/// The command.
#[derive(Debug, Clone, Serialize, RequestHash)]
pub(crate) struct PlaceOrder {
    pub(crate) account_id: i64,
    pub(crate) amount_cents: i64,
    pub(crate) currency: String,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Placed {
    pub(crate) order_id: i64,
    pub(crate) balance_cents: i64,
}

/// What happened. Its aggregate is the account, so that each has several events.
#[derive(Debug, Clone, Serialize, Event)]
#[event(type = "order.placed", aggregate_type = "account")]
pub(crate) struct OrderPlaced {
    #[event(aggregate_id)]
    pub(crate) account_id: i64,
    pub(crate) order_id: i64,
    pub(crate) amount_cents: i64,
}

/// What one call needs, made before the time is taken.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) intent: Intent,
    pub(crate) message_id: MessageId,
    pub(crate) cmd: PlaceOrder,
}

impl Work {
    /// The `number`th call of a client, under a key that nobody had before.
    pub(crate) fn new(client: u32, number: u32) -> Result<Self> {
        let account = 1 + client * ACCOUNTS_OF_ONE + number % ACCOUNTS_OF_ONE;
        let key = IdempotencyKey::random();
        Ok(Self {
            message_id: MessageId::new(key.as_str())?,
            intent: Intent::new(Tenant::of("acme", "alice")?, key),
            cmd: PlaceOrder {
                account_id: account.into(),
                amount_cents: PRICE_CENTS,
                currency: "EUR".to_owned(),
            },
        })
    }

    /// So many calls for each of so many clients.
    pub(crate) fn lists(clients: u32, calls: u32) -> Result<Vec<Arc<[Self]>>> {
        (0..clients)
            .map(|client| (0..calls).map(|number| Self::new(client, number)).collect())
            .collect()
    }
}

mod tables {
    #![allow(missing_docs, reason = "the macro writes public items")]

    diesel::table! {
        accounts { id -> BigInt, balance_cents -> BigInt, }
    }

    diesel::table! {
        orders { id -> BigInt, account_id -> BigInt, amount_cents -> BigInt, currency -> Text, }
    }

    // What a replay needs of the library's table.
    diesel::table! {
        api_idempotency (tenant_id, operation, idempotency_key) {
            tenant_id -> Text,
            operation -> Text,
            idempotency_key -> Text,
            request_hash -> Text,
            state -> Text,
            attempt -> Integer,
            owner -> Nullable<Text>,
            lease_expires_at -> Nullable<Timestamptz>,
            expires_at -> Timestamptz,
            codec -> Nullable<Text>,
            response_body -> Nullable<Binary>,
        }
    }

    // What a duplicate needs of it.
    diesel::table! {
        processed_messages (subscriber_id, message_id) {
            subscriber_id -> Text,
            message_id -> Text,
            request_hash -> Nullable<Text>,
            state -> Text,
        }
    }

    diesel::table! {
        article_idempotency (tenant_id, operation, idempotency_key) {
            tenant_id -> Text,
            operation -> Text,
            idempotency_key -> Text,
            request_hash -> Text,
            state -> Text,
            response_body -> Nullable<Jsonb>,
            expires_at -> Timestamptz,
        }
    }
}

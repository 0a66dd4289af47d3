//! The shop and its warehouse: tables, the command, and the event between the two.

use idem_diesel::{Event, RequestHash, Retention, Subscription};
use serde::{Deserialize, Serialize};

diesel::table! {
    orders { id -> BigInt, quantity -> BigInt, }
}

diesel::table! {
    stock { id -> BigInt, quantity -> BigInt, }
}

diesel::table! {
    shipments { id -> BigInt, order_id -> BigInt, }
}

diesel::table! {
    deliveries { id -> BigInt, message_id -> Text, }
}

/// The same tables in SQL. `{id}` is a number that the database counts; each backend spells it its own way.
pub(crate) const TABLES: &str = "
    CREATE TABLE orders (id {id}, quantity BIGINT NOT NULL);
    CREATE TABLE stock (id BIGINT PRIMARY KEY, quantity BIGINT NOT NULL);
    CREATE TABLE shipments (id {id}, order_id BIGINT NOT NULL);
    CREATE TABLE deliveries (id {id}, message_id TEXT NOT NULL);
";

/// What a customer asks for.
#[derive(Debug, RequestHash)]
pub(crate) struct PlaceOrder {
    pub(crate) quantity: i64,
}

/// What the warehouse is told. It is hashed, too: another content under the id of a processed message is an error.
#[derive(Debug, Serialize, Deserialize, Event, RequestHash)]
#[event(type = "order.placed", aggregate_type = "order")]
pub(crate) struct OrderPlaced {
    #[event(aggregate_id)]
    pub(crate) order_id: i64,
    pub(crate) quantity: i64,
}

/// Who listens.
pub(crate) const WAREHOUSE: Subscription = Subscription::new("warehouse", Retention::literal("7d"))
    .redelivered_for(Retention::literal("24h"));

/// What goes wrong in a handler.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShopError {
    #[error(transparent)]
    Idempotency(#[from] idem_diesel::Error),
    #[error("the database refused a statement")]
    Database(#[from] diesel::result::Error),
}

/// What a stream, an exchange or a queue of this run is called.
pub(crate) fn name_at_broker(place: &str) -> String {
    place.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

//! What the tests stand on: servers and files that are made for one test and gone after it.
//!
//! A test that cannot have its database fails, with a text that says how to get one. Nothing here skips.

mod folder;
mod server_url;
mod watched;

pub mod broker;
pub mod locale;
pub mod nats;
pub mod pgbouncer;
pub mod postgres;
pub mod proxy;
pub mod rabbitmq;
pub mod sqlite;

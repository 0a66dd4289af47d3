//! All integration tests in one binary: they link once and share one PostgreSQL server.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]
#![expect(
    unreachable_pub,
    reason = "the modules of a test binary are nobody's interface"
)]

mod answers;
mod backend;
mod calls;
mod cancelling;
mod consume_loops;
mod consumers;
mod costs;
mod drops;
mod faults;
mod histories;
mod inbox;
mod languages;
mod lifetimes;
mod misuse;
mod outbox;
mod pgbouncer;
mod pools;
mod publishers;
mod relay;
mod requests;
mod retention;
mod retries;
mod schema;
mod servers;
mod shop;
mod sources;
mod surroundings;
mod testing;
mod transactions;
mod upserts;
mod waiting;

//! A crate that knows the library as `once` alone: every macro finds it through `crate = once`.

#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, clippy::all, clippy::pedantic)]

use diesel::prelude::*;
use once::{Error, Intent, Outcome, RequestHash, StateMachine};

diesel::table! {
    /// Parcels on their way.
    parcels {
        /// Which one.
        id -> BigInt,
        /// How far it is.
        status -> Text,
        /// What it weighs.
        grams -> BigInt,
    }
}

/// How far a parcel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(table = parcels, column = status, crate = ::once)]
pub enum Parcel {
    /// Ready.
    #[state(initial, to(Sent))]
    Packed,
    /// On its way.
    #[state(terminal)]
    Sent,
}

/// Sends a parcel.
#[derive(Debug, RequestHash)]
#[request_hash(crate = ::once)]
pub struct Send {
    /// Which one.
    pub parcel_id: i64,
    /// A remark that is no part of the request.
    #[request_hash(skip)]
    pub remark: &'static str,
}

/// Sends a parcel once, and answers its weight.
///
/// # Errors
///
/// What the library says, or the database.
#[once::idempotent(
    scope = "parcels.send",
    ttl = "48h",
    transition(Parcel::Packed => Parcel::Sent, id = cmd.parcel_id),
    crate = ::once
)]
pub fn send(db: &mut SqliteConnection, intent: &Intent, cmd: &Send) -> Result<Outcome<i64>, Error> {
    let grams = parcels::table
        .find(cmd.parcel_id)
        .select(parcels::grams)
        .first::<i64>(db)?;
    let heavier =
        diesel::update(parcels::table.find(cmd.parcel_id)).set(parcels::grams.eq(grams + 1));
    heavier.execute(db)?;
    Ok(grams.into())
}

#[cfg(test)]
mod tests {
    use diesel::prelude::*;
    use once::{IdempotencyKey, Intent, Outcome, Tenant};

    #[test]
    fn a_renamed_library_keeps_its_promise() -> Result<(), Box<dyn std::error::Error>> {
        let mut db = SqliteConnection::establish(":memory:")?;
        once::ensure_schema(&mut db)?;
        for sql in [
            "CREATE TABLE parcels (id BIGINT PRIMARY KEY, status TEXT NOT NULL, grams BIGINT NOT NULL)",
            "INSERT INTO parcels VALUES (1, 'packed', 500)",
        ] {
            diesel::sql_query(sql).execute(&mut db)?;
        }
        let intent = Intent::new(Tenant::shared("acme")?, IdempotencyKey::new("k")?);
        let cmd = |remark| super::Send {
            parcel_id: 1,
            remark,
        };
        let first = super::send(&mut db, &intent, &cmd("one"))?;
        let retry = super::send(&mut db, &intent, &cmd("two"))?;
        assert_eq!(first, Outcome::Executed(500));
        assert_eq!((retry.is_replayed(), retry.into_inner()), (true, 500));
        Ok(())
    }
}

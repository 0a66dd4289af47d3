//! A machine with its column: composite key, schema-qualified table, column names that differ in SQL, and the text mapping on two backends.

#![deny(warnings, unused_qualifications, clippy::all, clippy::pedantic)]
#![forbid(unsafe_code)]

use diesel::prelude::*;
use diesel::sql_types::Text;
use idem_diesel::{StateColumn, StateMachine};

mod schema {
    diesel::table! {
        shop.orders (tenant_id, id) {
            tenant_id -> Text,
            id -> BigInt,
            #[sql_name = "order status"]
            status -> Text,
        }
    }

    diesel::table! {
        parcels (id) {
            id -> BigInt,
            state -> Text,
            before -> Nullable<Text>,
        }
    }
}

use schema::parcels;

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(table = schema::orders, column = status, key(tenant_id, id))]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(table = parcels, column = state)]
enum ParcelState {
    #[state(initial, to(Sent))]
    Packed,
    #[state(terminal)]
    Sent,
}

#[derive(Debug, PartialEq, Insertable, Queryable, Selectable)]
#[diesel(table_name = parcels)]
struct Parcel {
    id: i64,
    state: ParcelState,
    before: Option<ParcelState>,
}

/// Names the backend, so that the mapping is checked for each.
fn is_mapped<S, DB>()
where
    S: StateColumn + diesel::serialize::ToSql<Text, DB> + diesel::deserialize::FromSql<Text, DB>,
    DB: diesel::backend::Backend + diesel::sql_types::HasSqlType<Text>,
{
}

fn main() -> QueryResult<()> {
    is_mapped::<OrderStatus, diesel::pg::Pg>();
    is_mapped::<OrderStatus, diesel::sqlite::Sqlite>();
    assert_eq!(OrderStatus::COLUMN, "order status");
    assert_eq!(OrderStatus::KEY, ["tenant_id", "id"]);
    assert_eq!(
        (ParcelState::COLUMN, ParcelState::KEY),
        ("state", ["id"].as_slice())
    );

    let db = &mut SqliteConnection::establish(":memory:").expect("a database in memory");
    diesel::sql_query(
        "CREATE TABLE parcels (id INTEGER PRIMARY KEY, state TEXT NOT NULL, before TEXT)",
    )
    .execute(db)?;
    let packed = Parcel {
        id: 1,
        state: ParcelState::Packed,
        before: None,
    };
    diesel::insert_into(parcels::table)
        .values(&packed)
        .execute(db)?;
    let moved = diesel::update(
        parcels::table
            .find(1)
            .filter(parcels::state.eq_any([ParcelState::Packed])),
    )
    .set((
        parcels::state.eq(ParcelState::Sent),
        parcels::before.eq(Some(&packed.state)),
    ))
    .execute(db)?;
    assert_eq!(moved, 1);
    let sent = parcels::table
        .filter(parcels::state.ne(&ParcelState::Packed))
        .select(Parcel::as_select())
        .first(db)?;
    let expected = Parcel {
        id: 1,
        state: ParcelState::Sent,
        before: Some(ParcelState::Packed),
    };
    assert_eq!(sent, expected);

    diesel::sql_query("UPDATE parcels SET state = 'lost'").execute(db)?;
    let error = parcels::table
        .select(parcels::state)
        .first::<ParcelState>(db)
        .expect_err("`lost` is no state");
    let diesel::result::Error::DeserializationError(error) = error else {
        panic!("{error:?}");
    };
    assert_eq!(
        error.source().map(ToString::to_string).as_deref(),
        Some("`lost` is no state of `ParcelState`")
    );
    Ok(())
}

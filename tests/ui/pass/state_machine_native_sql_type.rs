//! A column of a native PostgreSQL enum, used in queries as any other mapped type.

#![deny(warnings, unused_qualifications, clippy::all, clippy::pedantic)]
#![forbid(unsafe_code)]

use diesel::pg::Pg;
use diesel::prelude::*;
use idem_diesel::{StateColumn, StateMachine};

mod schema {
    pub mod sql_types {
        #[derive(diesel::sql_types::SqlType, diesel::query_builder::QueryId)]
        #[diesel(postgres_type(name = "order_status"))]
        pub struct OrderStatus;
    }

    diesel::table! {
        use diesel::sql_types::{BigInt, Nullable};
        use super::sql_types::OrderStatus;

        orders (id) {
            id -> BigInt,
            status -> OrderStatus,
            before -> Nullable<OrderStatus>,
        }
    }
}

use schema::orders;

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(table = orders, column = status, sql_type = schema::sql_types::OrderStatus)]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = orders, check_for_backend(Pg))]
struct Order {
    id: i64,
    status: OrderStatus,
    before: Option<OrderStatus>,
}

fn is_mapped<S, SqlType, DB>()
where
    S: StateColumn
        + diesel::serialize::ToSql<SqlType, DB>
        + diesel::deserialize::FromSql<SqlType, DB>,
    DB: diesel::backend::Backend + diesel::sql_types::HasSqlType<SqlType>,
{
}

fn main() {
    is_mapped::<OrderStatus, schema::sql_types::OrderStatus, Pg>();
    let order = Order {
        id: 1,
        status: OrderStatus::Paid,
        before: Some(OrderStatus::Pending),
    };
    let insert = diesel::insert_into(orders::table).values(&order);
    let sql = diesel::debug_query::<Pg, _>(&insert).to_string();
    assert!(sql.contains("[1, Paid, Pending]"), "{sql}");
    let search = orders::table
        .filter(orders::status.eq_any(vec![OrderStatus::Pending]))
        .select(Order::as_select());
    let sql = diesel::debug_query::<Pg, _>(&search).to_string();
    assert!(sql.contains(r#""status" = ANY($1)"#), "{sql}");
}

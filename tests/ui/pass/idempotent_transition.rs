//! Transitions from one and from several states, with ids from parameters and from patterns.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::idempotent;
use idem_diesel::{IdempotencyKey, Intent, RequestHash, StateMachine, Tenant, ensure_schema};

mod schema {
    diesel::table! {
        orders (id) {
            id -> BigInt,
            status -> Text,
        }
    }
}

mod status {
    use idem_diesel::StateMachine;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    #[state_machine(table = super::schema::orders, column = status)]
    pub enum OrderStatus {
        #[state(initial, to(Paid, Cancelled))]
        Pending,
        #[state(to(Cancelled))]
        Paid,
        #[state(terminal)]
        Cancelled,
    }
}

use status::OrderStatus;

#[derive(RequestHash)]
struct PayOrder {
    order_id: i64,
    note: String,
}

#[idempotent(
    scope = "pay",
    ttl = "48h",
    transition(OrderStatus::Pending => OrderStatus::Paid, id = cmd.order_id)
)]
fn pay(db: &mut SqliteConnection, intent: &Intent, cmd: &PayOrder) -> QueryResult<String> {
    sql_query("SELECT 1").execute(db)?;
    Ok(cmd.note.clone())
}

#[idempotent(
    scope = "cancel",
    ttl = "48h",
    transition(status::OrderStatus::Pending | status::OrderStatus::Paid => status::OrderStatus::Cancelled, id = _order_id),
)]
fn cancel(
    db: &mut SqliteConnection,
    intent: Option<Intent>,
    (_order_id, note): (i64, String),
) -> QueryResult<String> {
    sql_query("SELECT 1").execute(db)?;
    Ok(note)
}

fn database() -> SqliteConnection {
    let mut db = SqliteConnection::establish(":memory:").unwrap();
    ensure_schema(&mut db).unwrap();
    db
}

fn intent(key: &str) -> Intent {
    Intent::new(
        Tenant::of("acme", "alice").unwrap(),
        IdempotencyKey::new(key).unwrap(),
    )
}

fn main() {
    let db = &mut database();
    diesel::sql_query("CREATE TABLE orders (id BIGINT PRIMARY KEY, status TEXT NOT NULL)")
        .execute(db)
        .unwrap();
    diesel::sql_query("INSERT INTO orders VALUES (7, 'pending')")
        .execute(db)
        .unwrap();
    let cmd = PayOrder {
        order_id: 7,
        note: "paid".to_owned(),
    };
    assert_eq!(pay(db, &intent("1"), &cmd).unwrap(), "paid");
    assert_eq!(
        cancel(db, Some(intent("2")), (7, "cancelled".to_owned())).unwrap(),
        "cancelled"
    );
    assert_eq!(OrderStatus::INITIAL, OrderStatus::Pending);
}

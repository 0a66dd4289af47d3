//! Transitions from one and from several states, with ids from parameters and from patterns.

use diesel::prelude::*;
use diesel::sql_query;
use idem_diesel::consumer;
use idem_diesel::{Consumed, Intent, MessageId, RequestHash, StateMachine, ensure_schema};

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
struct PaymentReceived {
    order_id: i64,
    note: String,
}

#[consumer(
    subscriber = "orders",
    retention = "7d",
    transition(OrderStatus::Pending => OrderStatus::Paid, id = event.order_id)
)]
fn pay(
    db: &mut SqliteConnection,
    id: &MessageId,
    event: &PaymentReceived,
) -> QueryResult<Consumed<String>> {
    sql_query("SELECT 1").execute(db)?;
    Ok(event.note.clone().into())
}

#[consumer(
    subscriber = "orders",
    retention = "7d",
    transition(status::OrderStatus::Pending | status::OrderStatus::Paid => status::OrderStatus::Cancelled, id = _order_id),
)]
fn cancel(
    db: &mut SqliteConnection,
    id: MessageId,
    intent: Option<Intent>,
    (_order_id, note): (i64, String),
) -> QueryResult<Consumed<String>> {
    sql_query("SELECT 1").execute(db)?;
    Ok(note.into())
}

fn database() -> SqliteConnection {
    let mut db = SqliteConnection::establish(":memory:").unwrap();
    ensure_schema(&mut db).unwrap();
    db
}

fn id(id: &str) -> MessageId {
    MessageId::new(id).unwrap()
}

fn main() {
    let db = &mut database();
    diesel::sql_query("CREATE TABLE orders (id BIGINT PRIMARY KEY, status TEXT NOT NULL)")
        .execute(db)
        .unwrap();
    diesel::sql_query("INSERT INTO orders VALUES (7, 'pending')")
        .execute(db)
        .unwrap();
    let event = PaymentReceived {
        order_id: 7,
        note: "paid".to_owned(),
    };
    let paid = pay(db, &id("1"), &event).unwrap();
    assert_eq!(paid.processed().unwrap(), "paid");
    let cancelled = cancel(db, id("2"), None, (7, "cancelled".to_owned())).unwrap();
    assert_eq!(cancelled.processed().unwrap(), "cancelled");
    assert_eq!(OrderStatus::INITIAL, OrderStatus::Pending);
}

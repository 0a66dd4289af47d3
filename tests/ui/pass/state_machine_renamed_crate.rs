//! The library under another path.

mod library {
    pub use idem_diesel as idempotency;
}

use library::idempotency::StateMachine;

mod schema {
    diesel::table! {
        orders (id) {
            id -> BigInt,
            status -> Text,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[state_machine(table = schema::orders, column = status, crate = library::idempotency)]
enum OrderStatus {
    #[state(initial, to(Paid))]
    Pending,
    #[state(terminal)]
    Paid,
}

fn main() {
    assert_eq!(OrderStatus::INITIAL.name(), "pending");
    assert_eq!(
        <OrderStatus as library::idempotency::StateColumn>::COLUMN,
        "status"
    );
}

//! A machine without a table: under every lint, with an explicit representation, a raw identifier and a deprecated state.

#![deny(
    warnings,
    missing_docs,
    unused_qualifications,
    clippy::all,
    clippy::pedantic
)]
#![forbid(unsafe_code)]

use idem_diesel::StateMachine;

/// Where an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
#[repr(u8)]
pub enum OrderStatus {
    /// Waits for its payment.
    #[state(initial, to(Paid, Cancelled))]
    Pending = 10,
    /// Paid, not sent.
    #[state(to(Shipped, r#Try))]
    Paid = 20,
    /// Never to be paid.
    #[state(terminal)]
    Cancelled = 30,
    /// On its way.
    #[state(rename = "sent", terminal)]
    Shipped = 40,
    /// An attempt of an older version.
    #[deprecated]
    #[state(to(Paid))]
    r#Try = 50,
}

fn main() {
    assert_eq!(OrderStatus::NAME, "OrderStatus");
    assert_eq!(OrderStatus::INITIAL, OrderStatus::Pending);
    assert_eq!(
        OrderStatus::STATES
            .iter()
            .map(|state| state.name())
            .collect::<Vec<_>>(),
        ["pending", "paid", "cancelled", "sent", "try"]
    );
    for state in OrderStatus::STATES {
        assert_eq!(OrderStatus::from_name(state.name()), Some(*state));
    }
    assert_eq!(OrderStatus::from_name("shipped"), None);
    assert_eq!(
        OrderStatus::Pending.successors(),
        [OrderStatus::Paid, OrderStatus::Cancelled]
    );
    assert!(OrderStatus::Shipped.is_terminal());
    assert_eq!(
        OrderStatus::Paid.from(OrderStatus::Pending).undeclared(),
        None
    );
    let cancel = OrderStatus::Cancelled.from([OrderStatus::Pending, OrderStatus::Paid]);
    assert_eq!(cancel.undeclared(), Some(OrderStatus::Paid));
}

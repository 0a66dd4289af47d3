//! What a handler tells the rest of the system, through the outbox.
//!
//! ```
//! use idem_core::Event;
//! use serde::Serialize;
//!
//! #[derive(Serialize)]
//! struct OrderPlaced { order_id: i64 }
//!
//! impl Event for OrderPlaced {
//!     fn event_type(&self) -> &'static str { "order.placed" }
//!     fn aggregate_type(&self) -> &'static str { "order" }
//!     fn aggregate_id(&self) -> String { self.order_id.to_string() }
//! }
//!
//! assert_eq!(OrderPlaced { order_id: 7 }.aggregate_id(), "7");
//! ```

use serde::Serialize;

/// Something that happened to an aggregate, to be published once the transaction in which it happened has committed.
///
/// `#[derive(Event)]` writes it. The payload is the value as JSON. The three names are Debezium's `type`, `aggregatetype` and
/// `aggregateid` (<https://debezium.io/documentation/reference/stable/transformations/outbox-event-router.html>).
///
/// ```
/// # use serde::Serialize;
/// # #[derive(Serialize)]
/// # struct Paid { order_id: i64 }
/// # impl idem_core::Event for Paid {
/// #     fn event_type(&self) -> &'static str { "order.paid" }
/// #     fn aggregate_type(&self) -> &'static str { "order" }
/// #     fn aggregate_id(&self) -> String { self.order_id.to_string() }
/// # }
/// fn subject(event: &impl idem_core::Event) -> String {
///     format!("{}/{}: {}", event.aggregate_type(), event.aggregate_id(), event.event_type())
/// }
///
/// assert_eq!(subject(&Paid { order_id: 7 }), "order/7: order.paid");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event",
    label = "not an event",
    note = "derive it: `#[derive(Serialize, Event)] #[event(type = \"order.placed\", aggregate_type = \"order\")]`, with `#[event(aggregate_id)]` on a field"
)]
pub trait Event: Serialize {
    /// What happened, such as `order.placed`: 1 to 255 bytes without control characters.
    fn event_type(&self) -> &'static str;
    /// To what kind of thing, such as `order`: 1 to 255 bytes without control characters.
    fn aggregate_type(&self) -> &'static str;
    /// To which one. Events of one aggregate are published in the order of their commits.
    fn aggregate_id(&self) -> String;
}

impl<E: Event + ?Sized> Event for &E {
    fn event_type(&self) -> &'static str {
        (**self).event_type()
    }

    fn aggregate_type(&self) -> &'static str {
        (**self).aggregate_type()
    }

    fn aggregate_id(&self) -> String {
        (**self).aggregate_id()
    }
}

//! Nothing of the standard prelude is in scope where the derive expands, names are taken, and common lints are denied.

#![no_implicit_prelude]
#![deny(warnings, clippy::all, clippy::pedantic)]
#![deny(
    unused_qualifications,
    unused_lifetimes,
    single_use_lifetimes,
    missing_docs
)]
#![forbid(unsafe_code)]

extern crate idem_diesel as once;

mod events {
    #[allow(non_camel_case_types, dead_code)]
    struct str;
    #[allow(dead_code)]
    struct String;

    #[derive(::serde::Serialize, ::once::Event)]
    #[event(type = "order.placed", aggregate_type = "order", crate = ::once)]
    pub(crate) struct OrderPlaced {
        #[event(aggregate_id)]
        pub(crate) order_id: i64,
    }

    #[derive(::serde::Serialize, ::idem_diesel::Event)]
    #[event(aggregate_type = "order")]
    pub(crate) enum OrderEvent<'a> {
        #[event(type = "order.paid")]
        Paid {
            #[event(aggregate_id)]
            id: &'a i64,
        },
        #[deprecated]
        #[event(type = "order.lost")]
        Lost(#[event(aggregate_id)] i64),
    }
}

fn main() {
    use ::idem_diesel::Event as _;
    use ::std::assert_eq;

    let placed = events::OrderPlaced { order_id: 7 };
    assert_eq!(placed.aggregate_id(), "7");
    let paid = events::OrderEvent::Paid { id: &7 };
    assert_eq!(
        (paid.event_type(), paid.aggregate_type()),
        ("order.paid", "order")
    );
    #[allow(deprecated)]
    let lost = events::OrderEvent::Lost(8);
    assert_eq!(lost.aggregate_id(), "8");
}

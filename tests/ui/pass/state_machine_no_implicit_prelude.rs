//! Generated code names everything by its full path: without a prelude, among names that shadow it, and inside a function.

#![deny(warnings)]

mod schema {
    diesel::table! {
        orders (id) {
            id -> BigInt,
            status -> Text,
        }
    }
}

#[no_implicit_prelude]
mod strict {
    #[allow(dead_code)]
    mod shadows {
        pub(super) struct Option;
        pub(super) struct Result;
        pub(super) struct String;
        pub(super) mod core {}
        pub(super) mod diesel {}
        pub(super) mod idem_diesel {}
        pub(super) mod std {}
    }

    #[allow(unused_imports)]
    use self::shadows::*;
    use super::schema;

    #[derive(
        ::core::fmt::Debug,
        ::core::clone::Clone,
        ::core::marker::Copy,
        ::core::cmp::PartialEq,
        ::core::cmp::Eq,
        ::idem_diesel::StateMachine,
    )]
    #[state_machine(table = schema::orders, column = status)]
    enum OrderStatus {
        #[state(initial, to(Paid))]
        Pending,
        #[state(terminal)]
        Paid,
    }

    pub(super) fn check() {
        #[derive(
            ::core::fmt::Debug,
            ::core::clone::Clone,
            ::core::marker::Copy,
            ::core::cmp::PartialEq,
            ::core::cmp::Eq,
            ::idem_diesel::StateMachine,
        )]
        #[state_machine(table = schema::orders, column = status)]
        enum Local {
            #[state(initial, to(None))]
            Some,
            #[state(terminal)]
            None,
        }

        ::core::assert!(::idem_diesel::StateMachine::can_become(
            OrderStatus::Pending,
            OrderStatus::Paid
        ));
        ::core::assert!(::idem_diesel::StateMachine::can_become(
            Local::Some,
            Local::None
        ));
        ::core::assert_eq!(<Local as ::idem_diesel::StateColumn>::COLUMN, "status");
    }
}

fn main() {
    strict::check();
}

//! The smallest machine: the state in which an entity starts is also its end. A machine that only runs in circles has no end.

#![deny(warnings, clippy::all, clippy::pedantic)]

use idem_diesel::StateMachine;

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum Archive {
    #[state(initial, terminal)]
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
enum Light {
    #[state(initial, to(Green))]
    Red,
    #[state(to(Red))]
    Green,
}

fn main() {
    assert!(Archive::Closed.is_terminal());
    assert_eq!(Archive::from_name("closed"), Some(Archive::INITIAL));
    assert!(Light::Red.can_become(Light::Green) && Light::Green.can_become(Light::Red));
}

//! The states of a domain entity and the steps between them: what `#[derive(StateMachine)]` writes down.

use std::error::Error;
use std::fmt;
use std::fmt::Debug;

/// The states that an entity can be in, and which state may follow which.
///
/// Applications derive it on a fieldless enum; the derive refuses machines with unknown targets or unreachable states. The graph is data:
/// it decides nothing about a stored row, whose current state only the guarded `UPDATE` knows.
///
/// # Examples
///
/// ```
/// # use idem_core::state_machine::StateMachine;
/// # #[derive(Debug, Clone, Copy, PartialEq, Eq)]
/// # enum OrderStatus { Pending, Paid, Cancelled }
/// # impl StateMachine for OrderStatus {
/// #     const NAME: &'static str = "OrderStatus";
/// #     const STATES: &'static [Self] = &[Self::Pending, Self::Paid, Self::Cancelled];
/// #     const INITIAL: Self = Self::Pending;
/// #     const EDGES: &'static [(isize, isize)] = &[(0, 1), (0, 2)];
/// #     fn name(self) -> &'static str {
/// #         match self { Self::Pending => "pending", Self::Paid => "paid", Self::Cancelled => "cancelled" }
/// #     }
/// #     fn from_name(name: &str) -> Option<Self> {
/// #         Self::STATES.iter().copied().find(|state| state.name() == name)
/// #     }
/// #     fn successors(self) -> &'static [Self] {
/// #         match self { Self::Pending => &[Self::Paid, Self::Cancelled], Self::Paid | Self::Cancelled => &[] }
/// #     }
/// # }
/// // #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
/// // enum OrderStatus {
/// //     #[state(initial, to(Paid, Cancelled))] Pending,
/// //     #[state(terminal)] Paid,
/// //     #[state(terminal)] Cancelled,
/// // }
/// assert_eq!(OrderStatus::INITIAL, OrderStatus::Pending);
/// assert_eq!(OrderStatus::from_name("paid"), Some(OrderStatus::Paid));
/// assert!(OrderStatus::Pending.can_become(OrderStatus::Paid));
/// assert!(!OrderStatus::Paid.can_become(OrderStatus::Cancelled));
/// assert!(OrderStatus::Paid.is_terminal());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a state machine",
    label = "this type declares no states",
    note = "derive it on the enum of the states: `#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]`"
)]
pub trait StateMachine: Copy + Eq + Debug + Send + Sync + 'static {
    /// The name of the enum, as errors show it.
    const NAME: &'static str;

    /// Every state, in the order of declaration.
    const STATES: &'static [Self];

    /// The state in which an entity starts.
    const INITIAL: Self;

    /// The declared steps as pairs of discriminants, because a constant cannot yet compare enums: what the attribute checks while it compiles.
    #[doc(hidden)]
    const EDGES: &'static [(isize, isize)];

    /// The text that is stored for this state.
    fn name(self) -> &'static str;

    /// The state that is stored as `name`.
    fn from_name(name: &str) -> Option<Self>;

    /// The states that may follow this one, in the order of declaration in `to(…)`.
    fn successors(self) -> &'static [Self];

    /// Whether no state follows this one.
    fn is_terminal(self) -> bool {
        self.successors().is_empty()
    }

    /// Whether the step from this state to `to` is declared.
    ///
    /// No state becomes itself: the second payment of an order is not a payment.
    fn can_become(self, to: Self) -> bool {
        self.successors().contains(&to)
    }

    /// The step to this state, from one state or from any of several.
    ///
    /// A body that only learns its target while it runs applies the step itself; whether the step is declared is then known at run time
    /// ([`Transition::undeclared`]).
    ///
    /// # Examples
    ///
    /// ```
    /// # use idem_core::state_machine::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    /// # enum Order { Pending, Authorized, Paid }
    /// # impl StateMachine for Order {
    /// #     const NAME: &'static str = "Order";
    /// #     const STATES: &'static [Self] = &[Self::Pending, Self::Authorized, Self::Paid];
    /// #     const INITIAL: Self = Self::Pending;
    /// #     const EDGES: &'static [(isize, isize)] = &[(0, 1), (0, 2), (1, 2)];
    /// #     fn name(self) -> &'static str {
    /// #         match self { Self::Pending => "pending", Self::Authorized => "authorized", Self::Paid => "paid" }
    /// #     }
    /// #     fn from_name(name: &str) -> Option<Self> {
    /// #         Self::STATES.iter().copied().find(|state| state.name() == name)
    /// #     }
    /// #     fn successors(self) -> &'static [Self] {
    /// #         match self { Self::Pending => &[Self::Authorized, Self::Paid], Self::Authorized => &[Self::Paid], Self::Paid => &[] }
    /// #     }
    /// # }
    /// let pay = Order::Paid.from([Order::Pending, Order::Authorized]);
    /// assert_eq!(pay.to(), Order::Paid);
    /// assert_eq!(pay.from(), [Order::Pending, Order::Authorized]);
    /// assert_eq!(Order::Paid.from(Order::Pending).from(), [Order::Pending]);
    /// ```
    fn from(self, states: impl Into<FromStates<Self>>) -> Transition<Self> {
        Transition {
            from: states.into(),
            to: self,
        }
    }
}

/// The states that a step may start from: one, or an array of them, never none.
///
/// An empty array does not compile, because a step that starts nowhere could only ever be refused.
///
/// # Examples
///
/// ```
/// # use idem_core::state_machine::FromStates;
/// assert_eq!(FromStates::from("pending"), FromStates::from(["pending"]));
/// ```
///
/// ```compile_fail
/// # use idem_core::state_machine::FromStates;
/// let nowhere: [&str; 0] = [];
/// let states = FromStates::<&str>::from(nowhere);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromStates<S>(Vec<S>);

impl<S> From<S> for FromStates<S> {
    fn from(state: S) -> Self {
        Self(vec![state])
    }
}

impl<S, const N: usize> From<[S; N]> for FromStates<S> {
    fn from(states: [S; N]) -> Self {
        const { assert!(N > 0, "a transition needs at least one state to start from") };
        Self(Vec::from(states))
    }
}

/// A step of an entity into one state, from any of the states it may start from.
///
/// Made by [`StateMachine::from`]. It is a wish until the guarded `UPDATE` has found the entity in one of the states.
///
/// # Examples
///
/// ```
/// # use idem_core::state_machine::StateMachine;
/// # #[derive(Debug, Clone, Copy, PartialEq, Eq)]
/// # enum Light { Red, Green }
/// # impl StateMachine for Light {
/// #     const NAME: &'static str = "Light";
/// #     const STATES: &'static [Self] = &[Self::Red, Self::Green];
/// #     const INITIAL: Self = Self::Red;
/// #     const EDGES: &'static [(isize, isize)] = &[(0, 1), (1, 0)];
/// #     fn name(self) -> &'static str { match self { Self::Red => "red", Self::Green => "green" } }
/// #     fn from_name(name: &str) -> Option<Self> {
/// #         Self::STATES.iter().copied().find(|state| state.name() == name)
/// #     }
/// #     fn successors(self) -> &'static [Self] { match self { Self::Red => &[Self::Green], Self::Green => &[Self::Red] } }
/// # }
/// let go = Light::Green.from(Light::Red);
/// assert_eq!((go.from(), go.to()), ([Light::Red].as_slice(), Light::Green));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a transition changes nothing until it is applied"]
pub struct Transition<S> {
    from: FromStates<S>,
    to: S,
}

impl<S: StateMachine> Transition<S> {
    /// The states that the step may start from; at least one.
    ///
    /// # Examples
    ///
    /// See [`Transition`].
    pub fn from(&self) -> &[S] {
        &self.from.0
    }

    /// The state that the step leads to.
    ///
    /// # Examples
    ///
    /// See [`Transition`].
    pub fn to(&self) -> S {
        self.to
    }

    /// The first state in [`from`](Self::from) that has no declared step to [`to`](Self::to).
    ///
    /// # Examples
    ///
    /// ```
    /// # use idem_core::state_machine::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    /// # enum Order { Pending, Paid }
    /// # impl StateMachine for Order {
    /// #     const NAME: &'static str = "Order";
    /// #     const STATES: &'static [Self] = &[Self::Pending, Self::Paid];
    /// #     const INITIAL: Self = Self::Pending;
    /// #     const EDGES: &'static [(isize, isize)] = &[(0, 1)];
    /// #     fn name(self) -> &'static str { match self { Self::Pending => "pending", Self::Paid => "paid" } }
    /// #     fn from_name(name: &str) -> Option<Self> {
    /// #         Self::STATES.iter().copied().find(|state| state.name() == name)
    /// #     }
    /// #     fn successors(self) -> &'static [Self] { match self { Self::Pending => &[Self::Paid], Self::Paid => &[] } }
    /// # }
    /// assert_eq!(Order::Paid.from(Order::Pending).undeclared(), None);
    /// assert_eq!(Order::Pending.from(Order::Paid).undeclared(), Some(Order::Paid));
    /// ```
    pub fn undeclared(&self) -> Option<S> {
        self.from()
            .iter()
            .copied()
            .find(|from| !from.can_become(self.to))
    }
}

/// A stored text that names no state of the machine: the column was written by another version or by hand.
///
/// # Examples
///
/// ```
/// # use idem_core::state_machine::{from_stored, StateMachine, UnknownState};
/// # #[derive(Debug, Clone, Copy, PartialEq, Eq)]
/// # enum Light { Red }
/// # impl StateMachine for Light {
/// #     const NAME: &'static str = "Light";
/// #     const STATES: &'static [Self] = &[Self::Red];
/// #     const INITIAL: Self = Self::Red;
/// #     const EDGES: &'static [(isize, isize)] = &[];
/// #     fn name(self) -> &'static str { "red" }
/// #     fn from_name(name: &str) -> Option<Self> { (name == "red").then_some(Self::Red) }
/// #     fn successors(self) -> &'static [Self] { &[] }
/// # }
/// # fn read(stored: &str) -> Result<Light, UnknownState> { from_stored(stored) }
/// let error = read("mauve").unwrap_err();
/// assert_eq!(error.to_string(), "`mauve` is no state of `Light`");
/// assert_eq!((error.machine(), error.stored()), ("Light", "mauve"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownState {
    machine: &'static str,
    stored: String,
}

impl UnknownState {
    /// The name of the enum.
    ///
    /// # Examples
    ///
    /// See [`UnknownState`].
    pub fn machine(&self) -> &'static str {
        self.machine
    }

    /// The text that was found.
    ///
    /// # Examples
    ///
    /// See [`UnknownState`].
    pub fn stored(&self) -> &str {
        &self.stored
    }
}

impl fmt::Display for UnknownState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no state of `{}`", self.stored, self.machine)
    }
}

impl Error for UnknownState {}

/// The state that is stored as `stored`, or an error that says what was found: what the derived mapping reads columns with.
///
/// # Errors
///
/// [`UnknownState`] when no state has this name.
#[doc(hidden)]
pub fn from_stored<S: StateMachine>(stored: &str) -> Result<S, UnknownState> {
    S::from_name(stored).ok_or_else(|| UnknownState {
        machine: S::NAME,
        stored: stored.to_owned(),
    })
}

/// Whether `edges` holds the step from one discriminant to another, in constants.
#[doc(hidden)]
#[must_use]
pub const fn has_edge(edges: &[(isize, isize)], from: isize, to: isize) -> bool {
    let mut rest = edges;
    while let [(edge_from, edge_to), tail @ ..] = rest {
        if *edge_from == from && *edge_to == to {
            return true;
        }
        rest = tail;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Order {
        Pending = 10,
        Authorized = 20,
        Paid = 30,
        Cancelled = -1,
    }

    use Order::{Authorized, Cancelled, Paid, Pending};

    impl StateMachine for Order {
        const NAME: &'static str = "Order";
        const STATES: &'static [Self] = &[Pending, Authorized, Paid, Cancelled];
        const INITIAL: Self = Pending;
        const EDGES: &'static [(isize, isize)] = &[(10, 20), (10, -1), (20, 30), (20, -1)];

        fn name(self) -> &'static str {
            match self {
                Pending => "pending",
                Authorized => "authorized",
                Paid => "paid",
                Cancelled => "cancelled",
            }
        }

        fn from_name(name: &str) -> Option<Self> {
            Self::STATES
                .iter()
                .copied()
                .find(|state| state.name() == name)
        }

        fn successors(self) -> &'static [Self] {
            match self {
                Pending => &[Authorized, Cancelled],
                Authorized => &[Paid, Cancelled],
                Paid | Cancelled => &[],
            }
        }
    }

    /// Every ordered pair of states.
    fn pairs() -> impl Iterator<Item = (Order, Order)> {
        let states = || Order::STATES.iter().copied();
        states().flat_map(move |from| states().map(move |to| (from, to)))
    }

    #[test]
    fn constants_and_methods_agree_on_every_pair() {
        for (from, to) in pairs() {
            let edge = has_edge(Order::EDGES, from as isize, to as isize);
            assert_eq!(from.can_become(to), edge, "{from:?} to {to:?}");
            assert_eq!(
                to.from(from).undeclared().is_none(),
                edge,
                "{from:?} to {to:?}"
            );
        }
    }

    #[test]
    fn edges_are_found_in_constants() {
        const _: () = assert!(has_edge(Order::EDGES, Pending as isize, Cancelled as isize));
        const _: () = assert!(!has_edge(
            Order::EDGES,
            Cancelled as isize,
            Pending as isize
        ));
        const _: () = assert!(!has_edge(&[], 0, 0));
    }

    #[test]
    fn terminal_states_lead_nowhere() {
        let terminal: Vec<_> = Order::STATES
            .iter()
            .filter(|state| state.is_terminal())
            .collect();
        assert_eq!(terminal, [&Paid, &Cancelled]);
    }

    #[test]
    fn no_state_becomes_itself() {
        for state in Order::STATES {
            assert_eq!(state.from(*state).undeclared(), Some(*state));
        }
    }

    #[test]
    fn every_name_is_read_back_and_others_are_named() {
        for state in Order::STATES {
            assert_eq!(from_stored(state.name()), Ok(*state));
        }
        for unknown in ["", "Paid", "paid ", "sent"] {
            let error = from_stored::<Order>(unknown).unwrap_err();
            assert_eq!((error.machine(), error.stored()), ("Order", unknown));
        }
    }

    #[track_caller]
    fn check_undeclared(transition: &Transition<Order>, expected: Option<Order>) {
        assert_eq!(transition.undeclared(), expected, "{transition:?}");
    }

    #[test]
    fn first_undeclared_state_is_named() {
        check_undeclared(&Cancelled.from([Pending, Authorized]), None);
        check_undeclared(&Paid.from([Authorized, Pending, Cancelled]), Some(Pending));
        check_undeclared(&Paid.from(Cancelled), Some(Cancelled));
    }
}

//! The states of a domain entity and the steps between them: what `#[derive(StateMachine)]` writes down.
//!
//! ```
//! use idem_core::StateMachine;
//! # use idem_macros::StateMachine;
//!
//! #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
//! # #[state_machine(crate = idem_core)]
//! enum Ticket {
//!     #[state(initial, to(Closed))]
//!     Open,
//!     #[state(to(Open))]
//!     Closed,
//! }
//!
//! let reopen = Ticket::Open.from(Ticket::Closed);
//! assert_eq!(reopen.undeclared(), None);
//! ```

use std::error::Error;
use std::fmt;
use std::fmt::Debug;

/// The states that an entity can be in, and which state may follow which.
///
/// Applications derive it on a fieldless enum; the derive refuses machines with unknown targets or unreachable states. The graph is data:
/// it decides nothing about a stored row, whose current state only the guarded `UPDATE` knows.
///
/// ```
/// use idem_core::StateMachine;
/// # use idem_macros::StateMachine;
///
/// #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
/// # #[state_machine(crate = idem_core)]
/// enum OrderStatus {
///     #[state(initial, to(Paid, Cancelled))]
///     Pending,
///     #[state(to(Shipped))]
///     Paid,
///     #[state(terminal)]
///     Shipped,
///     #[state(terminal)]
///     Cancelled,
/// }
///
/// assert_eq!(OrderStatus::INITIAL, OrderStatus::Pending);
/// assert!(OrderStatus::Pending.can_become(OrderStatus::Paid));
/// assert!(!OrderStatus::Shipped.can_become(OrderStatus::Cancelled));
/// ```
///
/// The examples below use this machine.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a state machine",
    label = "this type declares no states",
    note = "derive it on the enum of the states: `#[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]`"
)]
pub trait StateMachine: Copy + Eq + Debug + Send + Sync + 'static {
    /// The name of the enum, as errors show it.
    ///
    /// ```
    /// use idem_core::StateMachine;
    /// # use idem_macros::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    /// # #[state_machine(crate = idem_core)]
    /// # enum OrderStatus {
    /// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
    /// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
    /// # }
    ///
    /// assert_eq!(OrderStatus::NAME, "OrderStatus");
    /// ```
    const NAME: &'static str;

    /// Every state, in the order of declaration.
    ///
    /// ```
    /// use idem_core::StateMachine;
    /// # use idem_macros::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    /// # #[state_machine(crate = idem_core)]
    /// # enum OrderStatus {
    /// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
    /// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
    /// # }
    ///
    /// let names: Vec<_> = OrderStatus::STATES.iter().map(|state| state.name()).collect();
    /// assert_eq!(names, ["pending", "paid", "shipped", "cancelled"]);
    /// ```
    const STATES: &'static [Self];

    /// The state in which an entity starts.
    ///
    /// ```
    /// use idem_core::StateMachine;
    /// # use idem_macros::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    /// # #[state_machine(crate = idem_core)]
    /// # enum OrderStatus {
    /// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
    /// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
    /// # }
    ///
    /// assert_eq!(OrderStatus::INITIAL.name(), "pending");
    /// ```
    const INITIAL: Self;

    /// The declared steps as pairs of discriminants, because a constant cannot yet compare enums: what the attribute checks while it compiles.
    #[doc(hidden)]
    const EDGES: &'static [(isize, isize)];

    /// The text that is stored for this state: its name in `snake_case`, unless the derive was told otherwise.
    ///
    /// ```
    /// use idem_core::StateMachine;
    /// # use idem_macros::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    /// # #[state_machine(crate = idem_core)]
    /// # enum OrderStatus {
    /// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
    /// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
    /// # }
    ///
    /// assert_eq!(OrderStatus::Shipped.name(), "shipped");
    /// ```
    fn name(self) -> &'static str;

    /// The state that is stored as `name`; `None` when there is none of this name.
    ///
    /// ```
    /// use idem_core::StateMachine;
    /// # use idem_macros::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    /// # #[state_machine(crate = idem_core)]
    /// # enum OrderStatus {
    /// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
    /// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
    /// # }
    ///
    /// assert_eq!(OrderStatus::from_name("paid"), Some(OrderStatus::Paid));
    /// assert_eq!(OrderStatus::from_name("PAID"), None);
    /// ```
    fn from_name(name: &str) -> Option<Self>;

    /// The states that may follow this one, in the order of declaration in `to(…)`.
    ///
    /// ```
    /// use idem_core::StateMachine;
    /// # use idem_macros::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    /// # #[state_machine(crate = idem_core)]
    /// # enum OrderStatus {
    /// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
    /// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
    /// # }
    ///
    /// assert_eq!(OrderStatus::Pending.successors(), [OrderStatus::Paid, OrderStatus::Cancelled]);
    /// ```
    fn successors(self) -> &'static [Self];

    /// Whether no state follows this one.
    ///
    /// ```
    /// use idem_core::StateMachine;
    /// # use idem_macros::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    /// # #[state_machine(crate = idem_core)]
    /// # enum OrderStatus {
    /// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
    /// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
    /// # }
    ///
    /// let ends: Vec<_> = OrderStatus::STATES.iter().filter(|state| state.is_terminal()).collect();
    /// assert_eq!(ends, [&OrderStatus::Shipped, &OrderStatus::Cancelled]);
    /// ```
    fn is_terminal(self) -> bool {
        self.successors().is_empty()
    }

    /// Whether the step from this state to `to` is declared.
    ///
    /// No state becomes itself: the second payment of an order is not a payment.
    ///
    /// ```
    /// use idem_core::StateMachine;
    /// # use idem_macros::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    /// # #[state_machine(crate = idem_core)]
    /// # enum OrderStatus {
    /// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
    /// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
    /// # }
    ///
    /// assert!(OrderStatus::Paid.can_become(OrderStatus::Shipped));
    /// assert!(!OrderStatus::Paid.can_become(OrderStatus::Paid));
    /// // Only single steps are declared, not ways of several.
    /// assert!(!OrderStatus::Pending.can_become(OrderStatus::Shipped));
    /// ```
    fn can_become(self, to: Self) -> bool {
        self.successors().contains(&to)
    }

    /// The step to this state, from one state or from any of several.
    ///
    /// A body that only learns its target while it runs applies the step itself; whether the step is declared is then known at run time
    /// ([`Transition::undeclared`]).
    ///
    /// ```
    /// use idem_core::StateMachine;
    /// # use idem_macros::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    /// # #[state_machine(crate = idem_core)]
    /// # enum OrderStatus {
    /// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
    /// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
    /// # }
    ///
    /// let cancel = OrderStatus::Cancelled.from([OrderStatus::Pending, OrderStatus::Paid]);
    /// assert_eq!(cancel.to(), OrderStatus::Cancelled);
    /// assert_eq!(cancel.undeclared(), Some(OrderStatus::Paid));
    /// assert_eq!(OrderStatus::Paid.from(OrderStatus::Pending).from(), [OrderStatus::Pending]);
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
/// ```
/// use idem_core::state_machine::FromStates;
///
/// assert_eq!(FromStates::from("pending"), FromStates::from(["pending"]));
/// ```
///
/// ```compile_fail
/// use idem_core::state_machine::FromStates;
///
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
/// ```
/// use idem_core::{StateMachine, Transition};
/// # use idem_macros::StateMachine;
/// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
/// # #[state_machine(crate = idem_core)]
/// # enum OrderStatus {
/// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
/// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
/// # }
///
/// fn ship() -> Transition<OrderStatus> {
///     OrderStatus::Shipped.from(OrderStatus::Paid)
/// }
/// assert_eq!((ship().from(), ship().to()), (&[OrderStatus::Paid][..], OrderStatus::Shipped));
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
    /// ```
    /// use idem_core::StateMachine;
    /// # use idem_macros::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    /// # #[state_machine(crate = idem_core)]
    /// # enum OrderStatus {
    /// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
    /// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
    /// # }
    ///
    /// let step = OrderStatus::Cancelled.from([OrderStatus::Pending]);
    /// assert_eq!(step.from(), [OrderStatus::Pending]);
    /// ```
    pub fn from(&self) -> &[S] {
        &self.from.0
    }

    /// The state that the step leads to.
    ///
    /// ```
    /// use idem_core::StateMachine;
    /// # use idem_macros::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    /// # #[state_machine(crate = idem_core)]
    /// # enum OrderStatus {
    /// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
    /// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
    /// # }
    ///
    /// let step = OrderStatus::Paid.from(OrderStatus::Pending);
    /// assert_eq!(step.to().name(), "paid");
    /// ```
    pub fn to(&self) -> S {
        self.to
    }

    /// The first state in [`from`](Self::from) that has no declared step to [`to`](Self::to).
    ///
    /// ```
    /// use idem_core::StateMachine;
    /// # use idem_macros::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    /// # #[state_machine(crate = idem_core)]
    /// # enum OrderStatus {
    /// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
    /// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
    /// # }
    ///
    /// use OrderStatus::{Cancelled, Paid, Pending};
    ///
    /// assert_eq!(Paid.from(Pending).undeclared(), None);
    /// assert_eq!(Cancelled.from([Pending, Paid]).undeclared(), Some(Paid));
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
/// ```
/// # use idem_core::state_machine::{UnknownState, from_stored};
/// # use idem_core::StateMachine;
/// # use idem_macros::StateMachine;
/// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
/// # #[state_machine(crate = idem_core)]
/// # enum OrderStatus {
/// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
/// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
/// # }
/// # fn read(stored: &str) -> Result<OrderStatus, UnknownState> { from_stored(stored) }
///
/// // What the mapping of the column, written by the derive, answers to Diesel.
/// let error: UnknownState = read("returned").unwrap_err();
/// assert_eq!(error.to_string(), "`returned` is no state of `OrderStatus`");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownState {
    machine: &'static str,
    stored: String,
}

impl UnknownState {
    /// The name of the enum.
    ///
    /// ```
    /// # use idem_core::state_machine::{UnknownState, from_stored};
    /// # use idem_core::StateMachine;
    /// # use idem_macros::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    /// # #[state_machine(crate = idem_core)]
    /// # enum OrderStatus {
    /// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
    /// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
    /// # }
    /// # fn read(stored: &str) -> Result<OrderStatus, UnknownState> { from_stored(stored) }
    ///
    /// assert_eq!(read("returned").unwrap_err().machine(), "OrderStatus");
    /// ```
    pub fn machine(&self) -> &'static str {
        self.machine
    }

    /// The text that was found.
    ///
    /// ```
    /// # use idem_core::state_machine::{UnknownState, from_stored};
    /// # use idem_core::StateMachine;
    /// # use idem_macros::StateMachine;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, StateMachine)]
    /// # #[state_machine(crate = idem_core)]
    /// # enum OrderStatus {
    /// #     #[state(initial, to(Paid, Cancelled))] Pending, #[state(to(Shipped))] Paid,
    /// #     #[state(terminal)] Shipped, #[state(terminal)] Cancelled,
    /// # }
    /// # fn read(stored: &str) -> Result<OrderStatus, UnknownState> { from_stored(stored) }
    ///
    /// // Names are compared byte by byte.
    /// assert_eq!(read("Paid").unwrap_err().stored(), "Paid");
    /// ```
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

//! A consumer that has passed every rule, ready to be expanded.

use syn::{Ident, LitStr, Path};

use super::check::Checked;
use crate::handler::parts::{Handler, Intent};

/// What `expand` writes. Only `check` holds a [`Checked`], so only `check` can build it.
pub(super) struct Consumption(Parts);

impl Consumption {
    pub(super) fn new(_proof: Checked, parts: Parts) -> Self {
        Self(parts)
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.0
    }
}

pub(super) struct Parts {
    pub(super) subscription: Subscription,
    pub(super) message_id: MessageId,
    pub(super) intent: Option<Intent>,
    pub(super) handler: Handler,
}

/// Whose messages they are, and how long they are remembered.
pub(super) enum Subscription {
    /// A `const Subscription`.
    Constant(Path),
    Declared {
        subscriber: LitStr,
        retention: Retention,
        /// How long the broker may deliver a message again, where somebody says so.
        redelivery: Option<Retention>,
        policy: Option<Path>,
    },
}

pub(super) enum Retention {
    Literal(LitStr),
    /// A `const Retention`.
    Constant(Path),
}

/// The parameter that holds the message id.
pub(super) struct MessageId {
    /// The name in the signature, which is the one that the body knows unless the body does not use it.
    pub(super) name: Ident,
    pub(super) form: MessageIdForm,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageIdForm {
    /// `&MessageId`
    Borrowed,
    /// `MessageId`
    Owned,
}

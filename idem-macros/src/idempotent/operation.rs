//! An annotated function that has passed every rule, ready to be expanded.

use proc_macro2::{Group, TokenStream};
use syn::{Attribute, Expr, Ident, LitInt, LitStr, Pat, Path, Signature, Token, Type, Visibility};

use super::check::Checked;
use super::signature::IntentForm;

/// What `expand` writes. Only `check` holds a [`Checked`], so only `check` can build it.
pub(super) struct Operation(Parts);

impl Operation {
    pub(super) fn new(_proof: Checked, parts: Parts) -> Self {
        Self(parts)
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.0
    }
}

pub(super) struct Parts {
    pub(super) krate: TokenStream,
    pub(super) scope: LitStr,
    pub(super) ttl: Ttl,
    pub(super) policy: Option<Path>,
    pub(super) transition: Option<Transition>,
    pub(super) retries: Option<Retries>,

    pub(super) attrs: Vec<Attribute>,
    pub(super) vis: Visibility,
    /// As it is emitted: our attributes are gone, the patterns in [`Request::pattern`] are names.
    pub(super) sig: Signature,
    pub(super) output: Type,
    pub(super) inner_attrs: Vec<Attribute>,
    pub(super) block: Group,

    pub(super) connection: Connection,
    pub(super) intent: Intent,
    pub(super) requests: Vec<Request>,
}

pub(super) enum Ttl {
    Literal(LitStr),
    /// A `const Retention`; `at_least_a_day` where nobody gave a reason for less.
    Constant {
        path: Path,
        at_least_a_day: bool,
    },
}

/// How often the body may run again after a conflict, and what each run takes with it.
pub(super) struct Retries {
    pub(super) times: LitInt,
    pub(super) owned: Vec<Owned>,
}

/// A parameter that a run of the body may keep, so that the next run needs a clone.
pub(super) struct Owned {
    pub(super) name: Ident,
    pub(super) mutability: Option<Token![mut]>,
    pub(super) cfg: Vec<Attribute>,
}

pub(super) struct Transition {
    /// The enum, as `OrderStatus` in `OrderStatus::Paid`.
    pub(super) machine: Path,
    pub(super) from: Vec<Path>,
    pub(super) to: Path,
    pub(super) id: Expr,
}

pub(super) struct Connection {
    /// The name in the signature.
    pub(super) name: Ident,
    /// The `C` of `&mut C`.
    pub(super) ty: Type,
    pub(super) visible: Option<Visible>,
}

pub(super) struct Intent {
    /// The name in the signature.
    pub(super) name: Ident,
    pub(super) form: IntentForm,
    pub(super) visible: Option<Visible>,
}

/// What the body calls its connection or intent; absent where it calls it nothing.
pub(super) struct Visible {
    pub(super) mutability: Option<Token![mut]>,
    pub(super) name: Ident,
}

/// A parameter that the request hash covers.
pub(super) struct Request {
    /// What the hash calls it.
    pub(super) label: String,
    /// The variable that holds it.
    pub(super) name: Ident,
    pub(super) ty: Type,
    pub(super) cfg: Vec<Attribute>,
    /// What was written in place of `name`; bound after the hash was taken.
    pub(super) pattern: Option<Pat>,
}

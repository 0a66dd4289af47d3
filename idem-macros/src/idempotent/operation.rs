//! An annotated function that has passed every rule, ready to be expanded.

use syn::{Attribute, Ident, LitInt, LitStr, Path, Token};

use super::check::Checked;
use crate::handler::parts::{Handler, Intent};

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
    pub(super) scope: LitStr,
    pub(super) ttl: Ttl,
    pub(super) policy: Option<Path>,
    pub(super) retries: Option<Retries>,
    pub(super) handler: Handler,
    pub(super) intent: Intent,
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

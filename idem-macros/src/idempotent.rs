//! `#[idempotent(…)]`: parse -> check -> expand. What it shares with other attributes on functions is in `handler`.
//!
//! * `check`: the rules of an idempotent function. Only they can make an `operation`.
//! * `expand`: the operation as code; cannot fail.

mod check;
mod expand;
mod operation;

use proc_macro2::TokenStream;

use crate::handler;
use crate::handler::kind::Kind;
use crate::words;

const KIND: Kind = Kind {
    attribute: words::IDEMPOTENT,
    known: words::OF_IDEMPOTENT,
    explained: &[words::LATER, words::IN_POLICY],
    being: "idempotent",
    made: "idempotent",
    article: "an idempotent",
    returned: "the answer is decoded again",
    constant: "operation",
    hashed: "request",
    hash: "the request hash",
    roles: "the connection and the intent",
};

/// Expands the attribute, or gives every mistake as an error together with the item.
#[expect(clippy::needless_pass_by_value, reason = "the compiler hands it over")]
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    handler::expand(&KIND, arguments, &item, check::check, expand::expand)
}

#[cfg(test)]
mod tests;

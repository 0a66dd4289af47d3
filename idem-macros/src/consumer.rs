//! `#[consumer(…)]`: parse -> check -> expand. What it shares with other attributes on functions is in `handler`.
//!
//! * `check`: the rules of a consumer. Only they can make a `consumption`.
//! * `expand`: the consumption as code; cannot fail.

mod check;
mod consumption;
mod expand;

use proc_macro2::TokenStream;

use crate::handler;
use crate::handler::kind::Kind;
use crate::words;

const KIND: Kind = Kind {
    attribute: words::CONSUMER,
    known: words::OF_CONSUMER,
    explained: &[
        words::NOT_OF_CONSUMER,
        words::IN_POLICY,
        words::IN_SUBSCRIPTION,
    ],
    being: "a consumer",
    made: "a consumer of",
    article: "a consumer",
    returned: "what a duplicate returns is made by the library",
    constant: "subscription",
    hashed: "message",
    hash: "the hash of the message",
    roles: "the connection, the message id and the intent",
};

/// Expands the attribute, or gives every mistake as an error together with the item.
#[expect(clippy::needless_pass_by_value, reason = "the compiler hands it over")]
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    handler::expand(&KIND, arguments, &item, check::check, expand::expand)
}

#[cfg(test)]
mod tests;

//! What is emitted when the macro refuses: the errors, and the item still.
//!
//! Without the item, every caller of the function would add an error of its own to the one that matters.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, FnArg, Meta, Signature};

use crate::handler::signature::any_ident;
use crate::words;

/// Whether an attribute has this name, under any path: `#[idempotent(…)]` or `#[idem_diesel::idempotent(…)]`.
pub(crate) fn is_named(attribute: &Attribute, name: &str) -> bool {
    let last = attribute.path().segments.last();
    last.is_some_and(|segment| segment.ident == name)
}

/// Whether an attribute on a parameter is ours.
pub(crate) fn is_own(attribute: &Attribute) -> bool {
    is_named(attribute, words::IDEMPOTENT) || is_named(attribute, words::CONSUMER)
}

/// Whether an attribute on a function is ours. Other libraries have a `#[consumer]`, too: ours says whose messages it takes.
pub(crate) fn is_guard(attribute: &Attribute) -> bool {
    let says_whose = || match &attribute.meta {
        Meta::List(list) => any_ident(list.tokens.clone(), &|word| {
            word == words::SUBSCRIBER || word == words::SUBSCRIPTION
        }),
        Meta::Path(_) | Meta::NameValue(_) => false,
    };
    is_named(attribute, words::IDEMPOTENT) || (is_named(attribute, words::CONSUMER) && says_whose())
}

/// The signature without our attributes on its parameters, which nobody else knows, and without `...`, which the compiler would refuse
/// a second time.
pub(crate) fn without_own_attributes(signature: &Signature) -> Signature {
    let mut signature = signature.clone();
    signature.variadic = None;
    for input in &mut signature.inputs {
        match input {
            FnArg::Receiver(receiver) => receiver.attrs.retain(|attribute| !is_own(attribute)),
            FnArg::Typed(typed) => typed.attrs.retain(|attribute| !is_own(attribute)),
        }
    }
    signature
}

/// The errors, then the item.
pub(crate) fn item(errors: &TokenStream, item: &impl ToTokens) -> TokenStream {
    quote!(#errors #item)
}

//! What is emitted when the macro refuses: the errors, and the item still.
//!
//! Without the item, every caller of the function would add an error of its own to the one that matters.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, FnArg, Signature};

use crate::words;

/// Whether an attribute is ours, under any path: `#[idempotent(…)]` or `#[idem_diesel::idempotent(…)]`.
pub(crate) fn is_own(attribute: &Attribute) -> bool {
    attribute
        .path()
        .segments
        .last()
        .is_some_and(|segment| segment.ident == words::ATTRIBUTE)
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

//! The attribute and the derives of `idem-diesel`, which documents and re-exports them.

mod ctxt;
mod fallback;
mod idempotent;
mod paths;
mod request_hash;
mod state_machine;
mod words;

use proc_macro::TokenStream;

#[allow(
    missing_docs,
    reason = "documented where applications import it: in idem-diesel"
)]
#[proc_macro_attribute]
pub fn idempotent(arguments: TokenStream, item: TokenStream) -> TokenStream {
    idempotent::expand(arguments.into(), item.into()).into()
}

#[allow(
    missing_docs,
    reason = "documented where applications import it: in idem-diesel"
)]
#[proc_macro_derive(RequestHash, attributes(request_hash))]
pub fn request_hash(item: TokenStream) -> TokenStream {
    request_hash::expand(item.into()).into()
}

#[allow(
    missing_docs,
    reason = "documented where applications import it: in idem-diesel"
)]
#[proc_macro_derive(StateMachine, attributes(state_machine, state))]
pub fn state_machine(item: TokenStream) -> TokenStream {
    state_machine::expand(item.into()).into()
}

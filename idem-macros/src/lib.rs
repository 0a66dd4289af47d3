//! The attributes and the derives of `idem-diesel`, which documents and re-exports them.

mod args;
mod consumer;
mod ctxt;
mod event;
mod fallback;
mod handler;
mod idempotent;
mod paths;
mod request_hash;
mod state_machine;
mod stored_name;
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
#[proc_macro_attribute]
pub fn consumer(arguments: TokenStream, item: TokenStream) -> TokenStream {
    consumer::expand(arguments.into(), item.into()).into()
}

#[allow(
    missing_docs,
    reason = "documented where applications import it: in idem-diesel"
)]
#[proc_macro_derive(Event, attributes(event))]
pub fn event(item: TokenStream) -> TokenStream {
    event::expand(item.into()).into()
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

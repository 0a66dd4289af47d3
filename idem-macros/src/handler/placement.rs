//! Where the compiler shows what is wrong: generated tokens at the place of the user's tokens that they are about.
//!
//! A span cannot be joined from two on stable Rust. But the compiler joins the first and the last token of what it reports, so these two
//! are placed.

use proc_macro2::{Delimiter, Group, Span, TokenStream};
use quote::{ToTokens, quote};

/// Resolved like everything that the expansion introduces, shown at `place`.
pub(crate) fn mixed_at(place: Span) -> Span {
    Span::mixed_site().located_at(place)
}

/// `function::<types>(arguments)`, shown as `place`: a bound that fails is one error there, because the compiler reports what fails
/// for the same reason at the same place once.
pub(crate) fn call(
    function: &TokenStream,
    types: &impl ToTokens,
    arguments: TokenStream,
    place: &impl ToTokens,
) -> TokenStream {
    let function = at(quote!(#function::<), first_span(place));
    let close = at(quote!(>), last_span(place));
    let arguments = parenthesized(arguments, place);
    quote!(#function #types #close #arguments)
}

/// The tokens, shown where `place` begins.
pub(crate) fn placed(tokens: TokenStream, place: &impl ToTokens) -> TokenStream {
    at(tokens, first_span(place))
}

/// `path(arguments)`, shown as `place`.
pub(crate) fn applied(
    path: TokenStream,
    arguments: TokenStream,
    place: &impl ToTokens,
) -> TokenStream {
    let path = placed(path, place);
    let arguments = parenthesized(arguments, place);
    quote!(#path #arguments)
}

/// `(arguments)` that end where `place` ends.
fn parenthesized(arguments: TokenStream, place: &impl ToTokens) -> Group {
    let mut arguments = Group::new(Delimiter::Parenthesis, arguments);
    arguments.set_span(last_span(place));
    arguments
}

fn at(tokens: TokenStream, place: Span) -> TokenStream {
    let moved = tokens.into_iter().map(|mut token| {
        token.set_span(place);
        token
    });
    moved.collect()
}

/// Where the tokens begin.
pub(crate) fn first_span(tokens: &impl ToTokens) -> Span {
    let first = tokens.to_token_stream().into_iter().next();
    first.map_or_else(Span::call_site, |token| token.span())
}

/// Where the tokens end.
pub(crate) fn last_span(tokens: &impl ToTokens) -> Span {
    let last = tokens.to_token_stream().into_iter().last();
    last.map_or_else(Span::call_site, |token| token.span())
}

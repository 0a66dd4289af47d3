//! `#[derive(Event)]`: parse, check, expand.

mod check;
mod expand;
mod parse;

use proc_macro2::TokenStream;

use crate::ctxt::Ctxt;

/// Expands the derive for one item. After a mistake the impl still comes, so that a use of the type is not a second error.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let item = match syn::parse2(item) {
        Ok(item) => item,
        Err(error) => return error.into_compile_error(),
    };
    let ctxt = Ctxt::new();
    let input = parse::input(&item);
    let checked = check::check(&input, &ctxt);
    match (ctxt.finish(), checked) {
        (Ok(()), Some(checked)) => expand::implementation(&checked),
        (Ok(()), None) => unreachable!("what is not checked has an error"),
        (Err(errors), _) => {
            let implementation = expand::placeholder(&input);
            quote::quote!(#errors #implementation)
        }
    }
}

#[cfg(test)]
mod tests;

//! `#[idempotent(…)]`: parse -> check -> expand.
//!
//! * `args`, `signature`: what the user wrote, words and function, not judged.
//! * `check`: the rules. Only they can make an `operation`.
//! * `expand`: the operation as code; cannot fail. `placement`: where the compiler shows what is wrong in it.

mod args;
mod check;
mod expand;
mod operation;
mod placement;
mod signature;

use proc_macro2::TokenStream;

use self::args::Args;
use self::signature::Function;
use crate::ctxt::Ctxt;
use crate::fallback;

/// Expands the attribute, or gives every mistake as an error together with the item.
#[expect(clippy::needless_pass_by_value, reason = "the compiler hands it over")]
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let function = match syn::parse2::<Function>(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            let message =
                format!("`#[idempotent]` stands on a function or a method with a body: {error}");
            return fallback::item(
                &syn::Error::new(error.span(), message).into_compile_error(),
                &item,
            );
        }
    };
    let ctxt = Ctxt::new();
    let operation = check::check(&Args::parse(arguments), &function, &ctxt);
    match (ctxt.finish(), operation) {
        (Ok(()), Some(operation)) => expand::expand(&operation),
        (Ok(()), None) => unreachable!("a rule refused the function without an error"),
        (Err(errors), _) => fallback::item(&errors, &function),
    }
}

#[cfg(test)]
mod tests;

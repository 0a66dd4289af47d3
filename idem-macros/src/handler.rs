//! What the attributes on functions share, so that a consumer keeps every rule of a command.
//!
//! * `kind`: which attribute it is, and what its errors call things.
//! * `signature`: the function that the user wrote, not judged.
//! * `check`: the rules that hold for each kind. They make the `parts` that each kind has.
//! * `expand`: these parts as code; cannot fail. `placement`: where the compiler shows what is wrong in it.

pub(crate) mod check;
pub(crate) mod expand;
pub(crate) mod kind;
pub(crate) mod parts;
pub(crate) mod placement;
pub(crate) mod signature;
#[cfg(test)]
pub(crate) mod testing;

use proc_macro2::TokenStream;

use self::kind::Kind;
use self::signature::Function;
use crate::args::Args;
use crate::ctxt::Ctxt;
use crate::fallback;

/// Expands an attribute of `kind`, or gives every mistake as an error together with the item. `check` asks the rules and gives `None`
/// only where one of them has recorded an error.
pub(crate) fn expand<T>(
    kind: &Kind,
    arguments: TokenStream,
    item: &TokenStream,
    check: impl FnOnce(&Args, &Function, &Ctxt) -> Option<T>,
    expand: impl FnOnce(&T) -> TokenStream,
) -> TokenStream {
    let function = match syn::parse2::<Function>(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            let message = format!(
                "`#[{}]` stands on a function or a method with a body: {error}",
                kind.attribute
            );
            return fallback::item(
                &syn::Error::new(error.span(), message).into_compile_error(),
                item,
            );
        }
    };
    let ctxt = Ctxt::new();
    let checked = check(&Args::parse(arguments), &function, &ctxt);
    match (ctxt.finish(), checked) {
        (Ok(()), Some(checked)) => expand(&checked),
        (Ok(()), None) => unreachable!("a rule refused the function without an error"),
        (Err(errors), _) => fallback::item(&errors, &function),
    }
}

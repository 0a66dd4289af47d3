//! Where the generated code finds the library: `::idem_diesel`, or what `crate = path` says.

use proc_macro2::TokenStream;
use quote::quote;

/// The path of the crate that applications import. Renamed dependencies and re-exports give their own.
pub(crate) fn library(renamed: Option<&syn::Path>) -> TokenStream {
    renamed.map_or_else(|| quote!(::idem_diesel), |path| quote!(#path))
}

//! Collects the mistakes of one expansion, so that two mistakes are two errors in one compile.

use std::cell::RefCell;

use proc_macro2::TokenStream;
use quote::ToTokens;

/// Errors found so far. It must be spent with [`Ctxt::finish`]: dropping it unspent is a bug in the macro.
#[must_use]
pub(crate) struct Ctxt {
    errors: RefCell<Option<syn::Error>>,
    spent: bool,
}

impl Ctxt {
    pub(crate) fn new() -> Self {
        Self {
            errors: RefCell::new(None),
            spent: false,
        }
    }

    /// Records a mistake at `tokens`, the smallest part of the input that is wrong.
    pub(crate) fn error(&self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    /// Records a mistake that has its place already, as parsers give it.
    pub(crate) fn push(&self, error: syn::Error) {
        match &mut *self.errors.borrow_mut() {
            Some(all) => all.combine(error),
            none => *none = Some(error),
        }
    }

    /// Ends the collection: every mistake as `compile_error!`, or nothing.
    pub(crate) fn finish(mut self) -> Result<(), TokenStream> {
        self.spent = true;
        match self.errors.borrow_mut().take() {
            None => Ok(()),
            Some(errors) => Err(errors.into_compile_error()),
        }
    }
}

impl Drop for Ctxt {
    fn drop(&mut self) {
        assert!(
            self.spent || std::thread::panicking(),
            "the errors of an expansion were not looked at"
        );
    }
}

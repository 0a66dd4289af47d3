//! The rules for every kind of handler. Each is one function `rule_…` with its reason above it; each mistake is one error at the
//! smallest wrong token.
//!
//! The rules live in [`attribute`], [`transition`], [`function`], [`roles`] and [`request`], by what they look at. `check` of each
//! attribute asks them, together with its own.

pub(crate) mod attribute;
pub(crate) mod function;
pub(crate) mod request;
pub(crate) mod roles;
pub(crate) mod transition;

use proc_macro2::Span;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{FnArg, Ident, Pat, PatIdent, Path, Signature, Type};

use self::request::Requests;
use self::roles::Resolved;
use super::kind::Kind;
use super::parts::{Connection, Handler, Transition};
use super::signature::{self, Body, Function};
use crate::args::Word;
use crate::ctxt::Ctxt;
use crate::{fallback, paths};

/// What the rules for every kind have accepted.
pub(crate) struct Accepted<'a> {
    pub(crate) krate: Option<Path>,
    pub(crate) transition: Option<Transition>,
    pub(crate) shape: (&'a Type, &'a Body),
    pub(crate) connection: Resolved<Connection>,
    pub(crate) requests: Requests,
}

impl Accepted<'_> {
    /// The parts of the function; `places` are those of the other roles.
    pub(crate) fn handler(
        self,
        function: &Function,
        places: impl IntoIterator<Item = Option<Renamed>>,
    ) -> Handler {
        let (output, body) = self.shape;
        let mut renamed = self.requests.renamed;
        renamed.extend(self.connection.place);
        renamed.extend(places.into_iter().flatten());
        Handler {
            krate: paths::library(self.krate.as_ref()),
            transition: self.transition,
            attrs: function.attrs.clone(),
            vis: function.vis.clone(),
            sig: emitted(&function.sig, renamed),
            output: output.clone(),
            inner_attrs: body.inner_attrs.clone(),
            block: body.block.clone(),
            connection: self.connection.role,
            requests: self.requests.found,
        }
    }
}

/// A parameter of the emitted signature that is a plain name there, by its place.
pub(crate) type Renamed = (usize, Ident);

/// What the user's own code says after the hash was taken.
pub(crate) struct Uses<'a> {
    pub(crate) body: Option<&'a Body>,
    pub(crate) transition: Option<&'a Transition>,
}

impl Uses<'_> {
    /// Whether a parameter keeps its name for the body: always, unless it says `_name` and means it. The guard uses every parameter,
    /// and must not use one that is called unused.
    pub(crate) fn see(&self, name: &Ident) -> bool {
        let in_body = self.body.is_none_or(|body| body.names(name));
        let in_transition = self
            .transition
            .is_some_and(|transition| signature::names(&transition.id, name));
        !name.unraw().to_string().starts_with('_') || in_body || in_transition
    }
}

/// The signature without our attributes, with plain names where the guard needs some.
fn emitted(sig: &Signature, renamed: Vec<Renamed>) -> Signature {
    let mut sig = fallback::without_own_attributes(sig);
    for (place, ident) in renamed {
        if let Some(FnArg::Typed(typed)) = sig.inputs.get_mut(place) {
            *typed.pat = Pat::Ident(PatIdent {
                attrs: Vec::new(),
                by_ref: None,
                mutability: None,
                ident,
                subpat: None,
            });
        }
    }
    sig
}

/// A name that the body cannot see.
pub(crate) fn fresh(name: &str, place: Span) -> Ident {
    Ident::new(name, Span::mixed_site().located_at(place))
}

/// The error for a word whose value is of the wrong kind.
pub(crate) fn wrong_value<T>(word: &Word, wanted: &str, kind: &Kind, ctxt: &Ctxt) -> Option<T> {
    let name = word.name.unraw().to_string();
    ctxt.error(
        word.place(),
        format_args!("`{name}` takes {wanted}: write `{}`", kind.example(&name)),
    );
    None
}

/// Tokens without the spaces that printing puts around `::`, `<` and `&`.
pub(crate) fn shown(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (spaced, tight) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" < ", "<"),
        (" >", ">"),
        ("& ", "&"),
        (" ,", ","),
    ] {
        text = text.replace(spaced, tight);
    }
    text
}

//! The rules. Each is one function `rule_…` with its reason above it; each mistake is one error at the smallest wrong token.
//!
//! The rules live in [`attribute`], [`transition`], [`function`], [`roles`] and [`request`], by what they look at.

mod attribute;
mod function;
mod request;
mod retries;
mod roles;
mod transition;

use proc_macro2::Span;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{FnArg, Ident, Pat, PatIdent, Signature};

use self::retries::Times;
use self::roles::Roles;
use super::args::{Args, Word};
use super::operation::{Operation, Parts, Retries, Transition};
use super::signature::{self, Body, Function};
use crate::ctxt::Ctxt;
use crate::{fallback, paths, words};

/// The proof that every rule was asked. Nothing outside of this module can make one.
pub(super) struct Checked(());

/// Asks every rule. `None` only where `ctxt` holds an error.
pub(super) fn check(args: &Args, function: &Function, ctxt: &Ctxt) -> Option<Operation> {
    let sig = &function.sig;
    attribute::words(args, ctxt);
    let scope = attribute::scope(args, ctxt);
    let ttl = attribute::ttl(args, sig, ctxt);
    let policy = attribute::constant(words::POLICY, args, sig, ctxt);
    let krate = attribute::constant(words::CRATE, args, sig, ctxt);
    let transition = transition::transition(args, sig, ctxt);
    let times = retries::times(args, ctxt);
    let shape = function::shape(function, ctxt);

    let parameters = function.parameters();
    let roles = Roles::of(args, function, &parameters, ctxt);
    let uses = Uses {
        body: function.body.as_ref(),
        transition: transition.as_ref().and_then(Option::as_ref),
    };
    let connection = roles.connection(&uses, ctxt);
    let intent = roles.intent(&uses, ctxt);
    let requests = request::requests(&roles.others, sig, &uses, ctxt);

    let (output, body) = shape?;
    let (connection, intent, requests) = (connection?, intent?, requests?);
    let retries = match times {
        Times::Once => None,
        Times::Wrong => return None,
        Times::Again(times) => Some(Retries {
            times,
            owned: retries::owned(&roles.others, &requests, &uses, ctxt)?,
        }),
    };
    let mut renamed = requests.renamed;
    renamed.extend([connection.place, intent.place].into_iter().flatten());
    let parts = Parts {
        krate: paths::library(krate?.as_ref()),
        scope: scope?,
        ttl: ttl?,
        policy: policy?,
        transition: transition?,
        retries,
        attrs: function.attrs.clone(),
        vis: function.vis.clone(),
        sig: emitted(sig, renamed),
        output: output.clone(),
        inner_attrs: body.inner_attrs.clone(),
        block: body.block.clone(),
        connection: connection.role,
        intent: intent.role,
        requests: requests.found,
    };
    Some(Operation::new(Checked(()), parts))
}

/// A parameter of the emitted signature that is a plain name there, by its place.
type Renamed = (usize, Ident);

/// What the user's own code says after the hash was taken.
struct Uses<'a> {
    body: Option<&'a Body>,
    transition: Option<&'a Transition>,
}

impl Uses<'_> {
    /// Whether a parameter keeps its name for the body: always, unless it says `_name` and means it. The guard uses every parameter,
    /// and must not use one that is called unused.
    fn see(&self, name: &Ident) -> bool {
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
fn fresh(name: &str, place: Span) -> Ident {
    Ident::new(name, Span::mixed_site().located_at(place))
}

fn wrong_value<T>(word: &Word, wanted: &str, ctxt: &Ctxt) -> Option<T> {
    let name = word.name.unraw().to_string();
    ctxt.error(
        word.place(),
        format_args!("`{name}` takes {wanted}: write `{}`", words::example(&name)),
    );
    None
}

/// Tokens without the spaces that printing puts around `::`, `<` and `&`.
fn shown(tokens: &impl ToTokens) -> String {
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

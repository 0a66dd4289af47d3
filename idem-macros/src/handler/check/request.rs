//! What the hash covers, and what its parts are called.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Attribute, Ident, LitStr, Meta, PatIdent, Signature};

use super::attribute::{self, Place};
use super::{Renamed, Uses, fresh, wrong_value};
use crate::args::{Args, Value, Word};
use crate::ctxt::Ctxt;
use crate::fallback;
use crate::handler::kind::Kind;
use crate::handler::parts::Request;
use crate::handler::signature::{self, Function, Parameter};
use crate::words;

/// `#[idempotent(skip)]` and `#[idempotent(name = "…")]` on a parameter, or the same words in another of our attributes.
#[derive(Default)]
pub(crate) struct ParameterWords {
    skip: Option<Ident>,
    name: Option<LitStr>,
}

impl ParameterWords {
    pub(crate) fn is_skipped(&self) -> bool {
        self.skip.is_some()
    }
}

pub(crate) struct Requests {
    pub(crate) found: Vec<Request>,
    pub(crate) renamed: Vec<Renamed>,
}

/// The parameters that are hashed.
pub(crate) fn requests(
    others: &[(&Parameter<'_>, ParameterWords)],
    sig: &Signature,
    uses: &Uses<'_>,
    kind: &Kind,
    ctxt: &Ctxt,
) -> Option<Requests> {
    let hashed: Vec<_> = others
        .iter()
        .filter(|(_, words)| words.skip.is_none())
        .collect();
    // A parameter that only some builds have counts, so that its absence does not change how the others are hashed.
    let is_alone = matches!(hashed.as_slice(), [(only, _)] if only.cfg().is_empty());
    let mut labelled = Vec::new();
    for (parameter, words) in &hashed {
        let label = if is_alone {
            rule_name_of_the_only_request(words, kind, ctxt);
            Some(kind.hashed.to_owned())
        } else {
            rule_request_pattern_name(parameter, words, kind, ctxt)
        };
        if let Some(label) = label {
            rule_request_names_differ(parameter, words, (&label, &labelled), kind, ctxt);
            labelled.push((*parameter, label));
        }
    }
    if labelled.len() < hashed.len() {
        return None;
    }
    let mut requests = Requests {
        found: Vec::new(),
        renamed: Vec::new(),
    };
    for (parameter, label) in labelled {
        let (request, renamed) = request(parameter, label, sig, uses, kind);
        requests.found.push(request);
        requests.renamed.extend(renamed);
    }
    Some(requests)
}

/// The guard needs a name for what it hashes. A pattern gets one, and is bound to what it names once the hash is taken.
fn request(
    parameter: &Parameter<'_>,
    label: String,
    sig: &Signature,
    uses: &Uses<'_>,
    kind: &Kind,
) -> (Request, Option<Renamed>) {
    let (name, pattern) = match parameter.binding() {
        Some(PatIdent { ident, .. }) if uses.see(ident) => (ident.clone(), None),
        Some(PatIdent { ident, .. }) => (fresh(&ident.to_string(), ident.span()), None),
        None => (
            unused_name(&label, sig, parameter, kind),
            Some(parameter.pat.clone()),
        ),
    };
    let is_renamed = !parameter.is_named(&name) || !uses.see(&name);
    let renamed = is_renamed.then(|| (parameter.at, name.clone()));
    let request = Request {
        label,
        name,
        ty: parameter.ty.clone(),
        cfg: parameter.cfg().into_iter().cloned().collect(),
        pattern,
    };
    (request, renamed)
}

/// A name that no neighbour has: hygiene would allow it, but who reads the signature in the documentation would not know.
fn unused_name(label: &str, sig: &Signature, parameter: &Parameter<'_>, kind: &Kind) -> Ident {
    let label = syn::parse_str::<Ident>(label)
        .map_or_else(|_| kind.hashed.to_owned(), |ident| ident.to_string());
    let is_taken = signature::any_ident(sig.inputs.to_token_stream(), &|ident| *ident == label);
    let name = if is_taken {
        format!("{label}_argument")
    } else {
        label
    };
    fresh(&name, parameter.start())
}

/// The parameters without a role, with the words on them.
pub(crate) fn others<'a>(
    parameters: &'a [Parameter<'a>],
    has_role: impl Fn(&Parameter<'_>) -> bool,
    kind: &Kind,
    ctxt: &Ctxt,
) -> Vec<(&'a Parameter<'a>, ParameterWords)> {
    parameters
        .iter()
        .filter(|parameter| !has_role(parameter))
        .map(|parameter| (parameter, parameter_words(parameter, kind, ctxt)))
        .collect()
}

/// What is written on a parameter.
fn parameter_words(parameter: &Parameter<'_>, kind: &Kind, ctxt: &Ctxt) -> ParameterWords {
    let mut found = ParameterWords::default();
    for attribute in parameter.own_attributes() {
        rule_parameter_words_attribute(attribute, kind, ctxt);
        let tokens = match &attribute.meta {
            Meta::List(list) => list.tokens.clone(),
            Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
        };
        let args = Args::parse(tokens);
        attribute::rule_words_are_known(&args, Place::Parameter, kind, ctxt);
        attribute::rule_words_are_separated(&args, ctxt);
        attribute::rule_words_come_once(&args, ctxt);
        rule_parameter_words_form(attribute, &args, kind, ctxt);
        let skip = args.find(words::SKIP).map(|word| word.name.clone());
        let name = args
            .find(words::NAME)
            .and_then(|word| rule_request_name_text(word, kind, ctxt));
        found = ParameterWords {
            skip: skip.or(found.skip),
            name: name.or(found.name),
        };
    }
    rule_skip_with_name(&found, kind, ctxt);
    found
}

// The receiver and the parameters with a role are never hashed, so there is nothing to skip or to name.
pub(crate) fn rule_parameter_words_place<'a>(
    function: &'a Function,
    roles: impl Iterator<Item = &'a Parameter<'a>>,
    kind: &Kind,
    ctxt: &Ctxt,
) {
    let receiver = function.sig.receiver();
    let receiver = receiver
        .map(|receiver| receiver.attrs.as_slice())
        .unwrap_or_default();
    let on_receiver = receiver
        .iter()
        .filter(|attribute| fallback::is_own(attribute));
    for attribute in on_receiver.chain(roles.flat_map(Parameter::own_attributes)) {
        ctxt.error(
            attribute,
            format_args!(
                "the receiver, {} are never hashed: remove this attribute",
                kind.roles
            ),
        );
    }
}

// The word of another attribute would be nobody's: the compiler takes no attribute on a parameter.
fn rule_parameter_words_attribute(attribute: &Attribute, kind: &Kind, ctxt: &Ctxt) {
    if !fallback::is_named(attribute, kind.attribute) {
        ctxt.error(
            attribute.path(),
            format_args!(
                "this function is {}: write `{}` or `{}`",
                kind.being,
                kind.example(words::SKIP),
                kind.example(words::NAME)
            ),
        );
    }
}

// A word that cannot be read must not be taken for one that is absent.
fn rule_parameter_words_form(attribute: &Attribute, args: &Args, kind: &Kind, ctxt: &Ctxt) {
    let (skip, name) = (kind.example(words::SKIP), kind.example(words::NAME));
    if args.words.is_empty() && args.strays.is_empty() {
        ctxt.error(
            attribute,
            format_args!("say what is meant: `{skip}` or `{name}`"),
        );
    }
    if let Some(word) = args.find(words::SKIP)
        && !matches!(word.value, Value::Flag)
    {
        ctxt.error(
            word.place(),
            format_args!("`skip` takes no value: write `{skip}`"),
        );
    }
}

// What is not hashed has no name in the hash.
fn rule_skip_with_name(found: &ParameterWords, kind: &Kind, ctxt: &Ctxt) {
    if let ParameterWords {
        skip: Some(_),
        name: Some(name),
    } = found
    {
        ctxt.error(
            name,
            format_args!(
                "a skipped parameter has no name in {}: keep `skip` or `name`",
                kind.hash
            ),
        );
    }
}

// An empty name cannot be found again in the error that it is for.
fn rule_request_name_text(word: &Word, kind: &Kind, ctxt: &Ctxt) -> Option<LitStr> {
    let Some(name) = word.text() else {
        return wrong_value(word, "a text", kind, ctxt);
    };
    if name.value().is_empty() {
        ctxt.error(
            name,
            format_args!("the name is empty: write `{}`", kind.example(words::NAME)),
        );
        return None;
    }
    Some(name.clone())
}

// One parameter is hashed as it is, so that attribute, closure and guard agree; a name would promise a difference.
fn rule_name_of_the_only_request(found: &ParameterWords, kind: &Kind, ctxt: &Ctxt) {
    if let Some(name) = &found.name {
        ctxt.error(
            name,
            format_args!(
                "the only {} parameter is hashed as it is and has no name in the hash: remove this attribute",
                kind.hashed
            ),
        );
    }
}

// Several parameters are hashed by name, and a pattern has none. One from inside of it would change the hash with the code.
fn rule_request_pattern_name(
    parameter: &Parameter<'_>,
    words: &ParameterWords,
    kind: &Kind,
    ctxt: &Ctxt,
) -> Option<String> {
    if let Some(name) = &words.name {
        return Some(name.value());
    }
    let binding = parameter.binding();
    if binding.is_none() {
        ctxt.error(
            parameter.pat,
            format_args!(
                "several parameters are hashed by name, and a pattern has none: \
                 write `#[{0}(name = \"…\")]` before it, or `#[{0}(skip)]`",
                kind.attribute
            ),
        );
    }
    binding.map(|binding| binding.ident.unraw().to_string())
}

// The hash is over named fields; under one name it could not tell which value was which.
fn rule_request_names_differ(
    parameter: &Parameter<'_>,
    words: &ParameterWords,
    (label, earlier): (&str, &[(&Parameter<'_>, String)]),
    kind: &Kind,
    ctxt: &Ctxt,
) {
    // Two parameters under `cfg` may be the two forms of one.
    let clashes = |(other, taken): &(&Parameter<'_>, String)| {
        taken == label && (other.cfg().is_empty() || parameter.cfg().is_empty())
    };
    if earlier.iter().any(clashes) {
        let place = match &words.name {
            Some(name) => name.to_token_stream(),
            None => parameter.pat.to_token_stream(),
        };
        ctxt.error(
            place,
            format_args!(
                "two parameters are called {label:?} in {}: rename one of them",
                kind.hash
            ),
        );
    }
}

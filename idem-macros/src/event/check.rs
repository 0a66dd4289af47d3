//! The rules. Each is one function `rule_…` with its reason above it; each mistake is one error at the smallest wrong token.
//!
//! Only this module builds the checked types, so what `expand` is given keeps every rule.

use std::collections::HashMap;

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Attribute, Generics, Ident, LitStr, Member, Path, Token, Type};

use super::parse::{Field, Given, Input, Shape, Variant};
use crate::args::{Value, Word};
use crate::ctxt::Ctxt;
use crate::{stored_name, words};

/// A type that is an event.
pub(super) struct Checked<'i> {
    pub(super) ident: &'i Ident,
    pub(super) generics: &'i Generics,
    pub(super) library: Option<Path>,
    pub(super) aggregate_type: LitStr,
    pub(super) body: Body<'i>,
    _built_by_check: (),
}

pub(super) enum Body<'i> {
    Struct(Content<'i>),
    Enum(Vec<(&'i Ident, Content<'i>)>),
}

/// A struct or a variant.
pub(super) struct Content<'i> {
    pub(super) event_type: LitStr,
    pub(super) id: AggregateId<'i>,
    _built_by_check: (),
}

/// The field that says which aggregate the event is about.
pub(super) struct AggregateId<'i> {
    pub(super) member: &'i Member,
    pub(super) ty: &'i Type,
    _built_by_check: (),
}

impl<'i> Checked<'i> {
    /// The field of the struct, or of every variant.
    pub(super) fn ids(&self) -> impl Iterator<Item = &AggregateId<'i>> {
        let contents: Vec<&Content<'i>> = match &self.body {
            Body::Struct(content) => vec![content],
            Body::Enum(variants) => variants.iter().map(|(_, content)| content).collect(),
        };
        contents.into_iter().map(|content| &content.id)
    }
}

/// Where an attribute stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Struct,
    Enum,
    Variant,
    Field,
}

impl Place {
    fn known(self) -> &'static [&'static str] {
        match self {
            Self::Struct => words::ON_STRUCT,
            Self::Enum => words::ON_ENUM,
            Self::Variant => words::ON_VARIANT,
            Self::Field => words::ON_FIELD,
        }
    }

    /// What is written there, in full.
    fn example(self) -> String {
        let required = self.known().iter().filter(|word| **word != words::CRATE);
        let required: Vec<_> = required.map(|word| words::example(word)).collect();
        format!("#[event({})]", required.join(", "))
    }
}

/// Asks every rule. `None` only where `ctxt` holds an error.
pub(super) fn check<'i>(input: &'i Input<'i>, ctxt: &Ctxt) -> Option<Checked<'i>> {
    let (given, body) = match &input.shape {
        Shape::Union(union) => {
            rule_union(*union, ctxt);
            return None;
        }
        Shape::Struct(fields) => {
            words(&input.given, Place::Struct, ctxt);
            let content = content(input.ident, &input.given, fields, ctxt);
            (vec![&input.given], content.map(Body::Struct))
        }
        Shape::Enum(variants) => {
            words(&input.given, Place::Enum, ctxt);
            let given = variants.iter().map(|variant| &variant.given);
            let given = std::iter::once(&input.given).chain(given).collect();
            (given, contents(input, variants, ctxt))
        }
    };
    // One that stands on a variant has its error there.
    let word = rule_aggregate_type_missing(input.ident, &given, ctxt);
    let aggregate_type = word.and_then(|word| rule_name_text(word, ctxt));
    let library = match input.given.find(words::CRATE) {
        Some(word) => rule_crate_path(word, ctxt).map(Some),
        None => Some(None),
    };
    Some(Checked {
        ident: input.ident,
        generics: input.generics,
        library: library?,
        aggregate_type: aggregate_type?,
        body: body?,
        _built_by_check: (),
    })
}

/// The path of `crate = path`, as far as it is one.
pub(super) fn library(input: &Input<'_>) -> Option<Path> {
    input.given.find(words::CRATE)?.path().cloned()
}

/// Every word is one that there is, there once.
fn words(given: &Given<'_>, place: Place, ctxt: &Ctxt) {
    for attribute in &given.empty {
        rule_words_form(attribute, place, ctxt);
    }
    rule_words_are_known(given, place, ctxt);
    rule_words_are_separated(given, ctxt);
    rule_words_come_once(given, ctxt);
}

fn contents<'i>(input: &Input<'_>, variants: &'i [Variant<'i>], ctxt: &Ctxt) -> Option<Body<'i>> {
    let mut contents = Some(Vec::new());
    for Variant {
        ident,
        given,
        fields,
    } in variants
    {
        words(given, Place::Variant, ctxt);
        // A type that stands on the enum has its error there.
        let is_misplaced = input.given.find(words::TYPE).is_some();
        let content = if is_misplaced && given.find(words::TYPE).is_none() {
            aggregate_id(ident, given, fields, ctxt);
            None
        } else {
            content(ident, given, fields, ctxt)
        };
        contents = contents.zip(content).map(|(mut contents, content)| {
            contents.push((*ident, content));
            contents
        });
    }
    rule_types_differ(variants, ctxt);
    contents.map(Body::Enum)
}

/// A struct, or a variant of an enum.
fn content<'i>(
    ident: &Ident,
    given: &Given<'_>,
    fields: &'i [Field<'i>],
    ctxt: &Ctxt,
) -> Option<Content<'i>> {
    let event_type = rule_type_missing(ident, given, ctxt);
    let event_type = event_type.and_then(|word| rule_name_text(word, ctxt));
    let id = aggregate_id(ident, given, fields, ctxt);
    Some(Content {
        event_type: event_type?,
        id: id?,
        _built_by_check: (),
    })
}

fn aggregate_id<'i>(
    ident: &Ident,
    given: &Given<'_>,
    fields: &'i [Field<'i>],
    ctxt: &Ctxt,
) -> Option<AggregateId<'i>> {
    let mut ids = Vec::new();
    for field in fields {
        words(&field.given, Place::Field, ctxt);
        if let Some(word) = field.given.find(words::AGGREGATE_ID) {
            rule_aggregate_id_value(word, ctxt);
            ids.push((field, word));
        }
    }
    match ids.as_slice() {
        [(Field { member, ty, .. }, _)] => Some(AggregateId {
            member,
            ty,
            _built_by_check: (),
        }),
        [_, (_, second), ..] => rule_aggregate_id_once(second, ctxt),
        [] if is_meant(words::AGGREGATE_ID, fields.iter().map(|field| &field.given)) => None,
        // It stands on the struct or the variant, where it has its error.
        [] if given.find(words::AGGREGATE_ID).is_some() => None,
        [] if fields.is_empty() => rule_aggregate_id_needs_a_field(ident, ctxt),
        [] => rule_aggregate_id_missing(ident, ctxt),
    }
}

// The fields of a union share their bytes, and nobody knows which of them was written.
fn rule_union(union: Token![union], ctxt: &Ctxt) {
    ctxt.error(
        union,
        "a union does not say which of its fields is valid: use an enum, or implement `Event` by hand",
    );
}

// An attribute that says nothing was meant to say something.
fn rule_words_form(attribute: &Attribute, place: Place, ctxt: &Ctxt) {
    ctxt.error(
        attribute,
        format_args!("say what is meant: write `{}`", place.example()),
    );
}

// A misspelt word would silently change nothing, and one in another place would be nobody's.
fn rule_words_are_known(given: &Given<'_>, place: Place, ctxt: &Ctxt) {
    let known = place.known();
    let the_words = match known {
        [only] => format!("the word here is `{only}`"),
        several => format!("the words here are {}", words::listed(several)),
    };
    for stray in &given.args.strays {
        ctxt.error(
            stray,
            format_args!("a word is missing before this: {the_words}"),
        );
    }
    for Word { name, .. } in &given.args.words {
        let written = name.unraw().to_string();
        if known.contains(&written.as_str()) {
            continue;
        }
        let advice = match (written.as_str(), place) {
            (words::TYPE, Place::Enum) => {
                "each variant of an enum is a type of event: write it on every variant".to_owned()
            }
            (words::TYPE, _) => {
                "it stands on the struct, or on a variant of an enum".to_owned()
            }
            (words::AGGREGATE_TYPE, _) => {
                "it stands on the struct or the enum, because all of its events are about one kind of aggregate"
                    .to_owned()
            }
            (words::AGGREGATE_ID, _) => format!(
                "it stands on the field that says which one the event is about: `{} order_id: i64`",
                Place::Field.example()
            ),
            (words::CRATE, _) => "it stands on the struct or the enum".to_owned(),
            _ => match words::nearest(&written, known) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => the_words.clone(),
            },
        };
        ctxt.error(
            name,
            format_args!("`{written}` is no word of `#[event]` here: {advice}"),
        );
    }
}

// Without the comma the second word would be read as part of the first.
fn rule_words_are_separated(given: &Given<'_>, ctxt: &Ctxt) {
    for word in &given.args.unseparated {
        ctxt.error(word, "a comma is missing before this");
    }
}

// Of two types one would be ignored.
fn rule_words_come_once(given: &Given<'_>, ctxt: &Ctxt) {
    let words = &given.args.words;
    for (at, Word { name, .. }) in words.iter().enumerate() {
        if words.iter().take(at).any(|earlier| earlier.name == *name) {
            ctxt.error(
                name,
                format_args!("`{name}` is given twice: keep one of them"),
            );
        }
    }
}

// Consumers choose by it what to do. The name of the type would change it with a refactoring.
fn rule_type_missing<'g>(ident: &Ident, given: &'g Given<'_>, ctxt: &Ctxt) -> Option<&'g Word> {
    let word = given.find(words::TYPE);
    if word.is_none() && !is_meant(words::TYPE, [given]) {
        ctxt.error(
            ident,
            format_args!(
                "`{ident}` has no type, by which consumers know what happened: write `#[event({})]`",
                words::example(words::TYPE)
            ),
        );
    }
    word
}

// It is where the events are published to, and part of what their order is kept by.
fn rule_aggregate_type_missing<'g>(
    ident: &Ident,
    given: &[&'g Given<'_>],
    ctxt: &Ctxt,
) -> Option<&'g Word> {
    let (on_type, on_variants) = given.split_first()?;
    let word = on_type.find(words::AGGREGATE_TYPE);
    let is_misplaced = || {
        let mut variants = on_variants.iter();
        variants.any(|variant| variant.find(words::AGGREGATE_TYPE).is_some())
    };
    if word.is_none() && !is_meant(words::AGGREGATE_TYPE, [*on_type]) && !is_misplaced() {
        ctxt.error(
            ident,
            format_args!(
                "`{ident}` has no aggregate type, the kind of thing that it happens to: write `#[event({})]`",
                words::example(words::AGGREGATE_TYPE)
            ),
        );
    }
    word
}

// It is stored, becomes part of a topic, and is compared byte by byte by whoever consumes it.
fn rule_name_text(word: &Word, ctxt: &Ctxt) -> Option<LitStr> {
    let name = word.name.unraw().to_string();
    let example = words::example(&name);
    let Some(text) = word.text() else {
        ctxt.error(
            word.place(),
            format_args!("`{name}` takes a text: write `{example}`"),
        );
        return None;
    };
    let (meaning, example) = if name == words::TYPE {
        ("what happened", "order.placed")
    } else {
        ("the kind of thing that it happens to", "order")
    };
    if let Some(problem) = stored_name::problem(&text.value(), &name, meaning, example) {
        ctxt.error(text, problem);
        return None;
    }
    Some(text.clone())
}

// A consumer could not tell the two apart.
fn rule_types_differ(variants: &[Variant<'_>], ctxt: &Ctxt) {
    let mut seen = HashMap::new();
    for Variant { ident, given, .. } in variants {
        let Some(text) = given.find(words::TYPE).and_then(Word::text) else {
            continue;
        };
        if let Some(earlier) = seen.get(&text.value()) {
            ctxt.error(
                text,
                format_args!("`{earlier}` has this type, too: give each variant its own"),
            );
        } else {
            seen.insert(text.value(), ident);
        }
    }
}

// A value would be read by nobody: what is published is the field.
fn rule_aggregate_id_value(word: &Word, ctxt: &Ctxt) {
    if !matches!(word.value, Value::Flag) {
        ctxt.error(
            word.place(),
            format_args!(
                "`aggregate_id` takes no value: write `{}`",
                Place::Field.example()
            ),
        );
    }
}

// The order of events is kept per aggregate, so each one is about exactly one.
fn rule_aggregate_id_once<T>(second: &Word, ctxt: &Ctxt) -> Option<T> {
    ctxt.error(
        &second.name,
        "an event is about one aggregate, and another field is its id already: keep one of them",
    );
    None
}

// Without an id nobody could keep the order of what happens to one aggregate.
fn rule_aggregate_id_missing<T>(ident: &Ident, ctxt: &Ctxt) -> Option<T> {
    ctxt.error(
        ident,
        format_args!(
            "`{ident}` does not say which aggregate it is about: write `{}` before the field that does",
            Place::Field.example()
        ),
    );
    None
}

// What has no fields happens to nothing in particular.
fn rule_aggregate_id_needs_a_field<T>(ident: &Ident, ctxt: &Ctxt) -> Option<T> {
    ctxt.error(
        ident,
        format_args!(
            "`{ident}` has no field that could say which aggregate it is about: write \
             `{ident} {{ {} order_id: i64 }}`",
            Place::Field.example()
        ),
    );
    None
}

// The path is written into the code, so a text or an expression would not be found.
fn rule_crate_path(word: &Word, ctxt: &Ctxt) -> Option<Path> {
    if word.path().is_none() {
        ctxt.error(
            word.place().into_token_stream(),
            format_args!(
                "`crate` takes a path: write `{}`",
                words::example(words::CRATE)
            ),
        );
    }
    word.path().cloned()
}

/// Whether an error about `name` was already given: it is misspelt, or what stands there cannot be read.
fn is_meant<'g, 'i: 'g>(
    name: &'static str,
    given: impl IntoIterator<Item = &'g Given<'i>>,
) -> bool {
    let is_misspelt = |word: &Word| {
        let written = word.name.unraw().to_string();
        words::nearest(&written, &[name]).is_some()
    };
    given.into_iter().any(|Given { args, empty }| {
        !args.strays.is_empty() || !empty.is_empty() || args.words.iter().any(is_misspelt)
    })
}

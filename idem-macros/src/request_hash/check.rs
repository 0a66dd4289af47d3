//! Decides whether the item makes sense. One function per rule, each with its reason; a rule has a UI fixture of its name.
//!
//! Only this module builds the checked types, so what `expand` is given keeps every rule.

use std::collections::HashMap;

use syn::ext::IdentExt as _;

use super::parse::{Field, Fields, Input, Shape, Word};
use crate::ctxt::Ctxt;

/// A type whose hash can be written.
pub(super) struct Checked<'i> {
    pub(super) ident: &'i syn::Ident,
    pub(super) generics: &'i syn::Generics,
    pub(super) library: Option<&'i syn::Path>,
    pub(super) body: Body<'i>,
    _built_by_check: (),
}

pub(super) enum Body<'i> {
    Struct(Content<'i>),
    Enum(Vec<CheckedVariant<'i>>),
}

pub(super) struct CheckedVariant<'i> {
    pub(super) ident: &'i syn::Ident,
    pub(super) name: String,
    pub(super) content: Content<'i>,
    _built_by_check: (),
}

/// The fields that count: those without `skip`.
pub(super) enum Content<'i> {
    /// Sorted as the encoder sorts them.
    Named(Vec<CheckedField<'i>>),
    Tuple(Vec<CheckedField<'i>>),
    /// A tuple of one field is written like this field.
    Newtype(CheckedField<'i>),
}

pub(super) struct CheckedField<'i> {
    pub(super) member: &'i syn::Member,
    pub(super) ty: &'i syn::Type,
    /// Empty for a field of a tuple.
    pub(super) name: String,
    pub(super) with: Option<&'i syn::ExprPath>,
    pub(super) default: FieldDefault<'i>,
    _built_by_check: (),
}

/// What adds nothing to the hash, apart from `None`.
#[derive(Clone, Copy)]
pub(super) enum FieldDefault<'i> {
    None,
    OfType,
    Function(&'i syn::ExprPath),
}

impl<'i> Content<'i> {
    pub(super) fn fields(&self) -> &[CheckedField<'i>] {
        match self {
            Content::Named(fields) | Content::Tuple(fields) => fields,
            Content::Newtype(field) => std::slice::from_ref(field),
        }
    }
}

impl<'i> Checked<'i> {
    /// Every field that counts, of every variant.
    pub(super) fn fields(&self) -> impl Iterator<Item = &CheckedField<'i>> {
        let contents: Vec<&Content<'i>> = match &self.body {
            Body::Struct(content) => vec![content],
            Body::Enum(variants) => variants.iter().map(|variant| &variant.content).collect(),
        };
        contents.into_iter().flat_map(Content::fields)
    }
}

/// Where a word stands, and what can be said there.
#[derive(Clone, Copy)]
enum Place {
    Type,
    Variant,
    Field,
}

impl Place {
    fn words(self) -> &'static [&'static str] {
        match self {
            Place::Type => &["crate"],
            Place::Variant => &["rename"],
            Place::Field => &["skip", "rename", "default", "with"],
        }
    }

    fn help(self) -> &'static str {
        match self {
            Place::Type => "a type takes `crate = path`",
            Place::Variant => "a variant takes `rename = \"name\"`",
            Place::Field => {
                "a field takes `skip`, `rename = \"name\"`, `default`, `default = function` or `with = function`"
            }
        }
    }
}

/// Records every broken rule; what is returned counts only when there was none.
pub(super) fn check<'i>(input: &'i Input<'i>, ctxt: &Ctxt) -> Option<Checked<'i>> {
    check_words(ctxt, &input.words, Place::Type);
    let body = match &input.shape {
        Shape::Struct(fields) => Body::Struct(check_fields(ctxt, fields)),
        Shape::Enum(variants) => {
            for variant in variants {
                check_words(ctxt, &variant.words, Place::Variant);
            }
            rule_duplicate_variant_name(ctxt, input);
            let checked = variants.iter().map(|variant| CheckedVariant {
                ident: variant.ident,
                name: hashed_name(variant.ident, &variant.words),
                content: check_fields(ctxt, &variant.fields),
                _built_by_check: (),
            });
            Body::Enum(checked.collect())
        }
        Shape::Union(union) => {
            rule_union(ctxt, *union);
            return None;
        }
    };
    Some(Checked {
        ident: input.ident,
        generics: input.generics,
        library: library(input),
        body,
        _built_by_check: (),
    })
}

/// The path of `crate = path`, as far as it is one.
pub(super) fn library<'i>(input: &'i Input<'i>) -> Option<&'i syn::Path> {
    path_value(&input.words, "crate").map(|library| &library.path)
}

fn check_words(ctxt: &Ctxt, words: &[Word], place: Place) {
    rule_unknown_word(ctxt, words, place);
    rule_duplicate_word(ctxt, words);
    rule_word_value(ctxt, words, place);
    rule_empty_rename(ctxt, words);
}

fn check_fields<'i>(ctxt: &Ctxt, fields: &'i Fields<'i>) -> Content<'i> {
    let (Fields::Named(all) | Fields::Tuple(all)) = fields else {
        return Content::Named(Vec::new());
    };
    for field in all {
        check_words(ctxt, &field.words, Place::Field);
        rule_skip_with_other_words(ctxt, field);
        rule_rename_on_tuple_field(ctxt, field);
        rule_default_on_tuple_field(ctxt, field);
    }
    rule_duplicate_field_name(ctxt, all);

    let counted = all.iter().filter(|field| !has_word(&field.words, "skip"));
    let mut checked: Vec<_> = counted.map(checked_field).collect();
    if let Fields::Named(_) = fields {
        checked.sort_by(|one, other| sort_key(&one.name).cmp(&sort_key(&other.name)));
        return Content::Named(checked);
    }
    match checked.pop() {
        Some(only) if checked.is_empty() => Content::Newtype(only),
        last => {
            checked.extend(last);
            Content::Tuple(checked)
        }
    }
}

/// As the encoder sorts names, which then has nothing to move.
fn sort_key(name: &str) -> (usize, &str) {
    (name.len(), name)
}

fn checked_field<'i>(field: &'i Field<'i>) -> CheckedField<'i> {
    CheckedField {
        member: &field.member,
        ty: field.ty,
        name: match &field.member {
            syn::Member::Named(ident) => hashed_name(ident, &field.words),
            syn::Member::Unnamed(_) => String::new(),
        },
        with: path_value(&field.words, "with"),
        default: match (
            has_word(&field.words, "default"),
            path_value(&field.words, "default"),
        ) {
            (false, _) => FieldDefault::None,
            (true, None) => FieldDefault::OfType,
            (true, Some(function)) => FieldDefault::Function(function),
        },
        _built_by_check: (),
    }
}

/// The fields of a union share their bytes, and nobody knows which of them was written.
fn rule_union(ctxt: &Ctxt, union: syn::Token![union]) {
    ctxt.error(
        union,
        "a union does not say which of its fields is valid: use an enum, or implement `RequestHash` by hand",
    );
}

/// A misspelled `skip` that is passed over would change which requests are the same.
fn rule_unknown_word(ctxt: &Ctxt, words: &[Word], place: Place) {
    for word in words {
        if !place.words().iter().any(|known| word.name == known) {
            ctxt.error(
                &word.name,
                format!("unknown word `{}`: {}", word.name, place.help()),
            );
        }
    }
}

/// Of two words only one can hold, and a reader cannot know which.
fn rule_duplicate_word(ctxt: &Ctxt, words: &[Word]) {
    for (index, word) in words.iter().enumerate() {
        if words
            .iter()
            .take(index)
            .any(|earlier| earlier.name == word.name)
        {
            ctxt.error(
                &word.name,
                format!("`{}` is written twice: remove one", word.name),
            );
        }
    }
}

/// A word with the wrong kind of value, or with none where it needs one, would say nothing. Unknown words are left alone.
fn rule_word_value(ctxt: &Ctxt, words: &[Word], place: Place) {
    for word in words {
        let name = word.name.to_string();
        if !place.words().contains(&name.as_str()) {
            continue;
        }
        let is_path = word.value.as_ref().and_then(as_path).is_some();
        let (fits, instead) = match name.as_str() {
            "skip" => (word.value.is_none(), "`skip` takes no value"),
            "rename" => (
                as_text(word).is_some(),
                "write a string: `rename = \"name\"`",
            ),
            "default" => (
                word.value.is_none() || is_path,
                "write `default` alone, or the path of a function that gives it: `default = function`",
            ),
            "with" => (is_path, "write the path of a function: `with = function`"),
            _ => (is_path, "write a path without quotes: `crate = path`"),
        };
        match &word.value {
            _ if fits => {}
            Some(value) => ctxt.error(value, instead),
            None => ctxt.error(&word.name, instead),
        }
    }
}

/// A field that does not count has no name, no default and nothing to write: the other word was meant for something.
fn rule_skip_with_other_words(ctxt: &Ctxt, field: &Field<'_>) {
    if has_word(&field.words, "skip") {
        for word in field.words.iter().filter(|word| word.name != "skip") {
            ctxt.error(
                &word.name,
                format!(
                    "a field with `skip` does not count: remove `{}` or `skip`",
                    word.name
                ),
            );
        }
    }
}

/// The fields of a tuple are known by their position, so a name would change nothing.
fn rule_rename_on_tuple_field(ctxt: &Ctxt, field: &Field<'_>) {
    if let (syn::Member::Unnamed(_), Some(word)) = (&field.member, find(&field.words, "rename")) {
        ctxt.error(
            &word.name,
            "a field of a tuple is hashed by its position: remove `rename`, or give the field a name",
        );
    }
}

/// If a position could be absent, the field after it would be taken for it.
fn rule_default_on_tuple_field(ctxt: &Ctxt, field: &Field<'_>) {
    if let (syn::Member::Unnamed(_), Some(word)) = (&field.member, find(&field.words, "default")) {
        ctxt.error(
            &word.name,
            "a field of a tuple is hashed by its position and cannot be absent: remove `default`, or give the field a name",
        );
    }
}

/// An empty name is more likely a forgotten one.
fn rule_empty_rename(ctxt: &Ctxt, words: &[Word]) {
    if let Some(text) = find(words, "rename").and_then(as_text)
        && text.value().is_empty()
    {
        ctxt.error(
            text,
            "the name is empty: write the name to hash, or remove `rename`",
        );
    }
}

/// Two fields of one name could be exchanged without a change of the hash.
fn rule_duplicate_field_name(ctxt: &Ctxt, fields: &[Field<'_>]) {
    let counted = fields
        .iter()
        .filter(|field| !has_word(&field.words, "skip"));
    let named = counted.filter_map(|field| match &field.member {
        syn::Member::Named(ident) => Some((ident, field.words.as_slice())),
        syn::Member::Unnamed(_) => None,
    });
    names_differ(ctxt, named, "field");
}

/// Two variants of one name and the same content would be one request.
fn rule_duplicate_variant_name(ctxt: &Ctxt, input: &Input<'_>) {
    if let Shape::Enum(variants) = &input.shape {
        let named = variants
            .iter()
            .map(|variant| (variant.ident, variant.words.as_slice()));
        names_differ(ctxt, named, "variant");
    }
}

fn names_differ<'i>(
    ctxt: &Ctxt,
    named: impl Iterator<Item = (&'i syn::Ident, &'i [Word])>,
    kind: &str,
) {
    let mut seen: HashMap<String, &[Word]> = HashMap::new();
    for (ident, words) in named {
        let name = hashed_name(ident, words);
        let message = format!("another {kind} is hashed as `{name}`, too: give each its own name");
        if let Some(earlier) = seen.insert(name, words) {
            // Without `rename` names differ, so one of the two has it; that one is wrong.
            match find(words, "rename")
                .or_else(|| find(earlier, "rename"))
                .and_then(as_text)
            {
                Some(text) => ctxt.error(text, message),
                None => ctxt.error(ident, message),
            }
        }
    }
}

/// `r#type` is a field named `type`.
fn hashed_name(ident: &syn::Ident, words: &[Word]) -> String {
    match find(words, "rename").and_then(as_text) {
        Some(text) => text.value(),
        None => ident.unraw().to_string(),
    }
}

fn has_word(words: &[Word], name: &str) -> bool {
    find(words, name).is_some()
}

fn find<'w>(words: &'w [Word], name: &str) -> Option<&'w Word> {
    words.iter().find(|word| word.name == name)
}

fn path_value<'w>(words: &'w [Word], name: &str) -> Option<&'w syn::ExprPath> {
    as_path(find(words, name)?.value.as_ref()?)
}

fn as_path(value: &syn::Expr) -> Option<&syn::ExprPath> {
    match value {
        syn::Expr::Path(path) => Some(path),
        _ => None,
    }
}

fn as_text(word: &Word) -> Option<&syn::LitStr> {
    match &word.value {
        Some(syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(text),
            ..
        })) => Some(text),
        _ => None,
    }
}

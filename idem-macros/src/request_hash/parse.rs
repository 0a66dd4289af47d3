//! The item as it was written. Nothing is judged here but syntax.

use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;

use crate::ctxt::Ctxt;

/// The type that the derive stands on.
pub(super) struct Input<'i> {
    pub(super) ident: &'i syn::Ident,
    pub(super) generics: &'i syn::Generics,
    pub(super) words: Vec<Word>,
    pub(super) shape: Shape<'i>,
}

pub(super) enum Shape<'i> {
    Struct(Fields<'i>),
    Enum(Vec<Variant<'i>>),
    Union(syn::Token![union]),
}

pub(super) struct Variant<'i> {
    pub(super) ident: &'i syn::Ident,
    pub(super) words: Vec<Word>,
    pub(super) fields: Fields<'i>,
}

pub(super) enum Fields<'i> {
    Named(Vec<Field<'i>>),
    Tuple(Vec<Field<'i>>),
    Unit,
}

pub(super) struct Field<'i> {
    pub(super) member: syn::Member,
    pub(super) ty: &'i syn::Type,
    pub(super) words: Vec<Word>,
}

/// `name` or `name = value` inside of `#[request_hash(…)]`.
pub(super) struct Word {
    pub(super) name: syn::Ident,
    pub(super) value: Option<syn::Expr>,
}

impl Parse for Word {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        // `crate` is a keyword and a word.
        let name = input.call(syn::Ident::parse_any)?;
        let value = match input.parse::<Option<syn::Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        Ok(Self { name, value })
    }
}

pub(super) fn input<'i>(item: &'i syn::DeriveInput, ctxt: &Ctxt) -> Input<'i> {
    Input {
        ident: &item.ident,
        generics: &item.generics,
        words: words(&item.attrs, ctxt),
        shape: match &item.data {
            syn::Data::Struct(data) => Shape::Struct(fields(&data.fields, ctxt)),
            syn::Data::Enum(data) => {
                Shape::Enum(data.variants.iter().map(|it| variant(it, ctxt)).collect())
            }
            syn::Data::Union(data) => Shape::Union(data.union_token),
        },
    }
}

fn variant<'i>(variant: &'i syn::Variant, ctxt: &Ctxt) -> Variant<'i> {
    Variant {
        ident: &variant.ident,
        words: words(&variant.attrs, ctxt),
        fields: fields(&variant.fields, ctxt),
    }
}

fn fields<'i>(fields: &'i syn::Fields, ctxt: &Ctxt) -> Fields<'i> {
    let parsed = || {
        fields.members().zip(fields).map(|(member, field)| Field {
            member,
            ty: &field.ty,
            words: words(&field.attrs, ctxt),
        })
    };
    match fields {
        syn::Fields::Named(_) => Fields::Named(parsed().collect()),
        syn::Fields::Unnamed(_) => Fields::Tuple(parsed().collect()),
        syn::Fields::Unit => Fields::Unit,
    }
}

fn words(attributes: &[syn::Attribute], ctxt: &Ctxt) -> Vec<Word> {
    let mut words = Vec::new();
    for attribute in attributes
        .iter()
        .filter(|it| it.path().is_ident("request_hash"))
    {
        match attribute.parse_args_with(Punctuated::<Word, syn::Token![,]>::parse_terminated) {
            Ok(parsed) => words.extend(parsed),
            Err(error) => ctxt.push(error),
        }
    }
    words
}

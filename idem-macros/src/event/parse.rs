//! The item as it was written. Nothing is judged here.

use syn::{Attribute, Generics, Ident, Member, Meta, Token, Type};

use crate::args::{Args, Word};
use crate::words;

/// The type that the derive stands on.
pub(super) struct Input<'i> {
    pub(super) ident: &'i Ident,
    pub(super) generics: &'i Generics,
    pub(super) given: Given<'i>,
    pub(super) shape: Shape<'i>,
}

pub(super) enum Shape<'i> {
    Struct(Vec<Field<'i>>),
    Enum(Vec<Variant<'i>>),
    Union(Token![union]),
}

pub(super) struct Variant<'i> {
    pub(super) ident: &'i Ident,
    pub(super) given: Given<'i>,
    pub(super) fields: Vec<Field<'i>>,
}

pub(super) struct Field<'i> {
    pub(super) member: Member,
    pub(super) ty: &'i Type,
    pub(super) given: Given<'i>,
}

/// What `#[event(…)]` says at one place, in one attribute or in several.
pub(super) struct Given<'i> {
    pub(super) args: Args,
    /// Attributes that say nothing: `#[event]`, `#[event()]` and `#[event = "…"]`.
    pub(super) empty: Vec<&'i Attribute>,
}

impl<'i> Given<'i> {
    fn of(attributes: &'i [Attribute]) -> Self {
        let mut given = Self {
            args: Args::none(),
            empty: Vec::new(),
        };
        for attribute in attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident(words::EVENT))
        {
            match &attribute.meta {
                Meta::List(list) if !list.tokens.is_empty() => {
                    given.args.append(Args::parse(list.tokens.clone()));
                }
                Meta::List(_) | Meta::Path(_) | Meta::NameValue(_) => given.empty.push(attribute),
            }
        }
        given
    }

    pub(super) fn find(&self, name: &str) -> Option<&Word> {
        self.args.find(name)
    }
}

pub(super) fn input(item: &syn::DeriveInput) -> Input<'_> {
    Input {
        ident: &item.ident,
        generics: &item.generics,
        given: Given::of(&item.attrs),
        shape: match &item.data {
            syn::Data::Struct(data) => Shape::Struct(fields(&data.fields)),
            syn::Data::Enum(data) => Shape::Enum(data.variants.iter().map(variant).collect()),
            syn::Data::Union(data) => Shape::Union(data.union_token),
        },
    }
}

fn variant(variant: &syn::Variant) -> Variant<'_> {
    Variant {
        ident: &variant.ident,
        given: Given::of(&variant.attrs),
        fields: fields(&variant.fields),
    }
}

fn fields(fields: &syn::Fields) -> Vec<Field<'_>> {
    let fields = fields.members().zip(fields).map(|(member, field)| Field {
        member,
        ty: &field.ty,
        given: Given::of(&field.attrs),
    });
    fields.collect()
}

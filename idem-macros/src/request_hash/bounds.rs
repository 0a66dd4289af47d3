//! Which bounds the implementation for a generic type needs.
//!
//! As the derives of the standard library do, bounds are put on type parameters and not on the types of fields: a
//! recursive type would otherwise need itself. Only parameters that a counted field really holds get one.

use std::collections::HashSet;

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};

use super::check::{Checked, CheckedField, FieldDefault};

/// The generics of the type, with `T: RequestHash` where a field needs it.
pub(super) fn with_bounds(checked: &Checked<'_>, library: &TokenStream) -> syn::Generics {
    let mut predicates: Vec<TokenStream> = Vec::new();
    for field in checked.fields() {
        let mut held = Held {
            of: checked,
            found: Vec::new(),
        };
        held.collect(field.ty);
        if field.with.is_none() {
            let bounds = held
                .found
                .iter()
                .map(|ty| quote!(#ty: #library::RequestHash));
            predicates.extend(bounds);
        }
        if !held.found.is_empty() {
            predicates.extend(default_bound(field));
        }
    }
    let mut generics = checked.generics.clone();
    let mut seen = HashSet::new();
    for predicate in predicates {
        if seen.insert(predicate.to_string()) {
            let predicates = &mut generics.make_where_clause().predicates;
            predicates.push(syn::parse_quote!(#predicate));
        }
    }
    generics
}

/// What comparing a field with its default needs.
fn default_bound(field: &CheckedField<'_>) -> Option<TokenStream> {
    let ty = field.ty;
    match field.default {
        FieldDefault::None => None,
        FieldDefault::OfType => {
            Some(quote!(#ty: ::core::default::Default + ::core::cmp::PartialEq))
        }
        FieldDefault::Function(_) => Some(quote!(#ty: ::core::cmp::PartialEq)),
    }
}

/// Finds the type parameters, and associated types of them, that a field holds values of.
struct Held<'c> {
    of: &'c Checked<'c>,
    found: Vec<TokenStream>,
}

impl Held<'_> {
    fn collect(&mut self, ty: &syn::Type) {
        match ty {
            syn::Type::Path(path) => self.collect_path(path),
            syn::Type::Array(array) => self.collect(&array.elem),
            syn::Type::Group(group) => self.collect(&group.elem),
            syn::Type::Paren(paren) => self.collect(&paren.elem),
            syn::Type::Reference(reference) => self.collect(&reference.elem),
            syn::Type::Slice(slice) => self.collect(&slice.elem),
            syn::Type::Tuple(tuple) => tuple.elems.iter().for_each(|ty| self.collect(ty)),
            // Functions, pointers, trait objects and the like hold no values of a parameter.
            _ => {}
        }
    }

    fn collect_path(&mut self, path: &syn::TypePath) {
        if let Some(qualified) = &path.qself {
            // `<T as Trait>::Output`: the value is of that type, not of `T`.
            if self.mentions_parameter(&qualified.ty) {
                self.found.push(path.to_token_stream());
            }
        } else if self.begins_with_parameter(&path.path) {
            // `T`, or `T::Output`.
            self.found.push(path.to_token_stream());
        } else if !self.is_itself(&path.path) && !is_phantom_data(&path.path) {
            for argument in path.path.segments.iter().flat_map(type_arguments) {
                self.collect(argument);
            }
        }
    }

    fn mentions_parameter(&self, ty: &syn::Type) -> bool {
        let mut inner = Held {
            of: self.of,
            found: Vec::new(),
        };
        inner.collect(ty);
        !inner.found.is_empty()
    }

    fn begins_with_parameter(&self, path: &syn::Path) -> bool {
        let mut parameters = self.of.generics.type_params();
        path.leading_colon.is_none()
            && path
                .segments
                .first()
                .is_some_and(|first| parameters.any(|parameter| parameter.ident == first.ident))
    }

    /// In a recursive type, the other fields say what the type needs.
    fn is_itself(&self, path: &syn::Path) -> bool {
        path.segments.len() == 1
            && path
                .segments
                .first()
                .is_some_and(|first| first.ident == *self.of.ident || first.ident == "Self")
    }
}

/// It holds no value of its parameter.
fn is_phantom_data(path: &syn::Path) -> bool {
    path.segments
        .last()
        .is_some_and(|last| last.ident == "PhantomData")
}

fn type_arguments(segment: &syn::PathSegment) -> Vec<&syn::Type> {
    let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return Vec::new();
    };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        syn::GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.collect()
}

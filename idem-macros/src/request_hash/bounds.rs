//! Which bounds the implementation for a generic type needs.
//!
//! As the derives of the standard library do, bounds are put on type parameters and not on the types of fields: a
//! recursive type would otherwise need itself. Only parameters that a counted field really holds get one.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};

use super::check::{Checked, FieldDefault};

/// The generics of the type, with `T: RequestHash` where a field needs it.
pub(super) fn with_bounds(checked: &Checked<'_>, library: &TokenStream) -> syn::Generics {
    let parameters: Vec<&syn::Ident> = checked.generics.type_params().map(|it| &it.ident).collect();
    let mut predicates: Vec<TokenStream> = Vec::new();
    for field in checked.fields() {
        let mut held = Vec::new();
        if field.with.is_none() || !matches!(field.default, FieldDefault::None) {
            collect(field.ty, &parameters, &mut held);
        }
        if field.with.is_none() {
            predicates.extend(held.iter().map(|ty| quote!(#ty: #library::RequestHash)));
        }
        if !held.is_empty() {
            let ty = field.ty;
            match field.default {
                FieldDefault::None => {}
                FieldDefault::OfType => {
                    predicates.push(quote!(#ty: ::core::default::Default + ::core::cmp::PartialEq));
                }
                FieldDefault::Function(_) => predicates.push(quote!(#ty: ::core::cmp::PartialEq)),
            }
        }
    }
    let mut generics = checked.generics.clone();
    let mut seen = std::collections::HashSet::new();
    for predicate in predicates {
        if seen.insert(predicate.to_string()) {
            generics
                .make_where_clause()
                .predicates
                .push(syn::parse_quote!(#predicate));
        }
    }
    generics
}

/// Finds type parameters, and associated types of them, inside of a type.
fn collect(ty: &syn::Type, parameters: &[&syn::Ident], found: &mut Vec<TokenStream>) {
    match ty {
        syn::Type::Path(path) => collect_path(path, parameters, found),
        syn::Type::Array(array) => collect(&array.elem, parameters, found),
        syn::Type::Group(group) => collect(&group.elem, parameters, found),
        syn::Type::Paren(paren) => collect(&paren.elem, parameters, found),
        syn::Type::Reference(reference) => collect(&reference.elem, parameters, found),
        syn::Type::Slice(slice) => collect(&slice.elem, parameters, found),
        syn::Type::Tuple(tuple) => tuple
            .elems
            .iter()
            .for_each(|ty| collect(ty, parameters, found)),
        // Functions, pointers, trait objects and the like are no values of a request.
        _ => {}
    }
}

fn collect_path(path: &syn::TypePath, parameters: &[&syn::Ident], found: &mut Vec<TokenStream>) {
    let segments = &path.path.segments;
    if let Some(qualified) = &path.qself {
        // `<T as Trait>::Output`: the value is of that type, not of `T`.
        let mut inner = Vec::new();
        collect(&qualified.ty, parameters, &mut inner);
        if !inner.is_empty() {
            found.push(path.to_token_stream());
        }
        return;
    }
    let begins_with_parameter = path.path.leading_colon.is_none()
        && segments
            .first()
            .is_some_and(|first| parameters.contains(&&first.ident));
    if begins_with_parameter {
        // `T`, or `T::Output`.
        found.push(path.to_token_stream());
        return;
    }
    if segments
        .last()
        .is_some_and(|last| last.ident == "PhantomData")
    {
        // It holds no value of its parameter.
        return;
    }
    for segment in segments {
        if let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments {
            for argument in &arguments.args {
                if let syn::GenericArgument::Type(ty) = argument {
                    collect(ty, parameters, found);
                }
            }
        }
    }
}

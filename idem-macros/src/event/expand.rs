//! Writes the implementation. Everything was checked before, so nothing here can fail.

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Generics, Type};

use super::check::{self, AggregateId, Body, Checked, Content};
use super::parse::{Input, Shape};
use crate::handler::signature::any_ident;
use crate::paths;

pub(super) fn implementation(checked: &Checked<'_>) -> TokenStream {
    let library = paths::library(checked.library.as_ref());
    let (event_type, aggregate_id) = match &checked.body {
        Body::Struct(Content { event_type, id, .. }) => {
            let member = id.member;
            (
                event_type.to_token_stream(),
                text(id, &quote!(&self.#member)),
            )
        }
        Body::Enum(variants) if variants.is_empty() => {
            (quote!(match *self {}), quote!(match *self {}))
        }
        Body::Enum(variants) => {
            let types = variants.iter().map(
                |(ident, Content { event_type, .. })| quote!(Self::#ident { .. } => #event_type),
            );
            let ids = variants.iter().map(|(ident, Content { id, .. })| {
                let (member, name) = (id.member, Ident::new("id", Span::mixed_site()));
                let text = text(id, &name.to_token_stream());
                quote!(Self::#ident { #member: #name, .. } => #text)
            });
            (
                quote!(match self { #(#types,)* }),
                quote!(match self { #(#ids,)* }),
            )
        }
    };
    implement(
        checked.ident,
        &with_bounds(checked),
        &library,
        &Names {
            event_type,
            aggregate_type: checked.aggregate_type.to_token_stream(),
            aggregate_id,
        },
    )
}

/// An implementation without names, for a type that has an error already. A union has none: it could not be serialised either.
pub(super) fn placeholder(input: &Input<'_>) -> TokenStream {
    if let Shape::Union(_) = input.shape {
        return TokenStream::new();
    }
    let library = paths::library(check::library(input).as_ref());
    implement(
        input.ident,
        input.generics,
        &library,
        &Names {
            event_type: quote!(""),
            aggregate_type: quote!(""),
            aggregate_id: quote!(::std::string::String::new()),
        },
    )
}

/// What the methods of the implementation give.
struct Names {
    event_type: TokenStream,
    aggregate_type: TokenStream,
    aggregate_id: TokenStream,
}

fn implement(
    ident: &Ident,
    generics: &Generics,
    library: &TokenStream,
    names: &Names,
) -> TokenStream {
    let (parameters, arguments, conditions) = generics.split_for_impl();
    let Names {
        event_type,
        aggregate_type,
        aggregate_id,
    } = names;
    quote! {
        #[automatically_derived]
        #[allow(deprecated)]
        impl #parameters #library::Event for #ident #arguments #conditions {
            fn event_type(&self) -> &'static ::core::primitive::str {
                #event_type
            }

            fn aggregate_type(&self) -> &'static ::core::primitive::str {
                #aggregate_type
            }

            fn aggregate_id(&self) -> ::std::string::String {
                #aggregate_id
            }
        }
    }
}

/// The id as a text. The type is named so that one without a text is reported there.
fn text(id: &AggregateId<'_>, reference: &TokenStream) -> TokenStream {
    let ty = id.ty;
    quote_spanned!(Span::mixed_site()=> <#ty as ::std::string::ToString>::to_string(#reference))
}

/// The generics of the type, with `Display` for an id whose type depends on a parameter: of any other type the compiler knows.
fn with_bounds(checked: &Checked<'_>) -> Generics {
    let mut generics = checked.generics.clone();
    let mut seen = HashSet::new();
    for AggregateId { ty, .. } in checked.ids() {
        if mentions_parameter(ty, checked.generics) && seen.insert(ty.to_token_stream().to_string())
        {
            let predicates = &mut generics.make_where_clause().predicates;
            predicates.push(syn::parse_quote!(#ty: ::core::fmt::Display));
        }
    }
    generics
}

fn mentions_parameter(ty: &Type, generics: &Generics) -> bool {
    any_ident(ty.to_token_stream(), &|ident| {
        generics
            .type_params()
            .any(|parameter| parameter.ident == *ident)
    })
}

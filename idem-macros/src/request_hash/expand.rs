//! Writes the implementation. Everything was checked before, so nothing here can fail.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;

use super::bounds;
use super::check::{self, Body, Checked, CheckedField, CheckedVariant, Content, FieldDefault};
use super::parse::Input;
use crate::paths;

pub(super) fn implementation(checked: &Checked<'_>) -> TokenStream {
    let library = paths::library(checked.library);
    let generics = bounds::with_bounds(checked, &library);
    let body = match &checked.body {
        Body::Struct(content) => write_content(content, &library, |field| {
            let member = field.member;
            quote_spanned!(place(field)=> &self.#member)
        }),
        Body::Enum(variants) if variants.is_empty() => quote!(match *self {}),
        Body::Enum(variants) => {
            let arms = variants.iter().map(|variant| arm(variant, &library));
            quote!(match self { #(#arms)* })
        }
    };
    let encoder = match &checked.body {
        Body::Enum(variants) if variants.is_empty() => quote!(_),
        _ => encoder(),
    };
    implement(checked.ident, &generics, &library, &encoder, &body)
}

/// An implementation that writes nothing, for a type that has an error already.
pub(super) fn placeholder(input: &Input<'_>) -> TokenStream {
    let library = paths::library(check::library(input));
    implement(
        input.ident,
        input.generics,
        &library,
        &quote!(_),
        &TokenStream::new(),
    )
}

fn implement(
    ident: &syn::Ident,
    generics: &syn::Generics,
    library: &TokenStream,
    encoder: &TokenStream,
    body: &TokenStream,
) -> TokenStream {
    let (parameters, arguments, conditions) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #parameters #library::RequestHash for #ident #arguments #conditions {
            fn encode(&self, #encoder: &mut #library::request_hash::Encoder) {
                #body
            }
        }
    }
}

fn arm(variant: &CheckedVariant<'_>, library: &TokenStream) -> TokenStream {
    let CheckedVariant { ident, name, .. } = variant;
    let encoder = encoder();
    let members = variant.content.fields().iter().map(|field| field.member);
    let bindings = variant.content.fields().iter().map(binding);
    let content = write_content(&variant.content, library, binding);
    quote! {
        Self::#ident { #(#members: #bindings,)* .. } => {
            #encoder.variant(#name, |#encoder| { #content });
        }
    }
}

/// Writes the content of a struct or variant; `value` gives the reference to a field.
fn write_content(
    content: &Content<'_>,
    library: &TokenStream,
    value: impl Fn(&CheckedField<'_>) -> TokenStream,
) -> TokenStream {
    let encoder = encoder();
    match content {
        Content::Newtype(field) => write_value(field, library, &value(field)),
        Content::Named(fields) if fields.is_empty() => quote!(#encoder.structure(|_| {});),
        Content::Tuple(fields) if fields.is_empty() => quote!(#encoder.tuple(|_| {});),
        Content::Named(fields) => {
            let fields = fields.iter().map(|field| write_named(field, &value(field)));
            quote!(#encoder.structure(|#encoder| { #(#fields)* });)
        }
        Content::Tuple(fields) => {
            let elements = fields
                .iter()
                .map(|field| write_element(field, &value(field)));
            quote!(#encoder.tuple(|#encoder| { #(#elements)* });)
        }
    }
}

fn write_named(field: &CheckedField<'_>, value: &TokenStream) -> TokenStream {
    let encoder = encoder();
    let CheckedField { name, ty, .. } = field;
    let default = match field.default {
        FieldDefault::None => None,
        FieldDefault::OfType => Some(quote!(<#ty as ::core::default::Default>::default())),
        FieldDefault::Function(function) => Some(quote!(#function())),
    };
    match (field.with, default) {
        (None, None) => quote_spanned!(place(field)=> #encoder.field(#name, #value);),
        (None, Some(default)) => quote_spanned! {place(field)=>
            #encoder.field_unless_default(#name, #value, &#default);
        },
        (Some(with), None) => {
            quote!(#encoder.field_with(#name, |#encoder| #with(#value, #encoder));)
        }
        (Some(with), Some(default)) => {
            let written = local("value");
            quote! {
                #encoder.field_with_unless_default(#name, #value, &#default, |#written, #encoder| {
                    #with(#written, #encoder)
                });
            }
        }
    }
}

fn write_element(field: &CheckedField<'_>, value: &TokenStream) -> TokenStream {
    let encoder = encoder();
    match field.with {
        None => quote_spanned!(place(field)=> #encoder.element(#value);),
        Some(with) => quote!(#encoder.element_with(|#encoder| #with(#value, #encoder));),
    }
}

fn write_value(
    field: &CheckedField<'_>,
    library: &TokenStream,
    value: &TokenStream,
) -> TokenStream {
    let encoder = encoder();
    match field.with {
        None => quote_spanned!(place(field)=> #library::RequestHash::encode(#value, #encoder);),
        Some(with) => quote!(#with(#value, #encoder);),
    }
}

/// The name that a variant's field is bound to.
fn binding(field: &CheckedField<'_>) -> TokenStream {
    match field.member {
        syn::Member::Named(ident) => local(&format!("field_{}", ident.unraw())),
        syn::Member::Unnamed(index) => local(&format!("field_{}", index.index)),
    }
}

fn encoder() -> TokenStream {
    local("encoder")
}

/// A name that no path of the user can mean: not even a function of the same name after `with`.
fn local(name: &str) -> TokenStream {
    syn::Ident::new(name, Span::mixed_site()).into_token_stream()
}

/// A field whose type cannot be hashed is reported at its type.
fn place(field: &CheckedField<'_>) -> Span {
    Span::call_site().located_at(field.ty.span())
}

//! The impls of a machine. Nothing can fail here: every mistake was found before.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Data, Fields, Ident};

use super::check::{self, Machine, Mapping, State};
use super::parse::Given;

/// The impls of a checked machine.
pub(super) fn expand(machine: &Machine) -> TokenStream {
    let Machine {
        krate,
        ident,
        initial,
        states,
        mapping,
    } = machine;
    let graph = graph(machine);
    let name = ident.unraw().to_string();
    let edges = states.iter().flat_map(|state| {
        let from = &state.ident;
        state
            .to
            .iter()
            .map(move |to| quote!((Self::#from as isize, Self::#to as isize)))
    });
    let all = states.iter().map(|state| &state.ident);
    let names = names(states);
    let successors = successors(states);
    let mapping = mapping
        .as_ref()
        .map(|mapping| expand_mapping(krate, ident, mapping));
    quote! {
        #graph
        #[automatically_derived]
        #[allow(deprecated)]
        impl #krate::StateMachine for #ident {
            const NAME: &'static str = #name;
            const STATES: &'static [Self] = &[#(Self::#all),*];
            const INITIAL: Self = Self::#initial;
            const EDGES: &'static [(isize, isize)] = &[#(#edges),*];
            #names
            #successors
        }
        #mapping
    }
}

/// `name` and `from_name`.
fn names(states: &[State]) -> TokenStream {
    let idents: Vec<_> = states.iter().map(|state| &state.ident).collect();
    let stored: Vec<_> = states.iter().map(|state| &state.stored).collect();
    quote! {
        fn name(self) -> &'static str {
            match self { #(Self::#idents => #stored,)* }
        }
        fn from_name(name: &str) -> ::core::option::Option<Self> {
            match name {
                #(#stored => ::core::option::Option::Some(Self::#idents),)*
                _ => ::core::option::Option::None,
            }
        }
    }
}

/// `successors`, with one arm for all ends.
fn successors(states: &[State]) -> TokenStream {
    let (ends, others): (Vec<_>, Vec<_>) = states.iter().partition(|state| state.to.is_empty());
    let arms = others
        .iter()
        .map(|State { ident, to, .. }| quote!(Self::#ident => &[#(Self::#to),*],));
    let ends = ends.iter().map(|state| &state.ident);
    let ends = (ends.len() > 0).then(|| quote!(#(Self::#ends)|* => &[],));
    quote! {
        fn successors(self) -> &'static [Self] {
            match self { #(#arms)* #ends }
        }
    }
}

/// The graph as a Mermaid diagram. It stands on the impl, which rustdoc shows on the page of the type: a derive cannot add to the type's own text.
fn graph(machine: &Machine) -> TokenStream {
    let start = format!("    [*] --> {}", machine.initial.unraw());
    let steps = machine.states.iter().flat_map(|state| {
        let from = state.ident.unraw();
        let mut steps: Vec<_> = state
            .to
            .iter()
            .map(|to| format!("    {from} --> {}", to.unraw()))
            .collect();
        if steps.is_empty() {
            steps.push(format!("    {from} --> [*]"));
        }
        steps
    });
    let lines = ["```mermaid".to_owned(), "stateDiagram-v2".to_owned(), start]
        .into_iter()
        .chain(steps)
        .chain(["```".to_owned()]);
    let lines = lines.map(|line| format!(" {line}"));
    quote!(#(#[doc = #lines])*)
}

/// The column and Diesel's mapping of it, generic over the backend, because the derive cannot know which ones the application enables.
/// A native enum travels as its label, encoded like text, so both kinds of column share one mapping.
fn expand_mapping(krate: &TokenStream, ident: &Ident, mapping: &Mapping) -> TokenStream {
    let Mapping {
        table,
        column,
        key,
        sql_type,
    } = mapping;
    let text = || quote!(__diesel::sql_types::Text);
    let sql_type = sql_type
        .as_ref()
        .map_or_else(text, ToTokens::to_token_stream);
    let nullable = quote!(__diesel::sql_types::Nullable<#sql_type>);
    // The same three kinds of value that Diesel's own derive covers.
    let values = [quote!(#ident), quote!(&#ident), quote!(&&#ident)];
    let expressions = [&sql_type, &nullable].map(|sql_type| {
        quote! {
            #(
                #[automatically_derived]
                impl __diesel::expression::AsExpression<#sql_type> for #values {
                    type Expression = __diesel::internal::derives::as_expression::Bound<#sql_type, Self>;
                    fn as_expression(self) -> Self::Expression {
                        <Self::Expression>::new(self)
                    }
                }
            )*
        }
    });
    // Reported at the column, but seen by lints as generated.
    let at = Span::call_site().located_at(column.span());
    let column_check = quote_spanned! {at=>
        const _: () = #krate::__private::column_holds_state::<<#table::#column as __diesel::Expression>::SqlType, #sql_type>();
    };
    quote! {
        const _: () = {
            use #krate::__private::diesel as __diesel;

            #[automatically_derived]
            impl #krate::StateColumn for #ident {
                type Table = #table::table;
                const TABLE: &'static Self::Table = &#table::table;
                const COLUMN: &'static str = <#table::#column as __diesel::Column>::NAME;
                const KEY: &'static [&'static str] = &[#(<#table::#key as __diesel::Column>::NAME),*];
            }

            #column_check

            #(#expressions)*

            #[automatically_derived]
            impl<__DB> __diesel::serialize::ToSql<#sql_type, __DB> for #ident
            where
                __DB: __diesel::backend::Backend,
                str: __diesel::serialize::ToSql<__diesel::sql_types::Text, __DB>,
            {
                fn to_sql<'__b>(
                    &'__b self,
                    out: &mut __diesel::serialize::Output<'__b, '_, __DB>,
                ) -> __diesel::serialize::Result {
                    let name = #krate::StateMachine::name(*self);
                    <str as __diesel::serialize::ToSql<__diesel::sql_types::Text, __DB>>::to_sql(name, out)
                }
            }

            #[automatically_derived]
            impl<__DB> __diesel::serialize::ToSql<#nullable, __DB> for #ident
            where
                __DB: __diesel::backend::Backend,
                Self: __diesel::serialize::ToSql<#sql_type, __DB>,
            {
                fn to_sql<'__b>(
                    &'__b self,
                    out: &mut __diesel::serialize::Output<'__b, '_, __DB>,
                ) -> __diesel::serialize::Result {
                    <Self as __diesel::serialize::ToSql<#sql_type, __DB>>::to_sql(self, out)
                }
            }

            #[automatically_derived]
            impl<__DB> __diesel::deserialize::FromSql<#sql_type, __DB> for #ident
            where
                __DB: __diesel::backend::Backend,
                ::std::string::String: __diesel::deserialize::FromSql<__diesel::sql_types::Text, __DB>,
            {
                fn from_sql(bytes: __DB::RawValue<'_>) -> __diesel::deserialize::Result<Self> {
                    let stored = <::std::string::String as __diesel::deserialize::FromSql<
                        __diesel::sql_types::Text,
                        __DB,
                    >>::from_sql(bytes)?;
                    ::core::result::Result::Ok(#krate::state_machine::from_stored(&stored)?)
                }
            }

            #[automatically_derived]
            impl<__DB, __ST> __diesel::deserialize::Queryable<__ST, __DB> for #ident
            where
                __DB: __diesel::backend::Backend,
                __ST: __diesel::sql_types::SingleValue,
                Self: __diesel::deserialize::FromSql<__ST, __DB>,
            {
                type Row = Self;
                fn build(row: Self) -> __diesel::deserialize::Result<Self> {
                    ::core::result::Result::Ok(row)
                }
            }
        };
    }
}

/// Impls after a mistake, as complete as the item allows and with every edge, so that its uses raise no errors of their own.
pub(super) fn fallback(given: &Given) -> TokenStream {
    let krate = crate::paths::library(given.words.krate.value());
    let ident = &given.item.ident;
    let name = ident.unraw().to_string();
    let (parameters, arguments, _) = given.item.generics.split_for_impl();
    // Whether the bounds hold for every argument is not known; that they hold where the trait is used is enough.
    let condition = (!given.item.generics.params.is_empty()).then(|| {
        quote! {
            where Self: ::core::marker::Copy + ::core::cmp::Eq + ::core::fmt::Debug
                + ::core::marker::Send + ::core::marker::Sync + 'static
        }
    });
    let unit = given
        .states
        .iter()
        .filter(|state| matches!(state.fields, Fields::Unit));
    let states: Vec<_> = unit.clone().map(|state| &state.ident).collect();
    let stored: Vec<_> = unit
        .map(|state| check::stored(&given.words, state))
        .collect();
    let initial = states
        .first()
        .map_or_else(|| quote!(::core::panic!()), |first| quote!(Self::#first));
    // Only an enum without any data has discriminants that can be cast.
    let castable = matches!(given.item.data, Data::Enum(_)) && states.len() == given.states.len();
    let edges = states.iter().filter(|_| castable).flat_map(|from| {
        states
            .iter()
            .map(move |to| quote!((Self::#from as isize, Self::#to as isize)))
    });
    let mapping = check::mapping(&given.words)
        .filter(|_| condition.is_none())
        .map(|mapping| expand_mapping(&krate, ident, &mapping));
    quote! {
        #[automatically_derived]
        #[allow(deprecated, unreachable_patterns)]
        impl #parameters #krate::StateMachine for #ident #arguments #condition {
            const NAME: &'static str = #name;
            const STATES: &'static [Self] = &[#(Self::#states),*];
            const INITIAL: Self = #initial;
            const EDGES: &'static [(isize, isize)] = &[#(#edges),*];
            fn name(self) -> &'static str {
                match self { #(Self::#states => #stored,)* _ => "" }
            }
            fn from_name(name: &str) -> ::core::option::Option<Self> {
                match name {
                    #(#stored => ::core::option::Option::Some(Self::#states),)*
                    _ => ::core::option::Option::None,
                }
            }
            fn successors(self) -> &'static [Self] { &[] }
        }
        #mapping
    }
}

//! Golden expansions, read in review like code, and how many errors a mistake gives.

use proc_macro2::TokenStream;
use quote::quote;

use super::expand;
use crate::handler::testing;

/// Compares the expansion of `item` with `tests/event/{name}.rs`, which shows the item, too.
#[track_caller]
fn golden(name: &str, item: &TokenStream) {
    let pretty = |tokens| prettyplease::unparse(&syn::parse2(tokens).expect("items"));
    let written = pretty(item.clone()).replace('\n', "\n// ");
    let actual = format!(
        "// {}\n\n{}",
        written.trim_end_matches("\n// "),
        pretty(expand(item.clone()))
    );
    testing::generated(&format!("tests/event/{name}.rs"), &actual);
}

/// One error for each expected part, no other, and the trait is implemented still.
#[track_caller]
fn refused(item: TokenStream, expected: &[&str]) {
    let expansion = expand(item);
    assert!(expansion.to_string().contains("Event for"), "{expansion}");
    testing::refused(expansion, expected);
}

#[test]
fn structure() {
    golden(
        "structure",
        &quote! {
            #[event(type = "order.placed", aggregate_type = "order")]
            struct OrderPlaced {
                #[event(aggregate_id)]
                order_id: i64,
                amount_cents: i64,
            }
        },
    );
}

#[test]
fn tuple_in_a_renamed_library() {
    golden(
        "tuple_in_a_renamed_library",
        &quote! {
            #[event(type = "order.placed", aggregate_type = "order", crate = my::library)]
            struct OrderPlaced(String, #[event(aggregate_id)] OrderId);
        },
    );
}

#[test]
fn variants() {
    golden(
        "variants",
        &quote! {
            #[event(aggregate_type = "order")]
            enum OrderEvent<'a> {
                #[event(type = "order.placed")]
                Placed { #[event(aggregate_id)] order_id: i64, amount_cents: i64 },
                #[event(type = "order.cancelled")]
                Cancelled(#[event(aggregate_id)] &'a str, Reason),
                #[event(type = "order.renamed")]
                Renamed { #[event(aggregate_id)] r#type: i64 },
            }
        },
    );
}

#[test]
fn no_variants() {
    golden(
        "no_variants",
        &quote! {
            #[event(aggregate_type = "order")]
            enum Never {}
        },
    );
}

#[test]
fn only_an_id_that_depends_on_a_parameter_has_a_bound() {
    golden(
        "only_an_id_that_depends_on_a_parameter_has_a_bound",
        &quote! {
            #[event(aggregate_type = "order")]
            enum OrderEvent<'a, K: Key, T, const N: usize>
            where
                T: Serialize,
            {
                #[event(type = "order.placed")]
                Placed(#[event(aggregate_id)] K::Id, T),
                #[event(type = "order.cancelled")]
                Cancelled(#[event(aggregate_id)] K::Id, [T; N]),
                #[event(type = "order.noted")]
                Noted(#[event(aggregate_id)] &'a str, T),
            }
        },
    );
}

#[test]
fn the_trait_is_implemented_also_after_a_mistake() {
    golden(
        "mistaken",
        &quote! {
            #[event(type = "order.placed", crate = my::library)]
            struct OrderPlaced<T: Serialize> {
                #[event(aggregate_id)]
                order_id: T,
            }
        },
    );
}

#[test]
fn what_a_union_would_mean_is_not_implemented() {
    let expansion = expand(quote! {
        #[event(type = "order.placed", aggregate_type = "order")]
        union OrderPlaced { #[event(aggregate_id)] order_id: i64 }
    });
    assert!(!expansion.to_string().contains("Event for"), "{expansion}");
    testing::refused(expansion, &["a union does not say"]);
}

/// The errors of a struct with these words on it.
#[track_caller]
fn check_struct(words: &TokenStream, expected: &[&str]) {
    let item = quote! {
        #[event(#words)]
        struct OrderPlaced { #[event(aggregate_id)] order_id: i64 }
    };
    refused(item, expected);
}

#[test]
fn one_mistake_on_a_struct_is_one_error() {
    let right = quote!(type = "order.placed", aggregate_type = "order");
    check_struct(&right, &[]);
    check_struct(&quote!(#right,), &[]);
    for (more, expected) in [
        (quote!(typo = 1), "did you mean `type`?"),
        (
            quote!(topic = "orders"),
            "the words here are `type`, `aggregate_type` and `crate`",
        ),
        (quote!(aggregate_id), "it stands on the field"),
        (quote!(type = "order.placed"), "`type` is given twice"),
        (quote!("order"), "a word is missing before this"),
        (quote!(crate = "my::library"), "`crate` takes a path"),
        (quote!(crate = library()), "`crate` takes a path"),
        (quote!(crate), "`crate` takes a path"),
    ] {
        check_struct(&quote!(#right, #more), &[expected]);
    }
    for (words, expected) in [
        (
            quote!(aggregate_type = "order"),
            "`OrderPlaced` has no type",
        ),
        (
            quote!(type = "order.placed"),
            "`OrderPlaced` has no aggregate type",
        ),
        (
            quote!(typ = "order.placed", aggregate_type = "order"),
            "did you mean `type`?",
        ),
        (
            quote!(type = "order.placed", aggregate = "order"),
            "did you mean `aggregate_type`?",
        ),
        (
            quote!(),
            "say what is meant: write `#[event(type = \"order.placed\", aggregate_type = \"order\")]`",
        ),
        (
            quote!(type = "order.placed" aggregate_type = "order"),
            "a comma is missing",
        ),
        (
            quote!(type, aggregate_type = "order"),
            "`type` takes a text",
        ),
        (
            quote!(type("order.placed"), aggregate_type = "order"),
            "`type` takes a text",
        ),
        (
            quote!(type = placed, aggregate_type = "order"),
            "`type` takes a text",
        ),
        (
            quote!(type = "", aggregate_type = "order"),
            "`type` is empty",
        ),
        (
            quote!(type = "a\nb", aggregate_type = "order"),
            "`type` has a control character",
        ),
        (
            quote!(type = "a", aggregate_type = " order"),
            "write \"order\"",
        ),
    ] {
        check_struct(&words, &[expected]);
    }
    let long = "a".repeat(256);
    check_struct(
        &quote!(type = #long, aggregate_type = "order"),
        &["`type` has 256 bytes: use at most 255"],
    );
    check_struct(
        &quote!(topic = 1, type = "", aggregate = "order"),
        &["`topic`", "`aggregate`", "`type` is empty"],
    );
}

#[test]
fn one_mistake_in_the_fields_is_one_error() {
    for (fields, expected) in [
        (quote!(;), "`OrderPlaced` has no field that could say"),
        (quote!({}), "`OrderPlaced` has no field that could say"),
        (
            quote!({ order_id: i64 }),
            "`OrderPlaced` does not say which aggregate",
        ),
        (
            quote!((i64, i64);),
            "`OrderPlaced` does not say which aggregate",
        ),
        (
            quote!({ #[event(aggregate_id)] a: i64, #[event(aggregate_id)] b: i64 }),
            "another field is its id already",
        ),
        (
            quote!({ #[event(aggregate_id, aggregate_id)] a: i64 }),
            "`aggregate_id` is given twice",
        ),
        (
            quote!({ #[event(aggregate_id = 1)] a: i64 }),
            "`aggregate_id` takes no value",
        ),
        (
            quote!({ #[event(aggregat_id)] a: i64 }),
            "did you mean `aggregate_id`?",
        ),
        (
            quote!({ #[event(aggregate)] a: i64 }),
            "did you mean `aggregate_id`?",
        ),
        (
            quote!({ #[event] a: i64 }),
            "say what is meant: write `#[event(aggregate_id)]`",
        ),
        (
            quote!({ #[event(aggregate_id)] a: i64, #[event(skip)] b: i64 }),
            "the word here is `aggregate_id`",
        ),
        (
            quote!({ #[event(aggregate_id)] a: i64, #[event(type = "b")] b: i64 }),
            "it stands on the struct, or on a variant",
        ),
    ] {
        let item = quote! {
            #[event(type = "order.placed")]
            #[event(aggregate_type = "order")]
            struct OrderPlaced #fields
        };
        refused(item, &[expected]);
    }
}

#[test]
fn one_mistake_in_an_enum_is_one_error() {
    let id = quote!(
        #[event(aggregate_id)]
        i64
    );
    for (words, variants, expected) in [
        (
            quote!(aggregate_type = "order", type = "order.placed"),
            quote!(A(#id), B(#id)),
            "write it on every variant",
        ),
        (
            quote!(crate = idem_diesel),
            quote!(#[event(type = "a", aggregate_type = "order")] A(#id)),
            "it stands on the struct or the enum",
        ),
        (
            quote!(aggregate_type = "order"),
            quote!(#[event(type = "a")] A(#id), B(#id)),
            "`B` has no type",
        ),
        (
            quote!(aggregate_type = "order"),
            quote!(#[event(type = "a")] A(#id), #[event(type = "a")] B(#id)),
            "`A` has this type, too",
        ),
        (
            quote!(aggregate_type = "order"),
            quote!(
                #[event(type = "a", aggregate_id)]
                A(i64)
            ),
            "it stands on the field",
        ),
        (
            quote!(aggregate_type = "order"),
            quote!(#[event(type = "a")] A(#id), #[event(type = "b")] B),
            "`B` has no field that could say which aggregate it is about: write `B { #[event(aggregate_id)] order_id: i64 }`",
        ),
        (
            quote!(aggregate_type = "order"),
            quote!(
                #[event(type = "a")]
                A(i64)
            ),
            "`A` does not say which aggregate",
        ),
        (
            quote!(crate = idem_diesel),
            quote!(#[event(type = "a")] A(#id)),
            "`OrderEvent` has no aggregate type",
        ),
    ] {
        let item = quote! {
            #[event(#words)]
            enum OrderEvent { #variants }
        };
        refused(item, &[expected]);
    }
}

#[test]
fn mistakes_of_several_variants_come_together() {
    refused(
        quote! {
            enum OrderEvent {
                Placed(i64),
                #[event(type = "b")]
                Closed,
            }
        },
        &[
            "`Placed` has no type",
            "`Placed` does not say which aggregate",
            "`Closed` has no field",
            "`OrderEvent` has no aggregate type",
        ],
    );
}

//! `#[derive(RequestHash)]`: parse, check, expand.

mod bounds;
mod check;
mod expand;
mod parse;

use proc_macro2::TokenStream;

use crate::ctxt::Ctxt;

pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let item = match syn::parse2(item) {
        Ok(item) => item,
        Err(error) => return error.into_compile_error(),
    };
    let ctxt = Ctxt::new();
    let input = parse::input(&item, &ctxt);
    let checked = check::check(&input, &ctxt);
    match (ctxt.finish(), checked) {
        (Ok(()), Some(checked)) => expand::implementation(&checked),
        (Ok(()), None) => unreachable!("what is not checked has an error"),
        // The trait is still implemented, so that a use of the type is not a second error.
        (Err(errors), _) => {
            let implementation = expand::placeholder(&input);
            quote::quote!(#errors #implementation)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::{env, fs};

    use proc_macro2::TokenStream;
    use quote::quote;

    /// Compares the expansion of `item` with `tests/request_hash/<name>.rs`; `BLESS=1` writes the file.
    #[track_caller]
    fn check(name: &str, item: &TokenStream) {
        let pretty = |tokens| prettyplease::unparse(&syn::parse2(tokens).expect("items"));
        let written = pretty(item.clone()).replace('\n', "\n// ");
        let actual = format!(
            "// {}\n\n{}",
            written.trim_end_matches("\n// "),
            pretty(super::expand(item.clone()))
        );
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/request_hash")
            .join(name)
            .with_extension("rs");
        if env::var_os("BLESS").is_some() {
            fs::write(&path, &actual).expect("the golden file is written");
        }
        let expected = fs::read_to_string(&path).expect("the golden file; `BLESS=1` writes it");
        assert!(
            actual == expected,
            "{} differs; `BLESS=1` rewrites it:\n{actual}",
            path.display()
        );
    }

    #[test]
    fn fields_are_written_in_the_order_of_their_names() {
        let item = quote! {
            struct PayOrder {
                order_id: i64,
                amount_cents: i64,
                r#type: u8,
                #[request_hash(skip)]
                trace_id: String,
                #[request_hash(rename = "lang", default)]
                language: String,
                #[request_hash(default = limits::usual)]
                limit: u32,
                #[request_hash(with = without_case)]
                email: String,
                #[request_hash(default, with = without_case)]
                alias: String,
            }
        };
        check("fields", &item);
    }

    #[test]
    fn each_variant_is_written_by_its_name() {
        let item = quote! {
            enum Method<'a> {
                Cash,
                Card(&'a str),
                Split(u8, #[request_hash(with = hundredths)] f64),
                #[request_hash(rename = "Sepa")]
                Transfer {
                    iban: String,
                    #[request_hash(skip)]
                    bank: String,
                },
            }
        };
        check("variants", &item);
    }

    #[test]
    fn bounds_stand_on_the_parameters_that_are_hashed() {
        let item = quote! {
            #[request_hash(crate = my::library)]
            struct Node<T, I: Iterator, M, S, const N: usize>
            where
                S: Clone,
            {
                next: Option<Box<Node<T, I, M, S, N>>>,
                values: [T; N],
                items: Vec<I::Item>,
                marker: PhantomData<M>,
                #[request_hash(skip)]
                skipped: S,
                #[request_hash(default)]
                more: Vec<T>,
            }
        };
        check("bounds", &item);
    }

    #[test]
    fn one_field_of_a_tuple_is_a_newtype() {
        check(
            "newtype",
            &quote!(
                struct OrderId(i64, #[request_hash(skip)] PhantomData<Order>);
            ),
        );
    }

    #[test]
    fn nothing_is_written_of_an_enum_without_variants() {
        check(
            "no_variants",
            &quote!(
                enum Never {}
            ),
        );
    }

    #[test]
    fn the_trait_is_implemented_also_after_a_mistake() {
        let item = quote! {
            union Amount<T: Copy> {
                cents: T,
            }
        };
        check("mistaken", &item);
    }

    /// Checks how many mistakes are reported in a struct with `attribute`, as it stands between the brackets, on a field.
    #[track_caller]
    fn check_mistakes(attribute: &str, expected: usize) {
        let attribute: TokenStream = attribute.parse().expect("tokens");
        let expansion = super::expand(quote! {
            struct PayOrder {
                #[#attribute]
                order_id: i64,
                amount: i64,
            }
        });
        let expansion = expansion.to_string();
        let found = expansion.matches("compile_error").count();
        assert_eq!(found, expected, "{attribute}: {expansion}");
        assert!(expansion.contains("RequestHash for PayOrder"));
    }

    #[test]
    fn each_mistake_is_one_error() {
        check_mistakes("request_hash(skip)", 0);
        check_mistakes("request_hash(rename = \"id\", with = a::b,)", 0);
        check_mistakes("request_hash()", 0);
        check_mistakes("serde(rename = 1)", 0);
        check_mistakes("request_hash", 1);
        check_mistakes("request_hash = \"skip\"", 1);
        check_mistakes("request_hash(skip = true)", 1);
        check_mistakes("request_hash(skip, skip)", 1);
        check_mistakes("request_hash(skip skip)", 1);
        check_mistakes("request_hash(skip, with = path)", 1);
        check_mistakes("request_hash(skip, default)", 1);
        check_mistakes("request_hash(rename)", 1);
        check_mistakes("request_hash(rename = name)", 1);
        check_mistakes("request_hash(rename = 1)", 1);
        check_mistakes("request_hash(rename =)", 1);
        check_mistakes("request_hash(rename(\"id\"))", 1);
        check_mistakes("request_hash(rename = \"\")", 1);
        check_mistakes("request_hash(rename = \"amount\")", 1);
        check_mistakes("request_hash(default = 5)", 1);
        check_mistakes("request_hash(default = \"path\")", 1);
        check_mistakes("request_hash(with)", 1);
        check_mistakes("request_hash(with = |it, to| {})", 1);
        check_mistakes("request_hash(crate = path)", 1);
        check_mistakes("request_hash(flatten)", 1);
        check_mistakes("request_hash(a::b)", 1);
        check_mistakes("request_hash(\"skip\")", 1);
    }

    #[test]
    fn independent_mistakes_are_all_reported() {
        check_mistakes("request_hash(skipp, rename = 1)", 2);
        check_mistakes("request_hash(rename = \"\", with = 1, other)", 3);
        check_mistakes("request_hash(skip = 1, rename = \"amount\")", 2);
    }
}

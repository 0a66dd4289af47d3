//! `#[derive(StateMachine)]`: what was written is parsed, checked as a whole, and only then expanded.

mod check;
mod expand;
mod names;
mod parse;

use proc_macro2::TokenStream;

use crate::ctxt::Ctxt;

/// Expands the derive for one item. After a mistake the impls still come, so that nothing but the mistake is reported.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let item = match syn::parse2(item) {
        Ok(item) => item,
        Err(error) => return error.into_compile_error(),
    };
    let given = parse::parse(item);
    match check::check(Ctxt::new(), &given) {
        Ok(machine) => expand::expand(&machine),
        Err(mut errors) => {
            errors.extend(expand::fallback(&given));
            errors
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::{env, fs};

    use proc_macro2::TokenStream;
    use quote::quote;

    /// Compares the expansion of `item` with `tests/state_machine/<name>.rs`; `BLESS=1` writes the file.
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
            .join("tests/state_machine")
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
    fn plain_machine() {
        let item = quote! {
            enum OrderStatus {
                #[state(initial, to(Paid, Cancelled))]
                Pending,
                #[state(to(Shipped))]
                Paid,
                #[state(terminal)]
                Cancelled,
                #[state(terminal, rename = "sent")]
                Shipped,
            }
        };
        check("plain", &item);
    }

    #[test]
    fn machine_with_its_column() {
        let item = quote! {
            #[state_machine(table = schema::orders, column = status, key(tenant_id, order_id), rename_all = "UPPERCASE")]
            enum OrderStatus {
                #[state(initial, to(Paid))]
                Pending,
                #[state(terminal)]
                Paid,
            }
        };
        check("mapped", &item);
    }

    #[test]
    fn machine_in_a_native_enum() {
        let item = quote! {
            #[state_machine(table = orders, column = status, sql_type = sql_types::OrderStatus, crate = my::library)]
            enum OrderStatus {
                #[state(initial, to(Paid))]
                Pending,
                #[state(terminal)]
                Paid,
            }
        };
        check("native_sql_type", &item);
    }

    #[test]
    fn impls_come_also_after_a_mistake() {
        let item = quote! {
            enum OrderStatus {
                #[state(initial, to(Payed))]
                Pending,
                #[state(terminal)]
                Paid,
            }
        };
        check("mistaken", &item);
    }

    #[test]
    fn impls_come_also_for_what_is_no_enum() {
        check(
            "no_enum",
            &quote!(
                struct OrderStatus<T>(T);
            ),
        );
    }

    /// Checks how many mistakes are reported in a machine whose initial state has `attribute`, as it stands between the brackets.
    #[track_caller]
    fn check_mistakes(attribute: &str, expected: usize) {
        let attribute: TokenStream = attribute.parse().expect("tokens");
        let expansion = super::expand(quote! {
            enum OrderStatus {
                #[#attribute]
                Pending,
                #[state(terminal)]
                Paid,
            }
        });
        let found = expansion.to_string().matches("compile_error").count();
        assert_eq!(found, expected, "{attribute}: {expansion}");
        assert!(
            expansion
                .to_string()
                .contains("StateMachine for OrderStatus")
        );
    }

    #[test]
    fn each_mistake_is_one_error() {
        check_mistakes("state(initial, to(Paid))", 0);
        check_mistakes("state(initial, to(Paid,),)", 0);
        check_mistakes("state{initial, to(Paid)}", 0);
        check_mistakes("state(initial, to(Payed))", 1);
        check_mistakes("state(initial, to)", 1);
        check_mistakes("state(initial, to Paid)", 1);
        check_mistakes("state(initial, to[Paid])", 1);
        check_mistakes("state(initial, to(Paid Paid))", 1);
        check_mistakes("state(initial, to(Paid, ,))", 1);
        check_mistakes("state(initial, to(\"Paid\"))", 1);
        check_mistakes("state(initial to(Paid))", 1);
        check_mistakes("state(initial, to(Paid) rename = \"x\")", 1);
        check_mistakes("state(initial,, to(Paid))", 1);
        check_mistakes("state(, initial, to(Paid))", 1);
        check_mistakes("state(initial, to(Paid), rename)", 1);
        check_mistakes("state(initial, to(Paid), rename =)", 1);
        check_mistakes("state(initial, to(Paid), rename = x)", 1);
        check_mistakes("state(initial, to(Paid), rename = \"x\" \"y\")", 1);
        check_mistakes("state(initial, to(Paid), rename(\"x\"))", 1);
        check_mistakes("state(initial, to(Paid), a::b(c, d))", 1);
        check_mistakes("state(initial, to(Paid), _)", 1);
        check_mistakes("state(initial, to(Paid), #)", 1);
        check_mistakes("state = \"initial\"", 1);
        check_mistakes("state(initial, terminal, to(Paid))", 1);
        check_mistakes("state(initial, initial, to(Paid))", 1);
        check_mistakes("state(initial, terminal)", 1);
        check_mistakes("state(to(Paid))", 1);
    }

    #[test]
    fn independent_mistakes_are_all_reported() {
        check_mistakes("state", 2);
        check_mistakes("state()", 2);
        check_mistakes("other", 2);
        check_mistakes("state(initial, to(Payed, Pending), rename = \"\")", 3);
        check_mistakes("state(initial, to(Paid, Paid, Pending, Pending))", 3);
    }
}

//! Golden expansions, read in review like code, and the errors of mistakes that come together.
//!
//! `BLESS=1 cargo test -p idem-macros` rewrites what is generated here.

use std::path::Path;
use std::{env, fs};

use proc_macro2::TokenStream;
use quote::quote;

use super::expand;

/// Compares the expansion with `tests/expand/{name}.rs`.
#[track_caller]
fn golden(name: &str, arguments: TokenStream, item: TokenStream) {
    let file = syn::parse2(expand(arguments, item)).expect("an expansion is Rust");
    generated(
        &format!("tests/expand/{name}.rs"),
        &prettyplease::unparse(&file),
    );
}

/// Compares what was generated with the file that holds it.
#[track_caller]
fn generated(path: &str, actual: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if env::var_os("BLESS").is_some() {
        fs::write(&file, actual).expect("the file is writable");
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    let differs = |(is, was): &(&str, &str)| is != was;
    let padding = std::iter::repeat("");
    let lines = actual
        .lines()
        .chain(padding.clone())
        .zip(expected.lines().chain(padding));
    let at_most = actual.lines().count().max(expected.lines().count());
    let first = lines
        .take(at_most)
        .enumerate()
        .find(|(_, lines)| differs(lines));
    assert!(
        actual == expected,
        "{path} is not what is generated, {first:#?}: look at the change that BLESS=1 makes"
    );
}

/// The messages of the errors, in order.
fn errors(arguments: TokenStream, item: TokenStream) -> Vec<String> {
    let expanded = expand(arguments, item);
    let file: syn::File = syn::parse2(expanded).expect("the item is emitted beside the errors");
    let messages = file.items.into_iter().filter_map(|item| match item {
        syn::Item::Macro(item) if item.mac.path.segments.last()?.ident == "compile_error" => Some(
            item.mac
                .parse_body::<syn::LitStr>()
                .expect("a message")
                .value(),
        ),
        _ => None,
    });
    messages.collect()
}

/// One error for each expected part, no other.
#[track_caller]
fn refused(arguments: TokenStream, item: TokenStream, expected: &[&str]) {
    let errors = errors(arguments, item);
    let all_right = errors.len() == expected.len()
        && errors
            .iter()
            .zip(expected)
            .all(|(error, expected)| error.contains(expected));
    assert!(all_right, "expected {expected:#?}, got {errors:#?}");
}

fn terms() -> TokenStream {
    quote!(scope = "orders.pay", ttl = "48h")
}

fn right() -> TokenStream {
    quote!(
        fn pay(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<()> {
            store(db)
        }
    )
}

#[test]
fn async_fn() {
    golden(
        "async_fn",
        quote!(
            scope = "orders.pay",
            ttl = "48h",
            transition(OrderStatus::Pending => OrderStatus::Paid, id = cmd.order_id)
        ),
        quote! {
            /// Pays an order.
            #[tracing::instrument(skip_all)]
            pub async fn pay_order(db: &mut AsyncPgConnection, intent: &Intent, cmd: &PayOrder)
                -> Result<Outcome<Payment>, ShopError>
            {
                diesel::update(accounts::table).execute(db).await?;
                Ok(Payment { id: 1 }.into())
            }
        },
    );
}

#[test]
fn blocking_fn() {
    golden(
        "blocking_fn",
        quote!(
            scope = "orders.pay",
            ttl = retention::ORDERS,
            policy = PATIENT
        ),
        quote! {
            fn pay_order(db: &mut SqliteConnection, intent: &Intent, cmd: &PayOrder) -> QueryResult<Payment> {
                if cmd.amount_cents == 0 {
                    return Err(NotFound);
                }
                insert(db)
            }
        },
    );
}

#[test]
fn method() {
    golden(
        "method",
        quote!(
            scope = "orders.pay",
            ttl = "1h",
            short_ttl = "the caller never retries"
        ),
        quote! {
            pub(crate) async fn pay<C>(&mut self, mut db: &mut C, intent: Option<&Intent>, cmd: PayOrder) -> Self::Answer
            where
                C: IdempotentConnection,
            {
                self.pay_with(&mut db, cmd).await
            }
        },
    );
}

#[test]
fn several_requests() {
    golden(
        "several_requests",
        quote!(scope = "orders.pay", ttl = "48h", conn = db),
        quote! {
            fn pay(
                db: &mut impl Connection,
                #[idempotent(skip)] log: &mut Log,
                intent: &Intent,
                r#type: &str,
                #[idempotent(name = "amount")] Cents(amount): Cents,
                #[cfg(feature = "notes")] note: Option<String>,
                #[idempotent(skip)] trace_id: &str,
            ) -> Result<(), ShopError> {
                log.note(trace_id);
                record(db, r#type, amount)
            }
        },
    );
}

#[test]
fn names_the_body_does_not_use() {
    golden(
        "names_the_body_does_not_use",
        terms(),
        quote! {
            fn pay(_db: &mut SqliteConnection, _: &Intent, _cmd: &PayOrder) -> QueryResult<()> {
                Ok(())
            }
        },
    );
}

#[test]
fn owned_intent() {
    golden(
        "owned_intent",
        terms(),
        quote! {
            fn pay(db: &mut SqliteConnection, mut intent: Intent) -> QueryResult<()> {
                #![allow(unused_mut)]
                later(db, intent)
            }
        },
    );
}

#[test]
fn retries_in_a_loop_with_clones() {
    golden(
        "retries_in_a_loop_with_clones",
        quote!(
            scope = "orders.pay",
            ttl = "48h",
            retries = 3,
            transition(OrderStatus::Pending => OrderStatus::Paid, id = cmd.order_id)
        ),
        quote! {
            async fn pay(
                &mut self,
                db: &mut AsyncPgConnection,
                intent: Intent,
                mut cmd: PayOrder,
                #[idempotent(name = "line")] Line { id, .. }: Line,
                #[idempotent(skip)] clock: &Clock,
            ) -> QueryResult<()> {
                self.serve(db, intent, cmd, id, clock).await
            }
        },
    );
}

#[test]
fn several_states_and_a_renamed_library() {
    golden(
        "several_states_and_a_renamed_library",
        quote!(
            scope = "orders.cancel",
            ttl = "30d",
            crate = crate::once,
            transition(shop::OrderStatus::Pending | shop::OrderStatus::Paid => shop::OrderStatus::Cancelled, id = order_id),
        ),
        quote! {
            fn cancel(db: &mut SqliteConnection, intent: Option<Intent>, CancelOrder { order_id, .. }: CancelOrder)
                -> QueryResult<()>
            {
                free(db, order_id, intent)
            }
        },
    );
}

#[test]
fn a_refused_function_is_emitted_as_written() {
    golden(
        "a_refused_function_is_emitted_as_written",
        quote!(scope = "orders.pay"),
        quote! {
            pub fn pay(db: &mut SqliteConnection, #[idempotent(skip)] at: Time, note: &str) -> QueryResult<()> {
                #![allow(unused)]
                note_down(db, at, note)
            }
        },
    );
}

#[test]
fn two_mistakes_are_two_errors() {
    refused(
        quote!(),
        right(),
        &["`scope` is missing", "`ttl` is missing"],
    );
    refused(
        quote!(
            scope = "",
            ttl = "2 days",
            mode = leased,
            wait = "5s",
            retires = 3
        ),
        right(),
        &[
            "`retires` is not a word of this attribute: did you mean `retries`?",
            "`mode` comes with a later version",
            "`wait` belongs to the policy",
            "`scope` is empty",
            "a retention is a whole number and a unit",
        ],
    );
    refused(
        quote!(scope = 7, ttl = , conn = data, short_ttl = ""),
        right(),
        &[
            "`scope` takes a text",
            "the reason is empty",
            "`ttl` takes a text or the path",
            "no parameter `data`: write `conn = db`",
        ],
    );
}

#[test]
fn one_mistake_is_one_error() {
    for (arguments, expected) in [
        (
            quote!(scop = "orders.pay", ttl = "48h"),
            "did you mean `scope`?",
        ),
        (
            quote!("orders.pay", ttl = "48h"),
            "a word is missing before this",
        ),
        (
            quote!(scope("orders.pay"), ttl = "48h"),
            "`scope` takes a text: write `scope = \"orders.pay\"`",
        ),
        (
            quote!(scope = "orders.pay", ttl = 48h),
            "`ttl` takes a text or the path",
        ),
        (
            quote!(scope = "orders.pay", ttl),
            "`ttl` takes a text or the path",
        ),
        (
            quote!(scope = "orders.pay" ttl = "48h"),
            "a comma is missing before this",
        ),
        (
            quote!(scope = "orders.pay", ttl = "48h", skip),
            "it stands on a parameter",
        ),
        (
            quote!(scope = "orders.pay", ttl = "48h", conn = "db"),
            "`conn` takes the name of a parameter",
        ),
        (
            quote!(scope = "orders.pay", ttl = "48h", conn = intent),
            "write `intent: &mut &Intent`",
        ),
        (
            quote!(scope = "orders.pay", ttl = "48h", policy = T::POLICY),
            "one constant for every `T`",
        ),
        (
            quote!(scope = "orders.pay", ttl = "48h", transition = A),
            "`transition` takes its states and the row",
        ),
        (
            quote!(scope = "orders.pay", ttl = "48h", transition()),
            "expected identifier: write `transition(",
        ),
        (
            quote!(scope = "orders.pay", ttl = "48h", transition(A::B => A::C, row = 7)),
            "expected `id`: write",
        ),
        (
            quote!(scope = "orders.pay", ttl = "48h", transition(A::B => A::C, id = 7, 8)),
            "expected `)`: write",
        ),
    ] {
        let item = quote!(
            fn pay<T>(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<()> {
                store(db)
            }
        );
        refused(arguments, item, &[expected]);
    }
}

#[test]
fn one_mistake_on_a_parameter_is_one_error() {
    for (parameters, expected) in [
        (quote!(#[idempotent] a: i64), "say what is meant"),
        (quote!(#[idempotent()] a: i64), "say what is meant"),
        (
            quote!(#[idempotent(skip = true)] a: i64),
            "`skip` takes no value",
        ),
        (
            quote!(#[idempotent(skip, skip)] a: i64),
            "`skip` is given twice",
        ),
        (quote!(#[idempotent(skipp)] a: i64), "did you mean `skip`?"),
        (
            quote!(#[idempotent(scope = "a")] a: i64),
            "it stands on the function",
        ),
        (
            quote!(#[idempotent(name = a)] a: i64, b: i64),
            "`name` takes a text",
        ),
        (
            quote!(#[idem_diesel::idempotent(name = "b")] a: i64, b: i64),
            "two parameters are called",
        ),
    ] {
        let item = quote!(
            fn pay(db: &mut SqliteConnection, intent: &Intent, #parameters) -> QueryResult<()> {
                store(db)
            }
        );
        refused(terms(), item, &[expected]);
    }
}

#[test]
fn mistakes_of_attribute_signature_and_parameters_come_together() {
    refused(
        quote!(scope = "orders.pay", ttl = "1h"),
        quote!(
            unsafe fn pay(
                db: &mut C,
                log: &mut Log,
                #[idempotent(skip, name = "a")] a: i64,
                b: i64,
            ) {
            }
        ),
        &[
            "a retry can come later than 1h",
            "an `unsafe fn` cannot be idempotent",
            "returns a `Result`",
            "more than one parameter is `&mut`: say which one is the connection, `conn = db` or `conn = log`",
            "no intent",
            "a skipped parameter has no name",
        ],
    );
}

#[test]
fn each_wrong_state_of_a_transition_is_an_error() {
    refused(
        quote!(scope = "orders.pay", ttl = "48h", transition(Pending | Self::Draft => OrderStatus::Paid, id = 1)),
        right(),
        &["say whose state `Pending` is", "`Self` is not known here"],
    );
    refused(
        quote!(scope = "orders.pay", ttl = "48h", transition(A::X | A::X | A::Y => A::Y, id = 1)),
        right(),
        &["listed twice", "no state becomes itself"],
    );
}

#[test]
fn every_retention_that_the_library_takes_is_taken() {
    for taken in ["24h", "1d", "1w", "3660d", "048h"] {
        refused(quote!(scope = "a", ttl = #taken), right(), &[]);
    }
    for short in ["1s", "59m", "23h"] {
        refused(
            quote!(scope = "a", ttl = #short, short_ttl = "a test"),
            right(),
            &[],
        );
    }
    for wrong in [
        "",
        "h",
        "48",
        "48 h",
        "-1h",
        "+1h",
        "1.5h",
        "1h30m",
        "48H",
        "48µ",
        "99999999999999999999h",
    ] {
        refused(
            quote!(scope = "a", ttl = #wrong),
            right(),
            &["a whole number and a unit"],
        );
    }
    refused(
        quote!(scope = "a", ttl = "0h"),
        right(),
        &["nothing would be retained"],
    );
    refused(
        quote!(scope = "a", ttl = "3661d"),
        right(),
        &["the longest retention is ten years"],
    );
}

#[test]
fn what_is_no_function_is_one_error() {
    for item in [
        quote!(
            struct Pay;
        ),
        quote!(impl Pay { fn pay() {} }),
        quote!(fn pay() -> ),
    ] {
        let expanded = expand(terms(), item.clone()).to_string();
        assert_eq!(expanded.matches("compile_error").count(), 1, "{expanded}");
        assert!(expanded.ends_with(&item.to_string()), "{expanded}");
    }
}

#[test]
fn a_method_that_async_trait_has_rewritten_is_one_error() {
    refused(
        terms(),
        quote! {
            fn pay<'life0, 'life1, 'async_trait>(&'life0 self, db: &'life1 mut AsyncPgConnection, intent: &Intent)
                -> ::core::pin::Pin<Box<dyn ::core::future::Future<Output = Result<(), ShopError>> + ::core::marker::Send + 'async_trait>>
            where
                'life0: 'async_trait,
            {
                Box::pin(async move { let __self = self; let db = db; store(db).await })
            }
        },
        &["this function returns a boxed future, as `#[async_trait]` writes it"],
    );
}

/// The fixtures of every accepted shape, each a module, as they are when somebody deletes the attribute.
const WITHOUT_THE_ATTRIBUTE: &str = "../tests/ui/pass/idempotent_without_the_attribute.rs";

#[test]
fn fixtures_without_the_attribute_are_up_to_date() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/ui/pass");
    let mut names: Vec<String> = fs::read_dir(fixtures.clone())
        .expect("the fixtures are beside this crate")
        .map(|entry| {
            entry
                .expect("a readable folder")
                .file_name()
                .into_string()
                .expect("a UTF-8 name")
        })
        .filter(|name| name.starts_with("idempotent_") && !WITHOUT_THE_ATTRIBUTE.ends_with(name))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "no fixtures in {}", fixtures.display());

    let mut modules = String::from(
        "//! The other `idempotent_*` fixtures without the attribute: still ordinary Rust. Written by a test of `idem-macros`.\n\
         #![allow(unused)]\n",
    );
    let mut calls = String::new();
    for name in names {
        let source = fs::read_to_string(fixtures.join(&name)).expect("a fixture");
        let module = name
            .trim_start_matches("idempotent_")
            .trim_end_matches(".rs");
        let source = without_the_attribute(&source);
        modules.extend(["\nmod ", module, " {\n", &source, "}\n"]);
        calls.extend(["    ", module, "::main();\n"]);
    }
    generated(
        WITHOUT_THE_ATTRIBUTE,
        &format!("{modules}\nfn main() {{\n{calls}}}\n"),
    );
}

/// The text without `#[idempotent(…)]` and without its import, with a `main` that the parent can call.
fn without_the_attribute(source: &str) -> String {
    let mut rest = source;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once("#[idempotent(") {
        kept.push_str(before.trim_end_matches(' '));
        let (_, after) = after.split_once(")]").expect("the attribute ends");
        rest = after.trim_start_matches([' ', '\n']);
        // What follows on the next line begins where the attribute did.
        kept.push_str(&before[before.trim_end_matches(' ').len()..]);
    }
    kept.push_str(rest);
    let lines = kept.lines().filter(|line| !line.ends_with("::idempotent;"));
    let mut text: String = lines.flat_map(|line| [line, "\n"]).collect();
    for main in ["\nfn main()", "\nasync fn main()"] {
        text = text.replace(main, &format!("\npub(crate) {}", main.trim_start()));
    }
    text
}

//! Golden expansions, read in review like code, and the errors of mistakes that come together.

use proc_macro2::TokenStream;
use quote::quote;

use super::expand;
use crate::handler::testing;

/// Compares the expansion with `tests/expand/{name}.rs`.
#[track_caller]
fn golden(name: &str, arguments: TokenStream, item: TokenStream) {
    testing::golden(&format!("tests/expand/{name}.rs"), expand(arguments, item));
}

/// One error for each expected part, no other.
#[track_caller]
fn refused(arguments: TokenStream, item: TokenStream, expected: &[&str]) {
    testing::refused(expand(arguments, item), expected);
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

#[test]
fn the_words_of_a_consumer_are_not_those_of_a_command() {
    refused(
        terms(),
        quote!(
            #[consumer(subscriber = "billing", retention = "7d")]
            fn pay(
                db: &mut SqliteConnection,
                intent: &Intent,
                #[consumer(skip)] trace: &str,
            ) -> QueryResult<()> {
                store(db)
            }
        ),
        &[
            "this function is idempotent already: keep one of the attributes",
            "this function is idempotent: write `#[idempotent(skip)]`",
        ],
    );
}

#[test]
fn a_consumer_of_another_library_is_left_alone() {
    refused(
        terms(),
        quote!(
            #[kafka::consumer(topic = "orders")]
            fn pay(db: &mut SqliteConnection, intent: &Intent) -> QueryResult<()> {
                store(db)
            }
        ),
        &[],
    );
}

#[test]
fn fixtures_without_the_attribute_are_up_to_date() {
    testing::without_the_attribute_is_up_to_date("idempotent");
}

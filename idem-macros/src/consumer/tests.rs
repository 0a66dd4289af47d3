//! Golden expansions, read in review like code, and the errors of mistakes that come together.

use proc_macro2::TokenStream;
use quote::quote;

use super::expand;
use crate::handler::testing;

/// Compares the expansion with `tests/consumer/{name}.rs`.
#[track_caller]
fn golden(name: &str, arguments: TokenStream, item: TokenStream) {
    testing::golden(
        &format!("tests/consumer/{name}.rs"),
        expand(arguments, item),
    );
}

/// One error for each expected part, no other.
#[track_caller]
fn refused(arguments: TokenStream, item: TokenStream, expected: &[&str]) {
    testing::refused(expand(arguments, item), expected);
}

fn terms() -> TokenStream {
    quote!(subscriber = "billing", retention = "7d")
}

fn right() -> TokenStream {
    quote!(
        fn bill(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
            store(db)
        }
    )
}

#[test]
fn async_fn() {
    golden(
        "async_fn",
        quote!(
            subscriber = "billing",
            retention = "7d",
            redelivery = "24h",
            policy = PATIENT,
            transition(OrderStatus::Pending => OrderStatus::Billed, id = event.order_id)
        ),
        quote! {
            /// Bills an order.
            #[tracing::instrument(skip_all)]
            pub async fn bill(db: &mut AsyncPgConnection, id: &MessageId, event: &OrderPlaced)
                -> Result<Consumed<Invoice>, ShopError>
            {
                diesel::insert_into(invoices::table).execute(db).await?;
                Ok(Invoice { id: 1 }.into())
            }
        },
    );
}

#[test]
fn blocking_fn() {
    golden(
        "blocking_fn",
        quote!(
            subscriber = "billing",
            retention = retention::EVENTS,
            redelivery = broker::REDELIVERY,
            transition(OrderStatus::Pending | OrderStatus::Paid => OrderStatus::Billed, id = event.order_id)
        ),
        quote! {
            fn bill(db: &mut SqliteConnection, mut id: MessageId, event: &OrderPlaced) -> QueryResult<()> {
                if event.amount_cents == 0 {
                    return Err(NotFound);
                }
                insert(db, id)
            }
        },
    );
}

#[test]
fn intent_of_a_message() {
    golden(
        "intent_of_a_message",
        terms(),
        quote! {
            async fn bill(db: &mut AsyncPgConnection, id: &MessageId, intent: &Intent) -> QueryResult<()> {
                charge(db, id, intent.downstream("psp.charge")).await
            }
        },
    );
}

#[test]
fn optional_owned_intent() {
    golden(
        "optional_owned_intent",
        terms(),
        quote! {
            fn bill(db: &mut SqliteConnection, id: &MessageId, mut intent: Option<Intent>) -> QueryResult<()> {
                later(db, id, intent.take())
            }
        },
    );
}

#[test]
fn method_of_a_constant_subscription() {
    golden(
        "method_of_a_constant_subscription",
        quote!(subscription = BILLING, crate = crate::once),
        quote! {
            pub(crate) async fn bill<C>(&mut self, mut db: &mut C, id: &MessageId, event: OrderPlaced) -> Self::Answer
            where
                C: IdempotentConnection,
            {
                self.bill_with(&mut db, id, event).await
            }
        },
    );
}

#[test]
fn several_parts_of_a_message() {
    golden(
        "several_parts_of_a_message",
        quote!(
            subscriber = "billing",
            retention = "7d",
            conn = db,
            message_id = delivery,
            intent = key
        ),
        quote! {
            fn bill(
                db: &mut impl Connection,
                #[consumer(skip)] log: &mut Log,
                key: &Key,
                delivery: Id,
                cause: &MessageId,
                r#type: &str,
                #[consumer(name = "amount")] Cents(amount): Cents,
                #[cfg(feature = "notes")] note: Option<String>,
            ) -> Result<(), ShopError> {
                log.note(cause);
                record(db, r#type, amount, key, delivery)
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
            fn bill(_db: &mut SqliteConnection, _: &MessageId, OrderPlaced { .. }: &OrderPlaced) -> QueryResult<()> {
                Ok(())
            }
        },
    );
    golden(
        "underscored_names_the_body_does_not_use",
        terms(),
        quote! {
            fn bill(_db: &mut SqliteConnection, mut _id: MessageId, _event: &OrderPlaced) -> QueryResult<()> {
                Ok(())
            }
        },
    );
}

#[test]
fn a_refused_function_is_emitted_as_written() {
    golden(
        "a_refused_function_is_emitted_as_written",
        quote!(subscriber = "billing"),
        quote! {
            pub fn bill(db: &mut SqliteConnection, #[consumer(skip)] at: Time, note: &str) -> QueryResult<()> {
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
        &["`subscriber` is missing", "`retention` is missing"],
    );
    refused(
        quote!(
            subscriber = "",
            retention = "2 days",
            redelivery = "0h",
            wait = "5s",
            subscribers = 3
        ),
        right(),
        &[
            "`subscribers` is not a word of this attribute: did you mean `subscriber`?",
            "`wait` belongs to the policy",
            "`subscriber` is empty: name the subscriber, such as \"billing\"",
            "a retention is a whole number and a unit",
            "a broker that never delivers again needs no `redelivery`",
        ],
    );
    refused(
        quote!(subscriber = 7, retention = , conn = data, message_id = key, intent = wish),
        right(),
        &[
            "`subscriber` takes a text: write `subscriber = \"billing\"`",
            "`retention` takes a text or the path",
            "no parameter `key`: write `message_id = id`",
            "no parameter `wish`: write `intent = id`",
            "no parameter `data`: write `conn = db`",
        ],
    );
}

#[test]
fn the_words_of_a_command_say_what_a_consumer_has() {
    refused(
        quote!(
            scope = "orders.bill",
            ttl = "48h",
            short_ttl = "why",
            retries = 3
        ),
        right(),
        &[
            "`scope` is a word of `#[idempotent]`, and a consumer has a `subscriber`",
            "`ttl` is a word of `#[idempotent]`, and a consumer has a `retention`",
            "`short_ttl` is a word of `#[idempotent]`, and how short a retention may be depends on the broker",
            "`retries` is a word of `#[idempotent]`, and what fails is delivered again",
        ],
    );
    let terms = terms();
    refused(
        quote!(#terms, max_attempts = 7),
        right(),
        &["`max_attempts` belongs to the subscription: write it in a `const PATH: Subscription"],
    );
}

#[test]
fn a_constant_subscription_has_everything() {
    refused(
        quote!(
            subscription = BILLING,
            subscriber = "billing",
            retention = "x",
            redelivery = 7,
            policy = PATIENT
        ),
        right(),
        &[
            "remove `subscriber`, or remove `subscription`",
            "remove `retention`, or remove `subscription`",
            "remove `redelivery`, or remove `subscription`",
            "remove `policy`, or remove `subscription`",
        ],
    );
    refused(quote!(subscription = BILLING), right(), &[]);
    refused(
        quote!(subscription = "billing"),
        right(),
        &["`subscription` takes a path: write `subscription = PATH_TO_A_CONST_SUBSCRIPTION`"],
    );
    refused(
        quote!(subscription = Self::BILLING),
        right(),
        &["`Self` is not known here, because the subscription is a constant"],
    );
}

#[test]
fn a_message_is_remembered_as_long_as_it_can_come() {
    for (retention, redelivery) in [("24h", "1d"), ("7d", "1s"), ("1w", "168h")] {
        refused(
            quote!(subscriber = "billing", retention = #retention, redelivery = #redelivery),
            right(),
            &[],
        );
    }
    refused(
        quote!(subscriber = "billing", retention = "1h", redelivery = "24h"),
        right(),
        &["a message can come again for 24h and would run again after 1h: write at least \"24h\""],
    );
    // Only the compiler knows constants.
    refused(
        quote!(
            subscriber = "billing",
            retention = "1h",
            redelivery = REDELIVERY
        ),
        right(),
        &[],
    );
    refused(
        quote!(
            subscriber = "billing",
            retention = T::RETENTION,
            redelivery = T::REDELIVERY
        ),
        quote!(
            fn bill<T>(db: &mut SqliteConnection, id: &MessageId) -> QueryResult<()> {
                store(db)
            }
        ),
        &["one constant for every `T`", "one constant for every `T`"],
    );
    refused(
        quote!(subscriber = "billing", retention = "0d"),
        right(),
        &["nothing would be remembered"],
    );
    refused(
        quote!(
            subscriber = "billing",
            retention = "3660d",
            redelivery = "3661d"
        ),
        right(),
        &["the longest redelivery is ten years"],
    );
}

#[test]
fn one_mistake_on_a_parameter_is_one_error() {
    for (parameters, expected) in [
        (quote!(), "no message id: take a parameter `id: &MessageId`"),
        (quote!(id: &str), "no message id"),
        (
            quote!(id: &MessageId, cause: idem_diesel::MessageId),
            "more than one parameter is a message id: say which one is meant, `message_id = id` or `message_id = cause`",
        ),
        (
            quote!(id: &mut MessageId),
            "the message id is only read: write `&MessageId`",
        ),
        (
            quote!(id: Option<&MessageId>),
            "a message without an id would run on every delivery",
        ),
        (
            quote!(id: Option<MessageId>),
            "a message without an id would run on every delivery",
        ),
        (
            quote!(ref id: MessageId),
            "the message id needs a plain name",
        ),
        (
            quote!(#[cfg(test)] id: &MessageId),
            "the connection, the message id and the intent are there",
        ),
        (
            quote!(#[consumer(skip)] id: &MessageId),
            "the receiver, the connection, the message id and the intent",
        ),
        (
            quote!(id: &MessageId, a: &Intent, b: &Intent),
            "more than one parameter is an intent",
        ),
        (
            quote!(id: &MessageId, #[consumer] a: i64),
            "say what is meant: `#[consumer(skip)]` or `#[consumer(name = ",
        ),
        (
            quote!(id: &MessageId, #[idempotent(skip)] a: i64),
            "this function is a consumer: write `#[consumer(skip)]`",
        ),
        (
            quote!(id: &MessageId, #[consumer(skip, name = "a")] a: i64),
            "a skipped parameter has no name in the hash of the message",
        ),
        (
            quote!(id: &MessageId, #[consumer(name = "a")] a: i64),
            "the only message parameter is hashed as it is",
        ),
        (
            quote!(id: &MessageId, a: i64, (b, c): (i64, i64)),
            "write `#[consumer(name = \"…\")]` before it, or `#[consumer(skip)]`",
        ),
        (
            quote!(id: &MessageId, a: i64, #[consumer(name = "a")] b: i64),
            "two parameters are called \"a\" in the hash of the message",
        ),
        (
            quote!(id: &MessageId, #[consumer(retention = "7d")] a: i64),
            "it stands on the function",
        ),
    ] {
        let item = quote!(
            fn bill(db: &mut SqliteConnection, #parameters) -> QueryResult<()> {
                store(db)
            }
        );
        refused(terms(), item, &[expected]);
    }
}

#[test]
fn mistakes_of_attribute_signature_and_parameters_come_together() {
    refused(
        quote!(subscriber = "billing", retention = "1h", redelivery = "1d"),
        quote!(
            #[idem_diesel::consumer(subscription = BILLING)]
            #[idempotent(scope = "orders.bill")]
            unsafe extern "C" fn bill(
                db: &mut C,
                log: &mut Log,
                a: i64,
                (b, c): (i64, i64),
                _: ...
            ) -> impl Sized;
        ),
        &[
            "a message can come again for 1d",
            "this function is a consumer already",
            "this function is a consumer already",
            "an `unsafe fn` cannot be a consumer",
            "an `extern` function cannot be a consumer: call a consumer Rust function from it",
            "`...` cannot be part of the hash of the message",
            "there is no body to make a consumer of: put the attribute on the method in the `impl`",
            "what a duplicate returns is made by the library, so its type needs a name",
            "say which one is the connection, `conn = db` or `conn = log`",
            "no message id",
            "several parameters are hashed by name",
        ],
    );
}

#[test]
fn what_is_no_function_is_one_error() {
    let item = quote!(
        struct Bill;
    );
    let expanded = expand(terms(), item.clone()).to_string();
    assert_eq!(expanded.matches("compile_error").count(), 1, "{expanded}");
    assert!(
        expanded.contains("`#[consumer]` stands on a function or a method with a body"),
        "{expanded}"
    );
    assert!(expanded.ends_with(&item.to_string()), "{expanded}");
}

#[test]
fn fixtures_without_the_attribute_are_up_to_date() {
    testing::without_the_attribute_is_up_to_date("consumer");
}

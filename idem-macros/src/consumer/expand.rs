//! The guard of a consumption around the body. Nothing here can fail.

use proc_macro2::{Delimiter, Group, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::LitStr;

use super::consumption::{Consumption, MessageIdForm, Parts, Retention, Subscription};
use crate::handler::expand::{Again, Guard, Runs, bound};
use crate::handler::parts::Intent;
use crate::handler::placement::{first_span, last_span, mixed_at};

/// The annotated function with the guard inside.
pub(super) fn expand(consumption: &Consumption) -> TokenStream {
    let parts = consumption.parts();
    let guard = Guard {
        handler: &parts.handler,
        module: Some("consumer"),
        claimed: "consumption",
    };
    let begin = begin(&guard, parts);
    let patterns = guard.patterns();
    let transition = parts.handler.transition.as_ref().map(|transition| {
        let refused = quote_spanned!(Span::mixed_site()=> consumption, error);
        let refuse = guard.ended("refuse", refused);
        guard.step(
            transition,
            &quote_spanned!(Span::mixed_site()=> return #refuse;),
        )
    });
    let names = match &parts.intent {
        Some(intent) => guard.names(intent, Runs::Once),
        None => connection(parts),
    };
    let body = guard.body(Runs::Once);
    let result = quote_spanned!(Span::mixed_site()=> consumption, result);
    let finish = guard.ended("finish", result);
    let call = quote_spanned! {Span::mixed_site()=>
        #begin
        #patterns
        #transition
        #names
        #body
        #finish
    };
    guard.function(&constants(&parts.subscription), &call)
}

/// The subscription, and what the compiler has to prove about it.
fn constants(subscription: &Subscription) -> TokenStream {
    let subscription = match subscription {
        Subscription::Constant(path) => path.to_token_stream(),
        Subscription::Declared {
            subscriber,
            retention,
            redelivery,
            policy,
        } => {
            let with_policy = policy
                .as_ref()
                .map(|path| quote_spanned!(Span::mixed_site()=> .with_policy(#path)));
            let subscription = remembering(subscriber, retention, redelivery.as_ref());
            quote!(#subscription #with_policy)
        }
    };
    quote_spanned! {Span::mixed_site()=>
        const __SUBSCRIPTION: __idem::Subscription = #subscription;
    }
}

/// The subscription without its policy, shown as the retention: that is what is too short when the compiler refuses it.
fn remembering(
    subscriber: &LitStr,
    retention: &Retention,
    redelivery: Option<&Retention>,
) -> TokenStream {
    let (start, end) = (mixed_at(first_span(retention)), last_span(retention));
    let ended = |arguments: TokenStream| {
        let mut arguments = Group::new(Delimiter::Parenthesis, arguments);
        arguments.set_span(mixed_at(end));
        arguments
    };
    let remembered = constant(retention);
    let arguments = ended(quote!(#subscriber, #remembered));
    let redelivered = redelivery.map(|redelivery| {
        let arguments = ended(constant(redelivery));
        quote_spanned!(start=> .redelivered_for #arguments)
    });
    quote_spanned!(start=> __idem::Subscription::new #arguments #redelivered)
}

fn constant(retention: &Retention) -> TokenStream {
    match retention {
        Retention::Literal(literal) => {
            quote_spanned!(Span::mixed_site()=> __idem::Retention::literal(#literal))
        }
        Retention::Constant(path) => path.to_token_stream(),
    }
}

/// As it was written.
impl ToTokens for Retention {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Literal(literal) => literal.to_tokens(tokens),
            Self::Constant(path) => path.to_tokens(tokens),
        }
    }
}

/// The claim of the message, or the end of a duplicate.
fn begin(guard: &Guard<'_>, parts: &Parts) -> TokenStream {
    let db = &parts.handler.connection.name;
    let id = &parts.message_id.name;
    let id = match parts.message_id.form {
        MessageIdForm::Borrowed => id.to_token_stream(),
        MessageIdForm::Owned => quote_spanned!(Span::mixed_site()=> &#id),
    };
    let intent = parts
        .intent
        .as_ref()
        .map_or_else(|| quote!(::core::option::Option::None), Intent::argument);
    let message = guard.request();
    let arguments = quote_spanned! {Span::mixed_site()=>
        &mut *#db, &__SUBSCRIPTION, #id, #intent, #message
    };
    let duplicate = Again {
        variant: quote!(Duplicate),
        holds: None,
        answer: guard.answer("duplicate", TokenStream::new()),
    };
    guard.begin(arguments, &quote!(__idem::inbox::Claimed), &duplicate)
}

/// What the body calls its connection, without an intent.
fn connection(parts: &Parts) -> TokenStream {
    let db = bound(parts.handler.connection.visible.as_ref());
    quote_spanned!(Span::mixed_site()=> let #db = consumption.connection();)
}

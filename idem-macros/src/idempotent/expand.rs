//! The guard of an operation around the body. Nothing here can fail.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Path;

use super::operation::{Operation, Owned, Parts, Retries, Ttl};
use crate::handler::expand::{Again, Guard, Runs, assertion};

/// The annotated function with the guard inside.
pub(super) fn expand(operation: &Operation) -> TokenStream {
    let parts = operation.parts();
    let guard = Guard {
        handler: &parts.handler,
        module: None,
        claimed: "execution",
    };
    let runs = match parts.retries {
        None => Runs::Once,
        Some(_) => Runs::Again,
    };
    let begin = begin(&guard, parts);
    let clones = clones(parts);
    let patterns = guard.patterns();
    let transition = parts.handler.transition.as_ref().map(|transition| {
        let refuse = guard.ended(&ending(parts, "refuse"), ending_with(parts, "error"));
        guard.step(transition, &leave(parts, &refuse))
    });
    let names = guard.names(&parts.intent, runs);
    let body = guard.body(runs);
    let finish = finish(&guard, parts);
    let call = quote_spanned! {Span::mixed_site()=>
        #begin
        #clones
        #patterns
        #transition
        #names
        #body
        #finish
    };
    guard.function(&constants(parts), &repeated(parts, call))
}

/// The operation, and what the compiler has to prove about it.
fn constants(parts: &Parts) -> TokenStream {
    let Parts {
        scope, ttl, policy, ..
    } = parts;
    let retention = match ttl {
        Ttl::Literal(literal) => {
            quote_spanned!(Span::mixed_site()=> __idem::Retention::literal(#literal))
        }
        Ttl::Constant { path, .. } => path.to_token_stream(),
    };
    let with_policy = policy
        .as_ref()
        .map(|path| quote_spanned!(Span::mixed_site()=> .with_policy(#path)));
    let is_long = match ttl {
        Ttl::Constant {
            path,
            at_least_a_day: true,
        } => Some(long_retention(path)),
        Ttl::Constant { .. } | Ttl::Literal(_) => None,
    };
    quote_spanned! {Span::mixed_site()=>
        const __OPERATION: __idem::Operation = __idem::Operation::new(#scope, #retention)#with_policy;
        #is_long
    }
}

/// The rule of short retentions, for a constant whose value only the compiler knows.
fn long_retention(path: &Path) -> TokenStream {
    let message = format!(
        "a retry can come later than this retention of less than 24 h: make it longer, or say why none comes: `{}`",
        crate::words::example(crate::words::SHORT_TTL)
    );
    let is_long = quote_spanned!(Span::mixed_site()=> #path.as_secs() >= 86_400);
    assertion(&is_long, &message, path, path)
}

/// The claim of the key, or the answer that it has already.
fn begin(guard: &Guard<'_>, parts: &Parts) -> TokenStream {
    let db = &parts.handler.connection.name;
    let (intent, request) = (parts.intent.argument(), guard.request());
    let arguments = quote_spanned!(Span::mixed_site()=> &mut *#db, #intent, &__OPERATION, #request);
    let stored = quote_spanned!(Span::mixed_site()=> stored);
    let replay = Again {
        variant: quote!(Replay),
        holds: Some(stored.clone()),
        answer: guard.answer("replay", stored),
    };
    guard.begin(arguments, &quote!(__idem::Claimed), &replay)
}

/// `finish`, or `finish_or_retry`.
fn ending(parts: &Parts, name: &str) -> String {
    match parts.retries {
        Some(_) => format!("{name}_or_retry"),
        None => name.to_owned(),
    }
}

/// The execution, what it ends with, and how often the body may still run again.
fn ending_with(parts: &Parts, end: &str) -> TokenStream {
    let end = Ident::new(end, Span::mixed_site());
    let retries = parts.retries.as_ref();
    let retries = retries.map(|_| quote_spanned!(Span::mixed_site()=> , &mut retries));
    quote_spanned!(Span::mixed_site()=> execution, #end #retries)
}

/// Returns what `ended` gives, unless the body may run again and has to.
fn leave(parts: &Parts, ended: &TokenStream) -> TokenStream {
    if parts.retries.is_none() {
        return quote_spanned!(Span::mixed_site()=> return #ended;);
    }
    quote_spanned! {Span::mixed_site()=>
        match #ended {
            ::core::option::Option::Some(result) => return result,
            ::core::option::Option::None => continue,
        }
    }
}

/// The call in a loop, if the body may run again. Each run is a call from its very beginning, on a new snapshot.
fn repeated(parts: &Parts, call: TokenStream) -> TokenStream {
    let Some(Retries { times, owned }) = &parts.retries else {
        return call;
    };
    // What the signature calls `mut` is only changed in the clones.
    let touched = owned.iter().filter(|owned| owned.mutability.is_some());
    let touched = touched.map(
        |Owned { name, cfg, .. }| quote_spanned!(Span::mixed_site()=> #(#cfg)* let _ = &mut #name;),
    );
    // They are taken by value, and this is what takes them: each run has clones.
    let intent = parts.intent.is_owned().then_some(&parts.intent.name);
    let kept = intent.map(|name| quote_spanned!(Span::mixed_site()=> let #name = #name;));
    let kept = kept.into_iter().chain(owned.iter().map(
        |Owned { name, cfg, .. }| quote_spanned!(Span::mixed_site()=> #(#cfg)* let #name = #name;),
    ));
    quote_spanned! {Span::mixed_site()=>
        let mut retries = __idem::__private::Retries::new(#times);
        #(#touched)*
        #(#kept)*
        loop {
            #call
        }
    }
}

/// What this run of the body may keep, so that the next one has it, too.
fn clones(parts: &Parts) -> Option<TokenStream> {
    let clones = parts.retries.as_ref()?.owned.iter();
    let clones = clones.map(|Owned { name, mutability, cfg }| {
        quote_spanned!(Span::mixed_site()=> #(#cfg)* let #mutability #name = ::core::clone::Clone::clone(&#name);)
    });
    Some(quote!(#(#clones)*))
}

fn finish(guard: &Guard<'_>, parts: &Parts) -> TokenStream {
    let finish = guard.ended(&ending(parts, "finish"), ending_with(parts, "result"));
    match parts.retries {
        Some(_) => quote_spanned! {Span::mixed_site()=>
            if let ::core::option::Option::Some(result) = #finish {
                return result;
            }
        },
        None => finish,
    }
}

//! The call of the guard, written inline around the body. Nothing here can fail.
//!
//! Hygiene: what the expansion introduces has mixed-site spans, so that the body cannot see it. `db` and `intent` keep the user's
//! identifiers, because the body is meant to see those. What can fail to type-check is shown at the token that the user has to
//! change: the return type, the connection's type or the parameter.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Path;

use super::operation::{
    Intent, Operation, Owned, Parts, Request, Retries, Transition, Ttl, Visible,
};
use super::placement::{applied, call, first_span, last_span, mixed_at};
use super::signature::{self, IntentForm};

/// The annotated function with the guard inside.
pub(super) fn expand(operation: &Operation) -> TokenStream {
    let parts = operation.parts();
    let Parts {
        attrs,
        vis,
        sig,
        inner_attrs,
        krate,
        ..
    } = parts;
    let constants = constants(parts);
    let begin = begin(parts);
    let patterns = parts.requests.iter().map(pattern);
    let transition = parts
        .transition
        .as_ref()
        .map(|transition| step(transition, parts));
    let names = names(parts);
    let body = body(parts);
    let finish = finish(parts);
    let clones = clones(parts);
    let call = quote_spanned! {Span::mixed_site()=>
        #begin
        #clones
        #(#patterns)*
        #transition
        #names
        #body
        #finish
    };
    let call = repeated(parts, call);
    let inside = quote_spanned! {Span::mixed_site()=>
        #(#inner_attrs)*
        use #krate as __idem;
        #constants
        #call
    };
    let mut block = Group::new(parts.block.delimiter(), inside);
    block.set_span(parts.block.span());
    quote!(#(#attrs)* #vis #sig #block)
}

/// What differs between `fn` and `async fn`.
#[derive(Clone, Copy)]
enum Mode {
    Blocking,
    Asynchronous,
}

impl Mode {
    fn of(parts: &Parts) -> Self {
        match parts.sig.asyncness {
            Some(_) => Self::Asynchronous,
            None => Self::Blocking,
        }
    }

    /// `__idem::__private::asynchronous::name`
    fn function(self, name: &str) -> TokenStream {
        let module = match self {
            Self::Blocking => "blocking",
            Self::Asynchronous => "asynchronous",
        };
        let (module, name) = (fresh(module), fresh(name));
        quote_spanned!(Span::mixed_site()=> __idem::__private::#module::#name)
    }

    /// `value.await`, shown where `place` begins: a keyword has one place.
    fn awaited(self, value: TokenStream, place: &impl ToTokens) -> TokenStream {
        match self {
            Self::Blocking => value,
            Self::Asynchronous => {
                let awaited = quote_spanned!(first_span(place)=> .await);
                quote!(#value #awaited)
            }
        }
    }
}

fn fresh(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// The operation, and what the compiler has to prove about it.
fn constants(parts: &Parts) -> TokenStream {
    let Parts {
        scope,
        ttl,
        policy,
        transition,
        ..
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
    let edges = transition.iter().flat_map(edges);
    quote_spanned! {Span::mixed_site()=>
        const __OPERATION: __idem::Operation = __idem::Operation::new(#scope, #retention)#with_policy;
        #is_long
        #(#edges)*
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

/// One check for each state that the transition may start from.
fn edges(transition: &Transition) -> impl Iterator<Item = TokenStream> {
    let Transition {
        machine, from, to, ..
    } = transition;
    from.iter().map(move |state| {
        let enum_name = variant(machine);
        let message = format!(
            "`{enum_name}` has no transition {} => {}: add it to `#[state(to(…))]` of `{}`",
            variant(state),
            variant(to),
            variant(state),
        );
        let condition = quote_spanned! {Span::mixed_site()=>
            __idem::__private::has_edge(
                <#machine as __idem::StateMachine>::EDGES,
                #state as ::core::primitive::isize,
                #to as ::core::primitive::isize,
            )
        };
        // With several states each error shows its own, because what lies between them is not wrong.
        let end = if from.len() == 1 { to } else { state };
        assertion(&condition, &message, state, end)
    })
}

/// A constant that does not compile unless `condition` holds, located from `start` to `end`.
fn assertion(condition: &TokenStream, message: &str, start: &Path, end: &Path) -> TokenStream {
    let at_start = mixed_at(first_span(start));
    let mut arguments = Group::new(
        Delimiter::Parenthesis,
        quote_spanned!(at_start=> #condition, #message),
    );
    arguments.set_span(mixed_at(last_span(end)));
    quote_spanned!(at_start=> const _: () = ::core::assert! #arguments;)
}

/// Key and hash are taken before the body can move an argument. The claim is a value of its own so that what the hash borrows is gone
/// before anything is awaited: the future stays `Send`.
fn begin(parts: &Parts) -> TokenStream {
    let Parts {
        output,
        connection,
        requests,
        ..
    } = parts;
    let mode = Mode::of(parts);
    let types = types(parts);
    let (db, intent, request) = (&connection.name, intent(parts), request(requests));
    let arguments = quote_spanned!(Span::mixed_site()=> &mut *#db, #intent, &__OPERATION, #request);
    let begin = call(&mode.function("begin"), &types, arguments, output);
    let replay = call(
        &quote!(__idem::__private::replay),
        output,
        quote_spanned!(Span::mixed_site()=> stored),
        output,
    );
    let fail = call(
        &quote!(__idem::__private::fail),
        output,
        quote_spanned!(Span::mixed_site()=> error),
        output,
    );
    // Shown where the return type begins, so it is visible to who wrote that: the body. Hence a name that nobody else has.
    let claim = Ident::new("__claim", first_span(output));
    let claimed = mode.awaited(quote!(#claim), output);
    let execute = applied(
        quote!(__idem::Claimed::Execute),
        quote_spanned!(Span::mixed_site()=> execution),
        &connection.ty,
    );
    let replayed = applied(
        quote!(__idem::Claimed::Replay),
        quote_spanned!(Span::mixed_site()=> stored),
        &connection.ty,
    );
    quote_spanned! {Span::mixed_site()=>
        let #claim = #begin;
        let mut execution = match #claimed {
            ::core::result::Result::Ok(#execute) => execution,
            ::core::result::Result::Ok(#replayed) => return #replay,
            ::core::result::Result::Err(error) => return #fail,
        };
    }
}

/// The return type and the connection's type, as the functions of the guard take them.
fn types(parts: &Parts) -> TokenStream {
    let Parts {
        output, connection, ..
    } = parts;
    let connection = &connection.ty;
    // `impl Trait` has no name here.
    if signature::is_opaque(connection) {
        quote!(#output, _)
    } else {
        quote!(#output, #connection)
    }
}

/// The intent as `Option<&Intent>`.
fn intent(parts: &Parts) -> TokenStream {
    let name = &parts.intent.name;
    match parts.intent.form {
        IntentForm::Borrowed => {
            quote_spanned!(Span::mixed_site()=> ::core::option::Option::Some(#name))
        }
        IntentForm::Owned => {
            quote_spanned!(Span::mixed_site()=> ::core::option::Option::Some(&#name))
        }
        IntentForm::OptionalBorrowed => name.to_token_stream(),
        IntentForm::OptionalOwned => {
            quote_spanned!(Span::mixed_site()=> ::core::option::Option::as_ref(&#name))
        }
    }
}

/// What is hashed, as `&dyn RequestHash`: one parameter as it is, several as a struct.
fn request(requests: &[Request]) -> TokenStream {
    match requests {
        [] => quote_spanned!(Span::mixed_site()=> &()),
        [only] if only.cfg.is_empty() => borrowed(only),
        several => {
            let fields = several.iter().map(|request| {
                let Request { label, cfg, .. } = request;
                let value = borrowed(request);
                quote_spanned!(Span::mixed_site()=> #(#cfg)* (#label, #value))
            });
            quote_spanned!(Span::mixed_site()=> &__idem::__private::Fields(&[#(#fields),*]))
        }
    }
}

/// `&cmd`, located from the parameter's name to the end of its type.
fn borrowed(request: &Request) -> TokenStream {
    let Request { name, ty, .. } = request;
    let ampersand = quote_spanned!(mixed_at(last_span(ty))=> &);
    quote!(#ampersand #name)
}

/// The pattern that was written in place of a name, bound where the transition and the body can see it.
fn pattern(request: &Request) -> Option<TokenStream> {
    let Request {
        name, cfg, pattern, ..
    } = request;
    let pattern = pattern.as_ref()?;
    Some(quote_spanned!(Span::mixed_site()=> #(#cfg)* let #pattern = { #name };))
}

/// The guarded change of state. What it refuses ends the call before the body.
fn step(transition: &Transition, parts: &Parts) -> TokenStream {
    let Transition { from, to, id, .. } = transition;
    let output = &parts.output;
    let mode = Mode::of(parts);
    let arguments = quote_spanned!(Span::mixed_site()=> &mut execution, #to, &[#(#from),*], #id);
    let apply = applied(mode.function("transition"), arguments, to);
    let apply = mode.awaited(apply, to);
    let refused = ending_with(parts, "error");
    let refuse = call(
        &ending(mode, parts, "refuse"),
        &types(parts),
        refused,
        output,
    );
    let refuse = mode.awaited(refuse, output);
    let leave = leave(parts, &refuse);
    quote_spanned! {Span::mixed_site()=>
        let moved = #apply;
        if let ::core::result::Result::Err(error) = moved {
            #leave
        }
    }
}

/// `finish`, or `finish_or_retry`.
fn ending(mode: Mode, parts: &Parts, name: &str) -> TokenStream {
    match parts.retries {
        Some(_) => mode.function(&format!("{name}_or_retry")),
        None => mode.function(name),
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
    let intent = is_owned(&parts.intent).then_some(&parts.intent.name);
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

/// What the body calls its connection and its intent.
fn names(parts: &Parts) -> TokenStream {
    let Parts {
        connection, intent, ..
    } = parts;
    let db = bound(connection.visible.as_ref());
    let take = match intent.form {
        IntentForm::Borrowed | IntentForm::Owned => quote!(__parts),
        IntentForm::OptionalBorrowed | IntentForm::OptionalOwned => quote!(__optional_parts),
    };
    let (bound_intent, keep) = bound_intent(intent);
    // An owned parameter ends where the body's own begins.
    let release = (is_owned(intent) && parts.retries.is_none()).then(|| {
        let name = &intent.name;
        quote_spanned!(Span::mixed_site()=> ::core::mem::drop(#name);)
    });
    quote_spanned! {Span::mixed_site()=>
        #release
        let (#db, #bound_intent) = execution.#take();
        #keep
    }
}

/// The pattern of the intent, and the statements after it. An intent that the body does not use is still the key of the call, so it
/// is never reported as unused.
fn bound_intent(intent: &Intent) -> (TokenStream, Option<TokenStream>) {
    let Some(visible) = &intent.visible else {
        return (quote!(_), None);
    };
    let name = &visible.name;
    let keep = quote_spanned!(Span::mixed_site()=> let _ = &#name;);
    // An owned parameter was the body's to keep, so the body gets one to keep.
    let owned = match intent.form {
        IntentForm::Owned => quote!(::core::clone::Clone::clone),
        IntentForm::OptionalOwned => quote!(::core::option::Option::<&_>::cloned),
        IntentForm::Borrowed | IntentForm::OptionalBorrowed => {
            return (bound(Some(visible)), Some(keep));
        }
    };
    let pattern = bound(Some(visible));
    let keep = quote_spanned!(Span::mixed_site()=> let #pattern = #owned(bound); #keep);
    (quote_spanned!(Span::mixed_site()=> bound), Some(keep))
}

fn bound(visible: Option<&Visible>) -> TokenStream {
    visible.map_or_else(
        || quote!(_),
        |Visible { mutability, name }| quote!(#mutability #name),
    )
}

fn is_owned(intent: &Intent) -> bool {
    matches!(intent.form, IntentForm::Owned | IntentForm::OptionalOwned)
}

/// The body in a closure or an async block of its own, which `return` and `?` leave.
fn body(parts: &Parts) -> TokenStream {
    let Parts { output, block, .. } = parts;
    // A run that may be followed by another leaves the receiver where it is.
    let moves = parts
        .retries
        .is_none()
        .then(|| quote_spanned!(Span::mixed_site()=> move));
    if parts.sig.asyncness.is_none() {
        return quote_spanned! {Span::mixed_site()=>
            let result: #output = (#moves || -> #output #block)();
        };
    }
    // The early return that never happens tells the block its type, so that `?` and `Ok(…)` are inferred from it.
    quote_spanned! {Span::mixed_site()=>
        let result: #output = async #moves {
            if let ::core::option::Option::Some(result) = ::core::option::Option::None::<#output> {
                return result;
            }
            #block
        }
        .await;
    }
}

fn finish(parts: &Parts) -> TokenStream {
    let output = &parts.output;
    let mode = Mode::of(parts);
    let arguments = ending_with(parts, "result");
    let finish = call(
        &ending(mode, parts, "finish"),
        &types(parts),
        arguments,
        output,
    );
    let finish = mode.awaited(finish, output);
    match parts.retries {
        Some(_) => quote_spanned! {Span::mixed_site()=>
            if let ::core::option::Option::Some(result) = #finish {
                return result;
            }
        },
        None => finish,
    }
}

/// The last segment: the name of a variant, or of the enum.
fn variant(path: &Path) -> String {
    path.segments
        .last()
        .map(|segment| segment.ident.to_string())
        .unwrap_or_default()
}

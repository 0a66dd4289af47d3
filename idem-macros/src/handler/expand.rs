//! The call of a guard, written inline around the body. Nothing here can fail.
//!
//! Hygiene: what the expansion introduces has mixed-site spans, so that the body cannot see it. `db` and `intent` keep the user's
//! identifiers, because the body is meant to see those. What can fail to type-check is shown at the token that the user has to
//! change: the return type, the connection's type or the parameter.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Path;

use super::parts::{Handler, Intent, Request, Transition, Visible};
use super::placement::{applied, call, first_span, last_span, mixed_at, placed};
use super::signature::{self, Form};

/// A function, and the guard of the library that its attribute writes around the body.
pub(crate) struct Guard<'a> {
    pub(crate) handler: &'a Handler,
    /// The module of `__private` that holds the guard's functions; `None`: they are in `__private` itself.
    pub(crate) module: Option<&'static str>,
    /// What the expansion calls a call that has claimed its key.
    pub(crate) claimed: &'static str,
}

/// How often the body may run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    Once,
    /// It may run again, so a run leaves where it is what the next one needs.
    Again,
}

impl Guard<'_> {
    /// The annotated function with the guard inside.
    pub(crate) fn function(&self, constants: &TokenStream, call: &TokenStream) -> TokenStream {
        let Handler {
            attrs,
            vis,
            sig,
            inner_attrs,
            krate,
            block,
            ..
        } = self.handler;
        let edges = self.handler.transition.iter().flat_map(edges);
        let inside = quote_spanned! {Span::mixed_site()=>
            #(#inner_attrs)*
            use #krate as __idem;
            #constants
            #(#edges)*
            #call
        };
        let mut guarded = Group::new(block.delimiter(), inside);
        guarded.set_span(block.span());
        quote!(#(#attrs)* #vis #sig #guarded)
    }

    /// `__idem::__private::name`
    fn private(&self, name: &str) -> TokenStream {
        let module = self.module.map(fresh).into_iter();
        let name = fresh(name);
        quote_spanned!(Span::mixed_site()=> __idem::__private::#(#module::)*#name)
    }

    /// `__idem::__private::asynchronous::name`: what differs between `fn` and `async fn`.
    fn of_mode(&self, name: &str) -> TokenStream {
        let mode = self.private(match self.handler.sig.asyncness {
            None => "blocking",
            Some(_) => "asynchronous",
        });
        let name = fresh(name);
        quote_spanned!(Span::mixed_site()=> #mode::#name)
    }

    /// `value.await`, shown where `place` begins: a keyword has one place.
    fn awaited(&self, value: TokenStream, place: &impl ToTokens) -> TokenStream {
        if self.handler.sig.asyncness.is_none() {
            return value;
        }
        let awaited = quote_spanned!(first_span(place)=> .await);
        quote!(#value #awaited)
    }

    /// A function for a value of the return type, called at the return type.
    pub(crate) fn answer(&self, name: &str, arguments: TokenStream) -> TokenStream {
        let output = &self.handler.output;
        call(&self.private(name), output, arguments, output)
    }

    /// An end of the call, at the return type.
    pub(crate) fn ended(&self, name: &str, arguments: TokenStream) -> TokenStream {
        let output = &self.handler.output;
        let ended = call(&self.of_mode(name), &self.types(), arguments, output);
        self.awaited(ended, output)
    }

    /// The return type and the connection's type, as the functions of the guard take them.
    fn types(&self) -> TokenStream {
        let Handler {
            output, connection, ..
        } = self.handler;
        let connection = &connection.ty;
        // `impl Trait` has no name here.
        if signature::is_opaque(connection) {
            quote!(#output, _)
        } else {
            quote!(#output, #connection)
        }
    }

    /// The claim. Key and hash are taken before the body can move an argument. The claim is a value of its own so that what the hash
    /// borrows is gone before anything is awaited: the future stays `Send`.
    ///
    /// `outcome` is the enum of what a claim gives, and `again` what is done with a call that was there before.
    pub(crate) fn begin(
        &self,
        arguments: TokenStream,
        outcome: &TokenStream,
        again: &Again,
    ) -> TokenStream {
        let Handler {
            output, connection, ..
        } = self.handler;
        let begin = call(&self.of_mode("begin"), &self.types(), arguments, output);
        let fail = self.answer("fail", quote_spanned!(Span::mixed_site()=> error));
        // Shown where the return type begins, so it is visible to who wrote that: the body. Hence a name that nobody else has.
        let claim = Ident::new("__claim", first_span(output));
        let claimed = self.awaited(quote!(#claim), output);
        let call = fresh(self.claimed);
        let execute = applied(
            quote!(#outcome::Execute),
            call.to_token_stream(),
            &connection.ty,
        );
        let Again {
            variant,
            holds,
            answer,
        } = again;
        let again = quote!(#outcome::#variant);
        let again = match holds {
            Some(holds) => applied(again, holds.clone(), &connection.ty),
            None => placed(again, &connection.ty),
        };
        quote_spanned! {Span::mixed_site()=>
            let #claim = #begin;
            let mut #call = match #claimed {
                ::core::result::Result::Ok(#execute) => #call,
                ::core::result::Result::Ok(#again) => return #answer,
                ::core::result::Result::Err(error) => return #fail,
            };
        }
    }

    /// The guarded change of state. What it refuses ends the call before the body, with `leave`.
    pub(crate) fn step(&self, transition: &Transition, leave: &TokenStream) -> TokenStream {
        let Transition { from, to, id, .. } = transition;
        let call = fresh(self.claimed);
        let arguments = quote_spanned!(Span::mixed_site()=> &mut #call, #to, &[#(#from),*], #id);
        let apply = applied(self.of_mode("transition"), arguments, to);
        let apply = self.awaited(apply, to);
        quote_spanned! {Span::mixed_site()=>
            let moved = #apply;
            if let ::core::result::Result::Err(error) = moved {
                #leave
            }
        }
    }

    /// The patterns that were written in place of names, bound where the transition and the body can see them.
    pub(crate) fn patterns(&self) -> TokenStream {
        let patterns = self.handler.requests.iter().map(pattern);
        quote!(#(#patterns)*)
    }

    /// What the body calls its connection and its intent.
    pub(crate) fn names(&self, intent: &Intent, runs: Runs) -> TokenStream {
        let db = bound(self.handler.connection.visible.as_ref());
        let call = fresh(self.claimed);
        let take = match intent.form {
            Form::Borrowed | Form::Owned => quote!(__parts),
            Form::OptionalBorrowed | Form::OptionalOwned => quote!(__optional_parts),
        };
        let (bound_intent, keep) = bound_intent(intent);
        // An owned parameter ends where the body's own begins.
        let release = (intent.is_owned() && runs == Runs::Once).then(|| {
            let name = &intent.name;
            quote_spanned!(Span::mixed_site()=> ::core::mem::drop(#name);)
        });
        quote_spanned! {Span::mixed_site()=>
            #release
            let (#db, #bound_intent) = #call.#take();
            #keep
        }
    }

    /// The body in a closure or an async block of its own, which `return` and `?` leave.
    pub(crate) fn body(&self, runs: Runs) -> TokenStream {
        let Handler {
            output, block, sig, ..
        } = self.handler;
        // A run that may be followed by another leaves the receiver where it is.
        let moves = (runs == Runs::Once).then(|| quote_spanned!(Span::mixed_site()=> move));
        if sig.asyncness.is_none() {
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

    /// What is hashed, as `&dyn RequestHash`: one parameter as it is, several as a struct.
    pub(crate) fn request(&self) -> TokenStream {
        match self.handler.requests.as_slice() {
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
}

/// A call that was there before, as a variant of what a claim gives.
pub(crate) struct Again {
    pub(crate) variant: TokenStream,
    /// What the variant holds.
    pub(crate) holds: Option<TokenStream>,
    /// What the function returns for it.
    pub(crate) answer: TokenStream,
}

impl Intent {
    /// The intent as `Option<&Intent>`.
    pub(crate) fn argument(&self) -> TokenStream {
        let name = &self.name;
        match self.form {
            Form::Borrowed => {
                quote_spanned!(Span::mixed_site()=> ::core::option::Option::Some(#name))
            }
            Form::Owned => {
                quote_spanned!(Span::mixed_site()=> ::core::option::Option::Some(&#name))
            }
            Form::OptionalBorrowed => name.to_token_stream(),
            Form::OptionalOwned => {
                quote_spanned!(Span::mixed_site()=> ::core::option::Option::as_ref(&#name))
            }
        }
    }

    pub(crate) fn is_owned(&self) -> bool {
        matches!(self.form, Form::Owned | Form::OptionalOwned)
    }
}

pub(crate) fn fresh(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// A name of the body, or nothing.
pub(crate) fn bound(visible: Option<&Visible>) -> TokenStream {
    visible.map_or_else(
        || quote!(_),
        |Visible { mutability, name }| quote!(#mutability #name),
    )
}

/// A constant that does not compile unless `condition` holds, located from `start` to `end`.
pub(crate) fn assertion(
    condition: &TokenStream,
    message: &str,
    start: &Path,
    end: &Path,
) -> TokenStream {
    let at_start = mixed_at(first_span(start));
    let mut arguments = Group::new(
        Delimiter::Parenthesis,
        quote_spanned!(at_start=> #condition, #message),
    );
    arguments.set_span(mixed_at(last_span(end)));
    quote_spanned!(at_start=> const _: () = ::core::assert! #arguments;)
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

/// `&cmd`, located from the parameter's name to the end of its type.
fn borrowed(request: &Request) -> TokenStream {
    let Request { name, ty, .. } = request;
    let ampersand = quote_spanned!(mixed_at(last_span(ty))=> &);
    quote!(#ampersand #name)
}

fn pattern(request: &Request) -> Option<TokenStream> {
    let Request {
        name, cfg, pattern, ..
    } = request;
    let pattern = pattern.as_ref()?;
    Some(quote_spanned!(Span::mixed_site()=> #(#cfg)* let #pattern = { #name };))
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
        Form::Owned => quote!(::core::clone::Clone::clone),
        Form::OptionalOwned => quote!(::core::option::Option::<&_>::cloned),
        Form::Borrowed | Form::OptionalBorrowed => {
            return (bound(Some(visible)), Some(keep));
        }
    };
    let pattern = bound(Some(visible));
    let keep = quote_spanned!(Span::mixed_site()=> let #pattern = #owned(bound); #keep);
    (quote_spanned!(Span::mixed_site()=> bound), Some(keep))
}

/// The last segment: the name of a variant, or of the enum.
fn variant(path: &Path) -> String {
    path.segments
        .last()
        .map(|segment| segment.ident.to_string())
        .unwrap_or_default()
}

//! What kind of function can be guarded.

use quote::ToTokens;
use syn::Type;

use crate::ctxt::Ctxt;
use crate::fallback;
use crate::handler::kind::Kind;
use crate::handler::signature::{self, Body, Function};

/// The return type and the body of a function that can be guarded.
pub(crate) fn shape<'a>(
    function: &'a Function,
    kind: &Kind,
    ctxt: &Ctxt,
) -> Option<(&'a Type, &'a Body)> {
    rule_one_attribute(function, kind, ctxt);
    rule_const_fn(function, ctxt);
    rule_unsafe_fn(function, kind, ctxt);
    rule_extern_fn(function, kind, ctxt);
    rule_variadic(function, kind, ctxt);
    let body = rule_body_missing(function, kind, ctxt);
    let output = rule_return_type_missing(function, kind, ctxt).filter(|output| {
        rule_return_type_boxed_future(function, output, kind, ctxt)
            && rule_return_type_impl(output, kind, ctxt)
    });
    output.zip(body)
}

// The second attribute would claim the key of the first inside of it.
fn rule_one_attribute(function: &Function, kind: &Kind, ctxt: &Ctxt) {
    for attribute in function
        .attrs
        .iter()
        .filter(|attribute| fallback::is_guard(attribute))
    {
        ctxt.error(
            attribute.path(),
            format_args!(
                "this function is {} already: keep one of the attributes",
                kind.being
            ),
        );
    }
}

// A transaction is not a constant.
fn rule_const_fn(function: &Function, ctxt: &Ctxt) {
    if let Some(keyword) = &function.sig.constness {
        ctxt.error(
            keyword,
            "a `const fn` cannot use a database: remove `const`",
        );
    }
}

// The body moves into a closure or an async block, where `unsafe fn` would no longer cover it.
fn rule_unsafe_fn(function: &Function, kind: &Kind, ctxt: &Ctxt) {
    let safety = &function.sig.safety;
    if !safety.to_token_stream().is_empty() {
        ctxt.error(
            safety,
            format_args!(
                "an `unsafe fn` cannot be {}: write a safe function with an `unsafe` block inside",
                kind.being
            ),
        );
    }
}

// Other languages cannot pass the connection and the intent.
fn rule_extern_fn(function: &Function, kind: &Kind, ctxt: &Ctxt) {
    if let Some(abi) = &function.sig.abi {
        ctxt.error(
            abi,
            format_args!(
                "an `extern` function cannot be {}: call {} Rust function from it",
                kind.being, kind.article
            ),
        );
    }
}

// What cannot be enumerated cannot be hashed.
fn rule_variadic(function: &Function, kind: &Kind, ctxt: &Ctxt) {
    if let Some(variadic) = &function.sig.variadic {
        ctxt.error(
            variadic.dots,
            format_args!(
                "`...` cannot be part of {}: name every parameter",
                kind.hash
            ),
        );
    }
}

// A declaration has nothing to guard; each `impl` decides for itself.
fn rule_body_missing<'a>(function: &'a Function, kind: &Kind, ctxt: &Ctxt) -> Option<&'a Body> {
    if function.body.is_none() {
        ctxt.error(
            &function.sig.ident,
            format_args!(
                "there is no body to make {}: put the attribute on the method in the `impl`",
                kind.made
            ),
        );
    }
    function.body.as_ref()
}

// What the library gives has the function's own type, and an `Err` is what rolls a call back.
fn rule_return_type_missing<'a>(
    function: &'a Function,
    kind: &Kind,
    ctxt: &Ctxt,
) -> Option<&'a Type> {
    let output = function.output();
    if output.is_none() {
        ctxt.error(
            &function.sig.ident,
            format_args!(
                "{} function returns a `Result`, because an error must be able to roll it back: \
                 write `-> Result<(), YourError>`",
                kind.article
            ),
        );
    }
    output
}

// `#[async_trait]` has moved the body into a box before this attribute could see it.
fn rule_return_type_boxed_future(
    function: &Function,
    output: &Type,
    kind: &Kind,
    ctxt: &Ctxt,
) -> bool {
    let is_boxed = function.sig.asyncness.is_none() && signature::is_boxed_future(output);
    if is_boxed {
        ctxt.error(
            &function.sig.ident,
            format_args!(
                "this function returns a boxed future, as `#[async_trait]` writes it: write a plain `async fn`, or move the body \
                 into {} `async fn` that this one calls",
                kind.article
            ),
        );
    }
    !is_boxed
}

// The library gives values of this type, too, so it must have a name.
fn rule_return_type_impl(output: &Type, kind: &Kind, ctxt: &Ctxt) -> bool {
    let is_opaque = signature::is_opaque(output);
    if is_opaque {
        let is_future = signature::any_ident(output.to_token_stream(), &|ident| ident == "Future");
        let problem = if is_future {
            "a returned future runs after the guard is gone: write `async fn`".to_owned()
        } else {
            format!(
                "{}, so its type needs a name: write the type in place of `impl`",
                kind.returned
            )
        };
        ctxt.error(output, problem);
    }
    !is_opaque
}

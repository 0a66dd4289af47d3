//! What kind of function can be idempotent.

use quote::ToTokens;
use syn::Type;

use crate::ctxt::Ctxt;
use crate::fallback;
use crate::idempotent::signature::{self, Body, Function};

/// The return type and the body of a function that can be guarded.
pub(super) fn shape<'a>(function: &'a Function, ctxt: &Ctxt) -> Option<(&'a Type, &'a Body)> {
    rule_one_attribute(function, ctxt);
    rule_const_fn(function, ctxt);
    rule_unsafe_fn(function, ctxt);
    rule_extern_fn(function, ctxt);
    rule_variadic(function, ctxt);
    let body = rule_body_missing(function, ctxt);
    let output = rule_return_type_missing(function, ctxt).filter(|output| {
        rule_return_type_boxed_future(function, output, ctxt) && rule_return_type_impl(output, ctxt)
    });
    output.zip(body)
}

// The second attribute would claim the key of the first inside of it.
fn rule_one_attribute(function: &Function, ctxt: &Ctxt) {
    for attribute in function
        .attrs
        .iter()
        .filter(|attribute| fallback::is_own(attribute))
    {
        ctxt.error(
            attribute.path(),
            "this function is idempotent already: keep one of the attributes",
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
fn rule_unsafe_fn(function: &Function, ctxt: &Ctxt) {
    let safety = &function.sig.safety;
    if !safety.to_token_stream().is_empty() {
        ctxt.error(
            safety,
            "an `unsafe fn` cannot be idempotent: write a safe function with an `unsafe` block inside",
        );
    }
}

// Other languages cannot pass the connection and the intent.
fn rule_extern_fn(function: &Function, ctxt: &Ctxt) {
    if let Some(abi) = &function.sig.abi {
        ctxt.error(
            abi,
            "an `extern` function cannot be idempotent: call an idempotent Rust function from it",
        );
    }
}

// What cannot be enumerated cannot be hashed.
fn rule_variadic(function: &Function, ctxt: &Ctxt) {
    if let Some(variadic) = &function.sig.variadic {
        ctxt.error(
            variadic.dots,
            "`...` cannot be part of the request hash: name every parameter",
        );
    }
}

// A declaration has nothing to guard; each `impl` decides for itself.
fn rule_body_missing<'a>(function: &'a Function, ctxt: &Ctxt) -> Option<&'a Body> {
    if function.body.is_none() {
        ctxt.error(
            &function.sig.ident,
            "there is no body to make idempotent: put the attribute on the method in the `impl`",
        );
    }
    function.body.as_ref()
}

// The answer of the first call is stored and given again, and an `Err` is what rolls a call back.
fn rule_return_type_missing<'a>(function: &'a Function, ctxt: &Ctxt) -> Option<&'a Type> {
    let output = function.output();
    if output.is_none() {
        ctxt.error(
            &function.sig.ident,
            "an idempotent function returns a `Result`, because an error must be able to roll it back: \
             write `-> Result<(), YourError>`",
        );
    }
    output
}

// `#[async_trait]` has moved the body into a box before this attribute could see it.
fn rule_return_type_boxed_future(function: &Function, output: &Type, ctxt: &Ctxt) -> bool {
    let is_boxed = function.sig.asyncness.is_none() && signature::is_boxed_future(output);
    if is_boxed {
        ctxt.error(
            &function.sig.ident,
            "this function returns a boxed future, as `#[async_trait]` writes it: write a plain `async fn`, or move the body \
             into an idempotent `async fn` that this one calls",
        );
    }
    !is_boxed
}

// The answer is decoded from what is stored, so its type must have a name.
fn rule_return_type_impl(output: &Type, ctxt: &Ctxt) -> bool {
    let is_opaque = signature::is_opaque(output);
    if is_opaque {
        let is_future = signature::any_ident(output.to_token_stream(), &|ident| ident == "Future");
        ctxt.error(
            output,
            if is_future {
                "a returned future runs after the guard is gone: write `async fn`"
            } else {
                "the answer is decoded again, so its type needs a name: write the type in place of `impl`"
            },
        );
    }
    !is_opaque
}

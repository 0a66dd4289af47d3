//! The rules for an idempotent function, beside those that hold for every handler.

mod attribute;
mod retries;

use self::retries::Times;
use super::KIND;
use super::operation::{Operation, Parts, Retries};
use crate::args::Args;
use crate::ctxt::Ctxt;
use crate::handler::check::attribute::constant;
use crate::handler::check::transition::transition;
use crate::handler::check::{Accepted, Uses, function, request, roles};
use crate::handler::signature::Function;
use crate::words;

/// The proof that every rule was asked. Nothing outside of this module can make one.
pub(super) struct Checked(());

/// Asks every rule. `None` only where `ctxt` holds an error.
pub(super) fn check(args: &Args, function: &Function, ctxt: &Ctxt) -> Option<Operation> {
    let sig = &function.sig;
    attribute::words(args, ctxt);
    let scope = attribute::scope(args, ctxt);
    let ttl = attribute::ttl(args, sig, ctxt);
    let policy = constant(words::POLICY, args, sig, &KIND, ctxt);
    let krate = constant(words::CRATE, args, sig, &KIND, ctxt);
    let transition = transition(args, sig, &KIND, ctxt);
    let times = retries::times(args, ctxt);
    let shape = function::shape(function, &KIND, ctxt);

    let parameters = function.parameters();
    let intents = roles::intents(args, &parameters, &KIND, ctxt);
    let connections = roles::connections(args, &parameters, |it| intents.hold(it), &KIND, ctxt);
    let connection = roles::connection(&connections, function, &KIND, ctxt);
    let intent = roles::intent(&intents, &KIND, ctxt, || {
        rule_intent_missing(function, ctxt);
    });
    let roles = [connection, intent].into_iter().flatten();
    request::rule_parameter_words_place(function, roles, &KIND, ctxt);
    let others = request::others(
        &parameters,
        |it| connections.hold(it) || intents.hold(it),
        &KIND,
        ctxt,
    );

    let uses = Uses {
        body: function.body.as_ref(),
        transition: transition.as_ref().and_then(Option::as_ref),
    };
    let connection = connection.and_then(|it| roles::resolved_connection(it, &uses, ctxt));
    let intent = intent.and_then(|it| roles::resolved_intent(it, &uses, ctxt));
    let requests = request::requests(&others, sig, &uses, &KIND, ctxt);

    let (shape, connection, intent, requests) = (shape?, connection?, intent?, requests?);
    let retries = match times {
        Times::Once => None,
        Times::Wrong => return None,
        Times::Again(times) => Some(Retries {
            times,
            owned: retries::owned(&others, &requests, &uses, ctxt)?,
        }),
    };
    let accepted = Accepted {
        krate: krate?,
        transition: transition?,
        shape,
        connection,
        requests,
    };
    let parts = Parts {
        scope: scope?,
        ttl: ttl?,
        policy: policy?,
        retries,
        handler: accepted.handler(function, [intent.place]),
        intent: intent.role,
    };
    Some(Operation::new(Checked(()), parts))
}

// Without a key a retry cannot be told from a new wish.
fn rule_intent_missing(function: &Function, ctxt: &Ctxt) {
    ctxt.error(
        &function.sig.ident,
        "no intent: take a parameter `intent: &Intent`, or `intent: Option<&Intent>` if a caller may have none \
         (if the type has another name here, say `intent = name`)",
    );
}

//! The rules for a consumer, beside those that hold for every handler.

mod message_id;
mod subscription;

use super::KIND;
use super::consumption::{Consumption, Parts};
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
pub(super) fn check(args: &Args, function: &Function, ctxt: &Ctxt) -> Option<Consumption> {
    let sig = &function.sig;
    subscription::words(args, ctxt);
    let subscription = subscription::subscription(args, sig, ctxt);
    let krate = constant(words::CRATE, args, sig, &KIND, ctxt);
    let transition = transition(args, sig, &KIND, ctxt);
    let shape = function::shape(function, &KIND, ctxt);

    let parameters = function.parameters();
    let message_ids = message_id::candidates(args, &parameters, ctxt);
    let intents = roles::intents(args, &parameters, &KIND, ctxt);
    let connections = roles::connections(
        args,
        &parameters,
        |it| message_ids.hold(it) || intents.hold(it),
        &KIND,
        ctxt,
    );
    let connection = roles::connection(&connections, function, &KIND, ctxt);
    let message_id = message_id::message_id(&message_ids, function, ctxt);
    // Who derives no downstream keys needs no intent.
    let intent = roles::intent(&intents, &KIND, ctxt, || ());
    let roles = [connection, message_id, intent].into_iter().flatten();
    request::rule_parameter_words_place(function, roles, &KIND, ctxt);
    let others = request::others(
        &parameters,
        |it| connections.hold(it) || message_ids.hold(it) || intents.hold(it),
        &KIND,
        ctxt,
    );

    let uses = Uses {
        body: function.body.as_ref(),
        transition: transition.as_ref().and_then(Option::as_ref),
    };
    let connection = connection.and_then(|it| roles::resolved_connection(it, &uses, ctxt));
    let message_id = message_id.and_then(|it| message_id::resolved(it, &uses, ctxt));
    let intent = match intent {
        Some(intent) => roles::resolved_intent(intent, &uses, ctxt).map(Some),
        None if intents.is_empty() => Some(None),
        None => None,
    };
    let requests = request::requests(&others, sig, &uses, &KIND, ctxt);

    let (message_id, intent) = (message_id?, intent?);
    let (intent, intent_place) = match intent {
        Some(intent) => (Some(intent.role), intent.place),
        None => (None, None),
    };
    let accepted = Accepted {
        krate: krate?,
        transition: transition?,
        shape: shape?,
        connection: connection?,
        requests: requests?,
    };
    let parts = Parts {
        subscription: subscription?,
        handler: accepted.handler(function, [message_id.place, intent_place]),
        message_id: message_id.role,
        intent,
    };
    Some(Consumption::new(Checked(()), parts))
}

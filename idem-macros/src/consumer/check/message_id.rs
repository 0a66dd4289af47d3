//! Which parameter is the message id, and what it looks like.

use syn::{Pat, PatIdent};

use crate::args::{Args, Word};
use crate::consumer::KIND;
use crate::consumer::consumption::{MessageId, MessageIdForm};
use crate::ctxt::Ctxt;
use crate::handler::check::roles::{self, Candidates, Resolved};
use crate::handler::check::{Uses, fresh};
use crate::handler::signature::{Form, Function, Parameter};
use crate::words;

/// The parameters that may be the message id.
pub(super) fn candidates<'a>(
    args: &Args,
    parameters: &'a [Parameter<'a>],
    ctxt: &Ctxt,
) -> Candidates<'a> {
    let looks = |parameter: &Parameter<'_>| parameter.is_message_id();
    Candidates::of(words::MESSAGE_ID, args, parameters, looks, |word| {
        rule_message_id_name(word, parameters, ctxt)
    })
}

/// The one message id.
pub(super) fn message_id<'a>(
    candidates: &Candidates<'a>,
    function: &Function,
    ctxt: &Ctxt,
) -> Option<&'a Parameter<'a>> {
    candidates.only(
        &KIND,
        ctxt,
        || rule_message_id_missing(function, ctxt),
        |choices, second| rule_message_id_ambiguous(choices, second, ctxt),
    )
}

/// What the guard calls the message id: the body's own name for it, if the body has one.
pub(super) fn resolved(
    parameter: &Parameter<'_>,
    uses: &Uses<'_>,
    ctxt: &Ctxt,
) -> Option<Resolved<MessageId>> {
    rule_message_id_exclusive(parameter, ctxt)?;
    let form = rule_message_id_optional(parameter, ctxt)?;
    let hidden = match rule_message_id_pattern(parameter, ctxt)? {
        Some(PatIdent { ident, .. }) if uses.see(ident) => {
            let name = ident.clone();
            return Some(Resolved {
                role: MessageId { name, form },
                place: None,
            });
        }
        Some(PatIdent { ident, .. }) => fresh(&ident.to_string(), ident.span()),
        None => fresh("id", parameter.start()),
    };
    Some(Resolved {
        place: Some((parameter.at, hidden.clone())),
        role: MessageId { name: hidden, form },
    })
}

// A misspelt name would leave the message without an id.
fn rule_message_id_name<'a>(
    word: &Word,
    parameters: &'a [Parameter<'a>],
    ctxt: &Ctxt,
) -> Option<&'a Parameter<'a>> {
    let fits = |parameter: &Parameter<'_>| parameter.exclusive().is_none();
    roles::named(word, parameters, fits, &KIND, ctxt).map(|(_, parameter)| parameter)
}

// Without an id a second delivery cannot be told from another message.
fn rule_message_id_missing(function: &Function, ctxt: &Ctxt) {
    ctxt.error(
        &function.sig.ident,
        "no message id: take a parameter `id: &MessageId` (if the type has another name here, say `message_id = name`)",
    );
}

// A message that is remembered under the wrong id would run again, or would hide another one.
fn rule_message_id_ambiguous(choices: &str, second: &Parameter<'_>, ctxt: &Ctxt) {
    ctxt.error(
        second.pat,
        format_args!("more than one parameter is a message id: say which one is meant, {choices}"),
    );
}

// Who changes the id inside of the call has lost what the message is remembered by.
fn rule_message_id_exclusive(parameter: &Parameter<'_>, ctxt: &Ctxt) -> Option<()> {
    if parameter.exclusive().is_some() {
        ctxt.error(
            parameter.ty,
            "the message id is only read: write `&MessageId`",
        );
        return None;
    }
    Some(())
}

// A message without an id would run on every delivery, so it is refused where it is received.
fn rule_message_id_optional(parameter: &Parameter<'_>, ctxt: &Ctxt) -> Option<MessageIdForm> {
    match parameter.form() {
        Form::Borrowed => Some(MessageIdForm::Borrowed),
        Form::Owned => Some(MessageIdForm::Owned),
        Form::OptionalBorrowed | Form::OptionalOwned => {
            ctxt.error(
                parameter.ty,
                "a message without an id would run on every delivery: write `&MessageId`, and make it with \
                 `MessageId::required(…)` where the message is received",
            );
            None
        }
    }
}

// The guard reads the id, so it needs a name; `_` is the name of nothing.
#[expect(clippy::option_option, reason = "refused and `_` are different things")]
fn rule_message_id_pattern<'a>(
    parameter: &Parameter<'a>,
    ctxt: &Ctxt,
) -> Option<Option<&'a PatIdent>> {
    match (parameter.binding(), parameter.pat) {
        (Some(binding), _) => Some(Some(binding)),
        (None, Pat::Wild(_)) => Some(None),
        (None, pattern) => {
            ctxt.error(
                pattern,
                "the message id needs a plain name: write `id`, or `_` if the body does not use it",
            );
            None
        }
    }
}

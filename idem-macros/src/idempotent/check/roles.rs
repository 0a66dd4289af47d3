//! Which parameter is the connection, which one the intent, and what they look like.

use syn::{Ident, Pat, PatIdent};

use super::request::{self, ParameterWords};
use super::{Renamed, Uses, fresh, shown, wrong_value};
use crate::ctxt::Ctxt;
use crate::idempotent::args::{Args, Word};
use crate::idempotent::operation::{Connection, Intent, Visible};
use crate::idempotent::signature::{Body, Function, Parameter};
use crate::words;

/// Which parameter is what. A role is `None` where a rule has refused it.
pub(super) struct Roles<'a> {
    connection: Option<&'a Parameter<'a>>,
    intent: Option<&'a Parameter<'a>>,
    /// What is neither, with the words on it.
    pub(super) others: Vec<(&'a Parameter<'a>, ParameterWords)>,
}

/// A role, and its place in the signature where that gets a plain name.
pub(super) struct Resolved<T> {
    pub(super) role: T,
    pub(super) place: Option<Renamed>,
}

impl<'a> Roles<'a> {
    pub(super) fn of(
        args: &Args,
        function: &Function,
        parameters: &'a [Parameter<'a>],
        ctxt: &Ctxt,
    ) -> Self {
        let named_intent = args.find(words::INTENT);
        let intents: Vec<_> = match named_intent {
            Some(word) => rule_intent_name(word, parameters, ctxt)
                .into_iter()
                .collect(),
            None => parameters
                .iter()
                .filter(|parameter| parameter.is_intent())
                .collect(),
        };
        let is_intent =
            |parameter: &Parameter<'_>| intents.iter().any(|intent| intent.at == parameter.at);

        let named_conn = args.find(words::CONN);
        let is_candidate =
            |parameter: &&Parameter<'_>| parameter.exclusive().is_some() && !is_intent(parameter);
        let connections: Vec<_> = match named_conn {
            Some(word) => rule_conn_name(word, parameters, ctxt).into_iter().collect(),
            None => parameters.iter().filter(is_candidate).collect(),
        };
        let is_connection = |parameter: &Parameter<'_>| {
            connections
                .iter()
                .any(|connection| connection.at == parameter.at)
        };

        let connection = match connections.as_slice() {
            _ if !rule_roles_without_cfg(&connections, ctxt) => None,
            [connection] => Some(*connection),
            // `conn = name` has an error of its own.
            [] if named_conn.is_some() => None,
            [] => rule_conn_missing(function, ctxt),
            [_, second, ..] => rule_conn_ambiguous(&connections, second, ctxt),
        };
        let intent = match intents.as_slice() {
            _ if !rule_roles_without_cfg(&intents, ctxt) => None,
            [intent] => Some(*intent),
            [] if named_intent.is_some() => None,
            [] => rule_intent_missing(function, ctxt),
            [_, second, ..] => rule_intent_ambiguous(&intents, second, ctxt),
        };

        request::rule_parameter_words_place(
            function,
            [connection, intent].into_iter().flatten(),
            ctxt,
        );
        let others = parameters
            .iter()
            .filter(|parameter| !is_connection(parameter) && !is_intent(parameter))
            .map(|parameter| (parameter, request::parameter_words(parameter, ctxt)))
            .collect();
        Self {
            connection,
            intent,
            others,
        }
    }

    pub(super) fn connection(&self, uses: &Uses<'_>, ctxt: &Ctxt) -> Option<Resolved<Connection>> {
        let parameter = self.connection?;
        let binding = rule_conn_pattern(parameter, ctxt)?;
        if let Some(body) = uses.body {
            rule_conn_unused(&binding.ident, body, ctxt)?;
        }
        let ty = parameter.exclusive()?.clone();
        let (name, visible) = names(binding, uses);
        let place = renamed(parameter, &name, binding, visible.as_ref());
        Some(Resolved {
            role: Connection { name, ty, visible },
            place,
        })
    }

    pub(super) fn intent(&self, uses: &Uses<'_>, ctxt: &Ctxt) -> Option<Resolved<Intent>> {
        let parameter = self.intent?;
        rule_intent_exclusive(parameter, ctxt)?;
        let form = parameter.intent_form();
        let (role, place) = if let Some(binding) = rule_intent_pattern(parameter, ctxt)? {
            let (name, visible) = names(binding, uses);
            let place = renamed(parameter, &name, binding, visible.as_ref());
            (
                Intent {
                    name,
                    form,
                    visible,
                },
                place,
            )
        } else {
            let name = fresh("intent", parameter.start());
            let place = Some((parameter.at, name.clone()));
            (
                Intent {
                    name,
                    form,
                    visible: None,
                },
                place,
            )
        };
        Some(Resolved { role, place })
    }
}

/// What the guard calls a parameter, and what the body calls it if it does.
fn names(binding: &PatIdent, uses: &Uses<'_>) -> (Ident, Option<Visible>) {
    let PatIdent {
        ident, mutability, ..
    } = binding;
    if uses.see(ident) {
        let visible = Visible {
            mutability: *mutability,
            name: ident.clone(),
        };
        (ident.clone(), Some(visible))
    } else {
        (fresh(&ident.to_string(), ident.span()), None)
    }
}

/// A hidden name replaces the one that the body could see; `mut` is wanted only where the body gets its own.
fn renamed(
    parameter: &Parameter<'_>,
    name: &Ident,
    binding: &PatIdent,
    visible: Option<&Visible>,
) -> Option<Renamed> {
    let is_changed = visible.is_none() || binding.mutability.is_some();
    is_changed.then(|| (parameter.at, name.clone()))
}

// A name that is no parameter, or a parameter that cannot be written through, guards nothing.
fn rule_conn_name<'a>(
    word: &Word,
    parameters: &'a [Parameter<'a>],
    ctxt: &Ctxt,
) -> Option<&'a Parameter<'a>> {
    let fits = |parameter: &Parameter<'_>| parameter.exclusive().is_some();
    let (name, parameter) = named(word, parameters, fits, ctxt)?;
    if parameter.exclusive().is_none() {
        ctxt.error(
            parameter.ty,
            format_args!(
                "`conn = {name}` needs a connection that the body can write through: write `{name}: &mut {}`",
                shown(&parameter.ty)
            ),
        );
        return None;
    }
    Some(parameter)
}

// Only what runs on the connection of the transaction is protected, so the macro must see it.
fn rule_conn_missing<'a>(function: &Function, ctxt: &Ctxt) -> Option<&'a Parameter<'a>> {
    let advice = match function.sig.receiver() {
        Some(_) => {
            "the guard cannot see a connection inside of `self`, so take it as a parameter, such as"
        }
        None => "the guard needs a parameter such as",
    };
    ctxt.error(
        &function.sig.ident,
        format_args!("no connection: {advice} `db: &mut SqliteConnection`"),
    );
    None
}

// Guarding the wrong one of two databases would protect nothing.
fn rule_conn_ambiguous<'a>(
    candidates: &[&Parameter<'_>],
    second: &Parameter<'_>,
    ctxt: &Ctxt,
) -> Option<&'a Parameter<'a>> {
    let choices = choices(words::CONN, candidates);
    ctxt.error(
        second.pat,
        format_args!(
            "more than one parameter is `&mut`: say which one is the connection, {choices}"
        ),
    );
    None
}

// A misspelt name would leave the call without a key.
fn rule_intent_name<'a>(
    word: &Word,
    parameters: &'a [Parameter<'a>],
    ctxt: &Ctxt,
) -> Option<&'a Parameter<'a>> {
    let fits = |parameter: &Parameter<'_>| parameter.exclusive().is_none();
    named(word, parameters, fits, ctxt).map(|(_, parameter)| parameter)
}

// Without a key a retry cannot be told from a new wish.
fn rule_intent_missing<'a>(function: &Function, ctxt: &Ctxt) -> Option<&'a Parameter<'a>> {
    ctxt.error(
        &function.sig.ident,
        "no intent: take a parameter `intent: &Intent`, or `intent: Option<&Intent>` if a caller may have none \
         (if the type has another name here, say `intent = name`)",
    );
    None
}

// Two keys would be two promises about one effect.
fn rule_intent_ambiguous<'a>(
    candidates: &[&Parameter<'_>],
    second: &Parameter<'_>,
    ctxt: &Ctxt,
) -> Option<&'a Parameter<'a>> {
    let choices = choices(words::INTENT, candidates);
    ctxt.error(
        second.pat,
        format_args!("more than one parameter is an intent: say which one is meant, {choices}"),
    );
    None
}

// The guard cannot be there in some builds and not in others.
fn rule_roles_without_cfg(candidates: &[&Parameter<'_>], ctxt: &Ctxt) -> bool {
    let cfg = candidates
        .iter()
        .find_map(|parameter| parameter.cfg().first().copied());
    if let Some(cfg) = cfg {
        ctxt.error(
            cfg,
            "the connection and the intent are there in every build: put `cfg` on a type alias or on the function",
        );
    }
    cfg.is_none()
}

// The body gets the connection back under the name that it knows.
fn rule_conn_pattern<'a>(parameter: &Parameter<'a>, ctxt: &Ctxt) -> Option<&'a PatIdent> {
    let binding = parameter.binding();
    if binding.is_none() {
        ctxt.error(
            parameter.pat,
            "the connection needs a plain name: write `db`, or `_db` if the body is not meant to use it",
        );
    }
    binding
}

// What does not run on this connection is not part of its transaction, so nothing that the body does would be protected.
fn rule_conn_unused(name: &Ident, body: &Body, ctxt: &Ctxt) -> Option<()> {
    if name.to_string().starts_with('_') || body.names(name) {
        return Some(());
    }
    ctxt.error(
        name,
        format_args!(
            "the body never uses `{name}`, so nothing that it does is protected: run its statements on `{name}`, \
             or call it `_{name}` if this is meant"
        ),
    );
    None
}

// Who changes the key inside of the call has lost the record of it.
fn rule_intent_exclusive(parameter: &Parameter<'_>, ctxt: &Ctxt) -> Option<()> {
    if parameter.exclusive().is_some() {
        ctxt.error(parameter.ty, "the intent is only read: write `&Intent`");
        return None;
    }
    Some(())
}

// The body gets the bound intent under the name that it knows; `_` is the name of nothing.
#[expect(clippy::option_option, reason = "refused and `_` are different things")]
fn rule_intent_pattern<'a>(parameter: &Parameter<'a>, ctxt: &Ctxt) -> Option<Option<&'a PatIdent>> {
    match (parameter.binding(), parameter.pat) {
        (Some(binding), _) => Some(Some(binding)),
        (None, Pat::Wild(_)) => Some(None),
        (None, pattern) => {
            ctxt.error(
                pattern,
                "the intent needs a plain name: write `intent`, or `_` if the body does not use it",
            );
            None
        }
    }
}

/// The parameter that `conn = name` or `intent = name` means; `fits` tells the ones that could be meant.
fn named<'a, 'w>(
    word: &'w Word,
    parameters: &'a [Parameter<'a>],
    fits: impl Fn(&Parameter<'_>) -> bool,
    ctxt: &Ctxt,
) -> Option<(&'w Ident, &'a Parameter<'a>)> {
    let Some(name) = word.ident() else {
        return wrong_value(word, "the name of a parameter", ctxt);
    };
    let parameter = parameters.iter().find(|parameter| parameter.is_named(name));
    if parameter.is_none() {
        let candidates: Vec<_> = parameters
            .iter()
            .filter(|parameter| fits(parameter))
            .collect();
        let choices = choices(&word.name.to_string(), &candidates);
        ctxt.error(
            name,
            format_args!("the function has no parameter `{name}`: write {choices}"),
        );
    }
    parameter.map(|parameter| (name, parameter))
}

/// "`conn = db` or `conn = log`".
fn choices(word: &str, candidates: &[&Parameter<'_>]) -> String {
    let named = candidates
        .iter()
        .filter_map(|parameter| parameter.binding());
    let choices: Vec<_> = named
        .map(|binding| format!("`{word} = {}`", binding.ident))
        .collect();
    if choices.is_empty() {
        format!("`{}`", words::example(word))
    } else {
        choices.join(" or ")
    }
}

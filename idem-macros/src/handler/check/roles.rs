//! Which parameter is the connection, which one the intent, and what they look like.

use syn::{Ident, Pat, PatIdent};

use super::{Renamed, Uses, fresh, shown, wrong_value};
use crate::args::{Args, Word};
use crate::ctxt::Ctxt;
use crate::handler::kind::Kind;
use crate::handler::parts::{Connection, Intent, Visible};
use crate::handler::signature::{Body, Function, Parameter};
use crate::words;

/// The parameters that may have a role: the one that a word names, or all that look like it.
pub(crate) struct Candidates<'a> {
    /// The word that can name the parameter.
    word: &'static str,
    is_named: bool,
    found: Vec<&'a Parameter<'a>>,
}

/// A role, and its place in the signature where that gets a plain name.
pub(crate) struct Resolved<T> {
    pub(crate) role: T,
    pub(crate) place: Option<Renamed>,
}

impl<'a> Candidates<'a> {
    /// The parameter that `word` names, if it is written, else every parameter that `looks` like it. `named` is the rule for what the
    /// word names.
    pub(crate) fn of(
        word: &'static str,
        args: &Args,
        parameters: &'a [Parameter<'a>],
        looks: impl Fn(&Parameter<'_>) -> bool,
        named: impl FnOnce(&Word) -> Option<&'a Parameter<'a>>,
    ) -> Self {
        let written = args.find(word);
        Self {
            word,
            is_named: written.is_some(),
            found: match written {
                Some(word) => named(word).into_iter().collect(),
                None => parameters
                    .iter()
                    .filter(|parameter| looks(parameter))
                    .collect(),
            },
        }
    }

    /// Whether no parameter may have the role, and none was named.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty() && !self.is_named
    }

    pub(crate) fn hold(&self, parameter: &Parameter<'_>) -> bool {
        self.found.iter().any(|found| found.at == parameter.at)
    }

    /// The one parameter with the role. `missing` says that there is none, `ambiguous` that there are several.
    pub(crate) fn only(
        &self,
        kind: &Kind,
        ctxt: &Ctxt,
        missing: impl FnOnce(),
        ambiguous: impl FnOnce(&str, &Parameter<'_>),
    ) -> Option<&'a Parameter<'a>> {
        match self.found.as_slice() {
            _ if !rule_roles_without_cfg(&self.found, kind, ctxt) => return None,
            [only] => return Some(*only),
            // A wrong name has an error of its own.
            [] if self.is_named => {}
            [] => missing(),
            [_, second, ..] => ambiguous(&choices(self.word, &self.found), second),
        }
        None
    }
}

/// The parameters that may be the intent.
pub(crate) fn intents<'a>(
    args: &Args,
    parameters: &'a [Parameter<'a>],
    kind: &Kind,
    ctxt: &Ctxt,
) -> Candidates<'a> {
    Candidates::of(
        words::INTENT,
        args,
        parameters,
        |parameter: &Parameter<'_>| parameter.is_intent(),
        |word| rule_intent_name(word, parameters, kind, ctxt),
    )
}

/// The parameters that may be the connection: those that can be written through, and have no other role.
pub(crate) fn connections<'a>(
    args: &Args,
    parameters: &'a [Parameter<'a>],
    has_other_role: impl Fn(&Parameter<'_>) -> bool,
    kind: &Kind,
    ctxt: &Ctxt,
) -> Candidates<'a> {
    let is_candidate =
        |parameter: &Parameter<'_>| parameter.exclusive().is_some() && !has_other_role(parameter);
    Candidates::of(words::CONN, args, parameters, is_candidate, |word| {
        rule_conn_name(word, parameters, kind, ctxt)
    })
}

/// The one connection.
pub(crate) fn connection<'a>(
    candidates: &Candidates<'a>,
    function: &Function,
    kind: &Kind,
    ctxt: &Ctxt,
) -> Option<&'a Parameter<'a>> {
    candidates.only(
        kind,
        ctxt,
        || rule_conn_missing(function, ctxt),
        |choices, second| rule_conn_ambiguous(choices, second, ctxt),
    )
}

/// The one intent; `missing` is the rule where it must be there.
pub(crate) fn intent<'a>(
    candidates: &Candidates<'a>,
    kind: &Kind,
    ctxt: &Ctxt,
    missing: impl FnOnce(),
) -> Option<&'a Parameter<'a>> {
    candidates.only(kind, ctxt, missing, |choices, second| {
        rule_intent_ambiguous(choices, second, ctxt);
    })
}

/// What the guard and the body call the connection.
pub(crate) fn resolved_connection(
    parameter: &Parameter<'_>,
    uses: &Uses<'_>,
    ctxt: &Ctxt,
) -> Option<Resolved<Connection>> {
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

/// What the guard and the body call the intent.
pub(crate) fn resolved_intent(
    parameter: &Parameter<'_>,
    uses: &Uses<'_>,
    ctxt: &Ctxt,
) -> Option<Resolved<Intent>> {
    rule_intent_exclusive(parameter, ctxt)?;
    let form = parameter.form();
    let Some(binding) = rule_intent_pattern(parameter, ctxt)? else {
        let name = fresh("intent", parameter.start());
        let place = Some((parameter.at, name.clone()));
        let role = Intent {
            name,
            form,
            visible: None,
        };
        return Some(Resolved { role, place });
    };
    let (name, visible) = names(binding, uses);
    let place = renamed(parameter, &name, binding, visible.as_ref());
    let role = Intent {
        name,
        form,
        visible,
    };
    Some(Resolved { role, place })
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
    kind: &Kind,
    ctxt: &Ctxt,
) -> Option<&'a Parameter<'a>> {
    let fits = |parameter: &Parameter<'_>| parameter.exclusive().is_some();
    let (name, parameter) = named(word, parameters, fits, kind, ctxt)?;
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
fn rule_conn_missing(function: &Function, ctxt: &Ctxt) {
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
}

// Guarding the wrong one of two databases would protect nothing.
fn rule_conn_ambiguous(choices: &str, second: &Parameter<'_>, ctxt: &Ctxt) {
    ctxt.error(
        second.pat,
        format_args!(
            "more than one parameter is `&mut`: say which one is the connection, {choices}"
        ),
    );
}

// A misspelt name would leave the call without a key.
fn rule_intent_name<'a>(
    word: &Word,
    parameters: &'a [Parameter<'a>],
    kind: &Kind,
    ctxt: &Ctxt,
) -> Option<&'a Parameter<'a>> {
    let fits = |parameter: &Parameter<'_>| parameter.exclusive().is_none();
    named(word, parameters, fits, kind, ctxt).map(|(_, parameter)| parameter)
}

// Two keys would be two promises about one effect.
fn rule_intent_ambiguous(choices: &str, second: &Parameter<'_>, ctxt: &Ctxt) {
    ctxt.error(
        second.pat,
        format_args!("more than one parameter is an intent: say which one is meant, {choices}"),
    );
}

// The guard cannot be there in some builds and not in others.
fn rule_roles_without_cfg(candidates: &[&Parameter<'_>], kind: &Kind, ctxt: &Ctxt) -> bool {
    let cfg = candidates
        .iter()
        .find_map(|parameter| parameter.cfg().first().copied());
    if let Some(cfg) = cfg {
        ctxt.error(
            cfg,
            format_args!(
                "{} are there in every build: put `cfg` on a type alias or on the function",
                kind.roles
            ),
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
pub(crate) fn named<'a, 'w>(
    word: &'w Word,
    parameters: &'a [Parameter<'a>],
    fits: impl Fn(&Parameter<'_>) -> bool,
    kind: &Kind,
    ctxt: &Ctxt,
) -> Option<(&'w Ident, &'a Parameter<'a>)> {
    let Some(name) = word.ident() else {
        return wrong_value(word, "the name of a parameter", kind, ctxt);
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

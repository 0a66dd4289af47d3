//! The guarded change of state: `transition(A => B, id = …)`.

use proc_macro2::TokenTree;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, Ident, Path, Signature, Token};

use super::attribute::rule_paths_without_self;
use super::{shown, wrong_value};
use crate::args::{Args, Value, Word};
use crate::ctxt::Ctxt;
use crate::handler::kind::Kind;
use crate::handler::parts::Transition;
use crate::handler::signature;
use crate::words;

/// `Some(None)` where none is given.
#[expect(
    clippy::option_option,
    reason = "refused and absent are different things"
)]
pub(crate) fn transition(
    args: &Args,
    sig: &Signature,
    kind: &Kind,
    ctxt: &Ctxt,
) -> Option<Option<Transition>> {
    let Some(word) = args.find(words::TRANSITION) else {
        return Some(None);
    };
    let (from, to, id) = rule_transition_form(word, kind, ctxt)?;
    let from: Vec<Path> = from.into_iter().collect();
    // One error for each state that is wrong; what follows compares states that are right.
    let states = from.iter().chain([&to]);
    let right = states.filter(|state| {
        rule_paths_without_self(state, sig, kind, ctxt) && rule_transition_type(state, ctxt)
    });
    if right.count() <= from.len() {
        return None;
    }
    let machine = signature::without_last_segment(&to)?;
    rule_transition_one_machine(&from, &machine, ctxt)?;
    rule_transition_moves(&from, &to, ctxt)?;
    let id = rule_transition_id(id, &to, ctxt)?;
    Some(Some(Transition {
        machine,
        from,
        to,
        id,
    }))
}

type TransitionTokens = (Punctuated<Path, Token![|]>, Path, Option<Expr>);

// A transition is read aloud: from which states, to which state, of which row.
fn rule_transition_form(word: &Word, kind: &Kind, ctxt: &Ctxt) -> Option<TransitionTokens> {
    let Value::List(list) = &word.value else {
        return wrong_value(word, "its states and the row", kind, ctxt);
    };
    let form = |input: ParseStream<'_>| {
        let content;
        syn::parenthesized!(content in input);
        let from = Punctuated::parse_separated_nonempty(&content)?;
        content.parse::<Token![=>]>()?;
        let to = content.parse()?;
        content.parse::<Option<Token![,]>>()?;
        if content.is_empty() {
            return Ok((from, to, None));
        }
        let name = content.call(Ident::parse_any)?;
        if name != words::ID {
            return Err(syn::Error::new_spanned(&name, "expected `id`"));
        }
        content.parse::<Token![=]>()?;
        let id = content.parse()?;
        content.parse::<Option<Token![,]>>()?;
        if content.is_empty() {
            Ok((from, to, Some(id)))
        } else {
            Err(content.error("expected `)`"))
        }
    };
    match form.parse2(TokenTree::from(list.clone()).into()) {
        Ok(tokens) => Some(tokens),
        Err(error) => {
            let message = format!("{error}: write `{}`", words::example(words::TRANSITION));
            ctxt.push(syn::Error::new(error.span(), message));
            None
        }
    }
}

// The edges are asked of the enum, so each state says whose it is.
fn rule_transition_type(state: &Path, ctxt: &Ctxt) -> bool {
    let has_type = signature::without_last_segment(state).is_some();
    if !has_type {
        let name = state.to_token_stream();
        ctxt.error(
            state,
            format_args!("say whose state `{name}` is, as in `OrderStatus::{name}`"),
        );
    }
    has_type
}

// A row has one status column, and no state machine knows the states of another.
fn rule_transition_one_machine(from: &[Path], machine: &Path, ctxt: &Ctxt) -> Option<()> {
    let wanted = machine.to_token_stream().to_string();
    let mut all_right = Some(());
    for state in from {
        let owner = signature::without_last_segment(state).to_token_stream();
        if owner.to_string() != wanted {
            ctxt.error(
                owner,
                format_args!(
                    "a transition stays inside one state machine: write `{}::…` on both sides of `=>`",
                    shown(machine)
                ),
            );
            all_right = None;
        }
    }
    all_right
}

// A state that is listed twice, or left for itself, is a typing mistake for another one.
fn rule_transition_moves(from: &[Path], to: &Path, ctxt: &Ctxt) -> Option<()> {
    let mut all_right = Some(());
    for (at, state) in from.iter().enumerate() {
        let problem = if shown(state) == shown(to) {
            "no state becomes itself: name the state before or the state after"
        } else if from
            .iter()
            .take(at)
            .any(|earlier| shown(earlier) == shown(state))
        {
            "this state is listed twice: keep one of them"
        } else {
            continue;
        };
        ctxt.error(state, problem);
        all_right = None;
    }
    all_right
}

// The guard is an `UPDATE` of one row, which must be named before the body runs.
fn rule_transition_id(id: Option<Expr>, to: &Path, ctxt: &Ctxt) -> Option<Expr> {
    if id.is_none() {
        ctxt.error(
            to,
            format_args!(
                "say which row changes its state, after a comma: `{}, id = cmd.order_id`",
                shown(to)
            ),
        );
    }
    id
}

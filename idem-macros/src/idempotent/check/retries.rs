//! Running the body again after a conflict, and what each run takes with it.

use syn::{LitInt, PatIdent, Type};

use crate::args::{Args, Word};
use crate::ctxt::Ctxt;
use crate::handler::check::request::{ParameterWords, Requests};
use crate::handler::check::{Uses, wrong_value};
use crate::handler::parts::Request;
use crate::handler::signature::Parameter;
use crate::idempotent::KIND;
use crate::idempotent::operation::Owned;
use crate::words;

/// More than this many conflicts in a row are no accident.
const MOST: u8 = 10;

/// `retries = 3`.
pub(super) fn times(args: &Args, ctxt: &Ctxt) -> Times {
    match args.find(words::RETRIES) {
        None => Times::Once,
        Some(word) => rule_retries_number(word, ctxt).map_or(Times::Wrong, Times::Again),
    }
}

/// How often the body may run again.
pub(super) enum Times {
    /// Not at all: the word was not written.
    Once,
    Again(LitInt),
    /// `ctxt` holds the error.
    Wrong,
}

/// The parameters that a run of the body may keep. References are the caller's, and every run gets them again.
pub(super) fn owned(
    others: &[(&Parameter<'_>, ParameterWords)],
    requests: &Requests,
    uses: &Uses<'_>,
    ctxt: &Ctxt,
) -> Option<Vec<Owned>> {
    let mut hashed = requests.found.iter();
    let mut all = Some(Vec::new());
    for (parameter, words) in others {
        let request = if words.is_skipped() {
            None
        } else {
            hashed.next()
        };
        if matches!(parameter.ty, Type::Reference(_)) {
            continue;
        }
        let owned = match (request, parameter.binding()) {
            (_, Some(binding)) if !uses.see(&binding.ident) => continue,
            (Some(Request { name, .. }), binding) => Some(kept(name.clone(), binding, parameter)),
            (None, Some(binding)) => Some(kept(binding.ident.clone(), Some(binding), parameter)),
            (None, None) => rule_retries_plain_parameters(parameter, ctxt),
        };
        all = match (all, owned) {
            (Some(mut all), Some(owned)) => {
                all.push(owned);
                Some(all)
            }
            _ => None,
        };
    }
    all
}

fn kept(name: syn::Ident, binding: Option<&PatIdent>, parameter: &Parameter<'_>) -> Owned {
    Owned {
        name,
        mutability: binding.and_then(|binding| binding.mutability),
        cfg: parameter.cfg().into_iter().cloned().collect(),
    }
}

/// Each run is a transaction of its own: a bound that is not written, or is huge, would hold a caller for ever.
fn rule_retries_number(word: &Word, ctxt: &Ctxt) -> Option<LitInt> {
    let Some(number) = word.number() else {
        return wrong_value(word, "a whole number", &KIND, ctxt);
    };
    if matches!(number.base10_parse::<u8>(), Ok(1..=MOST)) {
        return Some(number.clone());
    }
    ctxt.error(
        number,
        format_args!("a body runs again 1 to {MOST} times after conflicts: write `retries = 3`"),
    );
    None
}

/// The next run needs a clone of what this one keeps, and a pattern that is not hashed has no name to clone it by.
fn rule_retries_plain_parameters(parameter: &Parameter<'_>, ctxt: &Ctxt) -> Option<Owned> {
    ctxt.error(
        parameter.pat,
        "with `retries` the body may run again with a clone of this: give it a name here, and take it apart in the body",
    );
    None
}

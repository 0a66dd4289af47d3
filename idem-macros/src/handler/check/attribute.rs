//! The words of an attribute on a function, and what their values can be.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::{LitStr, Path, Signature};

use super::wrong_value;
use crate::args::{Args, Word};
use crate::ctxt::Ctxt;
use crate::handler::kind::Kind;
use crate::handler::signature;
use crate::{stored_name, words};

/// Where an attribute stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Function,
    Parameter,
}

/// Every word is one that there is, and is there once.
pub(crate) fn words(args: &Args, kind: &Kind, ctxt: &Ctxt) {
    rule_words_are_known(args, Place::Function, kind, ctxt);
    rule_words_are_separated(args, ctxt);
    rule_words_come_once(args, ctxt);
}

// A misspelt word would otherwise silently change nothing.
pub(crate) fn rule_words_are_known(args: &Args, place: Place, kind: &Kind, ctxt: &Ctxt) {
    let known = match place {
        Place::Function => kind.known,
        Place::Parameter => words::ON_PARAMETER,
    };
    for stray in &args.strays {
        ctxt.error(
            stray,
            format_args!(
                "a word is missing before this: the words are {}",
                words::listed(known)
            ),
        );
    }
    let on_function = place == Place::Function;
    let mut candidates = known.to_vec();
    if on_function {
        candidates.extend(kind.explained.concat());
    }
    for Word { name, .. } in &args.words {
        let written = name.unraw().to_string();
        // Words that are explained have rules of their own.
        if candidates.contains(&written.as_str()) {
            continue;
        }
        let advice = if on_function && words::ON_PARAMETER.contains(&written.as_str()) {
            format!(
                "it stands on a parameter: `{} trace_id: &str`",
                kind.example(&written)
            )
        } else if !on_function && kind.known.contains(&written.as_str()) {
            "it stands on the function, not on a parameter".to_owned()
        } else if let Some(nearest) = words::nearest(&written, &candidates) {
            format!(
                "did you mean `{nearest}`? The words are {}",
                words::listed(known)
            )
        } else {
            format!("the words are {}", words::listed(known))
        };
        ctxt.error(
            name,
            format_args!("`{written}` is not a word of this attribute: {advice}"),
        );
    }
}

// Without the comma the second word would be read as part of the first.
pub(crate) fn rule_words_are_separated(args: &Args, ctxt: &Ctxt) {
    for word in &args.unseparated {
        ctxt.error(word, "a comma is missing before this");
    }
}

// Of two scopes or two retentions one would be ignored.
pub(crate) fn rule_words_come_once(args: &Args, ctxt: &Ctxt) {
    for (at, Word { name, .. }) in args.words.iter().enumerate() {
        if args
            .words
            .iter()
            .take(at)
            .any(|earlier| earlier.name == *name)
        {
            ctxt.error(
                name,
                format_args!("`{name}` is given twice: keep one of them"),
            );
        }
    }
}

// What changes no code is one value that the attribute, the closure and the guard share.
pub(crate) fn rule_words_of_the_policy(args: &Args, ctxt: &Ctxt) {
    for Word { name, .. } in &args.words {
        if words::IN_POLICY.iter().any(|word| name == word) {
            ctxt.error(
                name,
                format_args!(
                    "`{name}` belongs to the policy: write it in a `const PATH: Policy = Policy::new().{name}(…)` \
                     and here `policy = PATH`"
                ),
            );
        }
    }
}

/// A word whose value is the path of a constant or of the library; `Some(None)` where it is not given.
#[expect(
    clippy::option_option,
    reason = "refused and absent are different things"
)]
pub(crate) fn constant(
    name: &str,
    args: &Args,
    sig: &Signature,
    kind: &Kind,
    ctxt: &Ctxt,
) -> Option<Option<Path>> {
    let Some(word) = args.find(name) else {
        return Some(None);
    };
    let path = rule_path_values(word, kind, ctxt)?;
    rule_paths_without_self(path, sig, kind, ctxt).then(|| Some(path.clone()))
}

// An expression would be built at every call and could differ from call to call.
fn rule_path_values<'a>(word: &'a Word, kind: &Kind, ctxt: &Ctxt) -> Option<&'a Path> {
    match word.path() {
        Some(path) => Some(path),
        None => wrong_value(word, "a path", kind, ctxt),
    }
}

// What is declared is a constant of its own, and constants know neither `Self` nor the generic types around them.
pub(crate) fn rule_paths_without_self(
    path: &Path,
    sig: &Signature,
    kind: &Kind,
    ctxt: &Ctxt,
) -> bool {
    let Some(head) = signature::head(path) else {
        return true;
    };
    if head == "Self" {
        ctxt.error(
            head,
            format_args!(
                "`Self` is not known here, because the {} is a constant: write the name of the type",
                kind.constant
            ),
        );
        return false;
    }
    if sig
        .generics
        .type_params()
        .any(|parameter| parameter.ident == *head)
    {
        ctxt.error(
            head,
            format_args!(
                "`{head}` is not known here, because the {} is one constant for every `{head}`: \
                 write the name of a type",
                kind.constant
            ),
        );
        return false;
    }
    true
}

/// A word that nobody has a default for. `meaning` says what it is.
pub(crate) fn required<'a>(
    args: &'a Args,
    name: &str,
    meaning: &str,
    kind: &Kind,
    ctxt: &Ctxt,
) -> Option<&'a Word> {
    let word = args.find(name);
    if word.is_none() && !is_meant(args, name, kind) {
        ctxt.push(syn::Error::new(
            Span::call_site(),
            format_args!(
                "`{name}` is missing: it is {meaning}; write `{}`",
                words::example(name)
            ),
        ));
    }
    word
}

/// Whether an error about `name` was already given: it is misspelt, or only its value was written.
fn is_meant(args: &Args, name: &str, kind: &Kind) -> bool {
    let is_misspelt =
        |word: &Word| words::nearest(&word.name.unraw().to_string(), kind.known) == Some(name);
    !args.strays.is_empty() || args.words.iter().any(is_misspelt)
}

/// The name that `word` gives to what `meaning` says.
pub(crate) fn stored_name(
    word: &Word,
    meaning: &str,
    example: &str,
    kind: &Kind,
    ctxt: &Ctxt,
) -> Option<LitStr> {
    let Some(text) = word.text() else {
        return wrong_value(word, "a text", kind, ctxt);
    };
    let name = word.name.to_string();
    if let Some(problem) = stored_name::problem(&text.value(), &name, meaning, example) {
        ctxt.error(text, problem);
        return None;
    }
    Some(text.clone())
}

pub(crate) const DAY_SECONDS: u64 = 86_400;
/// The limit of `idem_core::limits`, whose constructors check again.
const LONGEST_RETENTION_SECONDS: u64 = 10 * 366 * DAY_SECONDS;

/// The seconds of a literal such as `"48h"`. `what` is what it is called, and `nothing` what is wrong with none at all.
pub(crate) fn seconds(literal: &LitStr, what: &str, nothing: &str, ctxt: &Ctxt) -> Option<u64> {
    let text = literal.value();
    let unit = |letter| match letter {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3_600),
        'd' => Some(DAY_SECONDS),
        'w' => Some(7 * DAY_SECONDS),
        _ => None,
    };
    let seconds = text.chars().last().and_then(unit).and_then(|unit: u64| {
        let digits = text.get(..text.len() - 1)?;
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
        are_digits
            .then(|| digits.parse::<u64>().ok())??
            .checked_mul(unit)
    });
    match seconds {
        None => ctxt.error(
            literal,
            format_args!("a {what} is a whole number and a unit, `s`, `m`, `h`, `d` or `w`: write \"48h\" or \"30d\""),
        ),
        Some(0) => ctxt.error(literal, nothing),
        Some(longer) if longer > LONGEST_RETENTION_SECONDS => {
            ctxt.error(literal, format_args!("the longest {what} is ten years, \"3660d\""));
        }
        Some(seconds) => return Some(seconds),
    }
    None
}

//! The words of the attribute on the function.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::{LitStr, Path, Signature};

use super::wrong_value;
use crate::ctxt::Ctxt;
use crate::idempotent::args::{Args, Word};
use crate::idempotent::operation::Ttl;
use crate::idempotent::signature;
use crate::words;

const DAY_SECONDS: u64 = 86_400;
/// The limits of `idem_core::limits`, whose constructors check again.
const LONGEST_RETENTION_SECONDS: u64 = 10 * 366 * DAY_SECONDS;
const MAX_NAME_BYTES: usize = 255;

/// Every word is one that there is.
pub(super) fn words(args: &Args, ctxt: &Ctxt) {
    rule_words_are_known(args, words::KNOWN, ctxt);
    rule_words_are_separated(args, ctxt);
    rule_words_come_once(args, ctxt);
    rule_words_of_later_versions(args, ctxt);
    rule_words_of_the_policy(args, ctxt);
}

pub(super) fn scope(args: &Args, ctxt: &Ctxt) -> Option<LitStr> {
    rule_scope_text(rule_scope_missing(args, ctxt)?, ctxt)
}

// A misspelt word would otherwise silently change nothing.
pub(super) fn rule_words_are_known(args: &Args, known: &[&'static str], ctxt: &Ctxt) {
    for stray in &args.strays {
        ctxt.error(
            stray,
            format_args!(
                "a word is missing before this: the words are {}",
                words::listed(known)
            ),
        );
    }
    let on_function = known == words::KNOWN;
    let mut candidates = known.to_vec();
    if on_function {
        candidates.extend(words::LATER.iter().chain(words::IN_POLICY));
    }
    for Word { name, .. } in &args.words {
        let written = name.unraw().to_string();
        // Words of later versions and of the policy have rules of their own.
        if candidates.contains(&written.as_str()) {
            continue;
        }
        let advice = if on_function && words::ON_PARAMETER.contains(&written.as_str()) {
            format!(
                "it stands on a parameter: `{} trace_id: &str`",
                words::example(&written)
            )
        } else if !on_function && words::KNOWN.contains(&written.as_str()) {
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
pub(super) fn rule_words_are_separated(args: &Args, ctxt: &Ctxt) {
    for word in &args.unseparated {
        ctxt.error(word, "a comma is missing before this");
    }
}

// Of two scopes or two retentions one would be ignored.
pub(super) fn rule_words_come_once(args: &Args, ctxt: &Ctxt) {
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

// Accepting a word before its code exists would promise what does not happen.
fn rule_words_of_later_versions(args: &Args, ctxt: &Ctxt) {
    for Word { name, .. } in &args.words {
        if words::LATER.iter().any(|later| name == later) {
            ctxt.error(
                name,
                format_args!("`{name}` comes with a later version of this library: remove it"),
            );
        }
    }
}

// What changes no code is one value that the attribute, the closure and the guard share.
fn rule_words_of_the_policy(args: &Args, ctxt: &Ctxt) {
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

// The name of the operation is part of every stored key. The function's own name would change it with a refactoring.
fn rule_scope_missing<'a>(args: &'a Args, ctxt: &Ctxt) -> Option<&'a Word> {
    required(
        args,
        words::SCOPE,
        "the stable name of the operation and part of every stored key",
        ctxt,
    )
}

// It is stored, compared byte by byte and read by people in `psql`.
fn rule_scope_text(word: &Word, ctxt: &Ctxt) -> Option<LitStr> {
    let Some(text) = word.text() else {
        return wrong_value(word, "a text", ctxt);
    };
    let scope = text.value();
    let problem = if scope.trim().is_empty() {
        "`scope` is empty: name the operation, such as \"orders.pay\"".to_owned()
    } else if scope.trim() != scope {
        format!(
            "`scope` begins or ends with a space: write {:?}",
            scope.trim()
        )
    } else if scope.chars().any(char::is_control) {
        "`scope` has a control character: use visible characters, such as \"orders.pay\"".to_owned()
    } else if scope.len() > MAX_NAME_BYTES {
        format!(
            "`scope` has {} bytes: use at most {MAX_NAME_BYTES}",
            scope.len()
        )
    } else {
        return Some(text.clone());
    };
    ctxt.error(text, problem);
    None
}

// How long a retry may come is a business decision, so nobody gets a default.
fn rule_ttl_missing<'a>(args: &'a Args, ctxt: &Ctxt) -> Option<&'a Word> {
    required(
        args,
        words::TTL,
        "how long a retry is answered from the record",
        ctxt,
    )
}

pub(super) fn ttl(args: &Args, sig: &Signature, ctxt: &Ctxt) -> Option<Ttl> {
    let word = rule_ttl_missing(args, ctxt)?;
    let reason = args.find(words::SHORT_TTL);
    let has_reason = reason.is_none_or(|reason| rule_short_ttl_reason(reason, ctxt).is_some());
    if let Some(path) = word.path() {
        return rule_paths_without_self(path, sig, ctxt).then(|| Ttl::Constant {
            path: path.clone(),
            at_least_a_day: reason.is_none(),
        });
    }
    let (literal, seconds) = rule_ttl_literal(word, ctxt)?;
    let is_short = seconds < DAY_SECONDS;
    match reason {
        _ if !has_reason => None,
        None if is_short => rule_ttl_short(&literal, ctxt),
        Some(reason) if !is_short => rule_short_ttl_unneeded(reason, ctxt),
        _ => Some(Ttl::Literal(literal)),
    }
}

// The compiler says where a retention is wrong; at run time it would be the first call that fails.
fn rule_ttl_literal(word: &Word, ctxt: &Ctxt) -> Option<(LitStr, u64)> {
    let Some(literal) = word.text() else {
        return wrong_value(word, "a text or the path of a constant", ctxt);
    };
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
            "a retention is a whole number and a unit, `s`, `m`, `h`, `d` or `w`: write \"48h\" or \"30d\"",
        ),
        Some(0) => ctxt.error(literal, "nothing would be retained: write \"48h\" or \"30d\""),
        Some(longer) if longer > LONGEST_RETENTION_SECONDS => {
            ctxt.error(literal, "the longest retention is ten years, \"3660d\"");
        }
        Some(seconds) => return Some((literal.clone(), seconds)),
    }
    None
}

// Clients and queues come back hours later: a short memory is an executed duplicate, unless somebody knows better and says why.
fn rule_ttl_short(literal: &LitStr, ctxt: &Ctxt) -> Option<Ttl> {
    ctxt.error(
        literal,
        format_args!(
            "a retry can come later than {}: write at least \"24h\", or say why none comes: `{}`",
            literal.value(),
            words::example(words::SHORT_TTL)
        ),
    );
    None
}

// The reason is read by whoever looks for the duplicate, so an empty one is none.
fn rule_short_ttl_reason(word: &Word, ctxt: &Ctxt) -> Option<()> {
    let Some(reason) = word.text() else {
        return wrong_value(word, "the reason as a text", ctxt);
    };
    if reason.value().trim().is_empty() {
        ctxt.error(
            reason,
            format_args!(
                "the reason is empty: write `{}`",
                words::example(words::SHORT_TTL)
            ),
        );
        return None;
    }
    Some(())
}

// A reason without its cause tells the reader something wrong.
fn rule_short_ttl_unneeded(reason: &Word, ctxt: &Ctxt) -> Option<Ttl> {
    ctxt.error(
        &reason.name,
        "`ttl` is 24 hours or more and needs no reason: remove `short_ttl`",
    );
    None
}

/// A word whose value is the path of a constant or of the library; `Some(None)` where it is not given.
#[expect(
    clippy::option_option,
    reason = "refused and absent are different things"
)]
pub(super) fn constant(
    name: &str,
    args: &Args,
    sig: &Signature,
    ctxt: &Ctxt,
) -> Option<Option<Path>> {
    let Some(word) = args.find(name) else {
        return Some(None);
    };
    let path = rule_path_values(word, ctxt)?;
    rule_paths_without_self(path, sig, ctxt).then(|| Some(path.clone()))
}

// An expression would be built at every call and could differ from call to call.
fn rule_path_values<'a>(word: &'a Word, ctxt: &Ctxt) -> Option<&'a Path> {
    match word.path() {
        Some(path) => Some(path),
        None => wrong_value(word, "a path", ctxt),
    }
}

// The operation is a constant of its own, and constants know neither `Self` nor the generic types around them.
pub(super) fn rule_paths_without_self(path: &Path, sig: &Signature, ctxt: &Ctxt) -> bool {
    let Some(head) = signature::head(path) else {
        return true;
    };
    if head == "Self" {
        ctxt.error(
            head,
            "`Self` is not known here, because the operation is a constant: write the name of the type",
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
                "`{head}` is not known here, because the operation is one constant for every `{head}`: \
                 write the name of a type"
            ),
        );
        return false;
    }
    true
}

fn required<'a>(args: &'a Args, name: &str, meaning: &str, ctxt: &Ctxt) -> Option<&'a Word> {
    let word = args.find(name);
    if word.is_none() && !is_meant(args, name) {
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
fn is_meant(args: &Args, name: &str) -> bool {
    let is_misspelt =
        |word: &Word| words::nearest(&word.name.unraw().to_string(), words::KNOWN) == Some(name);
    !args.strays.is_empty() || args.words.iter().any(is_misspelt)
}

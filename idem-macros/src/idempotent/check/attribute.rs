//! What the operation is called, and how long its answers are retained.

use syn::{LitStr, Signature};

use crate::args::{Args, Word};
use crate::ctxt::Ctxt;
use crate::handler::check::attribute::{self, DAY_SECONDS};
use crate::handler::check::wrong_value;
use crate::idempotent::KIND;
use crate::idempotent::operation::Ttl;
use crate::words;

/// Every word is one that there is.
pub(super) fn words(args: &Args, ctxt: &Ctxt) {
    attribute::words(args, &KIND, ctxt);
    rule_words_of_later_versions(args, ctxt);
    attribute::rule_words_of_the_policy(args, ctxt);
}

pub(super) fn scope(args: &Args, ctxt: &Ctxt) -> Option<LitStr> {
    rule_scope_text(rule_scope_missing(args, ctxt)?, ctxt)
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

// The name of the operation is part of every stored key. The function's own name would change it with a refactoring.
fn rule_scope_missing<'a>(args: &'a Args, ctxt: &Ctxt) -> Option<&'a Word> {
    attribute::required(
        args,
        words::SCOPE,
        "the stable name of the operation and part of every stored key",
        &KIND,
        ctxt,
    )
}

// It is stored, compared byte by byte and read by people in `psql`.
fn rule_scope_text(word: &Word, ctxt: &Ctxt) -> Option<LitStr> {
    attribute::stored_name(word, "the operation", "orders.pay", &KIND, ctxt)
}

// How long a retry may come is a business decision, so nobody gets a default.
fn rule_ttl_missing<'a>(args: &'a Args, ctxt: &Ctxt) -> Option<&'a Word> {
    attribute::required(
        args,
        words::TTL,
        "how long a retry is answered from the record",
        &KIND,
        ctxt,
    )
}

pub(super) fn ttl(args: &Args, sig: &Signature, ctxt: &Ctxt) -> Option<Ttl> {
    let word = rule_ttl_missing(args, ctxt)?;
    let reason = args.find(words::SHORT_TTL);
    let has_reason = reason.is_none_or(|reason| rule_short_ttl_reason(reason, ctxt).is_some());
    if let Some(path) = word.path() {
        return attribute::rule_paths_without_self(path, sig, &KIND, ctxt).then(|| Ttl::Constant {
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
        return wrong_value(word, "a text or the path of a constant", &KIND, ctxt);
    };
    let nothing = "nothing would be retained: write \"48h\" or \"30d\"";
    let seconds = attribute::seconds(literal, "retention", nothing, ctxt)?;
    Some((literal.clone(), seconds))
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
        return wrong_value(word, "the reason as a text", &KIND, ctxt);
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

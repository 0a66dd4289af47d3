//! Whose messages they are, and how long they are remembered.

use syn::{LitStr, Path, Signature};

use crate::args::{Args, Word};
use crate::consumer::KIND;
use crate::consumer::consumption::{Retention, Subscription};
use crate::ctxt::Ctxt;
use crate::handler::check::attribute::{self, constant};
use crate::handler::check::wrong_value;
use crate::words;

/// Every word is one that there is.
pub(super) fn words(args: &Args, ctxt: &Ctxt) {
    attribute::words(args, &KIND, ctxt);
    rule_words_of_idempotent(args, ctxt);
    attribute::rule_words_of_the_policy(args, ctxt);
    rule_words_of_the_subscription(args, ctxt);
}

pub(super) fn subscription(args: &Args, sig: &Signature, ctxt: &Ctxt) -> Option<Subscription> {
    if args.find(words::SUBSCRIPTION).is_some() {
        let is_alone = rule_subscription_alone(args, ctxt);
        let path = constant(words::SUBSCRIPTION, args, sig, &KIND, ctxt)??;
        return is_alone.then_some(Subscription::Constant(path));
    }
    let subscriber = rule_subscriber_missing(args, ctxt);
    let subscriber = subscriber.and_then(|word| rule_subscriber_text(word, ctxt));
    let retention = rule_retention_missing(args, ctxt);
    let retention = retention.and_then(|word| duration(word, rule_retention_literal, sig, ctxt));
    let redelivery = match args.find(words::REDELIVERY) {
        None => Some(None),
        Some(word) => duration(word, rule_redelivery_literal, sig, ctxt).map(Some),
    };
    let policy = constant(words::POLICY, args, sig, &KIND, ctxt);
    let (retention, redelivery) = (retention?, redelivery?);
    if let Some(redelivery) = &redelivery {
        rule_retention_shorter(&retention, redelivery, ctxt)?;
    }
    Some(Subscription::Declared {
        subscriber: subscriber?,
        retention: retention.into(),
        redelivery: redelivery.map(Retention::from),
        policy: policy?,
    })
}

/// A duration as it was written, with the seconds that the macro can know.
enum Duration {
    Literal(LitStr, u64),
    Constant(Path),
}

impl From<Duration> for Retention {
    fn from(duration: Duration) -> Self {
        match duration {
            Duration::Literal(text, _) => Self::Literal(text),
            Duration::Constant(path) => Self::Constant(path),
        }
    }
}

/// The path of a constant, or what `literal` reads.
fn duration(
    word: &Word,
    literal: impl FnOnce(&Word, &Ctxt) -> Option<Duration>,
    sig: &Signature,
    ctxt: &Ctxt,
) -> Option<Duration> {
    let Some(path) = word.path() else {
        return literal(word, ctxt);
    };
    attribute::rule_paths_without_self(path, sig, &KIND, ctxt)
        .then(|| Duration::Constant(path.clone()))
}

// Who copies a command into a consumer learns the other word, and what became of the rest.
fn rule_words_of_idempotent(args: &Args, ctxt: &Ctxt) {
    for Word { name, .. } in &args.words {
        let instead = if name == words::SCOPE {
            r#"a consumer has a `subscriber`: write `subscriber = "billing"`"#
        } else if name == words::TTL {
            r#"a consumer has a `retention`: write `retention = "7d"`"#
        } else if name == words::SHORT_TTL {
            "how short a retention may be depends on the broker: say how long it may deliver a message again, \
             as in `redelivery = \"24h\"`"
        } else if name == words::RETRIES {
            "what fails is delivered again by the broker: remove it"
        } else {
            continue;
        };
        ctxt.error(
            name,
            format_args!("`{name}` is a word of `#[idempotent]`, and {instead}"),
        );
    }
}

// What changes no code is one value that the attribute, the closure and the guard share.
fn rule_words_of_the_subscription(args: &Args, ctxt: &Ctxt) {
    for Word { name, .. } in &args.words {
        if words::IN_SUBSCRIPTION.iter().any(|word| name == word) {
            ctxt.error(
                name,
                format_args!(
                    "`{name}` belongs to the subscription: write it in a \
                     `const PATH: Subscription = Subscription::new(…).with_{name}(…)` and here `subscription = PATH`"
                ),
            );
        }
    }
}

// Of two subscribers or two retentions one would be ignored.
fn rule_subscription_alone(args: &Args, ctxt: &Ctxt) -> bool {
    let parts = [
        words::SUBSCRIBER,
        words::RETENTION,
        words::REDELIVERY,
        words::POLICY,
    ];
    let mut is_alone = true;
    for word in parts.iter().filter_map(|part| args.find(part)) {
        ctxt.error(
            &word.name,
            format_args!(
                "the constant behind `subscription` says this already: remove `{}`, or remove `subscription`",
                word.name
            ),
        );
        is_alone = false;
    }
    is_alone
}

// Its name is part of every remembered message. The function's own name would change it with a refactoring.
fn rule_subscriber_missing<'a>(args: &'a Args, ctxt: &Ctxt) -> Option<&'a Word> {
    // Who wrote that has learned the right word already.
    if args.find(words::SUBSCRIBER).is_none() && args.find(words::SCOPE).is_some() {
        return None;
    }
    attribute::required(
        args,
        words::SUBSCRIBER,
        "the stable name of who consumes and part of every remembered message",
        &KIND,
        ctxt,
    )
}

// It is stored, compared byte by byte and read by people in `psql`.
fn rule_subscriber_text(word: &Word, ctxt: &Ctxt) -> Option<LitStr> {
    attribute::stored_name(word, "the subscriber", "billing", &KIND, ctxt)
}

// How long a message may come again depends on the broker, so nobody gets a default.
fn rule_retention_missing<'a>(args: &'a Args, ctxt: &Ctxt) -> Option<&'a Word> {
    if args.find(words::RETENTION).is_none() && args.find(words::TTL).is_some() {
        return None;
    }
    attribute::required(
        args,
        words::RETENTION,
        "how long a processed message is remembered",
        &KIND,
        ctxt,
    )
}

// The compiler says where a retention is wrong; at run time it would be the first message that fails.
fn rule_retention_literal(word: &Word, ctxt: &Ctxt) -> Option<Duration> {
    let nothing = "nothing would be remembered: write \"7d\" or \"30d\"";
    literal(word, "retention", nothing, ctxt)
}

// The same holds for how long the broker delivers.
fn rule_redelivery_literal(word: &Word, ctxt: &Ctxt) -> Option<Duration> {
    let nothing =
        "a broker that never delivers again needs no `redelivery`: remove it, or write \"24h\"";
    literal(word, "redelivery", nothing, ctxt)
}

fn literal(word: &Word, what: &str, nothing: &str, ctxt: &Ctxt) -> Option<Duration> {
    let Some(text) = word.text() else {
        return wrong_value(word, "a text or the path of a constant", &KIND, ctxt);
    };
    let seconds = attribute::seconds(text, what, nothing, ctxt)?;
    Some(Duration::Literal(text.clone(), seconds))
}

// A message that comes again after it was forgotten runs twice. Of constants only the compiler knows how long they are.
fn rule_retention_shorter(retention: &Duration, redelivery: &Duration, ctxt: &Ctxt) -> Option<()> {
    if let (Duration::Literal(retention, remembered), Duration::Literal(redelivery, again)) =
        (retention, redelivery)
        && remembered < again
    {
        ctxt.error(
            retention,
            format_args!(
                "a message can come again for {} and would run again after {}: write at least {:?}",
                redelivery.value(),
                retention.value(),
                redelivery.value()
            ),
        );
        return None;
    }
    Some(())
}

//! Every word of our attributes on functions and of `#[event(…)]`, written once.

pub(crate) const IDEMPOTENT: &str = "idempotent";
pub(crate) const CONSUMER: &str = "consumer";
pub(crate) const EVENT: &str = "event";

pub(crate) const SCOPE: &str = "scope";
pub(crate) const TTL: &str = "ttl";
pub(crate) const SHORT_TTL: &str = "short_ttl";
pub(crate) const SUBSCRIBER: &str = "subscriber";
pub(crate) const RETENTION: &str = "retention";
pub(crate) const REDELIVERY: &str = "redelivery";
pub(crate) const SUBSCRIPTION: &str = "subscription";
pub(crate) const CONN: &str = "conn";
pub(crate) const INTENT: &str = "intent";
pub(crate) const MESSAGE_ID: &str = "message_id";
pub(crate) const TRANSITION: &str = "transition";
pub(crate) const RETRIES: &str = "retries";
pub(crate) const POLICY: &str = "policy";
pub(crate) const CRATE: &str = "crate";

/// Inside `transition(…)`.
pub(crate) const ID: &str = "id";

/// On parameters.
pub(crate) const SKIP: &str = "skip";
pub(crate) const NAME: &str = "name";

/// Of `#[event(…)]`.
pub(crate) const TYPE: &str = "type";
pub(crate) const AGGREGATE_TYPE: &str = "aggregate_type";
pub(crate) const AGGREGATE_ID: &str = "aggregate_id";

/// The words of `#[idempotent]`, in the order in which they are explained.
pub(crate) const OF_IDEMPOTENT: &[&str] = &[
    SCOPE, TTL, SHORT_TTL, CONN, INTENT, TRANSITION, RETRIES, POLICY, CRATE,
];

/// The words of `#[consumer]`, in the order in which they are explained.
pub(crate) const OF_CONSUMER: &[&str] = &[
    SUBSCRIBER,
    RETENTION,
    REDELIVERY,
    SUBSCRIPTION,
    CONN,
    MESSAGE_ID,
    INTENT,
    TRANSITION,
    POLICY,
    CRATE,
];

/// Words whose meaning is fixed and whose code does not exist yet.
pub(crate) const LATER: &[&str] = &["pointer", "mode", "lease"];

/// Words of `Policy`: they change no code, so they are a value that all three layers share.
pub(crate) const IN_POLICY: &[&str] = &["wait", "late", "isolation", "max_idle", "nested"];

/// Words of `Subscription` that change no code.
pub(crate) const IN_SUBSCRIPTION: &[&str] = &["max_attempts"];

/// Words of `#[idempotent]` that a consumer says otherwise, or not at all.
pub(crate) const NOT_OF_CONSUMER: &[&str] = &[SCOPE, TTL, SHORT_TTL, RETRIES];

/// The words that stand on a parameter.
pub(crate) const ON_PARAMETER: &[&str] = &[SKIP, NAME];

/// The words of `#[event]`, by what it stands on.
pub(crate) const ON_STRUCT: &[&str] = &[TYPE, AGGREGATE_TYPE, CRATE];
pub(crate) const ON_ENUM: &[&str] = &[AGGREGATE_TYPE, CRATE];
pub(crate) const ON_VARIANT: &[&str] = &[TYPE];
pub(crate) const ON_FIELD: &[&str] = &[AGGREGATE_ID];

/// How a word is written, for the errors that say so.
pub(crate) fn example(word: &str) -> &'static str {
    match word {
        SCOPE => r#"scope = "orders.pay""#,
        TTL => r#"ttl = "48h"` or `ttl = PATH_TO_A_CONST_RETENTION"#,
        SHORT_TTL => r#"short_ttl = "why a retry never comes later""#,
        SUBSCRIBER => r#"subscriber = "billing""#,
        RETENTION => r#"retention = "7d"` or `retention = PATH_TO_A_CONST_RETENTION"#,
        REDELIVERY => r#"redelivery = "24h"` or `redelivery = PATH_TO_A_CONST_RETENTION"#,
        SUBSCRIPTION => "subscription = PATH_TO_A_CONST_SUBSCRIPTION",
        CONN => "conn = db",
        INTENT => "intent = intent",
        MESSAGE_ID => "message_id = id",
        TRANSITION => "transition(OrderStatus::Pending => OrderStatus::Paid, id = cmd.order_id)",
        RETRIES => "retries = 3",
        POLICY => "policy = PATH_TO_A_CONST_POLICY",
        CRATE => "crate = path::to::idem_diesel",
        SKIP => "skip",
        NAME => r#"name = "order_id""#,
        TYPE => r#"type = "order.placed""#,
        AGGREGATE_TYPE => r#"aggregate_type = "order""#,
        AGGREGATE_ID => "aggregate_id",
        _ => "word = value",
    }
}

/// The known word that `written` was probably meant to be.
pub(crate) fn nearest(written: &str, known: &[&'static str]) -> Option<&'static str> {
    let typo = known
        .iter()
        .map(|word| (distance(written, word), *word))
        .filter(|(distance, word)| *distance <= 2 && *distance < word.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word);
    // `connection` and `trans` are not typos but the same word, longer or shorter.
    let stem = || {
        known.iter().copied().find(|word| {
            written.len() >= 3 && (written.starts_with(word) || word.starts_with(written))
        })
    };
    typo.or_else(stem)
}

/// Words in prose: "`a`, `b` and `c`".
pub(crate) fn listed<S: AsRef<str>>(words: &[S]) -> String {
    let mut text = String::new();
    for (at, word) in words.iter().enumerate() {
        let separator = match at {
            0 => "",
            _ if at + 1 == words.len() => " and ",
            _ => ", ",
        };
        text.push_str(separator);
        text.push('`');
        text.push_str(word.as_ref());
        text.push('`');
    }
    text
}

/// Levenshtein distance, one row at a time.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, to) in row.iter_mut().skip(1).zip(b.chars()) {
            let above = *cell;
            *cell = (diagonal + usize::from(from != to))
                .min(above + 1)
                .min(left + 1);
            diagonal = above;
            left = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("scope", "scope"), 0);
        assert_eq!(distance("scop", "scope"), 1);
        assert_eq!(distance("socpe", "scope"), 2);
        assert_eq!(distance("", "ttl"), 3);
        assert_eq!(distance("ttl", ""), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn nearest_finds_typos_and_longer_forms() {
        assert_eq!(nearest("scop", OF_IDEMPOTENT), Some(SCOPE));
        assert_eq!(nearest("tll", OF_IDEMPOTENT), Some(TTL));
        assert_eq!(nearest("connection", OF_IDEMPOTENT), Some(CONN));
        assert_eq!(nearest("trans", OF_IDEMPOTENT), Some(TRANSITION));
        assert_eq!(nearest("banana", OF_IDEMPOTENT), None);
        assert_eq!(nearest("", OF_IDEMPOTENT), None);
        assert_eq!(nearest("subscibers", OF_CONSUMER), Some(SUBSCRIBER));
        assert_eq!(nearest("subscripton", OF_CONSUMER), Some(SUBSCRIPTION));
        assert_eq!(nearest("aggregate", ON_STRUCT), Some(AGGREGATE_TYPE));
    }

    #[test]
    fn lists_read_as_prose() {
        assert_eq!(listed::<&str>(&[]), "");
        assert_eq!(listed(&["a"]), "`a`");
        assert_eq!(listed(&["a", "b", "c"]), "`a`, `b` and `c`");
    }

    #[test]
    fn every_word_has_an_example() {
        for word in [
            OF_IDEMPOTENT,
            OF_CONSUMER,
            ON_PARAMETER,
            ON_STRUCT,
            ON_FIELD,
        ]
        .concat()
        {
            assert!(example(word).contains(word), "{word}");
        }
    }
}

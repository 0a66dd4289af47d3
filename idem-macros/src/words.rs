//! Every word of `#[idempotent(…)]`, written once.

pub(crate) const ATTRIBUTE: &str = "idempotent";

pub(crate) const SCOPE: &str = "scope";
pub(crate) const TTL: &str = "ttl";
pub(crate) const SHORT_TTL: &str = "short_ttl";
pub(crate) const CONN: &str = "conn";
pub(crate) const INTENT: &str = "intent";
pub(crate) const TRANSITION: &str = "transition";
pub(crate) const RETRIES: &str = "retries";
pub(crate) const POLICY: &str = "policy";
pub(crate) const CRATE: &str = "crate";

/// Inside `transition(…)`.
pub(crate) const ID: &str = "id";

/// On parameters.
pub(crate) const SKIP: &str = "skip";
pub(crate) const NAME: &str = "name";

/// The words of the attribute, in the order in which they are explained.
pub(crate) const KNOWN: &[&str] = &[
    SCOPE, TTL, SHORT_TTL, CONN, INTENT, TRANSITION, RETRIES, POLICY, CRATE,
];

/// Words whose meaning is fixed and whose code does not exist yet.
pub(crate) const LATER: &[&str] = &["pointer", "mode", "lease"];

/// Words of `Policy`: they change no code, so they are a value that all three layers share.
pub(crate) const IN_POLICY: &[&str] = &["wait", "late", "isolation", "max_idle", "nested"];

/// The words that stand on a parameter.
pub(crate) const ON_PARAMETER: &[&str] = &[SKIP, NAME];

/// How a word is written, for the errors that say so.
pub(crate) fn example(word: &str) -> &'static str {
    match word {
        SCOPE => r#"scope = "orders.pay""#,
        TTL => r#"ttl = "48h"` or `ttl = PATH_TO_A_CONST_RETENTION"#,
        SHORT_TTL => r#"short_ttl = "why a retry never comes later""#,
        CONN => "conn = db",
        INTENT => "intent = intent",
        TRANSITION => "transition(OrderStatus::Pending => OrderStatus::Paid, id = cmd.order_id)",
        RETRIES => "retries = 3",
        POLICY => "policy = PATH_TO_A_CONST_POLICY",
        CRATE => "crate = path::to::idem_diesel",
        SKIP => "#[idempotent(skip)]",
        NAME => r#"#[idempotent(name = "order_id")]"#,
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
        assert_eq!(nearest("scop", KNOWN), Some(SCOPE));
        assert_eq!(nearest("tll", KNOWN), Some(TTL));
        assert_eq!(nearest("connection", KNOWN), Some(CONN));
        assert_eq!(nearest("trans", KNOWN), Some(TRANSITION));
        assert_eq!(nearest("banana", KNOWN), None);
        assert_eq!(nearest("", KNOWN), None);
    }

    #[test]
    fn lists_read_as_prose() {
        assert_eq!(listed::<&str>(&[]), "");
        assert_eq!(listed(&["a"]), "`a`");
        assert_eq!(listed(&["a", "b", "c"]), "`a`, `b` and `c`");
    }

    #[test]
    fn every_word_has_an_example() {
        for word in KNOWN.iter().chain(ON_PARAMETER) {
            assert!(example(word).contains(word), "{word}");
        }
    }
}

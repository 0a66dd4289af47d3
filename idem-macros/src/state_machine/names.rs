//! Names: the stored text of a variant, and what a misspelt one may have meant.

use std::fmt::Display;

use syn::Ident;

/// From a variant to the text that is stored for it.
type Style = fn(&str) -> String;

/// The styles of `rename_all`, with the meaning that serde gives them, so that one enum has one text in JSON and in SQL.
pub(super) const RENAME_STYLES: [(&str, Style); 7] = [
    ("snake_case", snake_case),
    ("kebab-case", |variant| {
        snake_case(variant).replace('_', "-")
    }),
    ("lowercase", str::to_ascii_lowercase),
    ("UPPERCASE", str::to_ascii_uppercase),
    ("SCREAMING_SNAKE_CASE", |variant| {
        snake_case(variant).to_ascii_uppercase()
    }),
    ("camelCase", camel_case),
    ("PascalCase", str::to_owned),
];

/// The function of a style.
pub(super) fn rename_style(name: &str) -> Option<Style> {
    RENAME_STYLES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, style)| *style)
}

/// The style of a machine that names none.
pub(super) fn snake_case(variant: &str) -> String {
    let mut snake = String::new();
    for character in variant.chars() {
        if character.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

fn camel_case(variant: &str) -> String {
    let mut characters = variant.chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(characters).collect()
}

/// The one of `known` that `written` most likely stands for.
pub(super) fn nearest<'a>(
    written: &Ident,
    known: impl Iterator<Item = &'a Ident>,
) -> Option<&'a Ident> {
    let written = written.to_string().to_lowercase();
    let bound = (written.chars().count() / 3).max(2);
    known
        .map(|known| (distance(&written, &known.to_string().to_lowercase()), known))
        .filter(|(distance, _)| *distance <= bound && *distance < written.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// How many characters must be added, dropped or replaced (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    // `row` holds the distances of the left prefix so far to every right prefix.
    let mut row: Vec<usize> = (0..=right.chars().count()).collect();
    for (index, character) in left.chars().enumerate() {
        let mut behind = index + 1;
        let mut next = vec![behind];
        for ((other, diagonal), above) in right.chars().zip(&row).zip(row.iter().skip(1)) {
            let replaced = diagonal + usize::from(character != other);
            behind = replaced.min(above + 1).min(behind + 1);
            next.push(behind);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

/// `a, b and c`, each in backquotes.
pub(super) fn listing<T: Display>(names: impl IntoIterator<Item = T>) -> String {
    let mut names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match (names.pop(), names.is_empty()) {
        (None, _) => String::new(),
        (Some(only), true) => only,
        (Some(last), false) => format!("{} and {last}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;

    use super::*;

    #[track_caller]
    fn check_style(style: &str, variant: &str, expected: &str) {
        let function = rename_style(style).expect("a known style");
        assert_eq!(function(variant), expected, "{style}");
    }

    #[test]
    fn styles_mean_what_serde_means() {
        check_style("snake_case", "InReview", "in_review");
        check_style("snake_case", "Paid", "paid");
        check_style("snake_case", "HTTPError", "h_t_t_p_error");
        check_style("snake_case", "paid", "paid");
        check_style("kebab-case", "InReview", "in-review");
        check_style("lowercase", "InReview", "inreview");
        check_style("UPPERCASE", "InReview", "INREVIEW");
        check_style("SCREAMING_SNAKE_CASE", "InReview", "IN_REVIEW");
        check_style("camelCase", "InReview", "inReview");
        check_style("PascalCase", "InReview", "InReview");
        assert!(rename_style("Title Case").is_none());
    }

    #[track_caller]
    fn check_nearest(written: &str, expected: Option<&str>) {
        let ident = |name: &str| Ident::new(name, Span::call_site());
        let known = ["Pending", "Paid", "Cancelled"].map(ident);
        let found = nearest(&ident(written), known.iter()).map(Ident::to_string);
        assert_eq!(found.as_deref(), expected, "{written}");
    }

    #[test]
    fn a_slip_finds_what_was_meant() {
        check_nearest("Payed", Some("Paid"));
        check_nearest("Canceled", Some("Cancelled"));
        check_nearest("pending", Some("Pending"));
        check_nearest("Shipped", None);
        check_nearest("X", None);
    }

    #[test]
    fn lists_read_as_prose() {
        assert_eq!(listing(["a"]), "`a`");
        assert_eq!(listing(["a", "b"]), "`a` and `b`");
        assert_eq!(listing(["a", "b", "c"]), "`a`, `b` and `c`");
    }
}

//! Names that are stored with every row: compared byte by byte, and read by people in `psql`.

/// The limit of `idem_core::limits`, whose constructors check again.
const MAX_BYTES: usize = 255;

/// What is wrong with a name, if anything. `word` is what holds it, `meaning` what it names, and `example` a right one.
pub(crate) fn problem(name: &str, word: &str, meaning: &str, example: &str) -> Option<String> {
    let problem = if name.trim().is_empty() {
        format!("`{word}` is empty: name {meaning}, such as {example:?}")
    } else if name.trim() != name {
        format!(
            "`{word}` begins or ends with a space: write {:?}",
            name.trim()
        )
    } else if name.chars().any(char::is_control) {
        format!("`{word}` has a control character: use visible characters, such as {example:?}")
    } else if name.len() > MAX_BYTES {
        format!("`{word}` has {} bytes: use at most {MAX_BYTES}", name.len())
    } else {
        return None;
    };
    Some(problem)
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[track_caller]
    fn check(name: &str, expected: Option<&str>) {
        let problem = problem(name, "scope", "the operation", "orders.pay");
        assert_eq!(problem.as_deref(), expected);
    }

    #[test]
    fn every_problem_says_what_to_write() {
        check("orders.pay", None);
        check("inner spaces and é", None);
        check(&"n".repeat(255), None);
        check(
            " ",
            Some(r#"`scope` is empty: name the operation, such as "orders.pay""#),
        );
        check(
            "pay ",
            Some(r#"`scope` begins or ends with a space: write "pay""#),
        );
        check(
            "a\tb",
            Some(
                r#"`scope` has a control character: use visible characters, such as "orders.pay""#,
            ),
        );
        check(
            &"é".repeat(128),
            Some("`scope` has 256 bytes: use at most 255"),
        );
    }
}

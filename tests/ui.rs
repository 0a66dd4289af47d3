//! What does not compile, with its text, and what must compile.
//!
//! `ui/<macro>/<rule>.rs` breaks one rule of `idem-macros/src/<macro>/check.rs`, which has a function `rule_<rule>` for it, or one that
//! the attributes on functions share, in `handler/check.rs`. Other folders hold mistakes that the compiler finds by itself, such as a
//! missing bound. `ui/pass` holds programs that run.
//!
//! A new text is written with `TRYBUILD=overwrite cargo test -p idem-tests --test ui`, and reviewed as prose.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PASS: &str = "pass";

// Two tests, because trybuild only checks as long as nothing has to run: all mistakes then take one call of the compiler.
#[test]
fn mistakes_do_not_compile() {
    let cases = trybuild::TestCases::new();
    for folder in folders(&fixtures()) {
        if folder != PASS {
            cases.compile_fail(format!("ui/{folder}/*.rs"));
        }
    }
}

#[test]
fn every_accepted_shape_compiles_and_runs() {
    trybuild::TestCases::new().pass(format!("ui/{PASS}/*.rs"));
}

/// The rules that several macros share, and these macros: each rule has a fixture of at least one of them.
const SHARED: (&str, &[&str]) = ("handler", &["idempotent", "consumer"]);

#[test]
fn every_rule_has_a_fixture_and_every_fixture_a_rule() {
    let macros = Path::new(env!("CARGO_MANIFEST_DIR")).join("../idem-macros/src");
    let rules_of = |folder: &str| rules(&macros.join(folder).join("check.rs"));
    let (shared, sharing) = SHARED;
    let checked: Vec<String> = folders(&macros)
        .into_iter()
        .filter(|folder| macros.join(folder).join("check.rs").is_file() && folder != shared)
        .collect();
    assert!(
        !checked.is_empty(),
        "no macro with a check.rs in {}",
        macros.display()
    );

    let shared = rules_of(shared);
    let mut without_fixture_of_any = shared.clone();
    let mut wrong = Vec::new();
    for folder in checked {
        let own = rules_of(&folder);
        let fixtures = fixtures_of(&folder);
        let mut known = own.clone();
        if sharing.contains(&folder.as_str()) {
            known.extend(shared.iter().cloned());
            without_fixture_of_any.retain(|rule| !fixtures.contains(rule));
        }
        let without_fixture: Vec<_> = own.difference(&fixtures).collect();
        let without_rule: Vec<_> = fixtures.difference(&known).collect();
        if own.is_empty() || !without_fixture.is_empty() || !without_rule.is_empty() {
            wrong.push(format!(
                "\n{folder}: rules without a fixture: {without_fixture:?}\n\
                 {folder}: fixtures without a rule: {without_rule:?}\n\
                 idem-macros/src/{folder}/check.rs has the rules {own:?}\n\
                 tests/ui/{folder} has the fixtures {fixtures:?}\n"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
    assert!(
        !shared.is_empty() && without_fixture_of_any.is_empty(),
        "shared rules without a fixture of {sharing:?}: {without_fixture_of_any:?}"
    );
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ui")
}

/// The names of the folders in a folder.
fn folders(parent: &Path) -> Vec<String> {
    let entries =
        fs::read_dir(parent).unwrap_or_else(|error| panic!("{}: {error}", parent.display()));
    entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

/// The names behind `fn rule_` in `check.rs` of a macro, and in the folder `check` beside it, if there is one.
fn rules(check: &Path) -> BTreeSet<String> {
    let parts = fs::read_dir(check.with_extension(""))
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    let source: String = std::iter::once(check.to_owned())
        .chain(parts)
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .filter_map(|line| line.split_once("fn rule_"))
        .map(|(_, rest)| {
            rest.chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect()
        })
        .collect()
}

/// The names of the fixtures in a folder of `ui`, which may be absent.
fn fixtures_of(folder: &str) -> BTreeSet<String> {
    fs::read_dir(fixtures().join(folder))
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect()
}

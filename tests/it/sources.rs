//! What is absent from the sources: invariants of ARCHITECTURE.md that only a reader of the text can hold.

use std::fs;
use std::path::{Path, PathBuf};

/// Where statements may stand: `store` and `driver` also as folders.
const WITH_SQL: [&str; 6] = [
    "store",
    "dialect",
    "driver",
    "transition",
    "migrations",
    "testing",
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn sql_stands_only_where_the_architecture_says() {
    const WORDS: [&str; 9] = [
        "\"SELECT ",
        "\"INSERT ",
        "\"UPDATE ",
        "\"DELETE ",
        "\"BEGIN",
        "\"COMMIT",
        "\"ROLLBACK",
        "\"SAVEPOINT",
        "\"RELEASE",
    ];
    let folder = root().join("idem-diesel/src");
    let mut wrong = Vec::new();
    for path in sources(&folder) {
        let place = path.strip_prefix(&folder).unwrap();
        let module = place
            .iter()
            .next()
            .unwrap()
            .to_str()
            .unwrap()
            .trim_end_matches(".rs");
        if WITH_SQL.contains(&module) {
            continue;
        }
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let is_code = !line.trim_start().starts_with("//");
            if is_code && WORDS.iter().any(|word| line.contains(word)) {
                wrong.push(format!(
                    "{}:{}: {}",
                    place.display(),
                    number + 1,
                    line.trim()
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "SQL outside its places:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn every_module_says_what_it_is_in_its_first_line() {
    let mut wrong = Vec::new();
    for package in [
        "idem-core",
        "idem-macros",
        "idem-diesel",
        "idem-relay",
        "tests",
        "examples",
    ] {
        for path in sources(&root().join(package)) {
            // Fixtures and golden files are programs of users.
            let is_program = [
                "ui",
                "expand",
                "golden",
                "state_machine",
                "request_hash",
                "consumer",
                "event",
            ]
            .iter()
            .any(|folder| path.iter().any(|part| part == *folder))
                && !path.iter().any(|part| part == "src");
            let first = fs::read_to_string(&path).unwrap();
            if !is_program && !first.starts_with("//!") && !first.starts_with("#![doc") {
                wrong.push(path.display().to_string());
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "without a first line `//!`:\n{}",
        wrong.join("\n")
    );
}

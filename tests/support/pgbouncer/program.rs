//! Where pgbouncer is on this machine, and what its version can do.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::PROGRAM_VARIABLE;

const NAME: &str = "pgbouncer";

/// Where Debian puts it, which is in nobody's `PATH` but root's.
const BESIDE_PATH: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// The first version that prepares a client's statements on whichever session it gets.
const KEEPS_PREPARED_STATEMENTS: Version = (1, 21);

type Version = (u32, u32);

#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    version: Version,
}

impl Program {
    pub(super) fn find() -> Result<Self, String> {
        let path = match std::env::var_os(PROGRAM_VARIABLE) {
            Some(path) => PathBuf::from(path),
            None => candidates().into_iter().find(|path| path.is_file()).ok_or_else(|| {
                format!(
                    "these tests need pgbouncer and this machine has none.\n\
                     Install it (Debian, Ubuntu: apt-get install pgbouncer), or set {PROGRAM_VARIABLE} to the path of the program."
                )
            })?,
        };
        let version = version_of(&path)?;
        Ok(Self { path, version })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn keeps_prepared_statements(&self) -> bool {
        self.version >= KEEPS_PREPARED_STATEMENTS
    }
}

fn candidates() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(BESIDE_PATH.map(PathBuf::from))
        .map(|folder| folder.join(NAME))
        .collect()
}

fn version_of(path: &Path) -> Result<Version, String> {
    let output = Command::new(path)
        .arg("--version")
        .output()
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse_version(&text).ok_or_else(|| format!("{} tells no version: {text}", path.display()))
}

/// The first line is `PgBouncer 1.18.0`.
fn parse_version(text: &str) -> Option<Version> {
    let mut numbers = text.lines().next()?.strip_prefix("PgBouncer ")?.split('.');
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<Version>) {
        assert_eq!(parse_version(text), expected);
    }

    #[test]
    fn the_version_is_on_the_first_line() {
        check("PgBouncer 1.18.0\nlibevent 2.1.12-stable\n", Some((1, 18)));
        check("PgBouncer 1.21.0", Some((1, 21)));
        check("PgBouncer 1.24.1", Some((1, 24)));
        check("something else", None);
        check("", None);
    }
}

//! Where the programs of a PostgreSQL server are on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the folder with `initdb`, `pg_ctl` and `postgres`, for a machine that has several versions.
const FOLDER_VARIABLE: &str = "IDEM_TEST_POSTGRES_BIN";

const PROGRAMS: [&str; 3] = ["initdb", "pg_ctl", "postgres"];

/// Where systems put folders of one version each, and what stands before the version in their names: Debian, the RPMs of the
/// PostgreSQL project, Homebrew.
const VERSIONED: [(&str, &str); 4] = [
    ("/usr/lib/postgresql", ""),
    ("/usr", "pgsql-"),
    ("/opt/homebrew/opt", "postgresql@"),
    ("/usr/local/opt", "postgresql@"),
];

/// The folder that holds all programs of a server.
pub(super) fn folder() -> Result<PathBuf, String> {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
        let folder = PathBuf::from(folder);
        return if has_programs(&folder) {
            Ok(folder)
        } else {
            Err(format!(
                "{FOLDER_VARIABLE} names {}, which lacks one of {}",
                folder.display(),
                PROGRAMS.join(", ")
            ))
        };
    }
    candidates()
        .into_iter()
        .find(|folder| has_programs(folder))
        .ok_or_else(|| {
            format!(
                "these tests need a PostgreSQL server and this machine has none.\n\
                 Install one (Debian, Ubuntu: apt-get install postgresql libpq-dev), \
                 or set {FOLDER_VARIABLE} to the folder that holds {},\n\
                 or set {} to the URL of a server whose role may create databases.",
                PROGRAMS.join(", "),
                super::SERVER_URL_VARIABLE,
            )
        })
}

fn has_programs(folder: &Path) -> bool {
    PROGRAMS
        .iter()
        .all(|program| folder.join(program).is_file())
}

/// What `pg_config` says, then versioned folders with the newest first, then `PATH`.
fn candidates() -> Vec<PathBuf> {
    let mut candidates = Vec::new();
    if let Ok(output) = Command::new("pg_config").arg("--bindir").output() {
        candidates.push(PathBuf::from(
            String::from_utf8_lossy(&output.stdout).trim(),
        ));
    }
    for (parent, prefix) in VERSIONED {
        candidates.extend(
            versions(parent, prefix)
                .into_iter()
                .map(|version| version.join("bin")),
        );
    }
    if let Some(path) = std::env::var_os("PATH") {
        candidates.extend(std::env::split_paths(&path));
    }
    candidates
}

/// Subfolders whose name is the prefix and a version number, the highest first.
fn versions(parent: &str, prefix: &str) -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((name.strip_prefix(prefix)?.parse().ok()?, entry.path()))
        })
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, path)| path).collect()
}

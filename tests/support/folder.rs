//! Temporary folders, in memory where the machine has room: a database is 300 files, and some disks take a millisecond for each.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use tempfile::TempDir;

const MEMORY: &str = "/dev/shm";

/// A server with the databases of the tests that run at the same time takes a fraction of it.
const ENOUGH_KIB: u64 = 2 * 1024 * 1024;

/// Makes a folder that is removed with the value, in the parent that is best on this machine.
pub(crate) fn fresh(prefix: &str) -> std::io::Result<TempDir> {
    static PARENT: LazyLock<PathBuf> = LazyLock::new(parent);
    fresh_in(&PARENT, prefix)
}

/// Makes a folder that is removed with the value, in this parent.
pub(crate) fn fresh_in(parent: &Path, prefix: &str) -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix(prefix).tempdir_in(parent)
}

/// What the person at the terminal chose, or memory, or what the system has for temporary files.
fn parent() -> PathBuf {
    if std::env::var_os("TMPDIR").is_none()
        && free_kib(MEMORY).is_some_and(|free| free >= ENOUGH_KIB)
    {
        PathBuf::from(MEMORY)
    } else {
        std::env::temp_dir()
    }
}

/// The fourth column of the second line of `df -Pk`, whose form POSIX fixes.
fn free_kib(folder: &str) -> Option<u64> {
    let output = Command::new("df").args(["-Pk", folder]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}

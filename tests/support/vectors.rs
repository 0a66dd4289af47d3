//! Test suites of others, which lie beside the repository and may be absent.

use std::path::{Path, PathBuf};

/// Names the folder that holds the suites, one folder each.
pub const FOLDER_VARIABLE: &str = "IDEM_VECTORS";

/// The folder of one suite, or `None` if it is not on this machine. `tests/run` then names it among those that did not run.
///
/// ```
/// if let Some(folder) = support::vectors::suite("jcs") {
///     assert!(folder.is_dir());
/// }
/// ```
///
/// # Panics
///
/// Panics if the suite is absent and `CI` is `true`: there it has to run.
pub fn suite(name: &str) -> Option<PathBuf> {
    let parent = std::env::var_os(FOLDER_VARIABLE).map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors"),
        PathBuf::from,
    );
    let folder = parent.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "the outside suite {name} is not at {}. Put it there or set {FOLDER_VARIABLE}",
        folder.display()
    );
    eprintln!(
        "the outside suite {name} is not at {} and does not run",
        folder.display()
    );
    None
}

//! Where things are read and written.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// This package.
pub(crate) fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where the data of servers and SQLite files lies: for temporary files, and on a disk, because in memory a durable write costs nothing.
pub(crate) fn data() -> Result<PathBuf> {
    let folder = std::env::temp_dir();
    ensure!(
        crate::machine::file_system(&folder)? != "tmpfs",
        "{} is in memory, where nothing is durable: set TMPDIR to a folder on a disk",
        folder.display()
    );
    Ok(folder)
}

/// A folder for what is built and kept, below the target folder of this program, whose parent is the folder of its profile.
pub(crate) fn below_target(name: &str) -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program
        .parent()
        .and_then(Path::parent)
        .context("this program is not in a target folder")?;
    let folder = target.join(name);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

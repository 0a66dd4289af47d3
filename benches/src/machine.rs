//! What the figures were measured on.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// What the figures were measured on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    pub(crate) rustc: String,
    /// Of the folder that holds the data of the servers.
    pub(crate) file_system: String,
    pub(crate) sqlite: String,
}

impl Machine {
    /// Looks at this machine. `data` is where the servers have their data.
    pub(crate) fn look(data: &Path) -> Result<Self> {
        let cpu_info = fs::read_to_string("/proc/cpuinfo").context("no /proc/cpuinfo")?;
        let cpu = cpu_info
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or("unknown", |(_, model)| model);
        Ok(Self {
            cpu: cpu.trim().to_owned(),
            cores: std::thread::available_parallelism()?.get(),
            kernel: said_by(Command::new("uname").arg("-r"))?,
            rustc: said_by(
                Command::new("rustc")
                    .arg("-V")
                    .current_dir(crate::places::package()),
            )?,
            file_system: file_system(data)?,
            sqlite: crate::calls::sqlite::version()?,
        })
    }
}

/// The name of the file system that holds a folder, such as `ext2/ext3`.
pub(crate) fn file_system(folder: &Path) -> Result<String> {
    said_by(Command::new("stat").args(["-f", "-c", "%T"]).arg(folder))
}

fn said_by(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    ensure!(output.status.success(), "{command:?}: {}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

//! Servers of this process alone, which leave nothing behind.
//!
//! 1. This process makes a folder and picks free ports.
//! 2. It starts a script, the watchdog of the server, in a process group of its own and keeps the only writing end of the script's
//!    standard input.
//! 3. The script configures the server in the folder, starts it, and answers `ready PORT`.
//! 4. The end of this process closes the pipe, whether it returns, panics or is killed. The script then stops the server and
//!    removes the folder.
//!
//! Servers refuse to run as root, so that for root the script runs as `postgres`, or else as `nobody`.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use tempfile::TempDir;

use crate::folder;

/// How many ports the script may try: a free port can be taken by somebody else before the server has it.
const PORTS: usize = 5;

/// What is started, and who watches it.
pub(crate) struct Watchdog<'w> {
    /// The server's name in messages, and in lower case in the name of its folder.
    pub(crate) server: &'w str,
    /// A script for `sh`. Its first two arguments are an empty folder and ports to try.
    pub(crate) script: &'w str,
    /// The arguments after these.
    pub(crate) arguments: &'w [&'w OsStr],
    /// Variables of its environment, for what other users of this machine must not see.
    pub(crate) secrets: &'w [(&'w str, &'w str)],
    /// Where its folder is made; `None`: where temporary folders are best on this machine.
    pub(crate) parent: Option<&'w Path>,
}

/// A running server. It stops, and its folder is gone, when this value is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Watched {
    port: u16,
    watchdog: Child,
    /// Held open: its end is what the script waits for.
    lifeline: Option<ChildStdin>,
}

impl Watchdog<'_> {
    /// Starts the server, and waits until it is ready.
    pub(crate) fn start(&self) -> Result<Watched, String> {
        let failed = |what: &str| {
            let text = format!("no throwaway {} server: {what}", self.server);
            move |error: std::io::Error| format!("{text}: {error}")
        };

        let folder = self.new_folder().map_err(failed("no temporary folder"))?;
        let ports = free_ports().map_err(failed("no free port on 127.0.0.1"))?;
        let mut command = Command::new("sh");
        command
            .args(["-c", self.script, "watchdog"])
            .arg(folder.path())
            .arg(&ports)
            .args(self.arguments)
            .envs(self.secrets.iter().copied())
            .env("LC_ALL", "C")
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // An interrupt from the terminal goes to the whole group: it must end the tests and not the one who cleans up.
            .process_group(0);
        // PGDATA, PGPORT and the like of the person at the terminal belong to another server.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"PG") {
                command.env_remove(name);
            }
        }
        if let Some(user) = unprivileged_user(folder.path()).map_err(failed("no user for it"))? {
            chown(folder.path(), Some(user.uid), Some(user.gid)).map_err(failed("its folder"))?;
            command.uid(user.uid).gid(user.gid);
        }

        let mut watchdog = command.spawn().map_err(failed("sh"))?;
        // From here on the script removes the folder.
        let folder = folder.keep();
        let lifeline = watchdog.stdin.take();
        match port_of_ready_server(&mut watchdog) {
            Ok(port) => Ok(Watched {
                port,
                watchdog,
                lifeline,
            }),
            Err(log) => {
                drop(lifeline);
                let _ = watchdog.wait();
                Err(format!(
                    "the throwaway {} server did not start in {}:\n{log}",
                    self.server,
                    folder.display()
                ))
            }
        }
    }

    /// A folder that the server's user can remove: for root, `TMPDIR` may be closed to everybody else.
    fn new_folder(&self) -> std::io::Result<TempDir> {
        const OTHERS_WRITE_AND_ENTER: u32 = 0o003;
        let prefix = format!("idem-{}-", self.server.to_ascii_lowercase());
        let folder = match self.parent {
            Some(parent) => folder::fresh_in(parent, &prefix)?,
            None => folder::fresh(&prefix)?,
        };
        let parent = folder.path().parent().unwrap_or(folder.path());
        let parent_mode = std::fs::metadata(parent)?.permissions().mode();
        if is_root(folder.path())? && parent_mode & OTHERS_WRITE_AND_ENTER != OTHERS_WRITE_AND_ENTER
        {
            return folder::fresh_in(Path::new("/tmp"), &prefix);
        }
        Ok(folder)
    }
}

impl Watched {
    /// Where the server listens on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let _ = self.watchdog.wait();
    }
}

/// The answer of the script: a port, or the logs of what failed.
fn port_of_ready_server(watchdog: &mut Child) -> Result<u16, String> {
    let Some(stdout) = watchdog.stdout.take() else {
        return Err("no pipe from the script".to_owned());
    };
    let mut answer = BufReader::new(stdout);
    let mut first = String::new();
    answer
        .read_line(&mut first)
        .map_err(|error| error.to_string())?;
    if let Some(port) = first.strip_prefix("ready ") {
        return port.trim().parse().map_err(|_| first.clone());
    }
    let mut rest = String::new();
    answer
        .read_to_string(&mut rest)
        .map_err(|error| error.to_string())?;
    Err(first + &rest)
}

/// Whether this process is root's, which the owner of a folder that it made tells.
fn is_root(own_folder: &Path) -> std::io::Result<bool> {
    Ok(std::fs::metadata(own_folder)?.uid() == 0)
}

/// Free ports, separated by spaces. All are held until the last is known, so that they differ.
fn free_ports() -> std::io::Result<String> {
    let held: Vec<TcpListener> = (0..PORTS)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<std::io::Result<_>>()?;
    let ports: Vec<String> = held
        .iter()
        .map(|listener| Ok(listener.local_addr()?.port().to_string()))
        .collect::<std::io::Result<_>>()?;
    Ok(ports.join(" "))
}

#[derive(Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
}

/// Whom the server runs as if this process is root's.
fn unprivileged_user(own_folder: &Path) -> std::io::Result<Option<User>> {
    if !is_root(own_folder)? {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd")?;
    ["postgres", "nobody"]
        .iter()
        .find_map(|name| user_of(&users, name))
        .map(Some)
        .ok_or_else(|| {
            std::io::Error::other(
                "servers refuse root, and /etc/passwd has neither postgres nor nobody",
            )
        })
}

/// The ids of an account in the text of `/etc/passwd`: `name:password:uid:gid:…`.
fn user_of(users: &str, name: &str) -> Option<User> {
    users.lines().find_map(|line| {
        let mut fields = line
            .strip_prefix(name)?
            .strip_prefix(':')?
            .split(':')
            .skip(1);
        Some(User {
            uid: fields.next()?.parse().ok()?,
            gid: fields.next()?.parse().ok()?,
        })
    })
}

//! Message brokers that a test can take down, bring up again and hold still.
//!
//! As with the other servers, a script in a process group of its own stands between this process and the server. It stops the
//! server and removes its folder when this process ends, however it ends. Three things differ, because a broker comes back:
//!
//! * The script takes orders, so that the server can end and start again while its folder stays.
//! * The port is not one that the system hands to clients: while the broker is down, no connection gets it.
//! * A server is ready when it greets a client under a name that only it has, and not when something listens on its port.
//!
//! Brokers do not mind root, so that nothing changes its user here.

mod command;
pub(crate) mod program;

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::folder;

pub use self::command::run_with_url;

const WATCHDOG: &str = include_str!("broker/watchdog.sh");

/// How long a server may take until it greets: Erlang takes a few seconds, and a machine that compiles many times as long.
const START_PATIENCE: Duration = Duration::from_secs(120);

/// How long a server may take to end when it is asked to.
const STOP_PATIENCE: Duration = Duration::from_secs(60);

/// How long a listener may take to greet a client. One that never does is somebody else's.
const GREETING_PATIENCE: Duration = Duration::from_secs(5);

/// Nobody tells when a server is ready or has ended: this is how often it is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What an error shows of the server's log. Erlang says why, and then for fifty lines what happened because of it.
const LOG_TAIL_LINES: usize = 100;

/// Systems hand out ports from 32768 (Linux) or 49152 (others) to clients, and few programs listen here.
const FIRST_PORT: u32 = 16_384;
const PORTS: u32 = 16_384;

/// How many ports may be taken in a row before this machine counts as full.
const PORT_TRIES: usize = 1024;

/// What differs between the brokers.
pub trait Server {
    /// Its name in messages, and in lower case in the name of its folder.
    const NAME: &'static str;

    /// Writes its configuration into the folder, and adds the program, its arguments and its variables to the command. The
    /// program must be the server itself and not start it as another process: the signals go to what was started.
    ///
    /// # Errors
    ///
    /// What the file system says.
    fn configure(&self, command: &mut Command, site: &Site<'_>) -> std::io::Result<()>;

    /// Whether the server that has this name greets on the connection.
    ///
    /// # Errors
    ///
    /// What the connection says, which counts as no.
    fn greets(&self, connection: TcpStream, name: &str) -> std::io::Result<bool>;

    /// The URL for clients.
    fn url(port: u16) -> String;
}

/// Where a server is put. It listens on 127.0.0.1 alone.
#[derive(Debug, Clone, Copy)]
pub struct Site<'s> {
    /// A folder of its own, which stays when it stops.
    pub folder: &'s Path,
    /// A name that no other server has: letters, digits and `_`.
    pub name: &'s str,
    /// For clients.
    pub client_port: u16,
    /// For the other servers of a cluster, if it must listen to some.
    pub node_port: u16,
}

/// A broker of this process alone, which runs from the start. It stops, and its folder is gone, when this value is dropped or the
/// process ends.
#[derive(Debug)]
pub struct Broker<S> {
    url: String,
    name: String,
    client_port: u16,
    folder: PathBuf,
    watchdog: Child,
    /// Held open: its end is the script's last order.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    server: S,
}

impl<S: Server> Broker<S> {
    /// Starts the server, and waits until it accepts clients.
    pub(crate) fn start_server(server: S) -> Result<Self, String> {
        let mut broker = Self::spawn_watchdog(server)
            .map_err(|error| format!("no throwaway {} server: {error}", S::NAME))?;
        broker.start_and_wait()?;
        Ok(broker)
    }

    /// What clients connect with. It stays the same when the broker stops and starts again.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Asks the server to end, as for an update of it, and waits until it has ended. What it has confirmed is still in its
    /// folder.
    ///
    /// # Panics
    ///
    /// Panics if it does not end within a minute.
    pub fn stop(&mut self) {
        self.end("TERM").unwrap_or_else(|error| panic!("{error}"));
    }

    /// Ends the server as a crash does, and waits until it is gone.
    ///
    /// # Panics
    ///
    /// Panics if it is not gone within a minute.
    pub fn kill(&mut self) {
        self.end("KILL").unwrap_or_else(|error| panic!("{error}"));
    }

    /// Starts the server again in the same folder and on the same port, and waits until it accepts clients. A server that runs is
    /// stopped before.
    ///
    /// # Panics
    ///
    /// Panics if it does not stop or not start. The text has the end of its log.
    pub fn restart(&mut self) {
        self.end("TERM")
            .and_then(|()| self.start_and_wait())
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// Holds the server still: connections stay open and can even be made, and nothing is answered. A server that does not run is
    /// left alone.
    ///
    /// # Panics
    ///
    /// Panics if it does not stop within some seconds.
    pub fn pause(&mut self) {
        self.order("STOP").unwrap_or_else(|error| panic!("{error}"));
    }

    /// Lets the server go on, also with what clients have sent meanwhile.
    ///
    /// # Panics
    ///
    /// Panics if the script that stands between is gone.
    pub fn resume(&mut self) {
        self.order("CONT").unwrap_or_else(|error| panic!("{error}"));
    }

    fn spawn_watchdog(server: S) -> std::io::Result<Self> {
        let name = format!("idem_{}", Uuid::new_v4().simple());
        let folder = folder::fresh(&format!("idem-{}-", S::NAME.to_ascii_lowercase()))?;
        let client_port = free_port()?;
        let mut command = Command::new("sh");
        command
            .args(["-c", WATCHDOG, "watchdog"])
            .arg(folder.path())
            // What the person at the terminal has set is for another server.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LC_ALL", "C")
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // An interrupt from the terminal goes to the whole group: it must end the tests and not the one who cleans up.
            .process_group(0);
        server.configure(
            &mut command,
            &Site {
                folder: folder.path(),
                name: &name,
                client_port,
                node_port: free_port()?,
            },
        )?;

        let mut watchdog = command.spawn()?;
        // From here on the script removes the folder.
        let folder = folder.keep();
        let orders = watchdog.stdin.take();
        let answers = watchdog
            .stdout
            .take()
            .ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            url: S::url(client_port),
            name,
            client_port,
            folder,
            watchdog,
            orders,
            answers: BufReader::new(answers),
            server,
        })
    }

    fn start_and_wait(&mut self) -> Result<(), String> {
        self.order("start")?;
        let start = Instant::now();
        while !self.greets() {
            let problem = if self.has_ended() {
                "ended at once"
            } else if start.elapsed() > START_PATIENCE {
                "does not greet"
            } else {
                std::thread::sleep(LOOK_AGAIN);
                continue;
            };
            return Err(self.failure(problem));
        }
        Ok(())
    }

    fn greets(&self) -> bool {
        let greets = || {
            let connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.client_port))?;
            connection.set_read_timeout(Some(GREETING_PATIENCE))?;
            connection.set_write_timeout(Some(GREETING_PATIENCE))?;
            self.server.greets(connection, &self.name)
        };
        greets().unwrap_or(false)
    }

    fn end(&mut self, signal: &str) -> Result<(), String> {
        self.order(signal)?;
        let start = Instant::now();
        while !self.has_ended() {
            if start.elapsed() > STOP_PATIENCE {
                return Err(self.failure("does not end"));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// The script says so, which is the server's parent.
    fn has_ended(&self) -> bool {
        self.folder.join("ended").exists()
    }

    /// Gives the script an order, and waits until it is carried out.
    fn order(&mut self, order: &str) -> Result<(), String> {
        let mut answer = String::new();
        let asked = match &mut self.orders {
            Some(orders) => writeln!(orders, "{order}"),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        let answered = asked.and_then(|()| self.answers.read_line(&mut answer));
        if answered.is_ok() && answer.trim_end() == "done" {
            Ok(())
        } else {
            Err(self.failure(&format!("does not follow the order {order}")))
        }
    }

    /// What went wrong, and what the server says about it.
    fn failure(&self, problem: &str) -> String {
        let log = std::fs::read(self.folder.join("server.log")).unwrap_or_default();
        format!(
            "the throwaway {} server in {} {problem}. Its log:\n{}",
            S::NAME,
            self.folder.display(),
            tail(&String::from_utf8_lossy(&log))
        )
    }
}

impl<S> Drop for Broker<S> {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.watchdog.wait();
    }
}

/// A port that nobody listens on now, and that this process has not given to another server.
fn free_port() -> std::io::Result<u16> {
    /// Processes start in different places, because two of them could look at the same port at the same time.
    const APART: u32 = 128;
    static GIVEN: AtomicU32 = AtomicU32::new(0);

    let first = std::process::id().wrapping_mul(APART);
    std::iter::repeat_with(|| GIVEN.fetch_add(1, Ordering::Relaxed))
        .take(PORT_TRIES)
        .filter_map(|given| u16::try_from(FIRST_PORT + first.wrapping_add(given) % PORTS).ok())
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .ok_or_else(|| std::io::Error::other("no free port on 127.0.0.1"))
}

/// The last lines, which say why.
fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let skipped = lines.len().saturating_sub(LOG_TAIL_LINES);
    lines
        .into_iter()
        .skip(skipped)
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests;

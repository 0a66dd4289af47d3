//! `nats-server` with its persistent streams, as one throwaway server per process or per test.
//!
//! It has its own folder and port, and ends with the process, however the process ends. The service that the Debian package
//! brings is neither used nor needed.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::broker::program::Program;
use crate::broker::{Broker, Server, Site};

/// Names the program, for machines with several versions.
pub const PROGRAM_VARIABLE: &str = "IDEM_TEST_NATS_SERVER";

/// More than a greeting has, which is half a kilobyte.
const GREETING_BYTES: u64 = 16 * 1024;

/// A `nats-server` of this process alone, which runs from the start.
///
/// ```
/// use std::io::{BufRead, BufReader};
/// use std::net::TcpStream;
/// use support::nats::Nats;
///
/// let mut nats = Nats::start_with(&["max_payload: 1024"]);
/// let address = nats.url().strip_prefix("nats://").unwrap().to_owned();
/// let mut greeting = String::new();
/// BufReader::new(TcpStream::connect(&address).unwrap()).read_line(&mut greeting).unwrap();
/// assert!(greeting.contains(r#""max_payload":1024"#));
///
/// nats.stop();
/// assert!(TcpStream::connect(&address).is_err());
/// nats.restart();
/// assert!(TcpStream::connect(&address).is_ok());
/// ```
pub type Nats = Broker<NatsServer>;

/// The server of this process, which is started if this is the first call.
///
/// All tests of the process share it, so that each has streams and subjects of its own. A test that takes a broker down,
/// which this reference does not allow, starts its own.
///
/// ```
/// assert!(support::nats::shared().url().starts_with("nats://127.0.0.1:"));
/// ```
///
/// # Panics
///
/// Panics if this machine has no `nats-server` or it does not start. The text says what to do.
pub fn shared() -> &'static Nats {
    // A failure is kept as well: every test then fails with the same text, and the start is not tried again.
    static NATS: OnceLock<Result<Nats, String>> = OnceLock::new();
    NATS.get_or_init(|| Nats::try_start(&[]))
        .as_ref()
        .unwrap_or_else(|error| panic!("{error}"))
}

impl Nats {
    /// Starts a server.
    ///
    /// # Panics
    ///
    /// As [`shared`].
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with lines of its configuration file: `max_payload: 1024`.
    ///
    /// # Panics
    ///
    /// As [`shared`], and if the server does not understand a line.
    pub fn start_with(options: &[&str]) -> Self {
        Self::try_start(options).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts a server with lines of its configuration file.
    ///
    /// # Errors
    ///
    /// A text for the person at the terminal: what is missing and how to get it, or the end of the server's own log.
    pub fn try_start(options: &[&str]) -> Result<Self, String> {
        let program = Program {
            name: "nats-server",
            variable: PROGRAM_VARIABLE,
            package: "nats-server",
            before_path: &[],
            // Where Debian puts it, which is in nobody's `PATH` but root's.
            after_path: &["/usr/sbin", "/usr/local/sbin"],
        };
        Self::start_server(NatsServer {
            program: program.find()?,
            configuration: options.join("\n"),
        })
    }
}

/// What is special about `nats-server` among the brokers.
#[derive(Debug)]
pub struct NatsServer {
    program: PathBuf,
    configuration: String,
}

impl Server for NatsServer {
    const NAME: &'static str = "NATS";

    fn configure(&self, command: &mut Command, site: &Site<'_>) -> std::io::Result<()> {
        let file = site.folder.join("options.conf");
        std::fs::write(&file, &self.configuration)?;
        command
            .arg(&self.program)
            .arg("--config")
            .arg(file)
            .arg("--jetstream")
            .arg("--store_dir")
            .arg(site.folder.join("store"))
            .args(["--server_name", site.name])
            .args(["--addr", "127.0.0.1"])
            .args(["--port", &site.client_port.to_string()]);
        Ok(())
    }

    /// The first line is `INFO {…}`, whose object has the server's name.
    fn greets(&self, connection: TcpStream, name: &str) -> std::io::Result<bool> {
        let mut line = String::new();
        BufReader::new(connection.take(GREETING_BYTES)).read_line(&mut line)?;
        Ok(line.starts_with("INFO ")
            && line.contains(&format!(r#""server_name":"{name}""#))
            && line.contains(r#""jetstream":true"#))
    }

    fn url(port: u16) -> String {
        format!("nats://127.0.0.1:{port}")
    }
}

#[cfg(test)]
mod tests;

//! `rabbitmq-server`, as one throwaway server per process or per test.
//!
//! It has its own folder, ports, node name, Erlang cookie and registry of nodes, no plugins, and nothing of what this machine
//! configures for a server of its own. It ends with the process, however the process ends. The service that the Debian package
//! brings is neither used nor needed.
//!
//! Erlang finds nodes through a registry, `epmd`, which it starts as a daemon that outlives everybody. Here a registry is started
//! before the server and ends with it, and the server may not start another one.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::broker::program::Program;
use crate::broker::{Broker, Server, Site};
use crate::watched::{Watchdog, Watched};

/// Names the program, for machines with several versions. It must be the script among the server's own files: the one in
/// `/usr/sbin` changes the user and starts the server as another process.
pub const PROGRAM_VARIABLE: &str = "IDEM_TEST_RABBITMQ_SERVER";

const EPMD_WATCHDOG: &str = include_str!("rabbitmq/epmd.sh");

/// A disk that has less free space than this blocks publishers. Memory as a disk may have little.
const DISK_FREE_LIMIT: &str = "disk_free_limit.absolute = 1MB";

/// Opens a connection of AMQP 0-9-1.
const PROTOCOL_HEADER: [u8; 8] = *b"AMQP\x00\x00\x09\x01";

/// The head of every frame: its type, its channel, and the size of what follows.
const FRAME_HEAD_BYTES: usize = 7;

/// More than a greeting has, which is half a kilobyte.
const GREETING_BYTES: u32 = 16 * 1024;

/// Begins the server's first frame: method, channel 0.
const METHOD_ON_CHANNEL_0: [u8; 3] = [1, 0, 0];

/// Begins what the frame holds: class 10, method 10.
const CONNECTION_START: [u8; 4] = [0, 10, 0, 10];

/// A `rabbitmq-server` of this process alone, which runs from the start.
///
/// Its database of definitions writes a moment after it has answered. A queue that was declared just before
/// [`kill`](Broker::kill) may therefore be gone, also a durable one, and with it every message that was confirmed in it. After a
/// [`restart`](Broker::restart) the definition is certainly in the folder.
///
/// ```
/// use support::rabbitmq::RabbitMq;
///
/// let rabbitmq = RabbitMq::start_with(&["max_message_size = 1024"]);
/// assert!(rabbitmq.url().starts_with("amqp://guest:guest@127.0.0.1:"));
/// assert!(rabbitmq.url().ends_with("/%2f"));
/// ```
pub type RabbitMq = Broker<RabbitMqServer>;

/// The server of this process, which is started if this is the first call, and takes some seconds then.
///
/// All tests of the process share it, so that each has exchanges and queues of its own. A test that takes a broker down,
/// which this reference does not allow, starts its own.
///
/// ```
/// assert!(support::rabbitmq::shared().url().starts_with("amqp://"));
/// ```
///
/// # Panics
///
/// Panics if this machine has no `rabbitmq-server` or it does not start. The text says what to do.
pub fn shared() -> &'static RabbitMq {
    // A failure is kept as well: every test then fails with the same text, and the start is not tried again.
    static RABBITMQ: OnceLock<Result<RabbitMq, String>> = OnceLock::new();
    RABBITMQ
        .get_or_init(|| RabbitMq::try_start(&[]))
        .as_ref()
        .unwrap_or_else(|error| panic!("{error}"))
}

impl RabbitMq {
    /// Starts a server.
    ///
    /// # Panics
    ///
    /// As [`shared`].
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with lines of its file `rabbitmq.conf`: `max_message_size = 1024`.
    ///
    /// # Panics
    ///
    /// As [`shared`], and if the server does not understand a line.
    pub fn start_with(options: &[&str]) -> Self {
        Self::try_start(options).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts a server with lines of its file `rabbitmq.conf`.
    ///
    /// # Errors
    ///
    /// A text for the person at the terminal: what is missing and how to get it, or the end of the server's own log.
    pub fn try_start(options: &[&str]) -> Result<Self, String> {
        let program = Program {
            name: "rabbitmq-server",
            variable: PROGRAM_VARIABLE,
            package: "rabbitmq-server",
            // Where packages put the script that does not change the user.
            before_path: &["/usr/lib/rabbitmq/bin"],
            after_path: &["/usr/local/sbin", "/opt/homebrew/sbin"],
        };
        let program = program.find()?;
        let registry = Watchdog {
            server: "epmd",
            script: EPMD_WATCHDOG,
            arguments: &[OsStr::new("epmd")],
            secrets: &[],
            parent: None,
        };
        Self::start_server(RabbitMqServer {
            program,
            configuration: format!("{DISK_FREE_LIMIT}\n{}\n", options.join("\n")),
            registry: registry.start()?,
        })
    }
}

/// What is special about `rabbitmq-server` among the brokers.
#[derive(Debug)]
pub struct RabbitMqServer {
    program: PathBuf,
    configuration: String,
    /// Ends after the server, which is gone when the fields of its broker are dropped.
    registry: Watched,
}

impl Server for RabbitMqServer {
    const NAME: &'static str = "RabbitMQ";

    fn configure(&self, command: &mut Command, site: &Site<'_>) -> std::io::Result<()> {
        let file = |name: &str, content: &str| {
            let path = site.folder.join(name);
            std::fs::write(&path, content).map(|()| path)
        };
        let nothing_for_shells = file("rabbitmq-env.conf", "")?;
        let nothing_for_erlang = file("nothing.config", "[].\n")?;
        let configuration = file("rabbitmq.conf", &self.configuration)?;
        command
            .arg(&self.program)
            .env("HOME", site.folder)
            // The script then becomes the server, instead of starting it and waiting for it.
            .env("RUNNING_UNDER_SYSTEMD", "true")
            .env("ERL_EPMD_PORT", self.registry.port().to_string())
            .env("ERL_FLAGS", "-start_epmd false")
            .env("RABBITMQ_NODENAME", format!("{}@localhost", site.name))
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", site.client_port.to_string())
            .env("RABBITMQ_DIST_PORT", site.node_port.to_string())
            .env(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "-kernel inet_dist_use_interface {127,0,0,1}",
            )
            .env("RABBITMQ_CONF_ENV_FILE", nothing_for_shells)
            .env("RABBITMQ_CONFIG_FILE", configuration)
            .env("RABBITMQ_CONFIG_FILES", site.folder.join("conf.d"))
            .env("RABBITMQ_ADVANCED_CONFIG_FILE", &nothing_for_erlang)
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", &nothing_for_erlang)
            .env("RABBITMQ_MNESIA_BASE", site.folder.join("mnesia"))
            .env("RABBITMQ_LOG_BASE", site.folder.join("log"))
            // To the standard output, where the log of every broker is read.
            .env("RABBITMQ_LOGS", "-");
        Ok(())
    }

    /// The answer to the protocol header is Connection.Start, among whose properties is the name of the cluster. That is the
    /// node's until somebody changes it.
    fn greets(&self, mut connection: TcpStream, name: &str) -> std::io::Result<bool> {
        connection.write_all(&PROTOCOL_HEADER)?;
        let mut head = [0; FRAME_HEAD_BYTES];
        connection.read_exact(&mut head)?;
        let [kind, channel_high, channel_low, size @ ..] = head;
        let size = u32::from_be_bytes(size);
        if [kind, channel_high, channel_low] != METHOD_ON_CHANNEL_0 || size > GREETING_BYTES {
            return Ok(false);
        }
        let mut method = Vec::new();
        connection.take(size.into()).read_to_end(&mut method)?;
        Ok(method.starts_with(&CONNECTION_START)
            && method
                .windows(name.len())
                .any(|text| text == name.as_bytes()))
    }

    fn url(port: u16) -> String {
        format!("amqp://guest:guest@127.0.0.1:{port}/%2f")
    }
}

#[cfg(test)]
mod tests;

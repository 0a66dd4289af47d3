//! A PostgreSQL server of this process alone, which leaves nothing behind.

use std::ffi::OsStr;
use std::path::Path;

use uuid::Uuid;

use super::binaries;
use crate::watched::{Watchdog, Watched};

const WATCHDOG: &str = include_str!("watchdog.sh");

/// Fast because nothing has to survive, in UTC, and with room for tests that race on many connections. No local socket: its
/// path could be longer than the system allows.
const SETTINGS: &str = "-c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=300 \
    -c shared_buffers=32MB -c max_wal_size=256MB -c fsync=off -c synchronous_commit=off -c full_page_writes=off \
    -c autovacuum=off -c timezone=UTC -c log_timezone=UTC";

/// A running server. It stops, and its folder is gone, when this value is dropped or the process ends.
#[derive(Debug)]
pub(super) struct Throwaway {
    url: String,
    _server: Watched,
}

impl Throwaway {
    /// `settings` come after our own, so that they win.
    pub(super) fn start(parent: Option<&Path>, settings: &str) -> Result<Self, String> {
        let settings = format!("{SETTINGS} {settings}");
        let bin = binaries::folder()?;
        let password = Uuid::new_v4().simple().to_string();
        let watchdog = Watchdog {
            server: "PostgreSQL",
            script: WATCHDOG,
            arguments: &[bin.as_os_str(), OsStr::new(&settings)],
            secrets: &[("IDEM_WATCHDOG_PASSWORD", &password)],
            parent,
        };
        let server = watchdog
            .start()
            .map_err(|error| format!("{error}\n(programs: {})", bin.display()))?;
        Ok(Self {
            url: format!(
                "postgres://postgres:{password}@127.0.0.1:{}/postgres",
                server.port()
            ),
            _server: server,
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

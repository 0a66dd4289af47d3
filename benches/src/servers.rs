//! The two PostgreSQL servers: one that waits for its disk, and one that never does.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use diesel::sql_types::Text;
use diesel::{Connection, PgConnection, QueryableByName, RunQueryDsl, sql_query};
use serde::{Deserialize, Serialize};
use support::postgres::Server;

use crate::places;

/// PostgreSQL's own defaults for what a commit costs, and no background work that would hit one side of a pair only: checkpoints come
/// from the measurements, and vacuum is on only where a purge needs it.
const BOTH: &str = "-c synchronous_commit=on -c full_page_writes=on -c checkpoint_timeout=1d -c max_wal_size=16GB -c autovacuum=on";

/// What stands in the results.
const SETTINGS: [&str; 8] = [
    "server_version",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "autovacuum",
];

/// What `stored_keys` needs for each key, all in memory: its row, the entry of its index, and room.
const BUFFER_BYTES_PER_KEY: u64 = 640;

const LEAST_BUFFERS_MIB: u64 = 256;

/// Servers that start when they are first needed, and end with this value.
pub(crate) struct Servers {
    /// Of the CPU-bound server.
    buffers_mib: u64,
    cpu_bound: Option<Server>,
    durable: Option<Server>,
}

impl Servers {
    /// The CPU-bound server has room for so many stored keys.
    pub(crate) fn for_keys(stored_keys: Option<u32>) -> Self {
        let bytes = u64::from(stored_keys.unwrap_or_default()) * BUFFER_BYTES_PER_KEY;
        Self {
            buffers_mib: LEAST_BUFFERS_MIB.max(bytes / (1024 * 1024)),
            cpu_bound: None,
            durable: None,
        }
    }

    /// Never waits for a disk: `fsync=off`.
    pub(crate) fn cpu_bound(&mut self) -> Result<&Server> {
        let settings = format!(
            "{BOTH} -c fsync=off -c shared_buffers={}MB",
            self.buffers_mib
        );
        start(&mut self.cpu_bound, &settings)
    }

    /// A commit returns when it is on the disk.
    pub(crate) fn durable(&mut self) -> Result<&Server> {
        let settings = format!("{BOTH} -c fsync=on -c shared_buffers={LEAST_BUFFERS_MIB}MB");
        start(&mut self.durable, &settings)
    }

    /// The settings of the servers that were started, as they say them.
    pub(crate) fn settings(&self) -> Result<Vec<ServerSettings>> {
        [("CPU-bound", &self.cpu_bound), ("durable", &self.durable)]
            .into_iter()
            .filter_map(|(name, server)| Some((name, server.as_ref()?)))
            .map(|(name, server)| {
                Ok(ServerSettings {
                    name: name.to_owned(),
                    settings: settings_of(server)?,
                })
            })
            .collect()
    }
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerSettings {
    pub(crate) name: String,
    pub(crate) settings: BTreeMap<String, String>,
}

fn start<'s>(server: &'s mut Option<Server>, settings: &str) -> Result<&'s Server> {
    match server {
        Some(server) => Ok(server),
        none => {
            let started = Server::start_in(&places::data()?, settings);
            Ok(none.insert(started.map_err(anyhow::Error::msg)?))
        }
    }
}

fn settings_of(server: &Server) -> Result<BTreeMap<String, String>> {
    let mut conn = PgConnection::establish(server.url())?;
    SETTINGS
        .into_iter()
        .map(|name| {
            let setting: Setting = sql_query(format!("SELECT current_setting('{name}') AS value"))
                .get_result(&mut conn)
                .with_context(|| format!("the setting {name}"))?;
            Ok((name.to_owned(), setting.value))
        })
        .collect()
}

#[derive(QueryableByName)]
struct Setting {
    #[diesel(sql_type = Text)]
    value: String,
}

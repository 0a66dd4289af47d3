//! One relay beside writers at full speed, and how fast relays empty an outbox.

mod drain;
mod keeps_up;

use anyhow::Result;

use super::Findings;
use crate::effort::Effort;
use crate::servers::Servers;

/// Delivered events that are still in the outbox.
pub(crate) const DELIVERED: u32 = drain::DELIVERED;

pub(crate) fn measure(servers: &mut Servers, effort: Effort) -> Result<Findings> {
    let server = servers.cpu_bound()?;
    let mut findings = keeps_up::measure(server, effort)?;
    findings
        .measurements
        .extend(drain::measure(server, effort)?);
    Ok(findings)
}

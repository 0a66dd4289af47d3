//! Runs a command with a `nats-server` of its own, and removes the server after it.
//!
//! ```sh
//! cargo run -q -p idem-tests --bin throwaway-nats -- echo {nats}
//! ```
//!
//! `{nats}` in the arguments is the URL of the server. The exit code is the command's own.

use std::process::ExitCode;

use support::broker::run_with_url;
use support::nats::Nats;

fn main() -> ExitCode {
    run_with_url("throwaway-nats", "{nats}", || Nats::try_start(&[]))
}

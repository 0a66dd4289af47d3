//! Runs a command with a `rabbitmq-server` of its own, and removes the server after it.
//!
//! ```sh
//! cargo run -q -p idem-tests --bin throwaway-rabbitmq -- echo {amqp}
//! ```
//!
//! `{amqp}` in the arguments is the URL of the server. The exit code is the command's own.

use std::process::ExitCode;

use support::broker::run_with_url;
use support::rabbitmq::RabbitMq;

fn main() -> ExitCode {
    run_with_url("throwaway-rabbitmq", "{amqp}", || RabbitMq::try_start(&[]))
}

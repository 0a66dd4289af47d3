//! Runs a command with a fresh PostgreSQL database, and removes database and server after it.
//!
//! ```sh
//! cargo run -q -p idem-tests --bin throwaway-postgres -- \
//!     cargo run --example checkout -- --database-url {url}
//! ```
//!
//! `{url}` in the arguments is the URL of the database, which the command also finds in `IDEM_EXAMPLE_DATABASE_URL`. `{pgbouncer}` is
//! the URL of the same database through a pgbouncer in transaction mode, which is started only for a command that asks. It finds the
//! server in `IDEM_TEST_DATABASE_URL`, so that tests that run in many processes can share it. The exit code is the
//! command's own.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};

use support::pgbouncer;
use support::postgres::{SERVER_URL_VARIABLE, Server};

/// Gives the command the URL of its database.
const DATABASE_URL_VARIABLE: &str = "IDEM_EXAMPLE_DATABASE_URL";

/// Stands for the URL through pgbouncer.
const PGBOUNCER: &str = "{pgbouncer}";

fn main() -> ExitCode {
    match run() {
        Ok(status) => exit_code(status),
        Err(error) => {
            eprintln!("throwaway-postgres: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitStatus, String> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().ok_or(
        "no command. Usage: throwaway-postgres COMMAND [ARGUMENT]…, where {url} is the database",
    )?;
    let server = Server::find_or_start()?;
    let database = server.fresh_database()?;
    let filled_in = |argument: String| {
        let argument = argument.replace("{url}", database.url());
        if argument.contains(PGBOUNCER) {
            argument.replace(PGBOUNCER, &pgbouncer::in_front_of(database.url()))
        } else {
            argument
        }
    };
    Command::new(&program)
        .args(arguments.map(filled_in))
        .env(DATABASE_URL_VARIABLE, database.url())
        .env(SERVER_URL_VARIABLE, server.url())
        .status()
        .map_err(|error| format!("{program}: {error}"))
}

/// The command's own code, or 128 and the signal that ended it, as shells say it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    ExitCode::from(
        code.and_then(|code| u8::try_from(code).ok())
            .unwrap_or(u8::MAX),
    )
}

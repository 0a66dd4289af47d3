//! A command that is given a broker for as long as it runs.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};

use super::{Broker, Server};

/// Runs the command in the arguments of this process, with the broker's URL for each `placeholder` in it, and ends the broker after it.
///
/// The placeholder is not `{url}`, which is the database, so that one program can be the command of another.
///
/// The exit code is the command's own, or 1 if there is no broker or no command. `program` is the name of this process in
/// messages.
pub fn run_with_url<S: Server>(
    program: &str,
    placeholder: &str,
    start: impl FnOnce() -> Result<Broker<S>, String>,
) -> ExitCode {
    match run(program, placeholder, start) {
        Ok(status) => exit_code(status),
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run<S: Server>(
    program: &str,
    placeholder: &str,
    start: impl FnOnce() -> Result<Broker<S>, String>,
) -> Result<ExitStatus, String> {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().ok_or_else(|| {
        format!(
            "no command. Usage: {program} COMMAND [ARGUMENT]…, where {placeholder} is the broker"
        )
    })?;
    let broker = start()?;
    Command::new(&command)
        .args(arguments.map(|argument| argument.replace(placeholder, broker.url())))
        .status()
        .map_err(|error| format!("{command}: {error}"))
}

/// The command's own code, or 128 and the signal that ended it, as shells say it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    ExitCode::from(
        code.and_then(|code| u8::try_from(code).ok())
            .unwrap_or(u8::MAX),
    )
}

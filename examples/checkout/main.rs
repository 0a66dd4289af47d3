//! A small shop whose handlers are called twice, raced, dropped and misused, and have exactly one effect.
//!
//! ```sh
//! cargo run --example checkout                                     # SQLite, a temporary file
//! cargo run --example checkout -- --database-url postgres://…      # PostgreSQL, a schema of its own
//! ```
//!
//! Read `shop.rs` for the tables and types, `handlers.rs` for the handlers, and `scenes.rs` for what they promise.

#![expect(
    clippy::duplicate_mod,
    reason = "the same text is compiled for SQLite and for PostgreSQL"
)]

mod check;
mod postgres;
mod shop;
mod sqlite;

use std::process::ExitCode;

const USAGE: &str = "\
usage: checkout [--database-url postgres://…]

Without a URL it runs on SQLite, in a temporary file.";

/// What the arguments ask for.
enum Task {
    OnSqlite,
    OnPostgres { url: String },
    Help,
}

#[tokio::main]
async fn main() -> ExitCode {
    let task = match read_arguments() {
        Ok(task) => task,
        Err(error) => {
            eprintln!("checkout: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let held = match task {
        Task::Help => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Task::OnSqlite => on_sqlite().await,
        Task::OnPostgres { url } => on_postgres(url).await,
    };
    match held {
        Ok(()) => {
            println!("checkout: all scenes held");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("checkout: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn read_arguments() -> Result<Task, lexopt::Error> {
    use lexopt::prelude::*;
    let mut task = Task::OnSqlite;
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("database-url") => {
                let url = arguments.value()?.string()?;
                if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
                    return Err("the URL does not start with postgres://".into());
                }
                task = Task::OnPostgres { url };
            }
            Short('h') | Long("help") => return Ok(Task::Help),
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(task)
}

async fn on_sqlite() -> anyhow::Result<()> {
    println!("on SQLite, in a temporary file");
    let database = sqlite::Database::create().await?;
    sqlite::scenes::play(&database).await
}

async fn on_postgres(url: String) -> anyhow::Result<()> {
    println!("on PostgreSQL, in a schema of its own");
    let database = postgres::Database::create(url).await?;
    let held = postgres::scenes::play(&database).await;
    // Also after a scene that did not hold, which is then the error that counts.
    let removed = database.remove().await;
    held.and(removed)
}

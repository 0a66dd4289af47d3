//! An order is placed, an event tells of it, a relay carries the event, and a consumer takes the goods from the stock: once, although everything happens twice.
//!
//! ```sh
//! cargo run --example pipeline                                                      # SQLite, and a publisher inside the relay
//! cargo run --example pipeline -- --database-url postgres://… --nats nats://…       # PostgreSQL and NATS JetStream
//! cargo run --example pipeline -- --database-url postgres://… --amqp amqp://…       # PostgreSQL and RabbitMQ
//! ```
//!
//! Every order is placed twice, every delivery is handed to the consumer twice, and the relay, a process of its own, is killed between publishing and settling.
//!
//! Read `shop.rs` for the tables and types, `handlers.rs` for the two handlers, `relay.rs` for the process that is killed, and `play.rs` for what happens and what is checked.

#![expect(
    clippy::duplicate_mod,
    reason = "the same text is compiled for SQLite and for PostgreSQL"
)]

mod broker;
mod postgres;
mod shop;
mod sqlite;

use std::process::ExitCode;

use broker::Broker;

const USAGE: &str = "\
usage: pipeline [--database-url postgres://…] [--nats nats://… | --amqp amqp://…]

Without a database it runs on SQLite, in a temporary file; without a broker the relay calls the consumer itself.";

/// What the arguments ask for.
enum Task {
    Play(Setting),
    /// The process that is killed: started by this program itself.
    Relay(Setting, RelayTask),
    Help,
}

/// Where it plays.
#[derive(Debug, Clone)]
struct Setting {
    /// A URL of PostgreSQL; without one SQLite.
    database_url: Option<String>,
    broker: Broker,
}

/// What a relay is told.
#[derive(Debug, Clone)]
struct RelayTask {
    /// The file of SQLite, or the schema of PostgreSQL.
    place: String,
    /// After so many published events it stands still, to be killed.
    stands_still_after: Option<u32>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let task = match read_arguments() {
        Ok(task) => task,
        Err(error) => {
            eprintln!("pipeline: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let (done, last_line) = match task {
        Task::Help => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Task::Play(setting) => (
            play(&setting).await,
            Some("pipeline: every event applied once"),
        ),
        Task::Relay(setting, task) => (relay(&setting, &task).await, None),
    };
    match done {
        Ok(()) => {
            if let Some(last_line) = last_line {
                println!("{last_line}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("pipeline: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn play(setting: &Setting) -> anyhow::Result<()> {
    match &setting.database_url {
        None => {
            println!("on SQLite, in a temporary file, {}", setting.broker);
            let database = sqlite::Database::create().await?;
            sqlite::play::play(&database, setting).await
        }
        Some(url) => {
            println!("on PostgreSQL, in a schema of its own, {}", setting.broker);
            let database = postgres::Database::create(url).await?;
            let played = postgres::play::play(&database, setting).await;
            // Also after something did not hold, which is then the error that counts.
            let removed = database.remove().await;
            played.and(removed)
        }
    }
}

async fn relay(setting: &Setting, task: &RelayTask) -> anyhow::Result<()> {
    match &setting.database_url {
        None => sqlite::relay::run(sqlite::Database::at(&task.place), setting, task).await,
        Some(url) => {
            postgres::relay::run(postgres::Database::at(url, &task.place), setting, task).await
        }
    }
}

fn read_arguments() -> Result<Task, lexopt::Error> {
    use lexopt::prelude::*;
    let mut setting = Setting {
        database_url: None,
        broker: Broker::InProcess,
    };
    let (mut place, mut stands_still_after) = (None, None);
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("database-url") => {
                let url = arguments.value()?.string()?;
                if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
                    return Err("the URL does not start with postgres://".into());
                }
                setting.database_url = Some(url);
            }
            Long("nats") => setting.broker = Broker::Nats(arguments.value()?.string()?),
            Long("amqp") => setting.broker = Broker::Amqp(arguments.value()?.string()?),
            // Of the relay's process alone.
            Long("relay") => place = Some(arguments.value()?.string()?),
            Long("stands-still-after") => stands_still_after = Some(arguments.value()?.parse()?),
            Short('h') | Long("help") => return Ok(Task::Help),
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(match place {
        None => Task::Play(setting),
        Some(place) => Task::Relay(
            setting,
            RelayTask {
                place,
                stands_still_after,
            },
        ),
    })
}

//! What the library costs, as ratios that are measured in the same run: see `README.md` beside this package.

mod calls;
mod effort;
mod groups;
mod machine;
mod places;
mod plots;
mod report;
mod results;
mod rounds;
mod servers;
mod shop;
mod spread;

use anyhow::Result;
use clap::{Parser, Subcommand};

use self::effort::Effort;
use self::groups::instructions::Kind;
use self::groups::{
    Findings, build_time, consumer, first_call, hashing, instructions, purge, relay, replay,
    sqlite, stored_keys, sync_postgres,
};
use self::machine::Machine;
use self::results::{Group, Results};
use self::servers::Servers;

/// Measures what the library costs. Without a command: everything that takes less than ten minutes together.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum Command {
    /// A few calls of every group but `build-time`; writes nothing
    Smoke,
    /// The first call on async PostgreSQL, against a bare transaction and the article's flow
    FirstCall,
    /// A replay, against a SELECT of its row
    Replay,
    /// The first call on sync PostgreSQL
    SyncPostgres,
    /// The first call on a SQLite file
    Sqlite,
    /// The first call beside many stored keys
    StoredKeys {
        /// How many
        #[arg(long, default_value_t = stored_keys::KEYS)]
        keys: u32,
    },
    /// The request hash
    Hashing,
    /// A consumer's call, against a bare transaction, and a duplicate
    Consumer,
    /// One relay beside writers at full speed, and how fast relays empty an outbox (some minutes)
    Relay,
    /// Calls beside a purge of a million rows (some minutes)
    Purge,
    /// A crate of fifty handlers, against the same without attribute and derive (some minutes)
    BuildTime,
    /// Instructions of the client for each call, by valgrind (some minutes)
    Instructions,
    /// What `instructions` runs under valgrind
    #[command(hide = true)]
    CallgrindChild {
        kind: Kind,
        #[arg(long)]
        calls: u32,
    },
}

/// What runs without a command.
const SHORT: [Command; 7] = [
    Command::FirstCall,
    Command::Replay,
    Command::SyncPostgres,
    Command::Sqlite,
    Command::StoredKeys {
        keys: stored_keys::KEYS,
    },
    Command::Hashing,
    Command::Consumer,
];

/// What a smoke test adds to it.
const LONG: [Command; 3] = [Command::Relay, Command::Purge, Command::Instructions];

fn main() -> Result<()> {
    match Arguments::parse().command {
        None => measure(&SHORT),
        Some(Command::Smoke) => smoke(),
        Some(Command::CallgrindChild { kind, calls }) => instructions::child(kind, calls),
        Some(command) => measure(&[command]),
    }
}

/// Measures, and keeps the results of each group as soon as it is done.
fn measure(commands: &[Command]) -> Result<()> {
    let mut servers = Servers::for_keys(commands.iter().map(|command| command.stored_keys()).max());
    let package = places::package();
    let file = package.join("results.json");
    for command in commands {
        println!("{}", command.name());
        let Findings {
            measurements,
            curves,
        } = command.run(&mut servers, Effort::Full)?;
        let group = Group {
            name: command.name(),
            machine: Machine::look(&places::data()?)?,
            servers: servers.settings()?,
            measurements,
        };
        let folder = package.join("plots");
        plots::draw(&folder, &group)?;
        for curves in &curves {
            plots::curves::draw(&folder, curves)?;
        }
        let mut results = Results::load(&file)?;
        results.merge(group);
        results.save(&file)?;
        report::refresh(&package.join("README.md"), &results)?;
    }
    println!("\n{}", report::table(&Results::load(&file)?));
    Ok(())
}

fn smoke() -> Result<()> {
    let mut servers = Servers::for_keys(None);
    for command in SHORT.iter().chain(&LONG) {
        for measurement in command.run(&mut servers, Effort::Smoke)?.measurements {
            println!("{}: ran", measurement.what);
        }
    }
    println!("smoke: every group ran");
    Ok(())
}

impl Command {
    fn run(self, servers: &mut Servers, effort: Effort) -> Result<Findings> {
        let measurements = match self {
            Self::Relay => return relay::measure(servers, effort),
            Self::FirstCall => first_call::measure(servers, effort),
            Self::Replay => replay::measure(servers, effort),
            Self::SyncPostgres => sync_postgres::measure(servers, effort),
            Self::Sqlite => sqlite::measure(effort),
            Self::StoredKeys { keys } => stored_keys::measure(servers, effort, keys),
            Self::Hashing => hashing::measure(effort),
            Self::Purge => purge::measure(servers, effort),
            Self::BuildTime => build_time::measure(effort),
            Self::Instructions => instructions::measure(servers, effort),
            Self::Consumer => consumer::measure(servers, effort),
            Self::Smoke | Self::CallgrindChild { .. } => Ok(Vec::new()),
        };
        measurements.map(Findings::from)
    }

    /// The name of the group, in the results and as the name of its plot.
    fn name(self) -> String {
        match self {
            Self::Smoke => "smoke",
            Self::FirstCall => "first-call",
            Self::Replay => "replay",
            Self::SyncPostgres => "sync-postgres",
            Self::Sqlite => "sqlite",
            Self::StoredKeys { keys } => return format!("stored-keys-{keys}"),
            Self::Hashing => "hashing",
            Self::Consumer => "consumer",
            Self::Relay => "relay",
            Self::Purge => "purge",
            Self::BuildTime => "build-time",
            Self::Instructions => "instructions",
            Self::CallgrindChild { .. } => "callgrind-child",
        }
        .to_owned()
    }

    /// For how many stored keys the server must have room.
    fn stored_keys(self) -> u32 {
        match self {
            Self::StoredKeys { keys } => keys,
            Self::Purge => purge::ROWS,
            Self::Relay => relay::DELIVERED,
            _ => 0,
        }
    }
}

//! How many instructions the client spends on one call, as valgrind counts them.
//!
//! The program runs itself under valgrind twice, with so many calls and with twice as many. What is not a call, such as connecting
//! and preparing statements, is in both, so that the difference is of calls alone. The processor's instructions for SHA-256
//! are not there under valgrind, so that hashing counts for more than it costs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use diesel_async::{AsyncConnection, AsyncPgConnection};

use super::figure;
use crate::calls::asynchronous::Call;
use crate::effort::Effort;
use crate::places;
use crate::results::{Measurement, Unit};
use crate::rounds::alternate;
use crate::servers::Servers;
use crate::shop::Work;
use crate::shop::database::{Effects, ShopDatabase};

/// Calls of the shorter run.
const CALLS: u32 = 400;

/// Lines of the profile that are printed.
const TOP_LINES: usize = 25;

/// How the child is told where its database is.
const URL_VARIABLE: &str = "IDEM_BENCHES_DATABASE_URL";

/// What the child does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    FirstCall,
    Replay,
    Bare,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::FirstCall => "first-call",
            Self::Replay => "replay",
            Self::Bare => "bare",
        }
    }

    fn call(self) -> Call {
        match self {
            Self::FirstCall => Call::First,
            Self::Replay => Call::Replay,
            Self::Bare => Call::Bare,
        }
    }

    /// A replay has one first call before it.
    fn effects(self, calls: u32) -> Effects {
        match self {
            Self::Replay => Call::First.effects(1),
            other => other.call().effects(calls),
        }
    }
}

pub(crate) fn measure(servers: &mut Servers, effort: Effort) -> Result<Vec<Measurement>> {
    let mut shop = ShopDatabase::create(servers.cpu_bound()?)?;
    let sides = [Kind::Bare, Kind::FirstCall, Kind::Replay];
    if effort == Effort::Smoke {
        // Without valgrind: the child's work is the same.
        for kind in sides {
            shop.reset()?;
            run_child(shop.url(), kind, effort.calls(CALLS))?;
            shop.expect(kind.effects(effort.calls(CALLS)))?;
        }
        return Ok(Vec::new());
    }
    let folder = places::below_target("callgrind")?;
    let rounds = alternate(effort.rounds(), sides, |kind| {
        Ok(count(&mut shop, &folder, kind, 2 * CALLS)? - count(&mut shop, &folder, kind, CALLS)?)
    })?;
    for kind in sides {
        print_top(&profile(&folder, kind, 2 * CALLS))?;
    }
    let per_call = |what: &str, side: fn(&[f64; 3]) -> f64| {
        let figures: Vec<f64> = rounds
            .iter()
            .map(|round| side(round) / f64::from(CALLS))
            .collect();
        figure(
            format!("{what}, on the client"),
            Unit::Instructions,
            None,
            &figures,
        )
    };
    Ok(vec![
        per_call("bare transaction", |[bare, _, _]| *bare)?,
        per_call("first call", |[_, first, _]| *first)?,
        per_call("replay", |[_, _, replay]| *replay)?,
    ])
}

/// The work of the child process.
pub(crate) fn child(kind: Kind, calls: u32) -> Result<()> {
    let url = std::env::var(URL_VARIABLE).with_context(|| format!("no {URL_VARIABLE}"))?;
    run_child(&url, kind, calls)
}

fn run_child(url: &str, kind: Kind, calls: u32) -> Result<()> {
    ensure!(calls <= 2 * CALLS, "more calls than are prepared");
    // As many as the longer run needs in both, so that their making is not in the difference.
    let list = (0..2 * CALLS)
        .map(|number| Work::new(0, number))
        .collect::<Result<Vec<Work>>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut db = AsyncPgConnection::establish(url).await?;
        let list = list.iter().take(usize::try_from(calls)?);
        if kind == Kind::Replay {
            let stored = Work::new(0, 0)?;
            Call::First.run(&mut db, &stored).await?;
            for _ in list {
                Call::Replay.run(&mut db, &stored).await?;
            }
        } else {
            for work in list {
                kind.call().run(&mut db, work).await?;
            }
        }
        Ok(())
    })
}

/// Runs the child under valgrind, and gives how many instructions it took in all.
fn count(shop: &mut ShopDatabase, folder: &Path, kind: Kind, calls: u32) -> Result<f64> {
    shop.reset()?;
    let file = profile(folder, kind, calls);
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(std::env::current_exe()?)
        .args([
            "callgrind-child",
            kind.name(),
            "--calls",
            &calls.to_string(),
        ])
        .env(URL_VARIABLE, shop.url())
        .stdin(Stdio::null())
        .output()
        .context("valgrind is needed (Debian: apt-get install valgrind)")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    shop.expect(kind.effects(calls))?;
    total(&fs::read_to_string(file)?)
}

fn profile(folder: &Path, kind: Kind, calls: u32) -> PathBuf {
    folder.join(format!("callgrind.{}.{calls}.out", kind.name()))
}

/// The line `totals:` of a profile.
fn total(profile: &str) -> Result<f64> {
    match profile
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))
    {
        Some(total) => Ok(total.trim().parse()?),
        None => bail!("valgrind wrote no totals"),
    }
}

/// Prints the functions that take most, if the program for it is there.
fn print_top(profile: &Path) -> Result<()> {
    let Ok(output) = Command::new("callgrind_annotate").arg(profile).output() else {
        return Ok(());
    };
    let text = String::from_utf8(output.stdout)?;
    println!("\n{}", profile.display());
    let functions = text
        .lines()
        .skip_while(|line| !line.contains("PROGRAM TOTALS"));
    for line in functions.take(TOP_LINES) {
        println!("{line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_the_number_behind_its_word() {
        let profile = "events: Ir\nfn=(1) main\n12 100\n\ntotals: 4711\n";
        assert_eq!(total(profile).unwrap().to_string(), "4711");
        assert!(total("events: Ir\n").is_err());
    }
}

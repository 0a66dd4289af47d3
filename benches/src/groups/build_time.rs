//! How long a crate with many handlers takes to build, against the same functions without attribute and derive.
//!
//! Both crates are built from nothing each time, after their dependencies: an incremental build of a source that did not change
//! would tell nothing of what the macros write. Each handler is boxed as a future, because the body of an `async fn` that nobody
//! calls is not compiled to the end.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::ratio;
use crate::effort::Effort;
use crate::places;
use crate::results::{Measurement, Target};
use crate::rounds::alternate;

const HANDLERS: u32 = 50;

pub(crate) fn measure(effort: Effort) -> Result<Vec<Measurement>> {
    let crates = Crates::generate()?;
    let rounds = alternate(effort.rounds(), [Side::Plain, Side::Annotated], |side| {
        crates.build(side)
    })?;
    let mut measurement = ratio(
        &rounds,
        format!("build of {HANDLERS} handlers"),
        "without attribute and derive",
        Some(Target::AtMost(1.5)),
        |&[plain, annotated]| (annotated, plain),
    )?;
    let [plain, annotated] = [0, 1].map(|side| {
        let sum: f64 = rounds.iter().filter_map(|round| round.get(side)).sum();
        sum / f64::from(effort.rounds())
    });
    measurement.sizes = format!("{annotated:.2} and {plain:.2} s");
    Ok(vec![measurement])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Plain,
    Annotated,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Annotated => "annotated",
        }
    }

    fn source(self) -> Result<String> {
        let (derive, attribute) = match self {
            Self::Plain => ("", ""),
            Self::Annotated => (
                "#[derive(RequestHash)]",
                "#[idempotent(scope = \"orders.place{number}\", ttl = \"48h\")]",
            ),
        };
        let mut source = HEAD.to_owned();
        for number in 0..HANDLERS {
            let handler = HANDLER
                .replace("{derive}", derive)
                .replace("{attribute}", attribute)
                .replace("{number}", &number.to_string());
            source.write_str(&handler)?;
        }
        Ok(source)
    }
}

/// Two crates in a workspace of their own.
struct Crates {
    folder: TempDir,
    target: PathBuf,
}

impl Crates {
    fn generate() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("idem-benches-").tempdir()?;
        let root = places::package()
            .parent()
            .context("this package is in a workspace")?;
        let manifest = "[workspace]\nresolver = \"3\"\nmembers = [\"plain\", \"annotated\"]\n";
        fs::write(folder.path().join("Cargo.toml"), manifest)?;
        // The versions that the library is built with, which are on this machine already.
        fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock"))?;
        for side in [Side::Plain, Side::Annotated] {
            let package = folder.path().join(side.name());
            fs::create_dir_all(package.join("src"))?;
            fs::write(package.join("Cargo.toml"), manifest_of(side, root))?;
            fs::write(package.join("src/lib.rs"), side.source()?)?;
        }
        Ok(Self {
            folder,
            target: places::below_target("build-time")?,
        })
    }

    /// Seconds of one build.
    fn build(&self, side: Side) -> Result<f64> {
        let source = self.folder.path().join(side.name()).join("src/lib.rs");
        fs::write(source, side.source()?)?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let started_at = Instant::now();
        let output = Command::new(cargo)
            .args(["build", "--offline", "--package", side.name()])
            .current_dir(self.folder.path())
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_INCREMENTAL", "0")
            .stdin(Stdio::null())
            .output()?;
        let took = started_at.elapsed();
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the crate did not build:\n{said}");
        ensure!(
            said.contains(&format!("Compiling {} ", side.name())),
            "nothing was built:\n{said}"
        );
        Ok(took.as_secs_f64())
    }
}

fn manifest_of(side: Side, root: &Path) -> String {
    format!(
        r#"[package]
name = "{name}"
version = "0.0.0"
edition = "2024"

[dependencies]
diesel = {{ version = "2.3", default-features = false }}
diesel-async = {{ version = "0.9", default-features = false, features = ["postgres"] }}
idem-diesel = {{ path = "{library}", features = ["async-postgres"] }}
serde = {{ version = "1", features = ["derive"] }}
"#,
        name = side.name(),
        library = root.join("idem-diesel").display(),
    )
}

const HEAD: &str = "#![allow(unused)]
use std::future::Future;
use std::pin::Pin;

use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use idem_diesel::{Error, Intent, Outcome, RequestHash, idempotent};
use serde::{Deserialize, Serialize};

diesel::table! { accounts { id -> BigInt, balance_cents -> BigInt, } }
diesel::table! { orders { id -> BigInt, account_id -> BigInt, amount_cents -> BigInt, } }

#[derive(Serialize, Deserialize)]
pub struct Placed { order_id: i64, balance_cents: i64 }
";

const HANDLER: &str = "
{derive}
pub struct PlaceOrder{number} { account_id: i64, amount_cents: i64, note: Option<String> }

{attribute}
pub async fn place_order{number}(
    db: &mut AsyncPgConnection,
    intent: &Intent,
    cmd: &PlaceOrder{number},
) -> Result<Outcome<Placed>, Error> {
    let balance_cents = diesel::update(accounts::table.find(cmd.account_id))
        .set(accounts::balance_cents.eq(accounts::balance_cents - cmd.amount_cents))
        .returning(accounts::balance_cents)
        .get_result(db)
        .await?;
    let order_id = diesel::insert_into(orders::table)
        .values((orders::account_id.eq(cmd.account_id), orders::amount_cents.eq(cmd.amount_cents)))
        .returning(orders::id)
        .get_result(db)
        .await?;
    Ok(Placed { order_id, balance_cents }.into())
}

pub fn boxed{number}<'a>(
    db: &'a mut AsyncPgConnection,
    intent: &'a Intent,
    cmd: &'a PlaceOrder{number},
) -> Pin<Box<dyn Future<Output = Result<Outcome<Placed>, Error>> + Send + 'a>> {
    Box::pin(place_order{number}(db, intent, cmd))
}
";

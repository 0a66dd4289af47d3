//! The table: on the terminal, and between two marks in the README.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::results::{Measurement, Results, Target, Unit};

const START: &str = "<!-- results: start -->";
const END: &str = "<!-- results: end -->";

const HEAD: &str = "\
| measured | against | median | lowest to highest | target | reached | of what size |
|---|---|---|---|---|---|---|
";

/// The table of all results, in Markdown.
pub(crate) fn table(results: &Results) -> String {
    let rows = results.groups.iter().flat_map(|group| &group.measurements);
    HEAD.to_owned() + &rows.map(row).collect::<String>()
}

/// Puts machines and table between the marks of a file.
pub(crate) fn refresh(readme: &Path, results: &Results) -> Result<()> {
    let text = fs::read_to_string(readme)?;
    let section = format!("{}\n{}", machines(results)?, table(results));
    let text = between_marks(&text, &section)
        .with_context(|| format!("{} has no marks for the results", readme.display()))?;
    fs::write(readme, text)?;
    Ok(())
}

fn between_marks(text: &str, section: &str) -> Option<String> {
    let (before, rest) = text.split_once(START)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{START}\n{section}{END}{after}"))
}

fn row(measurement: &Measurement) -> String {
    let Measurement {
        what,
        against,
        unit,
        target,
        spread,
        sizes,
        ..
    } = measurement;
    let reached = match measurement.is_reached() {
        Some(true) => "yes",
        Some(false) => "**no**",
        None => "",
    };
    format!(
        "| {what} | {against} | {} | {} to {} | {} | {reached} | {sizes} |\n",
        figure(*unit, spread.median),
        figure(*unit, spread.min),
        figure(*unit, spread.max),
        target.map_or_else(String::new, |target| words(*unit, target)),
    )
}

/// The target as a person says it.
pub(crate) fn words(unit: Unit, target: Target) -> String {
    match target {
        Target::AtLeast(least) => format!("≥ {}", figure(unit, least)),
        Target::AtMost(most) => format!("≤ {}", figure(unit, most)),
    }
}

/// A figure with its unit.
pub(crate) fn figure(unit: Unit, figure: f64) -> String {
    match unit {
        Unit::Ratio => format!("{figure:.2}"),
        Unit::Microseconds => format!("{figure:.2} µs"),
        Unit::Milliseconds => format!("{figure:.0} ms"),
        Unit::Seconds => format!("{figure:.0} s"),
        Unit::WalBytes => format!("{figure:.0} B"),
        Unit::Instructions => format!("{:.1} k", figure / 1000.0),
    }
}

/// Each machine once and each server once, with the groups that were measured on it.
fn machines(results: &Results) -> Result<String> {
    let mut machines = Vec::new();
    let mut servers = Vec::new();
    for group in &results.groups {
        note(&mut machines, &group.machine, &group.name);
        for server in &group.servers {
            note(&mut servers, server, &group.name);
        }
    }
    let mut text = String::new();
    for (machine, groups) in machines {
        writeln!(
            text,
            "* {}, {} cores, Linux {}, {}, file system {}, SQLite {}: {}",
            machine.cpu,
            machine.cores,
            machine.kernel,
            machine.rustc,
            machine.file_system,
            machine.sqlite,
            groups.join(", "),
        )?;
    }
    for (server, groups) in servers {
        let settings: Vec<String> = server
            .settings
            .iter()
            .map(|(setting, value)| format!("{setting} {value}"))
            .collect();
        writeln!(
            text,
            "* PostgreSQL, {} ({}): {}",
            server.name,
            settings.join(", "),
            groups.join(", ")
        )?;
    }
    Ok(text)
}

fn note<'r, T: PartialEq>(seen: &mut Vec<(&'r T, Vec<&'r str>)>, thing: &'r T, group: &'r str) {
    match seen.iter_mut().find(|(other, _)| *other == thing) {
        Some((_, groups)) => groups.push(group),
        None => seen.push((thing, vec![group])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spread::Spread;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let text = format!("before\n{START}\nold\n{END}\nafter\n");
        let fresh = between_marks(&text, "new\n").unwrap();
        assert_eq!(fresh, format!("before\n{START}\nnew\n{END}\nafter\n"));
        assert_eq!(between_marks(&fresh, "new\n"), Some(fresh.clone()));
        assert_eq!(between_marks("no marks", "new"), None);
    }

    #[test]
    fn a_row_says_figure_spread_and_target() {
        let measurement = Measurement {
            what: "first call".to_owned(),
            against: "bare".to_owned(),
            unit: Unit::Ratio,
            target: Some(Target::AtLeast(0.65)),
            spread: Spread::of([0.5, 0.6, 0.7]).unwrap(),
            rounds: 3,
            sizes: "6 and 10 calls/s".to_owned(),
        };
        assert_eq!(
            row(&measurement),
            "| first call | bare | 0.60 | 0.50 to 0.70 | ≥ 0.65 | **no** | 6 and 10 calls/s |\n"
        );
    }
}

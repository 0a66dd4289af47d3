//! What a call changed, and how that differs from what one call changes, in words.

use std::collections::BTreeMap;
use std::fmt;

use super::image::{Column, Image, Row, Table, Tables, excess};

/// What counts when two changes are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compared {
    /// Every column: two looks at one run.
    WithinOneRun,
    /// Not the primary keys, and not the columns that the user named: two runs.
    AcrossRuns,
}

/// What became of the tables between two images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change(Vec<TableChange>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct TableChange {
    added: Vec<Cells>,
    removed: Vec<Cells>,
    changed: Vec<Vec<(usize, Step)>>,
}

/// The cells of a row that count, by the number of their column.
type Cells = Vec<(usize, String)>;

/// What became of one cell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A number went up or down: the same in every run, whatever it was before.
    By(Decimal),
    /// Another value.
    To { from: String, to: String },
}

impl Change {
    pub(super) fn between(
        tables: &Tables,
        before: &Image,
        after: &Image,
        compared: Compared,
    ) -> Self {
        let rows = before.0.iter().zip(&after.0);
        let changes = tables.all.iter().zip(rows).map(|(table, (before, after))| {
            TableChange::between(&table.columns, before, after, compared)
        });
        Self(changes.collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(TableChange::is_empty)
    }

    /// The first thing in which this is not `one`, to stand behind "changed"; absent when they are equal.
    pub(super) fn difference(&self, one: &Self, tables: &Tables) -> Option<String> {
        let pairs = self.0.iter().zip(&one.0).zip(&tables.all);
        let mut differences =
            pairs.filter_map(|((found, one), table)| found.difference(one, table));
        differences.next()
    }

    /// The change in words.
    pub(super) fn describe(&self, tables: &Tables) -> String {
        let pairs = self.0.iter().zip(&tables.all);
        let texts: Vec<_> = pairs
            .filter(|(change, _)| !change.is_empty())
            .map(|(change, table)| change.describe(table))
            .collect();
        texts.join(", ")
    }
}

impl TableChange {
    fn between(columns: &[Column], before: &[Row], after: &[Row], compared: Compared) -> Self {
        let counts = |number: usize| {
            let column = columns.get(number);
            compared == Compared::WithinOneRun || column.is_none_or(|column| !column.is_volatile)
        };
        let is_key = |number: usize| columns.get(number).is_some_and(|column| column.is_key);
        let (removed, added) = excess(before, after);
        let (removed, added, pairs) = pair(removed, added, is_key);
        let cells = |rows: Vec<&Row>| {
            let mut cells: Vec<Cells> = rows
                .into_iter()
                .map(|row| {
                    row.iter()
                        .enumerate()
                        .filter(|(number, _)| {
                            counts(*number)
                                && (compared == Compared::WithinOneRun || !is_key(*number))
                        })
                        .map(|(number, cell)| (number, cell.clone()))
                        .collect()
                })
                .collect();
            cells.sort();
            cells
        };
        let mut changed: Vec<Vec<_>> = pairs
            .into_iter()
            .map(|(before, after)| {
                let cells = before.iter().zip(after).enumerate();
                cells
                    .filter(|(number, (from, to))| from != to && counts(*number))
                    .map(|(number, (from, to))| (number, Step::of(from, to)))
                    .collect()
            })
            .filter(|steps: &Vec<_>| !steps.is_empty())
            .collect();
        changed.sort();
        Self {
            added: cells(added),
            removed: cells(removed),
            changed,
        }
    }

    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }

    fn difference(&self, one: &Self, table: &Table) -> Option<String> {
        if self == one {
            return None;
        }
        let name = &table.name;
        let counts = [
            ("new ", "leaves", self.added.len(), one.added.len()),
            ("removed ", "removes", self.removed.len(), one.removed.len()),
            ("changed ", "changes", self.changed.len(), one.changed.len()),
        ];
        for (kind, does, found, expected) in counts {
            if found != expected {
                return Some(format!(
                    "`{name}`: {} where one call {does} {expected}",
                    rows(found, kind)
                ));
            }
        }
        let steps = self.changed.iter().zip(&one.changed);
        if let Some((found, one)) = steps.into_iter().find(|(found, one)| found != one) {
            return Some(different_steps(found, one, table));
        }
        let kinds = [
            ("a new row", "leaves", &self.added, &one.added),
            ("a removed row", "removes", &self.removed, &one.removed),
        ];
        for (kind, does, found, one) in kinds {
            let cells = found.iter().flatten().zip(one.iter().flatten());
            if let Some((found, one)) = cells.into_iter().find(|(found, one)| found != one) {
                return Some(format!(
                    "`{name}.{}`: {kind} has {} where one call {does} {}",
                    column(table, found.0),
                    found.1,
                    one.1
                ));
            }
        }
        Some(format!("`{name}`"))
    }

    fn describe(&self, table: &Table) -> String {
        let counts = [
            (self.added.len(), "new "),
            (self.removed.len(), "removed "),
            (self.changed.len(), "changed "),
        ];
        let texts: Vec<_> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, kind)| rows(count, kind))
            .collect();
        format!("`{}` ({})", table.name, texts.join(", "))
    }
}

/// Rows that were there before and after under one primary key, apart from the others.
fn pair<'r>(
    removed: Vec<&'r Row>,
    added: Vec<&'r Row>,
    is_key: impl Fn(usize) -> bool,
) -> (Vec<&'r Row>, Vec<&'r Row>, Vec<(&'r Row, &'r Row)>) {
    let key = |row: &'r Row| -> Vec<&'r String> {
        let cells = row.iter().enumerate();
        cells
            .filter(|(number, _)| is_key(*number))
            .map(|(_, cell)| cell)
            .collect()
    };
    let mut by_key: BTreeMap<_, &Row> = BTreeMap::new();
    let mut without = Vec::new();
    for row in added {
        let key = key(row);
        // Without a primary key, rows have no identity.
        if key.is_empty() {
            without.push(row);
        } else {
            by_key.insert(key, row);
        }
    }
    let (mut gone, mut pairs) = (Vec::new(), Vec::new());
    for row in removed {
        match by_key.remove(&key(row)) {
            Some(after) => pairs.push((row, after)),
            None => gone.push(row),
        }
    }
    without.extend(by_key.into_values());
    (gone, without, pairs)
}

fn different_steps(found: &[(usize, Step)], one: &[(usize, Step)], table: &Table) -> String {
    let find = |steps: &[(usize, Step)], number: usize| {
        let mut steps = steps.iter();
        let step = steps.find(|(of, _)| *of == number);
        step.map_or_else(|| "leaves it".to_owned(), |(_, step)| step.to_string())
    };
    let mut numbers = found.iter().chain(one).map(|(number, _)| *number);
    let different = numbers.find(|number| find(found, *number) != find(one, *number));
    let Some(number) = different else {
        return format!("`{}`", table.name);
    };
    format!(
        "`{}.{}`: {} where one call {}",
        table.name,
        column(table, number),
        match find(found, number).strip_prefix("changes it ") {
            Some(step) => step.to_owned(),
            None => "not at all".to_owned(),
        },
        find(one, number)
    )
}

fn column(table: &Table, number: usize) -> &str {
    let column = table.columns.get(number);
    column.map_or("?", |column| column.name.as_str())
}

fn rows(count: usize, kind: &str) -> String {
    let rows = if count == 1 { "row" } else { "rows" };
    format!("{count} {kind}{rows}")
}

impl Step {
    fn of(from: &str, to: &str) -> Self {
        let by = Decimal::parse(to).zip(Decimal::parse(from));
        match by.and_then(|(to, from)| to.minus(from)) {
            Some(by) => Self::By(by),
            None => Self::To {
                from: from.to_owned(),
                to: to.to_owned(),
            },
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::By(by) => write!(f, "changes it by {by}"),
            Self::To { from, to } => write!(f, "changes it from {from} to {to}"),
        }
    }
}

/// An exact number: `digits` over ten to the `scale`, with no zeros at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Decimal {
    digits: i128,
    scale: u32,
}

impl Decimal {
    /// Reads what a database writes; not exponents, NaN and infinities.
    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let has_digits = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !has_digits(fraction) {
            return None;
        }
        let digits = format!("{whole}{fraction}").parse().ok()?;
        let scale = u32::try_from(fraction.len()).ok()?;
        Some(Self { digits, scale })
    }

    fn minus(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let digits = self.at(scale)?.checked_sub(other.at(scale)?)?;
        Some(Self { digits, scale }.shortest())
    }

    fn at(self, scale: u32) -> Option<i128> {
        let factor = 10_i128.checked_pow(scale.checked_sub(self.scale)?)?;
        self.digits.checked_mul(factor)
    }

    fn shortest(mut self) -> Self {
        while self.scale > 0 && self.digits % 10 == 0 {
            self.digits /= 10;
            self.scale -= 1;
        }
        self
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.digits < 0 { '-' } else { '+' };
        let width = self.scale as usize + 1;
        let digits = format!("{:0>width$}", self.digits.unsigned_abs());
        let (whole, fraction) = digits.split_at(digits.len() - self.scale as usize);
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn step(from: &str, to: &str, expected: &str) {
        assert_eq!(Step::of(from, to).to_string(), expected);
    }

    #[test]
    fn a_number_steps_by_its_exact_difference() {
        step("100", "70", "changes it by -30");
        step("0.10", "0.3", "changes it by +0.2");
        step("-1", "1.5", "changes it by +2.5");
        step("100.00", "70.00", "changes it by -30");
        step("9", "9.001", "changes it by +0.001");
    }

    #[test]
    fn everything_else_steps_from_a_value_to_a_value() {
        step("NULL", "1", "changes it from NULL to 1");
        step("'1'", "'2'", "changes it from '1' to '2'");
        step("1e300", "1", "changes it from 1e300 to 1");
        step("NaN", "1", "changes it from NaN to 1");
        let long = "9".repeat(60);
        step(&long, "1", &format!("changes it from {long} to 1"));
    }
}

//! What the named tables hold: every row, every column as text, all tables as one statement sees them.

use std::collections::BTreeMap;

use diesel::QueryResult;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Nullable, Text};
use idem_core::Intent;

use crate::connection::IdempotentConnection;
use crate::dialect::Dialect;
use crate::driver::Driver;
use crate::store::TABLE;

/// A column of a table that is compared.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    /// Whether it is in the primary key.
    pub(super) is_key: bool,
    /// Whether it differs between two runs that are the same.
    pub(super) is_volatile: bool,
    is_number: bool,
}

/// A table that is compared.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
}

/// The tables that are compared, and how they are read.
#[derive(Debug, Clone)]
pub(super) struct Tables {
    pub(super) all: Vec<Table>,
    sql: String,
}

/// One row: its columns as SQL writes their values.
pub(super) type Row = Vec<String>;

/// The rows of each table, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image(pub(super) Vec<Vec<Row>>);

impl Tables {
    /// Looks the tables up. `Err` says what is wrong with what was named.
    pub(super) async fn look_up<C: IdempotentConnection>(
        db: &mut C,
        names: &[String],
        volatile: &[String],
    ) -> Result<Self, String> {
        let mut all = Vec::new();
        for name in names {
            let columns = ColumnsOf(name.clone());
            let columns = db.inner().texts(columns).await.map_err(cannot_read)?;
            if columns.is_empty() {
                return Err(format!("there is no table `{name}`"));
            }
            let columns = columns.iter().flatten();
            all.push(Table {
                name: name.clone(),
                columns: columns
                    .map(|column| Column::parse(column, name, volatile))
                    .collect(),
            });
        }
        for unknown in volatile {
            let is_known = all.iter().any(|table| {
                let mut columns = table.columns.iter();
                columns.any(|column| column.is_meant_by(unknown, &table.name))
            });
            if !is_known {
                return Err(format!(
                    "`{unknown}` is to be ignored, but no named table has such a column"
                ));
            }
        }
        let sql = select::<<C::Inner as Driver>::Dialect>(&all);
        Ok(Self { all, sql })
    }

    /// Reads all rows.
    pub(super) async fn read<C: IdempotentConnection>(&self, db: &mut C) -> Result<Image, String> {
        let mut image = Image(vec![Vec::new(); self.all.len()]);
        if self.all.is_empty() {
            return Ok(image);
        }
        let lines = db.inner().texts(OwnedSql(self.sql.clone())).await;
        for line in lines.map_err(cannot_read)?.iter().flatten() {
            let read = parse(line).and_then(|(table, row)| Some((image.0.get_mut(table)?, row)));
            match read {
                Some((rows, row)) => rows.push(row),
                None => unreachable!("the lines are written by `select`: {line}"),
            }
        }
        for rows in &mut image.0 {
            rows.sort();
        }
        Ok(image)
    }

    /// The names, as a sentence has them.
    pub(super) fn names(&self) -> String {
        let names: Vec<_> = self
            .all
            .iter()
            .map(|table| format!("`{}`", table.name))
            .collect();
        names.join(", ")
    }
}

impl Column {
    /// Reads what [`Dialect::push_columns_of`] selects.
    fn parse(text: &str, table: &str, volatile: &[String]) -> Self {
        let mut characters = text.chars();
        let is_key = characters.next() == Some('k');
        let is_number = characters.next() == Some('n');
        let mut column = Self {
            name: characters.collect(),
            is_key,
            is_volatile: false,
            is_number,
        };
        column.is_volatile = volatile.iter().any(|name| column.is_meant_by(name, table));
        column
    }

    /// Whether `name` is this column's, alone or behind its table's.
    fn is_meant_by(&self, name: &str, table: &str) -> bool {
        let in_table = name
            .strip_prefix(table)
            .and_then(|rest| rest.strip_prefix('.'));
        name == self.name || in_table == Some(self.name.as_str())
    }
}

/// How many records a key has.
pub(super) async fn records_of<C: IdempotentConnection>(
    db: &mut C,
    intent: &Intent,
) -> Result<usize, String> {
    let records = RecordsOf {
        tenant: intent.tenant().as_str().to_owned(),
        key: intent.key().as_str().to_owned(),
    };
    let found = db.inner().texts(records).await.map_err(cannot_read)?;
    Ok(found.len())
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it stands where an error is mapped"
)]
fn cannot_read(error: diesel::result::Error) -> String {
    format!("the tables cannot be read: {error}")
}

/// One line of text for each row: the number of its table, then each column with its length in front.
///
/// One statement, because only that sees all tables at one moment on every backend.
fn select<DB: Dialect>(tables: &[Table]) -> String {
    let selects = tables.iter().enumerate().map(|(number, table)| {
        let cells = table.columns.iter().map(|column| {
            let name = format!("\"{}\"", column.name.replace('"', "\"\""));
            let cell = DB::cell(&name, column.is_number);
            format!(" || length({cell}) || ':' || {cell}")
        });
        let cells: String = cells.collect();
        format!("SELECT '{number};'{cells} FROM {}", DB::from(&table.name))
    });
    selects.collect::<Vec<_>>().join(" UNION ALL ")
}

/// Reads a line of [`select`].
fn parse(line: &str) -> Option<(usize, Row)> {
    let (table, mut rest) = line.split_once(';')?;
    let mut row = Row::new();
    while !rest.is_empty() {
        let (length, cells) = rest.split_once(':')?;
        let length: usize = length.parse().ok()?;
        // The database counts characters.
        let end = cells
            .char_indices()
            .nth(length)
            .map_or(cells.len(), |(end, _)| end);
        let (cell, others) = cells.split_at_checked(end)?;
        row.push(cell.to_owned());
        rest = others;
    }
    Some((table.parse().ok()?, row))
}

/// The rows of `before` and `after` that the other has not, each as often as it is there in excess.
pub(super) fn excess<'r>(before: &'r [Row], after: &'r [Row]) -> (Vec<&'r Row>, Vec<&'r Row>) {
    let mut counts: BTreeMap<&Row, i64> = BTreeMap::new();
    for row in after {
        *counts.entry(row).or_default() += 1;
    }
    for row in before {
        *counts.entry(row).or_default() -= 1;
    }
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for (row, count) in counts {
        let rows = if count < 0 { &mut removed } else { &mut added };
        rows.extend((0..count.abs()).map(|_| row));
    }
    (removed, added)
}

/// The columns of a table.
struct ColumnsOf(String);

/// The records of a key, one row for each.
struct RecordsOf {
    tenant: String,
    key: String,
}

/// SQL without parameters.
struct OwnedSql(String);

impl<DB: Dialect> QueryFragment<DB> for ColumnsOf {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        DB::push_columns_of(&mut out, &self.0)
    }
}

impl<DB: Dialect> QueryFragment<DB> for RecordsOf {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql("SELECT operation FROM ");
        out.push_sql(TABLE);
        out.push_sql(" WHERE tenant_id = ");
        DB::push_text(&mut out, &self.tenant)?;
        out.push_sql(" AND idempotency_key = ");
        DB::push_text(&mut out, &self.key)
    }
}

impl<DB: Dialect> QueryFragment<DB> for OwnedSql {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        out.push_sql(&self.0);
        Ok(())
    }
}

macro_rules! text_query {
    ($($query:ty),+) => {$(
        impl QueryId for $query {
            type QueryId = ();
            const HAS_STATIC_QUERY_ID: bool = false;
        }

        impl Query for $query {
            type SqlType = Nullable<Text>;
        }
    )+};
}
text_query!(ColumnsOf, RecordsOf, OwnedSql);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_by_the_lengths_in_it() {
        let row = |cells: &[&str]| cells.iter().map(ToString::to_string).collect::<Row>();
        assert_eq!(parse("0;1:17:'a;1:b'"), Some((0, row(&["1", "'a;1:b'"]))));
        assert_eq!(parse("12;3:'é'4:NULL"), Some((12, row(&["'é'", "NULL"]))));
        assert_eq!(parse("0;0:"), Some((0, row(&[""]))));
        assert_eq!(parse("no line"), None);
    }

    #[test]
    fn rows_count_as_often_as_they_are_there() {
        let [a, b] = ["a", "b"].map(|cell| vec![cell.to_owned()]);
        let before = [a.clone(), a.clone(), b.clone()];
        let after = [a.clone(), b.clone(), b.clone(), b.clone()];
        assert_eq!(excess(&before, &after), (vec![&a], vec![&b, &b]));
    }
}

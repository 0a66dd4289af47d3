//! SQLite.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment};
use diesel::sql_types::{BigInt, Binary, Nullable, Text};
use diesel::sqlite::Sqlite;

use super::{Dialect, Script, TableName};
use crate::store::{KeyLocks, Table};

mod schema;

/// How far a purge looks at once, so that a statement is short also where nothing is due.
const STRETCH_ROWS: u32 = 5000;

/// The primary key of `table` in a JSON array.
fn push_key<'b>(out: &mut AstPass<'_, 'b, Sqlite>, table: &Table, key: &'b str) -> QueryResult<()> {
    for position in 0..table.key.len() {
        out.push_sql(if position == 0 { "(" } else { ", " });
        out.push_sql("json_extract(");
        out.push_bind_param::<Text, str>(key)?;
        out.push_sql(&format!(", '$[{position}]')"));
    }
    out.push_sql(")");
    Ok(())
}

/// What a query of the last row is ordered by.
fn backwards(table: &Table) -> String {
    format!("{} DESC", table.key.join(" DESC, "))
}

impl Dialect for Sqlite {
    const READS_BEFORE_BEGIN: bool = true;
    const ALWAYS_SAVEPOINT: bool = true;
    const STORED_ROWS: usize = 1;
    const SCRIPTS: &'static [Script] = &[
        Script {
            version: "idem_0001_api_idempotency",
            up: include_str!("../../migrations/sqlite/0001_api_idempotency/up.sql"),
            down: include_str!("../../migrations/sqlite/0001_api_idempotency/down.sql"),
        },
        Script {
            version: "idem_0002_messages",
            up: include_str!("../../migrations/sqlite/0002_messages/up.sql"),
            down: include_str!("../../migrations/sqlite/0002_messages/down.sql"),
        },
    ];
    /// BEGIN IMMEDIATE holds the one write lock already.
    const LOCK_SCHEMA: &'static str = "SELECT 1";
    const SCHEMA_FACTS: &'static str = schema::FACTS;
    const EXPECTED_FACTS: &'static [(&'static str, &'static [&'static str])] = schema::EXPECTED;
    const TABLES_PRESENT: &'static str = schema::PRESENT;
    /// BEGIN IMMEDIATE holds the one write lock already.
    const LOCKS: &'static str = "'tt'";
    const BEGAN_AT: &'static str = Self::NOW;
    /// Nothing else tells a body that sent COMMIT from one that sent ROLLBACK.
    const CLAIMS_BY_ROW: bool = true;
    const CLAIMED_AT: &'static str = "'0'";
    const FIRST_OF_EACH: &'static str = "each.value ->> 0";
    const GREATEST: &'static str = "max";
    /// Without a condition SQLite takes ON for that of a join.
    const FROM_HELD: &'static str = " WHERE true";
    const SKIP_LOCKED: &'static str = "";
    const AFTER_MILLIS: [&'static str; 2] = [
        "strftime('%Y-%m-%d %H:%M:%f', 'now', (",
        " / 1000.0) || ' seconds')",
    ];
    const HAS_CAPTURE: bool = false;
    const UUID: &'static str = "text";
    const JSON_ARRAY: &'static str = "json_array";
    const COMMITTED_CALL: Option<&'static str> = None;
    const NOW: &'static str = "strftime('%Y-%m-%d %H:%M:%f', 'now')";

    /// BEGIN IMMEDIATE holds the one write lock already, and with it every row.
    fn take_purge_lock(_: &Table) -> String {
        "SELECT 'taken'".to_owned()
    }

    fn table_start(table: &Table) -> String {
        let nothing = vec![r#""""#; table.key.len()];
        format!("[{}]", nothing.join(","))
    }

    fn table_end(table: &Table) -> String {
        let (name, key, backwards) = (table.name, table.key.join(", "), backwards(table));
        format!("SELECT json_array({key}) FROM {name} ORDER BY {backwards} LIMIT 1")
    }

    fn push_look<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        table: &Table,
        after: &'b str,
        until: &'b str,
        is_due: &str,
    ) -> QueryResult<()> {
        let (name, key, backwards) = (table.name, table.key.join(", "), backwards(table));
        out.push_sql(&format!(
            "WITH ahead AS MATERIALIZED (SELECT {key}, {is_due} AS is_due FROM {name} WHERE "
        ));
        Self::push_is_between(out, table, after, until)?;
        out.push_sql(&format!(
            " ORDER BY {key} LIMIT {STRETCH_ROWS}) \
             SELECT CASE WHEN (SELECT max(is_due) FROM ahead) THEN 'due ' ELSE '' END || json_array({key}) \
               FROM ahead ORDER BY {backwards} LIMIT 1"
        ));
        Ok(())
    }

    /// The table is kept in the order of its primary key.
    fn push_is_between<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        table: &Table,
        after: &'b str,
        upto: &'b str,
    ) -> QueryResult<()> {
        let key = table.key.join(", ");
        out.push_sql(&format!("({key}) > "));
        push_key(out, table, after)?;
        out.push_sql(&format!(" AND ({key}) <= "));
        push_key(out, table, upto)
    }

    /// The one write lock is held, and with it every row.
    fn push_is_one_of<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        table: &Table,
        is_so: impl FnOnce(&mut AstPass<'_, 'b, Self>) -> QueryResult<()>,
    ) -> QueryResult<()> {
        let (name, key) = (table.name, table.key.join(", "));
        out.push_sql(&format!("({key}) IN (SELECT {key} FROM {name} WHERE "));
        is_so(out)?;
        out.push_sql(")");
        Ok(())
    }

    fn push_table<T: TableName>(out: AstPass<'_, '_, Self>, table: &'static T) -> QueryResult<()> {
        QueryFragment::<Self>::walk_ast(table, out)
    }

    fn push_text<'b>(out: &mut AstPass<'_, 'b, Self>, text: &'b str) -> QueryResult<()> {
        out.push_bind_param::<Text, str>(text)
    }

    fn push_label<'b>(out: &mut AstPass<'_, 'b, Self>, text: &'b str) -> QueryResult<()> {
        out.push_bind_param::<Text, str>(text)
    }

    fn push_uuid<'b>(out: &mut AstPass<'_, 'b, Self>, text: &'b str) -> QueryResult<()> {
        out.push_bind_param::<Text, str>(text)
    }

    fn push_bytes<'b>(out: &mut AstPass<'_, 'b, Self>, bytes: &'b [u8]) -> QueryResult<()> {
        out.push_bind_param::<Binary, [u8]>(bytes)
    }

    fn push_optional_bytes<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        bytes: Option<&'b [u8]>,
    ) -> QueryResult<()> {
        match bytes {
            Some(bytes) => out.push_bind_param::<Binary, [u8]>(bytes),
            None => out.push_bind_param::<Nullable<Binary>, Option<Vec<u8>>>(&None),
        }
    }

    fn hex(column: &str) -> String {
        format!("hex({column})")
    }

    /// The one write lock is held until the commit.
    fn push_hold_order<'b>(_: &mut AstPass<'_, 'b, Self>, _: &'b i64) -> QueryResult<()> {
        Ok(())
    }

    fn push_each<'b>(out: &mut AstPass<'_, 'b, Self>, json: &'b str) -> QueryResult<()> {
        out.push_sql("json_each(");
        out.push_bind_param::<Text, str>(json)?;
        out.push_sql(") AS each");
        Ok(())
    }

    fn push_integer<'b>(out: &mut AstPass<'_, 'b, Self>, integer: &'b i64) -> QueryResult<()> {
        out.push_bind_param::<BigInt, i64>(integer)
    }

    fn push_time_after<'b>(out: &mut AstPass<'_, 'b, Self>, seconds: &'b i64) -> QueryResult<()> {
        // A modifier needs no sign, and takes one.
        out.push_sql("strftime('%Y-%m-%d %H:%M:%f', 'now', ");
        out.push_bind_param::<BigInt, i64>(seconds)?;
        out.push_sql(" || ' seconds')");
        Ok(())
    }

    /// A Julian day is exact to about 40 µs in a double, so the milliseconds of the text come back exactly.
    fn push_micros(out: &mut AstPass<'_, '_, Self>, expression: &str) {
        out.push_sql("CAST(round((julianday(");
        out.push_sql(expression);
        out.push_sql(") - 2440587.5) * 86400000.0) AS INTEGER) * 1000");
    }

    /// A statement that writes has the one write lock.
    fn push_try_lock(out: &mut AstPass<'_, '_, Self>, _: KeyLocks) {
        out.push_sql("1");
    }

    /// COMMIT is only sent after the count of changed rows was looked at.
    fn push_exactly_one<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        update: impl FnOnce(&mut AstPass<'_, 'b, Self>) -> QueryResult<()>,
    ) -> QueryResult<()> {
        update(out)
    }

    /// The savepoint around the body answers this: it is gone when the transaction is.
    fn push_is_own_row(out: &mut AstPass<'_, '_, Self>) {
        out.push_sql("1");
    }

    #[cfg(feature = "testing")]
    fn push_columns_of<'b>(out: &mut AstPass<'_, 'b, Self>, table: &'b str) -> QueryResult<()> {
        out.push_sql(
            "SELECT CASE WHEN pk > 0 THEN 'k' ELSE '-' END || '-' || name FROM pragma_table_info(",
        );
        out.push_bind_param::<Text, str>(table)?;
        out.push_sql(") ORDER BY cid");
        Ok(())
    }

    /// Whether it is a number shows in the value: texts have quotes.
    #[cfg(feature = "testing")]
    fn cell(column: &str, _: bool) -> String {
        format!("quote({column})")
    }

    #[cfg(feature = "testing")]
    fn from(table: &str) -> String {
        format!("\"{}\"", table.replace('"', "\"\""))
    }
}

//! SQLite.

use diesel::QueryResult;
use diesel::query_builder::{AstPass, QueryFragment};
use diesel::sql_types::{BigInt, Binary, Nullable, Text};
use diesel::sqlite::Sqlite;

use super::{Dialect, Script, TableName};
use crate::store::KeyLocks;

/// How far a purge looks at once, so that a statement is short also where nothing is due.
const STRETCH_ROWS: u32 = 5000;

/// The primary key in a JSON array.
fn push_key<'b>(out: &mut AstPass<'_, 'b, Sqlite>, key: &'b str) -> QueryResult<()> {
    for (before, position) in [("(", 0), (", ", 1), (", ", 2)] {
        out.push_sql(before);
        out.push_sql("json_extract(");
        out.push_bind_param::<Text, str>(key)?;
        out.push_sql(&format!(", '$[{position}]')"));
    }
    out.push_sql(")");
    Ok(())
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
    const SCHEMA_FACTS: &'static str = "\
        SELECT name || ' ' || lower(type) || CASE WHEN \"notnull\" THEN ' not null' ELSE '' END \
          FROM pragma_table_info('api_idempotency') \
        UNION ALL \
        SELECT 'primary key ' || group_concat(name || ' ' || coll, ', ') \
          FROM (SELECT x.name, x.coll FROM pragma_index_list('api_idempotency') AS l, pragma_index_xinfo(l.name) AS x \
                 WHERE l.origin = 'pk' AND x.key = 1 ORDER BY x.seqno) \
        UNION ALL \
        SELECT 'check api_idempotency_state' FROM sqlite_master \
         WHERE type = 'table' AND name = 'api_idempotency' AND sql LIKE '%CONSTRAINT api_idempotency_state CHECK%'";
    const EXPECTED_FACTS: &'static [&'static str] = &[
        "tenant_id text not null",
        "operation text not null",
        "idempotency_key text not null",
        "request_hash text not null",
        "state text not null",
        "status_code integer",
        "response_headers text",
        "response_body blob",
        "codec text",
        "resource_type text",
        "resource_id text",
        "attempt integer not null",
        "owner text",
        "lease_expires_at text",
        "created_at text not null",
        "completed_at text",
        "expires_at text not null",
        "forget_at text not null",
        "primary key tenant_id BINARY, operation BINARY, idempotency_key BINARY",
        "check api_idempotency_state",
    ];
    const TABLE_EXISTS: &'static str =
        "SELECT name FROM pragma_table_list WHERE name = 'api_idempotency'";
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
    const TAKE_PURGE_LOCK: &'static str = "SELECT 'taken'";
    const TABLE_START: &'static str = r#"["","",""]"#;
    const TABLE_END: &'static str = "\
        SELECT json_array(tenant_id, operation, idempotency_key) FROM api_idempotency \
         ORDER BY tenant_id DESC, operation DESC, idempotency_key DESC LIMIT 1";

    fn push_look<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        after: &'b str,
        until: &'b str,
        is_due: &str,
    ) -> QueryResult<()> {
        out.push_sql(&format!(
            "WITH ahead AS MATERIALIZED (SELECT tenant_id, operation, idempotency_key, {is_due} AS is_due \
             FROM api_idempotency WHERE "
        ));
        Self::push_is_between(out, after, until)?;
        out.push_sql(&format!(
            " ORDER BY tenant_id, operation, idempotency_key LIMIT {STRETCH_ROWS}) \
             SELECT CASE WHEN (SELECT max(is_due) FROM ahead) THEN 'due ' ELSE '' END \
                    || json_array(tenant_id, operation, idempotency_key) \
               FROM ahead ORDER BY tenant_id DESC, operation DESC, idempotency_key DESC LIMIT 1"
        ));
        Ok(())
    }

    /// The table is kept in the order of its primary key.
    fn push_is_between<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        after: &'b str,
        upto: &'b str,
    ) -> QueryResult<()> {
        out.push_sql("(tenant_id, operation, idempotency_key) > ");
        push_key(out, after)?;
        out.push_sql(" AND (tenant_id, operation, idempotency_key) <= ");
        push_key(out, upto)
    }

    /// The one write lock is held, and with it every row.
    fn push_is_one_of<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        is_so: impl FnOnce(&mut AstPass<'_, 'b, Self>) -> QueryResult<()>,
    ) -> QueryResult<()> {
        out.push_sql(
            "(tenant_id, operation, idempotency_key) IN \
             (SELECT tenant_id, operation, idempotency_key FROM api_idempotency WHERE ",
        );
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

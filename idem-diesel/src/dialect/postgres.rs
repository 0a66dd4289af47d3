//! PostgreSQL.

use diesel::QueryResult;
use diesel::pg::{Pg, PgTypeMetadata};
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::serialize::{IsNull, Output, ToSql};
use diesel::sql_types::{BigInt, Binary, HasSqlType, Nullable, Text};

use super::{Dialect, Script, TableName};
use crate::store::{KeyLocks, Table};

mod schema;

/// The classes of our advisory locks, so that they meet no lock of the application by accident: "idem" and "iden" in ASCII.
const LOCK_CLASSES: [i32; 2] = [0x6964_656d, 0x6964_656e];

/// Tries both locks of a key without waiting, as two values: whether the first is this transaction's then, and whether the second is.
pub(crate) fn try_locks(locks: KeyLocks) -> String {
    let ([class, other_class], [lock, other_lock]) = (LOCK_CLASSES, locks);
    format!(
        "pg_try_advisory_xact_lock({class},{lock}),pg_try_advisory_xact_lock({other_class},{other_lock})"
    )
}

/// Waits for the first, and then for the second, which only somebody has who is about to leave, or another key by accident.
pub(crate) fn wait_for_locks(locks: KeyLocks) -> String {
    let ([class, other_class], [lock, other_lock]) = (LOCK_CLASSES, locks);
    format!(
        "pg_advisory_xact_lock({class}, {lock}), pg_advisory_xact_lock({other_class}, {other_lock})"
    )
}

/// How far a purge looks at once, so that a statement is short also where nothing is due: 4 MiB in blocks of 8 KiB.
const STRETCH_BLOCKS: u32 = 512;

/// The number in a text.
fn push_number<'b>(out: &mut AstPass<'_, 'b, Pg>, number: &'b str) -> QueryResult<()> {
    out.push_sql("CAST(");
    out.push_bind_param::<Text, str>(number)?;
    out.push_sql(" AS bigint)");
    Ok(())
}

/// The number of the block before which a stretch from the block `after` on ends.
fn push_end_of_stretch<'b>(
    out: &mut AstPass<'_, 'b, Pg>,
    after: &'b str,
    until: &'b str,
) -> QueryResult<()> {
    out.push_sql("least(");
    push_number(out, after)?;
    out.push_sql(&format!(" + {STRETCH_BLOCKS}, "));
    push_number(out, until)?;
    out.push_sql(")");
    Ok(())
}

/// The place before a block, which compares with `ctid`.
fn push_before_block<'b>(
    out: &mut AstPass<'_, 'b, Pg>,
    block: impl FnOnce(&mut AstPass<'_, 'b, Pg>) -> QueryResult<()>,
) -> QueryResult<()> {
    out.push_sql("CAST('(' || ");
    block(out)?;
    out.push_sql(" || ',0)' AS tid)");
    Ok(())
}

/// A text that takes its type from where it stands, so that one statement serves text columns and native enums.
/// The server infers the type of a parameter whose object id is 0.
#[derive(Debug, Clone, Copy, QueryId, diesel::sql_types::SqlType)]
pub struct Label;

impl HasSqlType<Label> for Pg {
    fn metadata(_: &mut Self::MetadataLookup) -> PgTypeMetadata {
        const INFERRED: u32 = 0;
        PgTypeMetadata::new(INFERRED, 0)
    }
}

impl ToSql<Label, Pg> for str {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> diesel::serialize::Result {
        use std::io::Write as _;
        out.write_all(self.as_bytes())?;
        Ok(IsNull::No)
    }
}

impl Dialect for Pg {
    const READS_BEFORE_BEGIN: bool = false;
    const ALWAYS_SAVEPOINT: bool = false;
    const STORED_ROWS: usize = 0;
    const SCRIPTS: &'static [Script] = &[
        Script {
            version: "idem_0001_api_idempotency",
            up: include_str!("../../migrations/postgres/0001_api_idempotency/up.sql"),
            down: include_str!("../../migrations/postgres/0001_api_idempotency/down.sql"),
        },
        Script {
            version: "idem_0002_messages",
            up: include_str!("../../migrations/postgres/0002_messages/up.sql"),
            down: include_str!("../../migrations/postgres/0002_messages/down.sql"),
        },
    ];
    const LOCK_SCHEMA: &'static str = "SELECT pg_advisory_xact_lock(1768187245, 0)";
    const SCHEMA_FACTS: &'static str = schema::FACTS;
    const EXPECTED_FACTS: &'static [(&'static str, &'static [&'static str])] = schema::EXPECTED;
    const TABLES_PRESENT: &'static str = schema::PRESENT;
    /// BEGIN has put down the call and its locks.
    const LOCKS: &'static str = "right(current_setting('idem.call', true), 2)";
    const BEGAN_AT: &'static str = "transaction_timestamp()";
    const CLAIMS_BY_ROW: bool = false;
    const CLAIMED_AT: &'static str = "\
        CAST(CAST(extract(epoch FROM transaction_timestamp()) * 1000000 AS bigint) AS text) \
        || left(set_config('statement_timeout', current_setting('idem.statement_timeout', true), true), 0) \
        || left(set_config('lock_timeout', current_setting('idem.lock_timeout', true), true), 0)";
    const FIRST_OF_EACH: &'static str = "(each.value ->> 0) COLLATE \"C\"";
    const GREATEST: &'static str = "greatest";
    const FROM_HELD: &'static str = " FROM held";
    const SKIP_LOCKED: &'static str = " FOR UPDATE OF d SKIP LOCKED";
    const AFTER_MILLIS: [&'static str; 2] = ["clock_timestamp() + ", " * interval '1 millisecond'"];
    const HAS_CAPTURE: bool = true;
    const UUID: &'static str = "uuid";
    const JSON_ARRAY: &'static str = "json_build_array";
    /// The setting is the session's, but it was made inside the transaction, so a rollback took it back.
    const COMMITTED_CALL: Option<&'static str> = Some("SELECT current_setting('idem.call', true)");
    const NOW: &'static str = "clock_timestamp()";

    /// A class beside that of the keys ("idep"), so that no key has this lock; its number is the table's, so that two schemas
    /// of one database are purged apart. Without a table the next statement says so.
    fn take_purge_lock(table: &Table) -> String {
        let name = table.name;
        format!(
            "SELECT 'taken' \
              WHERE pg_try_advisory_xact_lock(1768187248, coalesce(CAST(CAST(to_regclass('{name}') AS oid) AS integer), 0))"
        )
    }

    fn table_start(_: &Table) -> String {
        "0".to_owned()
    }

    /// The largest part's end, if the table is partitioned.
    fn table_end(table: &Table) -> String {
        let name = table.name;
        format!(
            "SELECT CAST(max(pg_relation_size(part)) / CAST(current_setting('block_size') AS bigint) AS text) \
               FROM (SELECT CAST('{name}' AS regclass) AS part \
                     UNION ALL SELECT relid FROM pg_partition_tree('{name}')) AS parts"
        )
    }

    fn push_look<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        table: &Table,
        after: &'b str,
        until: &'b str,
        is_due: &str,
    ) -> QueryResult<()> {
        let name = table.name;
        out.push_sql(&format!(
            "SELECT CASE WHEN EXISTS (SELECT 1 FROM {name} WHERE ctid >= "
        ));
        push_before_block(out, |out| out.push_bind_param::<Text, str>(after))?;
        out.push_sql(" AND ctid < ");
        push_before_block(out, |out| push_end_of_stretch(out, after, until))?;
        out.push_sql(&format!(" AND ({is_due})) THEN 'due ' ELSE '' END || "));
        push_end_of_stretch(out, after, until)?;
        out.push_sql(" WHERE ");
        push_number(out, after)?;
        out.push_sql(" < ");
        push_number(out, until)
    }

    fn push_is_between<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        _: &Table,
        after: &'b str,
        upto: &'b str,
    ) -> QueryResult<()> {
        out.push_sql("ctid >= ");
        push_before_block(out, |out| out.push_bind_param::<Text, str>(after))?;
        out.push_sql(" AND ctid < ");
        push_before_block(out, |out| out.push_bind_param::<Text, str>(upto))
    }

    /// The array is made once, and its rows are then fetched from where they lie, which is far cheaper than by their keys.
    fn push_is_one_of<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        table: &Table,
        is_so: impl FnOnce(&mut AstPass<'_, 'b, Self>) -> QueryResult<()>,
    ) -> QueryResult<()> {
        let name = table.name;
        out.push_sql(&format!("ctid = ANY (ARRAY(SELECT ctid FROM {name} WHERE "));
        is_so(out)?;
        out.push_sql(" FOR UPDATE SKIP LOCKED))");
        Ok(())
    }

    fn push_table<T: TableName>(out: AstPass<'_, '_, Self>, table: &'static T) -> QueryResult<()> {
        QueryFragment::<Self>::walk_ast(table, out)
    }

    fn push_text<'b>(out: &mut AstPass<'_, 'b, Self>, text: &'b str) -> QueryResult<()> {
        out.push_bind_param::<Text, str>(text)
    }

    fn push_label<'b>(out: &mut AstPass<'_, 'b, Self>, text: &'b str) -> QueryResult<()> {
        out.push_bind_param::<Label, str>(text)
    }

    fn push_uuid<'b>(out: &mut AstPass<'_, 'b, Self>, text: &'b str) -> QueryResult<()> {
        out.push_sql("CAST(");
        out.push_bind_param::<Text, str>(text)?;
        out.push_sql(" AS uuid)");
        Ok(())
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
        format!("encode({column}, 'hex')")
    }

    /// A class beside those of the keys and of the purge: "ideq".
    fn push_hold_order<'b>(out: &mut AstPass<'_, 'b, Self>, lock: &'b i64) -> QueryResult<()> {
        out.push_sql("WITH held AS MATERIALIZED (SELECT pg_advisory_xact_lock(1768187249, CAST(");
        out.push_bind_param::<BigInt, i64>(lock)?;
        out.push_sql(" AS integer))) ");
        Ok(())
    }

    fn push_each<'b>(out: &mut AstPass<'_, 'b, Self>, json: &'b str) -> QueryResult<()> {
        out.push_sql("jsonb_array_elements(CAST(");
        out.push_bind_param::<Text, str>(json)?;
        out.push_sql(" AS jsonb)) AS each(value)");
        Ok(())
    }

    fn push_integer<'b>(out: &mut AstPass<'_, 'b, Self>, integer: &'b i64) -> QueryResult<()> {
        out.push_bind_param::<BigInt, i64>(integer)
    }

    fn push_time_after<'b>(out: &mut AstPass<'_, 'b, Self>, seconds: &'b i64) -> QueryResult<()> {
        out.push_sql("clock_timestamp() + ");
        out.push_bind_param::<BigInt, i64>(seconds)?;
        out.push_sql(" * interval '1 second'");
        Ok(())
    }

    fn push_micros(out: &mut AstPass<'_, '_, Self>, expression: &str) {
        out.push_sql("CAST(extract(epoch FROM ");
        out.push_sql(expression);
        out.push_sql(") * 1000000 AS bigint)");
    }

    fn push_try_lock(out: &mut AstPass<'_, '_, Self>, locks: KeyLocks) {
        let ([class, _], [lock, _]) = (LOCK_CLASSES, locks);
        out.push_sql(&format!("pg_try_advisory_xact_lock({class}, {lock})"));
    }

    /// COMMIT is already on its way when the store runs, so a miss must fail on the server: the insert of a row
    /// with an impossible state violates a constraint whose name no locale translates.
    fn push_exactly_one<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        update: impl FnOnce(&mut AstPass<'_, 'b, Self>) -> QueryResult<()>,
    ) -> QueryResult<()> {
        out.push_sql("WITH stored AS (");
        update(out)?;
        out.push_sql(
            " RETURNING 1) INSERT INTO api_idempotency \
             (tenant_id, operation, idempotency_key, request_hash, state, expires_at, forget_at) \
             SELECT '', '', '', '', 'lost', clock_timestamp(), clock_timestamp() \
             WHERE NOT EXISTS (SELECT 1 FROM stored)",
        );
        Ok(())
    }

    fn push_is_own_row(out: &mut AstPass<'_, '_, Self>) {
        out.push_sql("xmin = CAST(pg_current_xact_id() AS xid)");
    }

    #[cfg(feature = "testing")]
    fn push_columns_of<'b>(out: &mut AstPass<'_, 'b, Self>, table: &'b str) -> QueryResult<()> {
        out.push_sql(
            "SELECT CASE WHEN k.indrelid IS NULL THEN '-' ELSE 'k' END \
                    || CASE WHEN t.typcategory = 'N' THEN 'n' ELSE '-' END || a.attname \
               FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid \
               LEFT JOIN pg_index AS k \
                 ON k.indrelid = a.attrelid AND k.indisprimary AND a.attnum = ANY (k.indkey) \
              WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid = to_regclass(",
        );
        out.push_bind_param::<Text, str>(table)?;
        out.push_sql(") ORDER BY a.attnum");
        Ok(())
    }

    #[cfg(feature = "testing")]
    fn cell(column: &str, is_number: bool) -> String {
        if is_number {
            format!("coalesce(CAST({column} AS text), 'NULL')")
        } else {
            format!("quote_nullable(CAST({column} AS text))")
        }
    }

    /// As it was written: [`push_columns_of`](Dialect::push_columns_of) has found a table of that name.
    #[cfg(feature = "testing")]
    fn from(table: &str) -> String {
        table.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{Dialect, LOCK_CLASSES, Pg};

    #[test]
    fn the_schemas_lock_is_of_the_same_class_as_a_keys() {
        let [class, _] = LOCK_CLASSES;
        assert!(<Pg as Dialect>::LOCK_SCHEMA.contains(&format!("({class}, ")));
    }
}

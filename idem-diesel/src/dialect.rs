//! What differs between the backends: how a value is bound, a time computed, a key locked.

use diesel::QueryResult;
use diesel::backend::Backend;
use diesel::query_builder::AstPass;

use crate::store::{KeyLocks, Table};

#[cfg(feature = "_pg")]
mod postgres;
#[cfg(feature = "_sqlite")]
mod sqlite;

/// A backend of this library: PostgreSQL or SQLite.
///
/// ```
/// fn is_supported<DB: idem_diesel::Dialect>() -> bool {
///     !idem_diesel::migrations::sql::<DB>().is_empty()
/// }
///
/// assert!(is_supported::<diesel::sqlite::Sqlite>());
/// ```
pub trait Dialect: Backend {
    /// Whether a transaction cannot read first and write later without failing, so that a replay is looked for before BEGIN.
    #[doc(hidden)]
    const READS_BEFORE_BEGIN: bool;
    /// Whether the body always runs inside a savepoint, because only that tells whether it ended the transaction.
    #[doc(hidden)]
    const ALWAYS_SAVEPOINT: bool;
    /// How many rows the store reports when it stored. PostgreSQL checks on the server, where it can still stop COMMIT.
    #[doc(hidden)]
    const STORED_ROWS: usize;
    /// The schema, in the order of its scripts.
    #[doc(hidden)]
    const SCRIPTS: &'static [Script];
    /// Keeps a second `ensure_schema` out until this one has committed.
    #[doc(hidden)]
    const LOCK_SCHEMA: &'static str;
    /// A query of what this library's tables are made of, one fact in a row: the table's name, then the fact.
    #[doc(hidden)]
    const SCHEMA_FACTS: &'static str;
    /// The facts that must be among them, for each table.
    #[doc(hidden)]
    const EXPECTED_FACTS: &'static [(&'static str, &'static [&'static str])];
    /// A query of the names of those of this library's tables that are there.
    #[doc(hidden)]
    const TABLES_PRESENT: &'static str;
    /// The database's time now.
    #[doc(hidden)]
    const NOW: &'static str;

    /// A query that takes the lock of a table's purge if no other purge has it, and gives one text if it did.
    #[doc(hidden)]
    fn take_purge_lock(table: &Table) -> String;
    /// Where a table begins, in the order in which it lies on disk. Every place is a text: the number of a block on PostgreSQL, and the
    /// place is before it; the primary key of a row as JSON on SQLite, and the place is behind it.
    #[doc(hidden)]
    fn table_start(table: &Table) -> String;
    /// A query of one text: where the table ends. It may be absent when the table is empty.
    #[doc(hidden)]
    fn table_end(table: &Table) -> String;
    /// A query of one text: a place a bounded way behind `after`, but not behind `until`, and before it the word `due` if
    /// a row on the way is. Absent when nothing lies between the two.
    #[doc(hidden)]
    fn push_look<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        table: &Table,
        after: &'b str,
        until: &'b str,
        is_due: &str,
    ) -> QueryResult<()>;
    /// The condition that a row lies behind `after`, and not behind `upto`.
    #[doc(hidden)]
    fn push_is_between<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        table: &Table,
        after: &'b str,
        upto: &'b str,
    ) -> QueryResult<()>;
    /// The condition that a row is one of those for which `is_so` is true. They are locked by that, but for those that somebody else is
    /// changing, which are left out.
    #[doc(hidden)]
    fn push_is_one_of<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        table: &Table,
        is_so: impl FnOnce(&mut AstPass<'_, 'b, Self>) -> QueryResult<()>,
    ) -> QueryResult<()>;

    /// Writes a table's name.
    #[doc(hidden)]
    fn push_table<T: TableName>(out: AstPass<'_, '_, Self>, table: &'static T) -> QueryResult<()>;
    /// Binds a text.
    #[doc(hidden)]
    fn push_text<'b>(out: &mut AstPass<'_, 'b, Self>, text: &'b str) -> QueryResult<()>;
    /// Binds a text as whatever type its column has, such as a native enum.
    #[doc(hidden)]
    fn push_label<'b>(out: &mut AstPass<'_, 'b, Self>, text: &'b str) -> QueryResult<()>;
    /// Binds the text of a UUID as the type that UUID columns have.
    #[doc(hidden)]
    fn push_uuid<'b>(out: &mut AstPass<'_, 'b, Self>, text: &'b str) -> QueryResult<()>;
    /// Binds bytes.
    #[doc(hidden)]
    fn push_bytes<'b>(out: &mut AstPass<'_, 'b, Self>, bytes: &'b [u8]) -> QueryResult<()>;
    /// Binds bytes, or their absence.
    #[doc(hidden)]
    fn push_optional_bytes<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        bytes: Option<&'b [u8]>,
    ) -> QueryResult<()>;
    /// Binds an integer.
    #[doc(hidden)]
    fn push_integer<'b>(out: &mut AstPass<'_, 'b, Self>, integer: &'b i64) -> QueryResult<()>;
    /// The time `seconds` from now; before now, if they are negative.
    #[doc(hidden)]
    fn push_time_after<'b>(out: &mut AstPass<'_, 'b, Self>, seconds: &'b i64) -> QueryResult<()>;
    /// Microseconds since the Unix epoch of the time `expression`.
    #[doc(hidden)]
    fn push_micros(out: &mut AstPass<'_, '_, Self>, expression: &str);
    /// Takes the lock of a key if nobody has it, and says whether it did. True where no lock is needed.
    #[doc(hidden)]
    fn push_try_lock(out: &mut AstPass<'_, '_, Self>, locks: KeyLocks);
    /// What became of the locks of this transaction's call, as a text: a `t` for each that it has, an `f` for each that it has not.
    #[doc(hidden)]
    const LOCKS: &'static str;
    /// When the transaction began.
    #[doc(hidden)]
    const BEGAN_AT: &'static str;
    /// Whether a new key is claimed by its row, because no lock holds it until the end.
    #[doc(hidden)]
    const CLAIMS_BY_ROW: bool;
    /// What the statement that claims a message gives back: when its transaction began, in microseconds. On the way it puts the session's own bound of
    /// statements back.
    #[doc(hidden)]
    const CLAIMED_AT: &'static str;
    /// Binds a JSON array, and gives its elements as rows `each(value)`, in a FROM.
    #[doc(hidden)]
    fn push_each<'b>(out: &mut AstPass<'_, 'b, Self>, json: &'b str) -> QueryResult<()>;
    /// The first part of each of these elements, to sort by.
    #[doc(hidden)]
    const FIRST_OF_EACH: &'static str;
    /// Takes the lock of an aggregate's order before a statement that inserts from it; nothing where writers come one by one anyway.
    #[doc(hidden)]
    fn push_hold_order<'b>(out: &mut AstPass<'_, 'b, Self>, lock: &'b i64) -> QueryResult<()>;
    /// What the SELECT of that statement reads from.
    #[doc(hidden)]
    const FROM_HELD: &'static str;
    /// Leaves out rows that another transaction has locked, and locks the others.
    #[doc(hidden)]
    const SKIP_LOCKED: &'static str;
    /// What stands before and behind a number of milliseconds to make the time so long from now.
    #[doc(hidden)]
    const AFTER_MILLIS: [&'static str; 2];
    /// Whether a connector can read changes from the database's log.
    #[doc(hidden)]
    const HAS_CAPTURE: bool;
    /// The type of a column that holds a UUID.
    #[doc(hidden)]
    const UUID: &'static str;
    /// The function that makes a JSON array of its arguments.
    #[doc(hidden)]
    const JSON_ARRAY: &'static str;
    /// The bytes of a column in hexadecimal.
    #[doc(hidden)]
    fn hex(column: &str) -> String;
    /// The function that gives the greatest of its arguments.
    #[doc(hidden)]
    const GREATEST: &'static str;
    /// A query of one text: the newest call of this session whose transaction was committed. Absent where a claim's row tells.
    #[doc(hidden)]
    const COMMITTED_CALL: Option<&'static str>;
    /// The store: `update`, which must change one row of `api_idempotency`, or fail.
    #[doc(hidden)]
    fn push_exactly_one<'b>(
        out: &mut AstPass<'_, 'b, Self>,
        update: impl FnOnce(&mut AstPass<'_, 'b, Self>) -> QueryResult<()>,
    ) -> QueryResult<()>;
    /// Whether the row was written by the transaction that reads it.
    #[doc(hidden)]
    fn push_is_own_row(out: &mut AstPass<'_, '_, Self>);
    /// A query of a table's columns in their order: `k` if the column is in the primary key, `n` if it always holds a number, or `-`, then
    /// its name. No row when there is no such table.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    fn push_columns_of<'b>(out: &mut AstPass<'_, 'b, Self>, table: &'b str) -> QueryResult<()>;
    /// The value of a column as SQL writes it, never null.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    fn cell(column: &str, is_number: bool) -> String;
    /// A table, as it stands behind FROM.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    fn from(table: &str) -> String;
}

#[cfg(feature = "_pg")]
pub(crate) use postgres::{try_locks, wait_for_locks};

/// A table of an application, as Diesel's `table!` makes it: its name can be written for every backend that is turned on.
///
/// Diesel writes a name with a schema in it only for backends it knows, not for every `DB`.
pub trait TableName: OnPostgres + OnSqlite + 'static {}

impl<T: OnPostgres + OnSqlite + 'static> TableName for T {}

/// Can be written for PostgreSQL, if that is turned on.
#[cfg(feature = "_pg")]
pub trait OnPostgres: diesel::query_builder::QueryFragment<diesel::pg::Pg> {}
#[cfg(feature = "_pg")]
impl<T: diesel::query_builder::QueryFragment<diesel::pg::Pg>> OnPostgres for T {}
/// Can be written for PostgreSQL, if that is turned on.
#[cfg(not(feature = "_pg"))]
pub trait OnPostgres {}
#[cfg(not(feature = "_pg"))]
impl<T> OnPostgres for T {}

/// Can be written for SQLite, if that is turned on.
#[cfg(feature = "_sqlite")]
pub trait OnSqlite: diesel::query_builder::QueryFragment<diesel::sqlite::Sqlite> {}
#[cfg(feature = "_sqlite")]
impl<T: diesel::query_builder::QueryFragment<diesel::sqlite::Sqlite>> OnSqlite for T {}
/// Can be written for SQLite, if that is turned on.
#[cfg(not(feature = "_sqlite"))]
pub trait OnSqlite {}
#[cfg(not(feature = "_sqlite"))]
impl<T> OnSqlite for T {}

/// One step of the schema.
///
/// ```
/// let script = idem_diesel::migrations::sql::<diesel::sqlite::Sqlite>()[0];
/// assert_eq!(script.version, "idem_0001_api_idempotency");
/// assert!(script.down.contains("DROP TABLE api_idempotency"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script {
    /// Its version, which sorts in the order in which the scripts are run.
    pub version: &'static str,
    /// What makes it.
    pub up: &'static str,
    /// What takes it back.
    pub down: &'static str,
}

//! The tables: how an application gets them, and whether they are as they must be.
//!
//! Three ways, of which an application takes one:
//!
//! 1. It copies the SQL of [`sql`] into its own migrations.
//! 2. It runs [`IdemMigrations`], a `MigrationSource` whose versions start with `idem_`, so that they never equal its own. Diesel
//!    keeps one journal per database, so `diesel migration revert` of the application does not know these versions.
//! 3. It calls [`ensure_schema`] when it starts, which has a journal of its own and may be raced.

use diesel::backend::Backend;
use diesel::connection::BoxableConnection;
use diesel::migration::{
    Migration, MigrationMetadata, MigrationName, MigrationSource, MigrationVersion,
    Result as MigrationResult,
};
use idem_core::limits::DEFAULT_WAIT;
use idem_core::{ErrorKind, Nested};

use crate::connection::{Flavor, IdempotentConnection, Run};
pub use crate::dialect::Script;

use crate::dialect::Dialect;
use crate::driver::{Driver, Opening};
use crate::error::Error;
use crate::store::{TABLE, TABLES};
use crate::texts::Sql;
use crate::transaction::Transaction;

/// The SQL of the tables, for an application's own migrations.
///
/// ```
/// let scripts = idem_diesel::migrations::sql::<diesel::sqlite::Sqlite>();
/// assert!(scripts[0].up.contains("CREATE TABLE api_idempotency"));
/// ```
pub fn sql<DB: Dialect>() -> &'static [Script] {
    DB::SCRIPTS
}

/// The tables as Diesel migrations.
///
/// ```
/// use diesel::prelude::*;
/// use diesel::migration::MigrationSource;
/// use diesel::sqlite::Sqlite;
///
/// let mut db = SqliteConnection::establish(":memory:")?;
/// for migration in MigrationSource::<Sqlite>::migrations(&idem_diesel::migrations::IdemMigrations)? {
///     assert!(migration.name().to_string().starts_with("idem_"));
///     migration.run(&mut db)?;
/// }
/// idem_diesel::check_schema(&mut db)?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct IdemMigrations;

impl<DB: Backend + Dialect> MigrationSource<DB> for IdemMigrations {
    fn migrations(&self) -> MigrationResult<Vec<Box<dyn Migration<DB>>>> {
        Ok(DB::SCRIPTS
            .iter()
            .map(|script| Box::new(*script) as Box<dyn Migration<DB>>)
            .collect())
    }
}

impl<DB: Backend> Migration<DB> for Script {
    fn run(&self, conn: &mut dyn BoxableConnection<DB>) -> MigrationResult<()> {
        Ok(conn.batch_execute(self.up)?)
    }

    fn revert(&self, conn: &mut dyn BoxableConnection<DB>) -> MigrationResult<()> {
        Ok(conn.batch_execute(self.down)?)
    }

    fn metadata(&self) -> &dyn MigrationMetadata {
        &InTransaction
    }

    fn name(&self) -> &dyn MigrationName {
        self
    }
}

impl MigrationName for Script {
    fn version(&self) -> MigrationVersion<'_> {
        MigrationVersion::from(self.version)
    }
}

impl std::fmt::Display for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.version)
    }
}

struct InTransaction;

impl MigrationMetadata for InTransaction {}

/// The journal of [`ensure_schema`].
const JOURNAL: &str =
    "CREATE TABLE IF NOT EXISTS idem_schema_versions (version varchar(50) PRIMARY KEY)";
const VERSIONS: &str = "SELECT version FROM idem_schema_versions";

/// Makes the tables that are missing. Safe to call from many processes at once, and again on every start.
///
/// An application that took the SQL into its own migrations does not need it; its tables are then checked and left alone. So one that
/// took an older version's is told which table is missing.
///
/// ```
/// use diesel::prelude::*;
///
/// let mut db = SqliteConnection::establish(":memory:")?;
/// idem_diesel::ensure_schema(&mut db)?;
/// idem_diesel::ensure_schema(&mut db)?;
/// idem_diesel::check_schema(&mut db)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// What [`check_schema`] finds, [`UnfinishedTransaction`](ErrorKind::UnfinishedTransaction), or what the database says.
///
/// # Cancellation
///
/// One transaction: a dropped future has made all tables or none.
pub fn ensure_schema<C: IdempotentConnection>(db: &mut C) -> Run<'_, C, Result<(), Error>> {
    C::Flavor::run(ensure(db))
}

async fn ensure<C: IdempotentConnection>(db: &mut C) -> Result<(), Error> {
    let mut transaction = Transaction::new(db, Nested::Refuse)?;
    transaction.set_patience(DEFAULT_WAIT).await?;
    let opened = transaction.open(&Opening::PLAIN, None).await;
    transaction.restore_patience().await?;
    opened?;
    let db = transaction.inner();
    db.batch(<C::Inner as Driver>::Dialect::LOCK_SCHEMA).await?;
    db.batch(JOURNAL).await?;
    let applied = db.texts(Sql(VERSIONS)).await?;
    let is_foreign = applied.is_empty() && first_missing(db, &[TABLE]).await?.is_none();
    if !is_foreign {
        for script in <C::Inner as Driver>::Dialect::SCRIPTS {
            if applied
                .iter()
                .flatten()
                .any(|version| version == script.version)
            {
                continue;
            }
            db.batch(script.up).await?;
            db.batch(&format!(
                "INSERT INTO idem_schema_versions (version) VALUES ('{}')",
                script.version
            ))
            .await?;
        }
    }
    check(db).await?;
    Ok(transaction.commit(DEFAULT_WAIT).await?)
}

/// Verifies the tables: columns and their types, primary keys and uniqueness, byte-wise comparison of keys, and privileges.
///
/// # Errors
///
/// [`TableMissing`](ErrorKind::TableMissing) with the first one, or [`SchemaWrong`](ErrorKind::SchemaWrong) with everything that is not as it must be.
/// A lost primary key is an error: without it two calls of one key would both execute.
///
/// # Cancellation
///
/// It only reads.
pub fn check_schema<C: IdempotentConnection>(db: &mut C) -> Run<'_, C, Result<(), Error>> {
    C::Flavor::run(check(db.inner()))
}

async fn check<D: Driver>(db: &mut D) -> Result<(), Error> {
    if let Some(table) = first_missing(db, &TABLES).await? {
        return Err(ErrorKind::TableMissing { table }.into());
    }
    let facts = db.texts(Sql(D::Dialect::SCHEMA_FACTS)).await?;
    let is_fact = |table: &str, expected: &str| {
        let mut facts = facts.iter().flatten();
        facts.any(|fact| fact.split_once(' ') == Some((table, expected)))
    };
    let mut problems = Vec::new();
    for (table, expected) in D::Dialect::EXPECTED_FACTS {
        let missing: Vec<&str> = expected
            .iter()
            .copied()
            .filter(|expected| !is_fact(table, expected))
            .collect();
        if !missing.is_empty() {
            problems.push(format!("the table {table} lacks: {}", missing.join("; ")));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let problem = problems.join("; ");
    Err(ErrorKind::SchemaWrong { problem }.into())
}

/// A statement that the database refused: is it a table that is missing?
pub(crate) async fn explain<D: Driver>(db: &mut D, error: Error) -> Error {
    explain_on(db, error, &TABLES).await
}

/// The same for a statement that needs these tables and no others.
pub(crate) async fn explain_on<D: Driver>(
    db: &mut D,
    error: Error,
    tables: &[&'static str],
) -> Error {
    if error.kind() != &ErrorKind::Database {
        return error;
    }
    let kind = match first_missing(db, tables).await {
        Ok(Some(table)) => ErrorKind::TableMissing { table },
        // The session was ended while its statement ran, which a driver may report like any other error.
        Err(lost) if lost.kind() == &ErrorKind::ConnectionLost => ErrorKind::ConnectionLost,
        _ => return error,
    };
    error.into_core().into_kind(kind).into()
}

/// The first of these tables that is not there.
async fn first_missing<D: Driver>(
    db: &mut D,
    tables: &[&'static str],
) -> Result<Option<&'static str>, Error> {
    let present = db.texts(Sql(D::Dialect::TABLES_PRESENT)).await?;
    let is_missing = |table: &&str| !present.iter().flatten().any(|name| name == table);
    Ok(tables.iter().copied().find(is_missing))
}

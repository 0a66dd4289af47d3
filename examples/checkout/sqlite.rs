//! The shop on SQLite.

use diesel::SqliteConnection;
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, SimpleAsyncConnection};
use tempfile::TempDir;

use crate::shop::TABLES;

// These three are compiled for each database. An application has one, and needs no `path`.
#[path = "handlers.rs"]
mod handlers;
#[path = "scenes.rs"]
pub(crate) mod scenes;
#[path = "witness.rs"]
mod witness;

pub(crate) type Db = SyncConnectionWrapper<SqliteConnection>;

/// A file in a temporary folder, which is removed when this is dropped.
pub(crate) struct Database {
    folder: TempDir,
}

impl Database {
    pub(crate) async fn create() -> anyhow::Result<Self> {
        let database = Self {
            folder: TempDir::new()?,
        };
        let mut db = database.connect().await?;
        // Readers do not wait for the writer then. The file remembers it.
        db.batch_execute("PRAGMA journal_mode = WAL").await?;
        db.batch_execute(&TABLES.replace("{id}", "INTEGER PRIMARY KEY AUTOINCREMENT"))
            .await?;
        idem_diesel::ensure_schema(&mut db).await?;
        Ok(database)
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<Db> {
        let file = self.folder.path().join("checkout.sqlite");
        Ok(Db::establish(&file.to_string_lossy()).await?)
    }
}

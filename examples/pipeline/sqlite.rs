//! The pipeline on SQLite.

use diesel::SqliteConnection;
use diesel_async::sync_connection_wrapper::SyncConnectionWrapper;
use diesel_async::{AsyncConnection, SimpleAsyncConnection};
use tempfile::TempDir;

use crate::shop::TABLES;

// These three are compiled for each database. An application has one, and needs no `path`.
#[path = "handlers.rs"]
mod handlers;
#[path = "play.rs"]
pub(crate) mod play;
#[path = "relay.rs"]
pub(crate) mod relay;

pub(crate) type Db = SyncConnectionWrapper<SqliteConnection>;

/// A file, in a temporary folder if this process made it, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Database {
    file: String,
    _folder: Option<TempDir>,
}

impl Database {
    pub(crate) async fn create() -> anyhow::Result<Self> {
        let folder = TempDir::new()?;
        let database = Self {
            file: folder.path().join("pipeline.sqlite").display().to_string(),
            _folder: Some(folder),
        };
        let mut db = database.connect().await?;
        // Readers do not wait for the writer then. The file remembers it.
        db.batch_execute("PRAGMA journal_mode = WAL").await?;
        db.batch_execute(&TABLES.replace("{id}", "INTEGER PRIMARY KEY AUTOINCREMENT"))
            .await?;
        idem_diesel::ensure_schema(&mut db).await?;
        Ok(database)
    }

    pub(crate) fn at(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            _folder: None,
        }
    }

    /// The same file, for somebody who may outlive this.
    pub(crate) fn again(&self) -> Self {
        Self::at(&self.file)
    }

    pub(crate) fn place(&self) -> &str {
        &self.file
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<Db> {
        let mut db = Db::establish(&self.file).await?;
        // Two processes write, one at a time.
        db.batch_execute("PRAGMA busy_timeout = 10000").await?;
        Ok(db)
    }
}

//! SQLite: a file of one test, in write-ahead mode as applications use it.

use std::path::{Path, PathBuf};

use diesel::sql_types::Text;
use diesel::{Connection, QueryableByName, RunQueryDsl, SqliteConnection, sql_query};
use tempfile::TempDir;

use crate::folder;

/// Makes an empty database file in a folder of its own.
///
/// ```
/// use diesel::{Connection, RunQueryDsl, SqliteConnection, sql_query};
///
/// let file = support::sqlite::fresh_file();
/// let mut conn = SqliteConnection::establish(file.url()).unwrap();
/// assert_eq!(sql_query("CREATE TABLE orders (id integer)").execute(&mut conn), Ok(0));
/// ```
///
/// # Panics
///
/// Panics if the folder cannot be made, or if the file system cannot hold a write-ahead log.
pub fn fresh_file() -> SqliteFile {
    SqliteFile::make().unwrap_or_else(|error| panic!("no fresh SQLite file: {error}"))
}

/// An empty database file. The file, its log and its folder are removed with this value.
#[derive(Debug)]
pub struct SqliteFile {
    url: String,
    path: PathBuf,
    _folder: TempDir,
}

impl SqliteFile {
    /// What Diesel connects with, sync and async: the path as text.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn make() -> Result<Self, String> {
        let folder = folder::fresh("idem-sqlite-").map_err(|error| error.to_string())?;
        let path = folder.path().join("test.sqlite3");
        let url = path
            .to_str()
            .ok_or("the temporary folder's path is not UTF-8")?
            .to_owned();

        // The mode is a property of the file: every later connection has it.
        let mut conn = SqliteConnection::establish(&url).map_err(|error| error.to_string())?;
        let mode: JournalMode = sql_query("PRAGMA journal_mode = WAL")
            .get_result(&mut conn)
            .map_err(|error| error.to_string())?;
        if mode.journal_mode != "wal" {
            return Err(format!(
                "journal mode {} instead of wal in {url}",
                mode.journal_mode
            ));
        }
        Ok(Self {
            url,
            path,
            _folder: folder,
        })
    }
}

#[derive(QueryableByName)]
struct JournalMode {
    #[diesel(sql_type = Text)]
    journal_mode: String,
}

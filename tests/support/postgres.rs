//! PostgreSQL: one server per process, one fresh database per call of [`fresh_database`].
//!
//! The server is the one that `IDEM_TEST_DATABASE_URL` names, or a throwaway one that is started at the first call. A
//! throwaway server has its own data directory and port, and ends with the process, however the process ends.

mod binaries;
mod throwaway;

use std::path::Path;
use std::sync::OnceLock;

use diesel::connection::SimpleConnection;
use diesel::{Connection, PgConnection};
use uuid::Uuid;

use self::throwaway::Throwaway;

/// Names a server for the tests, by the URL of a database on it whose role may create databases.
pub const SERVER_URL_VARIABLE: &str = "IDEM_TEST_DATABASE_URL";

/// Makes an empty database on the server of this process, and starts the server if this is the first call.
///
/// ```
/// use diesel::{Connection, PgConnection, RunQueryDsl, sql_query};
///
/// let database = support::postgres::fresh_database();
/// let mut conn = PgConnection::establish(database.url()).unwrap();
/// assert_eq!(sql_query("CREATE TABLE orders (id int)").execute(&mut conn), Ok(0));
/// ```
///
/// # Panics
///
/// Panics if there is no server and none can be started. The text says what to install or which variable to set.
pub fn fresh_database() -> Database {
    // A failure is kept as well: every test then fails with the same text, and the start is not tried again.
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    SERVER
        .get_or_init(Server::find_or_start)
        .as_ref()
        .map_err(Clone::clone)
        .and_then(Server::fresh_database)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// A server that databases can be made on. If it was started here, it ends when this value is dropped.
#[derive(Debug)]
pub struct Server {
    url: String,
    _throwaway: Option<Throwaway>,
}

impl Server {
    /// Takes the server that [`SERVER_URL_VARIABLE`] names, or starts a throwaway one.
    ///
    /// # Errors
    ///
    /// A text for the person at the terminal: what is missing and how to get it, or the server's own log.
    pub fn find_or_start() -> Result<Self, String> {
        match std::env::var(SERVER_URL_VARIABLE) {
            Ok(url) if !url.is_empty() => Ok(Self {
                url,
                _throwaway: None,
            }),
            _ => Throwaway::start(None, "").map(Self::of),
        }
    }

    /// Starts a throwaway server in a folder below `parent`, with settings as the program `postgres` takes them:
    /// `-c fsync=on -c shared_buffers=1GB`.
    ///
    /// # Errors
    ///
    /// As for [`find_or_start`](Self::find_or_start).
    pub fn start_in(parent: &Path, settings: &str) -> Result<Self, String> {
        Throwaway::start(Some(parent), settings).map(Self::of)
    }

    fn of(throwaway: Throwaway) -> Self {
        Self {
            url: throwaway.url().to_owned(),
            _throwaway: Some(throwaway),
        }
    }

    /// The URL of the server's maintenance database.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Makes an empty database with a name that nobody else has.
    ///
    /// # Errors
    ///
    /// A text that names the server's refusal, for instance that the role may not create databases.
    pub fn fresh_database(&self) -> Result<Database, String> {
        let name = format!("idem_test_{}", Uuid::new_v4().simple());
        let url = url_of_database(&self.url, &name)?;
        // Nobody can connect to template0, so that copies of it can be made at the same time.
        execute(
            &self.url,
            &format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'"),
        )
        .map_err(|error| format!("no fresh PostgreSQL database: {error}"))?;
        Ok(Database {
            url,
            name,
            server_url: self.url.clone(),
        })
    }
}

/// An empty database of one test. It is dropped with this value, also while connections to it are still open.
#[derive(Debug)]
pub struct Database {
    url: String,
    name: String,
    server_url: String,
}

impl Database {
    /// The URL to connect with, for libpq and for `tokio-postgres`.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Best effort: a panic here would hide the failure of the test, and a throwaway server ends anyway.
        let dropped = execute(
            &self.server_url,
            &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name),
        );
        if let Err(error) = dropped {
            eprintln!(
                "the test database {} stays on its server: {error}",
                self.name
            );
        }
    }
}

/// Runs one statement on its own connection, outside a transaction.
fn execute(server_url: &str, sql: &str) -> Result<(), String> {
    let mut conn = PgConnection::establish(server_url).map_err(|error| error.to_string())?;
    conn.batch_execute(sql).map_err(|error| error.to_string())
}

/// Puts another database name into a URL and keeps everything else, parameters included.
fn url_of_database(server_url: &str, name: &str) -> Result<String, String> {
    let not_a_url = || {
        format!(
            "{SERVER_URL_VARIABLE} must be a URL such as postgres://user:password@host:5432/postgres"
        )
    };
    let (scheme, rest) = server_url.split_once("://").ok_or_else(not_a_url)?;
    if !matches!(scheme, "postgres" | "postgresql") {
        return Err(not_a_url());
    }
    let (address, parameters) = match rest.split_once('?') {
        Some((address, parameters)) => (address, format!("?{parameters}")),
        None => (rest, String::new()),
    };
    let authority = address
        .split_once('/')
        .map_or(address, |(authority, _)| authority);
    Ok(format!("{scheme}://{authority}/{name}{parameters}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(server_url: &str, expected: &str) {
        assert_eq!(
            url_of_database(server_url, "fresh").as_deref(),
            Ok(expected)
        );
    }

    #[test]
    fn only_the_name_of_the_database_changes() {
        check(
            "postgres://u:p@h:5432/postgres",
            "postgres://u:p@h:5432/fresh",
        );
        check(
            "postgresql://h/a?sslmode=disable",
            "postgresql://h/fresh?sslmode=disable",
        );
        check("postgres://h", "postgres://h/fresh");
        check(
            "postgres:///a?host=/run/pg",
            "postgres:///fresh?host=/run/pg",
        );
        check("postgres://?host=/run/pg", "postgres:///fresh?host=/run/pg");
    }

    #[test]
    fn something_else_than_a_url_is_refused() {
        for text in ["host=localhost", "mysql://h/a", "localhost:5432"] {
            assert!(url_of_database(text, "fresh").is_err(), "{text}");
        }
    }
}

//! pgbouncer in transaction mode, in front of the server that [`fresh_database`](crate::postgres::fresh_database) uses.
//!
//! It is a throwaway process with a configuration and a port of its own: the service that the Debian package brings is neither used
//! nor needed. It takes every database of the server, and ends with this process, however that ends.
//!
//! # Which connections work behind it
//!
//! In transaction mode a client has a server session for one transaction, and perhaps another one for the next. Everything that a
//! session remembers between transactions is therefore somebody else's: `SET` without `LOCAL`, `LISTEN`, advisory locks of
//! the session, and **prepared statements**.
//!
//! * From 1.21 on, with `max_prepared_statements`, pgbouncer prepares a client's statements on whichever session it gets
//!   ([`keeps_prepared_statements`]). Every connection works as it is.
//! * Before 1.21 (Debian 12 has 1.18) a connection needs
//!   `set_prepared_statement_cache_size(CacheSize::Disabled)`. Otherwise a later transaction meets a session without its statements, or,
//!   with Diesel's own `PgConnection`, which calls them `__diesel_stmt_0` and so on in every process, one on which
//!   **the same name is another client's statement**.
//!   * `PgConnection` then sends a statement and its values in one message: it works inside transactions and outside.
//!   * `AsyncPgConnection` still prepares each statement for one use, in two messages. Inside a transaction both reach the same session.
//!     Outside of one they need not, so there only statements without values through `batch_execute` are safe.
//! * A pool of one session per database (`pool_size=1`) is no way around: two clients with caches then meet on the same names.

mod program;

use std::sync::OnceLock;

use crate::server_url::ServerUrl;
use crate::watched::{Watchdog, Watched};

use self::program::Program;

/// Names the program, for machines with several versions.
pub const PROGRAM_VARIABLE: &str = "IDEM_TEST_PGBOUNCER";

const WATCHDOG: &str = include_str!("pgbouncer/watchdog.sh");

/// Sessions on the server for each database: fewer than the clients of a race, so that they have to take turns.
pub const SESSIONS: usize = 12;

/// The URL of the same database through the pgbouncer of this process, which is started if this is the first call.
///
/// ```
/// use diesel::connection::{CacheSize, Connection};
/// use diesel::{PgConnection, RunQueryDsl, sql_query};
/// use support::pgbouncer;
///
/// let database = support::postgres::fresh_database();
/// let mut conn = PgConnection::establish(&pgbouncer::in_front_of(database.url())).unwrap();
/// if !pgbouncer::keeps_prepared_statements() {
///     conn.set_prepared_statement_cache_size(CacheSize::Disabled);
/// }
/// assert_eq!(sql_query("CREATE TABLE orders (id int)").execute(&mut conn), Ok(0));
/// ```
///
/// # Panics
///
/// Panics if this machine has no pgbouncer or it does not start, and if the URL is not of the server of the first call. The text
/// says what to do.
pub fn in_front_of(database_url: &str) -> String {
    // A failure is kept as well: every test then fails with the same text, and the start is not tried again.
    static PGBOUNCER: OnceLock<Result<Pgbouncer, String>> = OnceLock::new();
    PGBOUNCER
        .get_or_init(|| Pgbouncer::start(database_url))
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|pgbouncer| pgbouncer.url(database_url))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Whether a client may rely on the statements that it has prepared: the version is 1.21 or later.
///
/// # Panics
///
/// Panics if this machine has no pgbouncer.
pub fn keeps_prepared_statements() -> bool {
    program()
        .unwrap_or_else(|error| panic!("{error}"))
        .keeps_prepared_statements()
}

fn program() -> Result<&'static Program, String> {
    static PROGRAM: OnceLock<Result<Program, String>> = OnceLock::new();
    PROGRAM
        .get_or_init(Program::find)
        .as_ref()
        .map_err(Clone::clone)
}

/// A running pgbouncer.
#[derive(Debug)]
struct Pgbouncer {
    /// The server that it is in front of.
    server: (String, u16),
    process: Watched,
}

impl Pgbouncer {
    fn start(database_url: &str) -> Result<Self, String> {
        let program = program()?;
        let server = ServerUrl::parse(database_url)?;
        let (host, port) = server.address();
        let (user, password) = server.account().ok_or(
            "pgbouncer needs the server's user and password: postgres://user:password@host:5432/database",
        )?;
        let watchdog = Watchdog {
            server: "pgbouncer",
            script: WATCHDOG,
            arguments: &[program.path().as_os_str()],
            secrets: &[
                (
                    "IDEM_WATCHDOG_USERS",
                    &format!("{} {}", quoted(&user), quoted(&password)),
                ),
                (
                    "IDEM_WATCHDOG_CONFIGURATION",
                    &configuration(host, port, program),
                ),
            ],
            parent: None,
        };
        Ok(Self {
            server: (host.to_owned(), port),
            process: watchdog.start()?,
        })
    }

    fn url(&self, database_url: &str) -> Result<String, String> {
        let server = ServerUrl::parse(database_url)?;
        let (host, port) = server.address();
        if (host, port) != (self.server.0.as_str(), self.server.1) {
            return Err(format!(
                "the pgbouncer of this process is in front of {}:{}, not of {host}:{port}",
                self.server.0, self.server.1
            ));
        }
        Ok(server.at(([127, 0, 0, 1], self.process.port()).into()))
    }
}

/// Everything but the port and the file of users, which the watchdog knows.
fn configuration(host: &str, port: u16, program: &Program) -> String {
    // Passwords travel on this machine only, and md5 costs a test less than the others.
    let mut text = format!(
        "[databases]\n\
         * = host={host} port={port}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         unix_socket_dir =\n\
         auth_type = md5\n\
         pool_mode = transaction\n\
         default_pool_size = {SESSIONS}\n\
         max_client_conn = 800\n\
         ignore_startup_parameters = extra_float_digits\n"
    );
    if program.keeps_prepared_statements() {
        text.push_str("max_prepared_statements = 200\n");
    }
    text
}

/// As the file of users has it: a quote inside is doubled.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_in_a_password_does_not_end_it() {
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }

    #[test]
    fn another_server_is_refused() {
        let database = crate::postgres::fresh_database();
        let url = in_front_of(database.url());
        assert_ne!(url, database.url());
        let refused = std::panic::catch_unwind(|| in_front_of("postgres://u:p@elsewhere/d"));
        assert!(refused.is_err());
    }
}

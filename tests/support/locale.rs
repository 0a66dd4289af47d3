//! A server that does not speak English: what it says is translated, and what it means must be understood all the same.

use diesel::connection::SimpleConnection;
use diesel::dsl::sql;
use diesel::sql_types::Integer;
use diesel::{Connection, PgConnection, RunQueryDsl, select};

/// A locale of the operating system, whose language every Debian package of PostgreSQL has.
pub const GERMAN: &str = "de_DE.UTF-8";

/// What an English server says to `SELECT 1 / 0`.
const ENGLISH: &str = "division by zero";

/// Makes every later session on this database get its messages in German, and proves it.
///
/// ```
/// use diesel::{Connection, PgConnection, RunQueryDsl, sql_query};
///
/// let database = support::postgres::fresh_database();
/// support::locale::speak_german(database.url());
/// let mut conn = PgConnection::establish(database.url()).unwrap();
/// let error = sql_query("SELECT 1 / 0").execute(&mut conn).unwrap_err();
/// assert_eq!(error.to_string(), "Division durch Null");
/// ```
///
/// # Panics
///
/// Panics if the server's machine does not have the locale, if the role of the URL may not set it, or if the server still speaks
/// English. The text says what to do.
pub fn speak_german(database_url: &str) {
    if let Err(error) = try_speak_german(database_url) {
        panic!(
            "no German PostgreSQL server: {error}\n\
             Its machine needs the locale {GERMAN} (Debian: apt-get install locales, then localedef -i de_DE -f UTF-8 {GERMAN}) \
             and PostgreSQL's translations, and the role must be a superuser's."
        );
    }
}

fn try_speak_german(database_url: &str) -> Result<(), String> {
    let connect = || PgConnection::establish(database_url).map_err(|error| error.to_string());
    connect()?
        .batch_execute(&format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET lc_messages = %L', current_database(), '{GERMAN}'); END $$"
        ))
        .map_err(|error| error.to_string())?;
    // The server takes a locale for which it has no translation, and then stays English.
    match select(sql::<Integer>("1 / 0")).get_result::<i32>(&mut connect()?) {
        Err(diesel::result::Error::DatabaseError(_, information))
            if information.message() != ENGLISH =>
        {
            Ok(())
        }
        other => Err(format!("it answers SELECT 1 / 0 with {other:?}")),
    }
}

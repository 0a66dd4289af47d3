//! The servers that the other tests stand on: fresh each time, and gone with the process that started them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use diesel::sql_types::{BigInt, Text};
use diesel::{Connection, PgConnection, QueryableByName, RunQueryDsl, SqliteConnection, sql_query};
use support::postgres::{SERVER_URL_VARIABLE, fresh_database};
use support::sqlite::fresh_file;

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

#[derive(QueryableByName)]
struct Setting {
    #[diesel(sql_type = Text)]
    setting: String,
}

#[test]
fn two_databases_of_one_server_do_not_see_each_other() {
    let (first, second) = (fresh_database(), fresh_database());
    let mut in_first = PgConnection::establish(first.url()).unwrap();
    let mut in_second = PgConnection::establish(second.url()).unwrap();
    let create = "CREATE TABLE orders (id int)";
    sql_query(create).execute(&mut in_first).unwrap();
    sql_query(create).execute(&mut in_second).unwrap();
}

#[test]
fn sixteen_databases_can_be_made_at_once() {
    let databases: Vec<_> = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..16).map(|_| scope.spawn(fresh_database)).collect();
        makers
            .into_iter()
            .map(|maker| maker.join().unwrap())
            .collect()
    });
    for database in databases {
        PgConnection::establish(database.url()).unwrap();
    }
}

#[test]
fn a_database_is_gone_with_its_value_although_a_connection_is_open() {
    let watched = fresh_database();
    let name = watched.url().rsplit('/').next().unwrap().to_owned();
    let other = fresh_database();
    let mut conn = PgConnection::establish(other.url()).unwrap();
    let mut count = || {
        sql_query("SELECT count(*) AS number FROM pg_database WHERE datname = $1")
            .bind::<Text, _>(&name)
            .get_result::<Number>(&mut conn)
            .unwrap()
            .number
    };

    let open = PgConnection::establish(watched.url()).unwrap();
    assert_eq!(count(), 1);
    drop(watched);
    assert_eq!(count(), 0);
    drop(open);
}

#[test]
fn two_connections_share_one_sqlite_file() {
    let file = fresh_file();
    let mut writer = SqliteConnection::establish(file.url()).unwrap();
    let mut reader = SqliteConnection::establish(file.path().to_str().unwrap()).unwrap();
    sql_query("CREATE TABLE orders (id integer)")
        .execute(&mut writer)
        .unwrap();
    sql_query("INSERT INTO orders VALUES (1)")
        .execute(&mut writer)
        .unwrap();
    let rows: Number = sql_query("SELECT count(*) AS number FROM orders")
        .get_result(&mut reader)
        .unwrap();
    assert_eq!(rows.number, 1);
}

/// Starts `throwaway-postgres` with a command that shows where a server is, and then waits for as long as it may.
fn start_server_of_another_process(url: &str) -> (Child, String) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_throwaway-postgres"))
        .args(["sh", "-c", &format!("echo {url}; exec cat")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(process.stdout.take().unwrap())
        .read_line(&mut url)
        .unwrap();
    (process, url.trim().to_owned())
}

#[test]
fn a_killed_process_leaves_neither_server_nor_folder() {
    if std::env::var_os(SERVER_URL_VARIABLE).is_some() {
        // The tests use a server that is not ours: no process starts one, and this machine may have no programs for it.
        return;
    }
    let (mut process, url) = start_server_of_another_process("{url}");
    let mut conn = PgConnection::establish(&url).unwrap();
    let data: Setting = sql_query("SELECT current_setting('data_directory') AS setting")
        .get_result(&mut conn)
        .unwrap();
    let data = PathBuf::from(data.setting);

    // SIGKILL: the process cannot clean up.
    process.kill().unwrap();
    process.wait().unwrap();

    // This answer comes when the server ends the session, so that nothing has to be slept for.
    sql_query("SELECT pg_sleep(60)")
        .execute(&mut conn)
        .unwrap_err();
    wait_until_gone(&data);
    assert!(PgConnection::establish(&url).is_err());
}

#[test]
fn a_killed_process_leaves_no_pgbouncer() {
    let (mut process, url) = start_server_of_another_process("{pgbouncer}");
    let mut conn = PgConnection::establish(&url).unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    sql_query("SELECT pg_sleep(60)")
        .execute(&mut conn)
        .unwrap_err();
    let start = Instant::now();
    while PgConnection::establish(&url).is_ok() {
        assert!(start.elapsed() < PATIENCE, "{url} is still there");
        std::thread::yield_now();
    }
}

/// How long a process may take that ends after the answer that a test waits for.
const PATIENCE: Duration = Duration::from_secs(30);

/// The folder goes last, a moment after the server; nobody tells when.
fn wait_until_gone(data: &Path) {
    let folder = data.parent().unwrap();
    let start = Instant::now();
    while folder.exists() {
        assert!(
            start.elapsed() < PATIENCE,
            "{} is still there",
            folder.display()
        );
        std::thread::yield_now();
    }
}

#[test]
fn a_command_gives_its_own_exit_code() {
    let status = Command::new(env!("CARGO_BIN_EXE_throwaway-postgres"))
        .args(["sh", "-c", "exit 7"])
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(7));
}

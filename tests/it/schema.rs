//! The three ways to the tables, and what `check_schema` sees.

use diesel::connection::SimpleConnection;
use diesel::migration::MigrationSource;
use diesel::{Connection, PgConnection, SqliteConnection};
use idem_diesel::migrations::{IdemMigrations, sql};
use idem_diesel::{Blocking, ErrorKind, IdempotentConnection, check_schema, ensure_schema};
use support::postgres::fresh_database;
use support::sqlite::fresh_file;

#[track_caller]
fn problem<C: IdempotentConnection<Flavor = Blocking>>(db: &mut C) -> String {
    match check_schema(db).unwrap_err().kind() {
        ErrorKind::SchemaWrong { problem } => problem.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_sql_can_be_taken_into_own_migrations() {
    let (file, database) = (fresh_file(), fresh_database());
    let mut sqlite = SqliteConnection::establish(file.url()).unwrap();
    let mut pg = PgConnection::establish(database.url()).unwrap();
    for script in sql::<diesel::sqlite::Sqlite>() {
        sqlite.batch_execute(script.up).unwrap();
    }
    for script in sql::<diesel::pg::Pg>() {
        pg.batch_execute(script.up).unwrap();
    }
    check_schema(&mut sqlite).unwrap();
    check_schema(&mut pg).unwrap();
    // An application that does so may call `ensure_schema` as well: it checks and leaves the tables alone.
    ensure_schema(&mut sqlite).unwrap();
    ensure_schema(&mut pg).unwrap();
    for script in sql::<diesel::sqlite::Sqlite>().iter().rev() {
        sqlite.batch_execute(script.down).unwrap();
    }
    for script in sql::<diesel::pg::Pg>().iter().rev() {
        pg.batch_execute(script.down).unwrap();
    }
    assert!(matches!(
        check_schema(&mut pg).unwrap_err().kind(),
        ErrorKind::TableMissing { .. }
    ));
    assert!(matches!(
        check_schema(&mut sqlite).unwrap_err().kind(),
        ErrorKind::TableMissing { .. }
    ));
}

#[test]
fn the_migration_source_runs_through_diesel() {
    let (file, database) = (fresh_file(), fresh_database());
    let mut sqlite = SqliteConnection::establish(file.url()).unwrap();
    let mut pg = PgConnection::establish(database.url()).unwrap();
    for migration in MigrationSource::<diesel::sqlite::Sqlite>::migrations(&IdemMigrations).unwrap()
    {
        migration.run(&mut sqlite).unwrap();
    }
    for migration in MigrationSource::<diesel::pg::Pg>::migrations(&IdemMigrations).unwrap() {
        migration.run(&mut pg).unwrap();
        // Diesel's versions of applications are digits.
        assert!(migration.name().version().to_string().starts_with("idem_"));
    }
    check_schema(&mut sqlite).unwrap();
    check_schema(&mut pg).unwrap();
}

#[test]
fn ensure_schema_can_be_raced() {
    let (file, database) = (fresh_file(), fresh_database());
    let (file, database) = (file.url(), database.url());
    let barrier = std::sync::Barrier::new(16);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut db = SqliteConnection::establish(file).unwrap();
                barrier.wait();
                ensure_schema(&mut db).unwrap();
            });
            scope.spawn(|| {
                let mut db = PgConnection::establish(database).unwrap();
                barrier.wait();
                ensure_schema(&mut db).unwrap();
            });
        }
    });
}

#[test]
fn a_lost_primary_key_is_an_error() {
    let database = fresh_database();
    let mut pg = PgConnection::establish(database.url()).unwrap();
    ensure_schema(&mut pg).unwrap();
    pg.batch_execute("ALTER TABLE api_idempotency DROP CONSTRAINT api_idempotency_pkey")
        .unwrap();
    let lacks =
        "the table api_idempotency lacks: primary key tenant_id, operation, idempotency_key";
    assert_eq!(problem(&mut pg), lacks);

    let file = fresh_file();
    let mut sqlite = SqliteConnection::establish(file.url()).unwrap();
    ensure_schema(&mut sqlite).unwrap();
    sqlite
        .batch_execute(
            "DROP VIEW api_idempotency_readable;
             CREATE TABLE copy AS SELECT * FROM api_idempotency; DROP TABLE api_idempotency;
             ALTER TABLE copy RENAME TO api_idempotency",
        )
        .unwrap();
    assert!(problem(&mut sqlite).contains("primary key tenant_id BINARY"));
}

#[test]
fn types_collations_checks_and_privileges_are_looked_at() {
    let database = fresh_database();
    let mut pg = PgConnection::establish(database.url()).unwrap();
    ensure_schema(&mut pg).unwrap();
    pg.batch_execute(
        "DROP VIEW api_idempotency_readable;
         ALTER TABLE api_idempotency ALTER COLUMN response_body TYPE jsonb USING NULL;
         ALTER TABLE api_idempotency ALTER COLUMN idempotency_key TYPE text COLLATE \"default\";
         ALTER TABLE api_idempotency DROP CONSTRAINT api_idempotency_state;
         CREATE ROLE idem_reader; GRANT SELECT ON api_idempotency TO idem_reader; SET ROLE idem_reader",
    )
    .unwrap();
    assert_eq!(
        problem(&mut pg),
        "the table api_idempotency lacks: idempotency_key text not null collate C; response_body bytea; \
         check api_idempotency_state; privilege INSERT; privilege UPDATE; privilege DELETE"
    );
    pg.batch_execute("RESET ROLE; DROP OWNED BY idem_reader; DROP ROLE idem_reader")
        .unwrap();
}

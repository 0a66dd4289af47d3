//! The three ways to the tables, and what `check_schema` sees.

use diesel::connection::SimpleConnection;
use diesel::migration::MigrationSource;
use diesel::{Connection, PgConnection, SqliteConnection};
use idem_diesel::migrations::{IdemMigrations, Script, sql};
use idem_diesel::{Blocking, Error, ErrorKind, IdempotentConnection, check_schema, ensure_schema};
use support::postgres::fresh_database;
use support::sqlite::fresh_file;

#[track_caller]
fn problem<C: IdempotentConnection<Flavor = Blocking>>(db: &mut C) -> String {
    match check_schema(db).unwrap_err().kind() {
        ErrorKind::SchemaWrong { problem } => problem.clone(),
        other => panic!("{other:?}"),
    }
}

const TABLES: [&str; 4] = [
    "api_idempotency",
    "processed_messages",
    "outbox_events",
    "outbox_deliveries",
];

#[track_caller]
fn missing<C: IdempotentConnection<Flavor = Blocking>>(
    db: &mut C,
    check: impl FnOnce(&mut C) -> Result<(), Error>,
) -> &'static str {
    match check(db).unwrap_err().kind() {
        ErrorKind::TableMissing { table } => table,
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
    assert_eq!(missing(&mut pg, check_schema), TABLES[0]);
    assert_eq!(missing(&mut sqlite, check_schema), TABLES[0]);
}

/// The journal of a database where `ensure_schema` of the first version has run.
const FIRST_VERSION: &str = "
    CREATE TABLE idem_schema_versions (version varchar(50) PRIMARY KEY);
    INSERT INTO idem_schema_versions (version) VALUES ('idem_0001_api_idempotency')";
const OLD_RECORD: &str = "
    INSERT INTO api_idempotency (tenant_id, operation, idempotency_key, request_hash, state, expires_at, forget_at)
    VALUES ('acme', 'orders.pay', 'k', '00', 'completed', '2999-01-01 00:00:00.000', '2999-01-01 00:00:00.000')";

/// What an older version made is upgraded, and what an application made is not.
#[track_caller]
fn check_upgrade<C>(upgraded: &mut C, own: &mut C, scripts: &[Script])
where
    C: IdempotentConnection<Flavor = Blocking> + SimpleConnection,
{
    let [first, second] = scripts else {
        panic!("another script needs to be looked at here")
    };
    upgraded.batch_execute(first.up).unwrap();
    upgraded.batch_execute(FIRST_VERSION).unwrap();
    upgraded.batch_execute(OLD_RECORD).unwrap();
    assert_eq!(missing(upgraded, check_schema), TABLES[1]);
    ensure_schema(upgraded).unwrap();
    ensure_schema(upgraded).unwrap();
    check_schema(upgraded).unwrap();
    // The record is still there.
    upgraded.batch_execute(OLD_RECORD).unwrap_err();

    own.batch_execute(first.up).unwrap();
    assert_eq!(missing(own, ensure_schema), TABLES[1]);
    assert_eq!(missing(own, ensure_schema), TABLES[1]);
    own.batch_execute(second.up).unwrap();
    ensure_schema(own).unwrap();
}

#[test]
fn what_an_older_version_made_is_upgraded_unless_it_is_the_applications() {
    let files = [fresh_file(), fresh_file()];
    let [mut upgraded, mut own] = files
        .each_ref()
        .map(|file| SqliteConnection::establish(file.url()).unwrap());
    check_upgrade(&mut upgraded, &mut own, sql::<diesel::sqlite::Sqlite>());

    let databases = [fresh_database(), fresh_database()];
    let [mut upgraded, mut own] = databases
        .each_ref()
        .map(|database| PgConnection::establish(database.url()).unwrap());
    check_upgrade(&mut upgraded, &mut own, sql::<diesel::pg::Pg>());
}

#[test]
fn the_table_that_is_missing_is_named() {
    for table in TABLES {
        let drop_table =
            format!("DROP VIEW IF EXISTS api_idempotency_readable; DROP TABLE {table}");
        let database = fresh_database();
        let mut pg = PgConnection::establish(database.url()).unwrap();
        ensure_schema(&mut pg).unwrap();
        pg.batch_execute(&drop_table).unwrap();
        assert_eq!(missing(&mut pg, check_schema), table);
        assert_eq!(missing(&mut pg, ensure_schema), table);

        let file = fresh_file();
        let mut sqlite = SqliteConnection::establish(file.url()).unwrap();
        ensure_schema(&mut sqlite).unwrap();
        sqlite.batch_execute(&drop_table).unwrap();
        assert_eq!(missing(&mut sqlite, check_schema), table);
        assert_eq!(missing(&mut sqlite, ensure_schema), table);
    }
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
    for (table, key) in TABLES.into_iter().zip([
        "tenant_id, operation, idempotency_key",
        "subscriber_id, message_id",
        "tenant_id, id",
        "tenant_id, event_id",
    ]) {
        let database = fresh_database();
        let mut pg = PgConnection::establish(database.url()).unwrap();
        ensure_schema(&mut pg).unwrap();
        pg.batch_execute(&format!("ALTER TABLE {table} DROP CONSTRAINT {table}_pkey"))
            .unwrap();
        let lacks = format!("the table {table} lacks: primary key {key}");
        assert_eq!(problem(&mut pg), lacks);

        let file = fresh_file();
        let mut sqlite = SqliteConnection::establish(file.url()).unwrap();
        ensure_schema(&mut sqlite).unwrap();
        sqlite
            .batch_execute(&format!(
                "DROP VIEW api_idempotency_readable;
                 CREATE TABLE copy AS SELECT * FROM {table}; DROP TABLE {table};
                 ALTER TABLE copy RENAME TO {table}",
            ))
            .unwrap();
        let problem = problem(&mut sqlite);
        let key = format!("{} BINARY", key.replace(", ", " BINARY, "));
        let lacks = if table == "outbox_deliveries" {
            format!("rowid position; unique {key}; unique index outbox_deliveries_unique")
        } else {
            format!("primary key {key}")
        };
        assert!(problem.contains(&lacks), "{problem}");
        assert!(
            problem.starts_with(&format!("the table {table} lacks: ")),
            "{problem}"
        );
        assert_eq!(problem.matches("the table").count(), 1, "{problem}");
    }
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
         ALTER TABLE processed_messages ALTER COLUMN message_id TYPE text COLLATE \"default\";
         ALTER TABLE processed_messages DROP CONSTRAINT processed_messages_state;
         ALTER TABLE outbox_events ALTER COLUMN payload TYPE jsonb USING NULL;
         ALTER TABLE outbox_deliveries DROP CONSTRAINT outbox_deliveries_state;
         ALTER TABLE outbox_deliveries ALTER COLUMN position DROP IDENTITY;
         ALTER TABLE outbox_deliveries ALTER COLUMN attempts DROP NOT NULL;
         DROP INDEX outbox_deliveries_unique;
         CREATE UNIQUE INDEX outbox_deliveries_unique ON outbox_deliveries (tenant_id, type, unique_key);
         CREATE ROLE idem_reader; GRANT SELECT ON api_idempotency, outbox_events TO idem_reader;
         GRANT SELECT, INSERT, UPDATE ON processed_messages, outbox_deliveries TO idem_reader; SET ROLE idem_reader",
    )
    .unwrap();
    let problem = problem(&mut pg);
    let tables: Vec<&str> = problem.split("; the table ").collect();
    assert_eq!(
        tables,
        [
            "the table api_idempotency lacks: idempotency_key text not null collate C; response_body bytea; \
             check api_idempotency_state; privilege INSERT; privilege UPDATE; privilege DELETE",
            "processed_messages lacks: message_id text not null collate C; check processed_messages_state; privilege DELETE",
            "outbox_events lacks: payload text; privilege INSERT; privilege DELETE",
            "outbox_deliveries lacks: position bigint not null identity; attempts integer not null; \
             unique index outbox_deliveries_unique on tenant_id, type, unique_key \
             where ((state <> 'delivered'::text) AND (unique_key IS NOT NULL)); \
             check outbox_deliveries_state; privilege DELETE",
        ]
    );
    pg.batch_execute("RESET ROLE; DROP OWNED BY idem_reader; DROP ROLE idem_reader")
        .unwrap();
}

/// SQLite changes a table by making it anew.
#[test]
fn types_collations_and_checks_are_looked_at_on_sqlite() {
    let [first, second] = sql::<diesel::sqlite::Sqlite>() else {
        panic!("another script needs to be looked at here")
    };
    for (from, to, lacks) in [
        (
            "message_id    TEXT NOT NULL,",
            "message_id TEXT NOT NULL COLLATE NOCASE,",
            "the table processed_messages lacks: primary key subscriber_id BINARY, message_id BINARY",
        ),
        (
            "CONSTRAINT processed_messages_state CHECK",
            "CHECK",
            "the table processed_messages lacks: check processed_messages_state",
        ),
        (
            "payload         TEXT,",
            "payload BLOB,",
            "the table outbox_events lacks: payload text",
        ),
        (
            "position      INTEGER PRIMARY KEY AUTOINCREMENT,",
            "position INTEGER UNIQUE,",
            "the table outbox_deliveries lacks: rowid position",
        ),
        (
            "UNIQUE (tenant_id, event_id)",
            "UNIQUE (event_id)",
            "the table outbox_deliveries lacks: unique tenant_id BINARY, event_id BINARY",
        ),
        (
            "\n WHERE state <> 'delivered' AND unique_key IS NOT NULL;",
            ";",
            "the table outbox_deliveries lacks: unique index outbox_deliveries_unique on \
             tenant_id BINARY, type BINARY, unique_key BINARY of some",
        ),
        (
            "CREATE UNIQUE INDEX",
            "CREATE INDEX",
            "the table outbox_deliveries lacks: unique index outbox_deliveries_unique on \
             tenant_id BINARY, type BINARY, unique_key BINARY of some",
        ),
    ] {
        let file = fresh_file();
        let mut sqlite = SqliteConnection::establish(file.url()).unwrap();
        let script = second.up.replacen(from, to, 1);
        assert_ne!(script, second.up, "{from}");
        sqlite.batch_execute(first.up).unwrap();
        sqlite.batch_execute(&script).unwrap();
        assert_eq!(problem(&mut sqlite), lacks);
    }
}

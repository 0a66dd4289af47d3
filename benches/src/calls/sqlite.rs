//! On `SqliteConnection`, in a file on a disk, in write-ahead mode.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Text};
use idem_diesel::{Consumed, Error, Intent, MessageId, Outcome, consumer, idempotent};
use tempfile::TempDir;

use crate::shop::{PRICE_CENTS, PlaceOrder, Placed, Work, accounts, orders};

/// What is done for one piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// The two statements in a transaction.
    Bare,
    /// The handler, under a new key.
    First,
    /// The consumer, with a new message.
    Consume,
}

/// When a commit waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Synchronous {
    /// Each one does.
    Full,
    /// Only a checkpoint does.
    Normal,
}

/// The shop in a file.
pub(crate) struct SqliteShop {
    db: SqliteConnection,
    _folder: TempDir,
}

impl SqliteShop {
    pub(crate) fn create(parent: &Path, synchronous: Synchronous) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("idem-benches-")
            .tempdir_in(parent)?;
        let file = folder.path().join("shop.sqlite3");
        let file = file.to_str().context("the path of the file is not UTF-8")?;
        let mut db = SqliteConnection::establish(file)?;
        let mode: PragmaText = sql_query("PRAGMA journal_mode = WAL").get_result(&mut db)?;
        ensure!(mode.journal_mode == "wal", "no write-ahead mode");
        // Both sides need one as soon as there are two writers; five seconds is also how long a call of the library waits.
        db.batch_execute("PRAGMA busy_timeout = 5000")?;
        db.batch_execute(match synchronous {
            Synchronous::Full => "PRAGMA synchronous = FULL",
            Synchronous::Normal => "PRAGMA synchronous = NORMAL",
        })?;
        db.batch_execute(
            "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance_cents BIGINT NOT NULL);
             CREATE TABLE orders (
                 id           INTEGER PRIMARY KEY,
                 account_id   BIGINT NOT NULL,
                 amount_cents BIGINT NOT NULL,
                 currency     TEXT NOT NULL
             );
             WITH RECURSIVE ids(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < 100)
             INSERT INTO accounts SELECT id, 0 FROM ids",
        )?;
        idem_diesel::ensure_schema(&mut db)?;
        Ok(Self {
            db,
            _folder: folder,
        })
    }

    /// Works off the list in empty tables, and looks at what it has left. Gives its time.
    pub(crate) fn run(&mut self, call: Call, list: &[Work]) -> Result<Duration> {
        self.db.batch_execute(
            "DELETE FROM orders; DELETE FROM api_idempotency; DELETE FROM processed_messages;
             UPDATE accounts SET balance_cents = 0",
        )?;
        self.db.batch_execute("PRAGMA wal_checkpoint(TRUNCATE)")?;
        let started_at = Instant::now();
        for work in list {
            call.run(&mut self.db, work)?;
        }
        let took = started_at.elapsed();
        self.expect(call, i64::try_from(list.len())?)?;
        Ok(took)
    }

    fn expect(&mut self, call: Call, calls: i64) -> Result<()> {
        let (records, messages) = match call {
            Call::Bare => (0, 0),
            Call::First => (calls, 0),
            Call::Consume => (0, calls),
        };
        let expected = Effects {
            orders: calls,
            records,
            messages,
            spent_cents: calls * PRICE_CENTS,
        };
        let found: Effects = sql_query(
            "SELECT (SELECT count(*) FROM orders) AS orders,
                    (SELECT count(*) FROM api_idempotency WHERE state = 'completed') AS records,
                    (SELECT count(*) FROM processed_messages WHERE state = 'processed') AS messages,
                    (SELECT -sum(balance_cents) FROM accounts) AS spent_cents",
        )
        .get_result(&mut self.db)?;
        ensure!(
            found == expected,
            "the calls left {found:?} and not {expected:?}"
        );
        Ok(())
    }
}

/// The version of SQLite that is compiled in.
pub(crate) fn version() -> Result<String> {
    let mut db = SqliteConnection::establish(":memory:")?;
    let version: Version = sql_query("SELECT sqlite_version() AS version").get_result(&mut db)?;
    Ok(version.version)
}

impl Call {
    fn run(self, db: &mut SqliteConnection, work: &Work) -> Result<()> {
        match self {
            // A transaction that will write begins as one, because a deferred one can fail when it turns to writing.
            Self::Bare => {
                db.immediate_transaction(|db| place(db, &work.cmd))?;
            }
            Self::First => {
                let outcome = place_once(db, &work.intent, &work.cmd)?;
                ensure!(!outcome.is_replayed(), "a first call was a replay");
            }
            Self::Consume => {
                let consumed = on_order(db, &work.message_id, &work.cmd)?;
                ensure!(!consumed.is_duplicate(), "a new message was a duplicate");
            }
        }
        Ok(())
    }
}

fn place(db: &mut SqliteConnection, cmd: &PlaceOrder) -> QueryResult<Placed> {
    let balance_cents = diesel::update(accounts::table.find(cmd.account_id))
        .set(accounts::balance_cents.eq(accounts::balance_cents - cmd.amount_cents))
        .returning(accounts::balance_cents)
        .get_result(db)?;
    let order_id = diesel::insert_into(orders::table)
        .values((
            orders::account_id.eq(cmd.account_id),
            orders::amount_cents.eq(cmd.amount_cents),
            orders::currency.eq(&cmd.currency),
        ))
        .returning(orders::id)
        .get_result(db)?;
    Ok(Placed {
        order_id,
        balance_cents,
    })
}

#[idempotent(scope = "orders.place", ttl = "48h")]
fn place_once(
    db: &mut SqliteConnection,
    intent: &Intent,
    cmd: &PlaceOrder,
) -> Result<Outcome<Placed>, Error> {
    Ok(place(db, cmd)?.into())
}

#[consumer(subscriber = "orders", retention = "7d", redelivery = "24h")]
fn on_order(
    db: &mut SqliteConnection,
    id: &MessageId,
    cmd: &PlaceOrder,
) -> Result<Consumed<Placed>, Error> {
    Ok(place(db, cmd)?.into())
}

#[derive(Debug, PartialEq, Eq, QueryableByName)]
struct Effects {
    #[diesel(sql_type = BigInt)]
    orders: i64,
    #[diesel(sql_type = BigInt)]
    records: i64,
    #[diesel(sql_type = BigInt)]
    messages: i64,
    #[diesel(sql_type = BigInt)]
    spent_cents: i64,
}

#[derive(QueryableByName)]
struct PragmaText {
    #[diesel(sql_type = Text)]
    journal_mode: String,
}

#[derive(QueryableByName)]
struct Version {
    #[diesel(sql_type = Text)]
    version: String,
}

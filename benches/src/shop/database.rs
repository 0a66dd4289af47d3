//! The shop's PostgreSQL database: its tables, their fresh state, and what calls have left in them.

use std::ops::RangeInclusive;

use anyhow::{Context, Result, ensure};
use diesel::connection::SimpleConnection;
use diesel::sql_types::BigInt;
use diesel::{Connection, PgConnection, QueryableByName, RunQueryDsl, sql_query};
use support::postgres::{Database, Server};

use super::{ACCOUNTS_OF_ONE, CLIENTS, PLACE_ORDER, PRICE_CENTS, Work};

/// The second table is the one of the article: no index but its key, and `jsonb`.
const TABLES: &str = "
    CREATE TABLE accounts (id bigint PRIMARY KEY, balance_cents bigint NOT NULL);
    CREATE TABLE orders (
        id           bigserial PRIMARY KEY,
        account_id   bigint NOT NULL,
        amount_cents bigint NOT NULL,
        currency     text NOT NULL
    );
    CREATE TABLE article_idempotency (
        tenant_id       text NOT NULL,
        operation       text NOT NULL,
        idempotency_key text NOT NULL,
        request_hash    text NOT NULL,
        state           text NOT NULL,
        status_code     integer,
        response_body   jsonb,
        resource_type   text,
        resource_id     text,
        created_at      timestamptz NOT NULL DEFAULT now(),
        expires_at      timestamptz NOT NULL,
        PRIMARY KEY (tenant_id, operation, idempotency_key)
    )";

/// A round is short: a vacuum in it would hit one side alone.
const WITHOUT_AUTOVACUUM: &str = "
    ALTER TABLE accounts SET (autovacuum_enabled = off);
    ALTER TABLE orders SET (autovacuum_enabled = off);
    ALTER TABLE article_idempotency SET (autovacuum_enabled = off);
    ALTER TABLE api_idempotency SET (autovacuum_enabled = off);
    ALTER TABLE processed_messages SET (autovacuum_enabled = off);
    ALTER TABLE outbox_events SET (autovacuum_enabled = off);
    ALTER TABLE outbox_deliveries SET (autovacuum_enabled = off)";

/// The shop's database, and a connection that is not measured.
pub(crate) struct ShopDatabase {
    pub(crate) admin: PgConnection,
    database: Database,
}

/// What is in the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, QueryableByName)]
pub(crate) struct Effects {
    #[diesel(sql_type = BigInt)]
    pub(crate) orders: i64,
    /// Completed records of the library.
    #[diesel(sql_type = BigInt)]
    pub(crate) records: i64,
    /// Completed records of the article's flow.
    #[diesel(sql_type = BigInt)]
    pub(crate) article_records: i64,
    /// Processed messages.
    #[diesel(sql_type = BigInt)]
    pub(crate) messages: i64,
    /// What all accounts have spent.
    #[diesel(sql_type = BigInt)]
    pub(crate) spent_cents: i64,
}

impl Effects {
    /// What is left by so many calls of the two statements alone.
    pub(crate) fn of_orders(orders: u32) -> Self {
        Self {
            orders: orders.into(),
            spent_cents: i64::from(orders) * PRICE_CENTS,
            ..Self::default()
        }
    }
}

impl ShopDatabase {
    /// Makes the tables, in a database of their own.
    pub(crate) fn create(server: &Server) -> Result<Self> {
        let database = server.fresh_database().map_err(anyhow::Error::msg)?;
        let mut admin = PgConnection::establish(database.url())?;
        admin.batch_execute(TABLES)?;
        idem_diesel::ensure_schema(&mut admin)?;
        admin.batch_execute(WITHOUT_AUTOVACUUM)?;
        let mut shop = Self { admin, database };
        shop.reset()?;
        Ok(shop)
    }

    pub(crate) fn url(&self) -> &str {
        self.database.url()
    }

    /// Every table as it is before the first call, and nothing left to write for the server.
    pub(crate) fn reset(&mut self) -> Result<()> {
        self.admin
            .batch_execute("TRUNCATE api_idempotency, article_idempotency, processed_messages")?;
        self.reset_business()
    }

    /// The same for the business tables alone.
    pub(crate) fn reset_business(&mut self) -> Result<()> {
        self.admin.batch_execute(&format!(
            "TRUNCATE accounts, orders RESTART IDENTITY;
             INSERT INTO accounts SELECT id, 0 FROM generate_series(1, {}) AS id",
            CLIENTS * ACCOUNTS_OF_ONE
        ))?;
        self.admin.batch_execute("VACUUM ANALYZE accounts")?;
        Ok(())
    }

    /// Puts records into the table as calls have left them, under random keys. They ended at `ended_at`, an expression that may
    /// name `number`.
    pub(crate) fn store_keys(
        &mut self,
        numbers: RangeInclusive<u32>,
        ended_at: &str,
    ) -> Result<()> {
        let Work { intent, .. } = Work::new(0, 0)?;
        self.admin.batch_execute(&format!(
            "INSERT INTO api_idempotency (tenant_id, operation, idempotency_key, request_hash, state, response_body, codec,
                    created_at, completed_at, expires_at, forget_at)
             SELECT '{tenant}', '{PLACE_ORDER}', CAST(gen_random_uuid() AS text),
                    '01' || encode(sha256(CAST(CAST(number AS text) AS bytea)), 'hex'), 'completed',
                    CAST('{{\"order_id\":' || number || ',\"balance_cents\":-5}}' AS bytea), 'json',
                    ended_at, ended_at, ended_at + interval '48 hours', ended_at + interval '96 hours'
               FROM generate_series({first}, {last}) AS number, LATERAL (SELECT {ended_at} AS ended_at) AS times",
            tenant = intent.tenant().as_str(),
            first = numbers.start(),
            last = numbers.end(),
        ))?;
        Ok(())
    }

    /// Tables as they are on a server that has run for a while, and nothing left to write.
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.vacuum()?;
        self.checkpoint()
    }

    /// Reads every record once, too.
    pub(crate) fn vacuum(&mut self) -> Result<()> {
        self.admin
            .batch_execute("VACUUM ANALYZE api_idempotency, processed_messages")?;
        Ok(())
    }

    pub(crate) fn checkpoint(&mut self) -> Result<()> {
        self.admin.batch_execute("CHECKPOINT")?;
        Ok(())
    }

    /// What calls have left.
    pub(crate) fn effects(&mut self) -> Result<Effects> {
        sql_query(
            "SELECT (SELECT count(*) FROM orders) AS orders,
                    (SELECT count(*) FROM api_idempotency WHERE state = 'completed') AS records,
                    (SELECT count(*) FROM article_idempotency WHERE state = 'completed') AS article_records,
                    (SELECT count(*) FROM processed_messages WHERE state = 'processed') AS messages,
                    (SELECT CAST(-sum(balance_cents) AS bigint) FROM accounts) AS spent_cents",
        )
        .get_result(&mut self.admin)
        .context("the tables of the shop")
    }

    /// Fails if the tables are not as the calls must have left them: a figure of something else is worse than none.
    pub(crate) fn expect(&mut self, expected: Effects) -> Result<()> {
        let found = self.effects()?;
        ensure!(
            found == expected,
            "the calls left {found:?} and not {expected:?}"
        );
        Ok(())
    }

    /// The same for the business tables alone, where counting records takes long.
    pub(crate) fn expect_orders(&mut self, orders: u32) -> Result<()> {
        let found = self.number("SELECT count(*) AS number FROM orders")?;
        ensure!(
            found == i64::from(orders),
            "the calls left {found} orders and not {orders}"
        );
        Ok(())
    }

    /// How many bytes of its log the server has written so far.
    pub(crate) fn wal_bytes(&mut self) -> Result<i64> {
        self.number("SELECT CAST(pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS bigint) AS number")
    }

    pub(super) fn number(&mut self, sql: &str) -> Result<i64> {
        let number: Number = sql_query(sql).get_result(&mut self.admin)?;
        Ok(number.number)
    }
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

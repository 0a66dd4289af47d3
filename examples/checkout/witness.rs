//! A second connection, which sees only what was committed.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use serde::Serialize;

use super::Db;
use crate::check::check;
use crate::shop::{Decline, Order, OrderStatus, accounts, orders, payments};

// What the library keeps of each key, as far as the scenes look at it.
diesel::table! {
    api_idempotency (tenant_id, operation, idempotency_key) {
        tenant_id -> Text,
        operation -> Text,
        idempotency_key -> Text,
        state -> Text,
        response_body -> Nullable<Binary>,
        created_at -> Timestamp,
        expires_at -> Timestamp,
    }
}

pub(crate) struct Witness(Db);

impl Witness {
    pub(crate) fn new(db: Db) -> Self {
        Self(db)
    }

    /// Checks how many orders an account has.
    pub(crate) async fn sees_orders(&mut self, account_id: i64, count: i64) -> anyhow::Result<()> {
        let orders = orders::table.filter(orders::account_id.eq(account_id));
        let found: i64 = orders.count().get_result(&mut self.0).await?;
        check("orders in the table", found, count)
    }

    /// Checks an order in its three tables. Payments and refunds both count.
    pub(crate) async fn sees_order(
        &mut self,
        order: &Order,
        status: OrderStatus,
        payments: i64,
        balance_cents: i64,
    ) -> anyhow::Result<()> {
        let db = &mut self.0;
        let row = orders::table.find(order.id);
        let found: OrderStatus = row.select(orders::status).get_result(db).await?;
        check("status in the table", found, status)?;

        let rows = payments::table.filter(payments::order_id.eq(order.id));
        let found: i64 = rows.count().get_result(db).await?;
        check("payments in the table", found, payments)?;

        let row = accounts::table.find(order.account_id);
        let found: i64 = row.select(accounts::balance_cents).get_result(db).await?;
        check("balance in the table", found, balance_cents)
    }

    /// Checks that a key has this answer, byte for byte.
    pub(crate) async fn sees_answer(
        &mut self,
        key: &str,
        answer: &impl Serialize,
    ) -> anyhow::Result<()> {
        let expected = ("completed".to_owned(), serde_json::to_string(answer)?);
        check(
            "record in the table",
            self.record(key).await?,
            Some(expected),
        )
    }

    /// Checks that a key was declined for good with these bytes.
    pub(crate) async fn sees_decline(
        &mut self,
        key: &str,
        decline: &Decline,
    ) -> anyhow::Result<()> {
        let expected = ("failed".to_owned(), serde_json::to_string(decline)?);
        check(
            "record in the table",
            self.record(key).await?,
            Some(expected),
        )
    }

    /// Checks that a key is free.
    pub(crate) async fn sees_no_record(&mut self, key: &str) -> anyhow::Result<()> {
        check("record in the table", self.record(key).await?, None)
    }

    /// How the call of a key ended, and the bytes of its answer.
    async fn record(&mut self, key: &str) -> anyhow::Result<Option<(String, String)>> {
        let record: Option<(String, Option<Vec<u8>>)> = api_idempotency::table
            .filter(api_idempotency::idempotency_key.eq(key))
            .select((api_idempotency::state, api_idempotency::response_body))
            .get_result(&mut self.0)
            .await
            .optional()?;
        let Some((state, body)) = record else {
            return Ok(None);
        };
        Ok(Some((state, String::from_utf8(body.unwrap_or_default())?)))
    }

    // No witnessing, but what a scene needs to be there first.

    pub(crate) async fn open_account(&mut self, balance_cents: i64) -> QueryResult<i64> {
        diesel::insert_into(accounts::table)
            .values(accounts::balance_cents.eq(balance_cents))
            .returning(accounts::id)
            .get_result(&mut self.0)
            .await
    }

    /// Makes the record of a key one that expired as soon as it was made.
    pub(crate) async fn expire(&mut self, key: &str) -> anyhow::Result<()> {
        let record = api_idempotency::table.filter(api_idempotency::idempotency_key.eq(key));
        let aged = diesel::update(record)
            .set(api_idempotency::expires_at.eq(api_idempotency::created_at))
            .execute(&mut self.0)
            .await?;
        check("records that were aged", aged, 1)
    }
}

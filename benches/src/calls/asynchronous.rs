//! On `AsyncPgConnection`.

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use idem_diesel::{
    Consumed, Error, Intent, MessageId, Outcome, Policy, consumer, idempotent, outbox,
};
use sha2::{Digest, Sha256};

use crate::shop::database::Effects;
use crate::shop::{
    OrderPlaced, PLACE_ORDER, PlaceOrder, Placed, SUBSCRIBER, Work, accounts, api_idempotency,
    article_idempotency, orders, processed_messages,
};

/// What a client does for one piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// The two statements in a transaction.
    Bare,
    /// The handler, under a new key.
    First,
    /// The flow of the article, written by hand, under a new key.
    Article,
    /// The handler, under a key that has an answer.
    Replay,
    /// The same with [`READ_FIRST`].
    ReplayReadFirst,
    /// The row of such a key, by its primary key.
    Select,
    /// The consumer, with a new message.
    Consume,
    /// The consumer, with a message that was processed.
    Duplicate,
    /// The row of such a message, by its primary key.
    SelectMessage,
    /// The handler, under a new key, and it publishes an event.
    Publish,
    /// A transaction that does nothing but publish an event.
    PublishAlone,
    /// One statement that commits by itself: a round trip, and on a durable server a wait for the disk.
    Write,
}

impl Call {
    pub(crate) async fn run(self, db: &mut AsyncPgConnection, work: &Work) -> Result<()> {
        match self {
            Self::Bare => {
                db.transaction(async |db| place(db, &work.cmd).await)
                    .await?;
            }
            Self::First => {
                let outcome = place_once(db, &work.intent, &work.cmd).await?;
                ensure!(!outcome.is_replayed(), "a first call was a replay");
            }
            Self::Article => {
                let is_first = db
                    .transaction(async |db| place_as_the_article_does(db, work).await)
                    .await?;
                ensure!(is_first, "a first call was a replay");
            }
            Self::Replay => {
                let outcome = place_once(db, &work.intent, &work.cmd).await?;
                ensure!(outcome.is_replayed(), "a replay was executed");
            }
            Self::ReplayReadFirst => {
                let outcome = place_once_read_first(db, &work.intent, &work.cmd).await?;
                ensure!(outcome.is_replayed(), "a replay was executed");
            }
            Self::Select => select(db, &work.intent).await?,
            Self::Consume => {
                let consumed = on_order(db, &work.message_id, &work.cmd).await?;
                ensure!(!consumed.is_duplicate(), "a new message was a duplicate");
            }
            Self::Duplicate => {
                let consumed = on_order(db, &work.message_id, &work.cmd).await?;
                ensure!(consumed.is_duplicate(), "a duplicate was processed");
            }
            Self::SelectMessage => select_message(db, &work.message_id).await?,
            Self::Publish => {
                let outcome = place_and_publish(db, &work.intent, &work.cmd).await?;
                ensure!(!outcome.is_replayed(), "a first call was a replay");
            }
            Self::PublishAlone => {
                let event = placed(&work.cmd, 0);
                db.transaction(async |db| outbox::publish(db, &event).await)
                    .await?;
            }
            Self::Write => write(db, &work.cmd).await?,
        }
        Ok(())
    }

    /// What so many calls leave in empty tables, or beside the rows that replays need.
    pub(crate) fn effects(self, calls: u32) -> Effects {
        let orders = Effects::of_orders(calls);
        match self {
            Self::Bare => orders,
            Self::First | Self::Replay | Self::ReplayReadFirst | Self::Select | Self::Publish => {
                Effects {
                    records: calls.into(),
                    ..orders
                }
            }
            Self::Consume | Self::Duplicate | Self::SelectMessage => Effects {
                messages: calls.into(),
                ..orders
            },
            Self::PublishAlone => Effects::default(),
            Self::Article => Effects {
                article_records: calls.into(),
                ..orders
            },
            Self::Write => Effects {
                orders: 0,
                ..orders
            },
        }
    }
}

async fn place(db: &mut AsyncPgConnection, cmd: &PlaceOrder) -> QueryResult<Placed> {
    let balance_cents = diesel::update(accounts::table.find(cmd.account_id))
        .set(accounts::balance_cents.eq(accounts::balance_cents - cmd.amount_cents))
        .returning(accounts::balance_cents)
        .get_result(db)
        .await?;
    let order_id = diesel::insert_into(orders::table)
        .values((
            orders::account_id.eq(cmd.account_id),
            orders::amount_cents.eq(cmd.amount_cents),
            orders::currency.eq(&cmd.currency),
        ))
        .returning(orders::id)
        .get_result(db)
        .await?;
    Ok(Placed {
        order_id,
        balance_cents,
    })
}

#[idempotent(scope = "orders.place", ttl = "48h")]
async fn place_once(
    db: &mut AsyncPgConnection,
    intent: &Intent,
    cmd: &PlaceOrder,
) -> Result<Outcome<Placed>, Error> {
    Ok(place(db, cmd).await?.into())
}

/// Looks for a record before it opens a transaction.
const READ_FIRST: Policy = Policy::new().read_first();

/// The same operation, so that it replays what the other has stored.
#[idempotent(scope = "orders.place", ttl = "48h", policy = READ_FIRST)]
async fn place_once_read_first(
    db: &mut AsyncPgConnection,
    intent: &Intent,
    cmd: &PlaceOrder,
) -> Result<Outcome<Placed>, Error> {
    Ok(place(db, cmd).await?.into())
}

#[consumer(subscriber = "orders", retention = "7d", redelivery = "24h")]
async fn on_order(
    db: &mut AsyncPgConnection,
    id: &MessageId,
    cmd: &PlaceOrder,
) -> Result<Consumed<Placed>, Error> {
    Ok(place(db, cmd).await?.into())
}

#[idempotent(scope = "orders.place_and_publish", ttl = "48h")]
async fn place_and_publish(
    db: &mut AsyncPgConnection,
    intent: &Intent,
    cmd: &PlaceOrder,
) -> Result<Outcome<Placed>, Error> {
    let answer = place(db, cmd).await?;
    outbox::publish(db, &placed(cmd, answer.order_id)).await?;
    Ok(answer.into())
}

fn placed(cmd: &PlaceOrder, order_id: i64) -> OrderPlaced {
    OrderPlaced {
        account_id: cmd.account_id,
        order_id,
        amount_cents: cmd.amount_cents,
    }
}

/// Insert the key, select it for update, compare, work, update. Gives whether the work was done.
async fn place_as_the_article_does(db: &mut AsyncPgConnection, work: &Work) -> Result<bool> {
    use article_idempotency as records;

    const RETENTION: TimeDelta = TimeDelta::hours(48);
    let (tenant, key) = (work.intent.tenant().as_str(), work.intent.key().as_str());
    let request_hash = hexadecimal(&Sha256::digest(serde_json::to_vec(&work.cmd)?))?;
    diesel::insert_into(records::table)
        .values((
            records::tenant_id.eq(tenant),
            records::operation.eq(PLACE_ORDER),
            records::idempotency_key.eq(key),
            records::request_hash.eq(&request_hash),
            records::state.eq("pending"),
            records::expires_at.eq(Utc::now() + RETENTION),
        ))
        .on_conflict_do_nothing()
        .execute(db)
        .await?;
    let (stored_hash, state, answer): (String, String, Option<serde_json::Value>) = records::table
        .find((tenant, PLACE_ORDER, key))
        .select((
            records::request_hash,
            records::state,
            records::response_body,
        ))
        .for_update()
        .get_result(db)
        .await?;
    ensure!(stored_hash == request_hash, "the key has another request");
    if state == "completed" {
        serde_json::from_value::<Placed>(answer.unwrap_or_default())?;
        return Ok(false);
    }
    let placed = place(db, &work.cmd).await?;
    diesel::update(records::table.find((tenant, PLACE_ORDER, key)))
        .set((
            records::state.eq("completed"),
            records::response_body.eq(serde_json::to_value(&placed)?),
        ))
        .execute(db)
        .await?;
    Ok(true)
}

fn hexadecimal(bytes: &[u8]) -> Result<String> {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}")?;
    }
    Ok(text)
}

/// Every column that a replay decodes.
async fn select(db: &mut AsyncPgConnection, intent: &Intent) -> Result<()> {
    use api_idempotency as records;

    type Row = (
        String,
        String,
        i32,
        Option<String>,
        Option<DateTime<Utc>>,
        DateTime<Utc>,
        Option<String>,
        Option<Vec<u8>>,
    );
    let key = (intent.tenant().as_str(), PLACE_ORDER, intent.key().as_str());
    let (_, state, .., answer): Row = records::table
        .find(key)
        .select((
            records::request_hash,
            records::state,
            records::attempt,
            records::owner,
            records::lease_expires_at,
            records::expires_at,
            records::codec,
            records::response_body,
        ))
        .get_result(db)
        .await?;
    ensure!(
        state == "completed" && answer.is_some(),
        "the row that was read has no answer"
    );
    Ok(())
}

/// Every column that a duplicate decodes.
async fn select_message(db: &mut AsyncPgConnection, id: &MessageId) -> Result<()> {
    use processed_messages as messages;

    let (hash, state): (Option<String>, String) = messages::table
        .find((SUBSCRIBER, id.as_str()))
        .select((messages::request_hash, messages::state))
        .get_result(db)
        .await?;
    ensure!(
        state == "processed" && hash.is_some(),
        "the message that was read is not processed"
    );
    Ok(())
}

async fn write(db: &mut AsyncPgConnection, cmd: &PlaceOrder) -> Result<()> {
    let changed = diesel::update(accounts::table.find(cmd.account_id))
        .set(accounts::balance_cents.eq(accounts::balance_cents - cmd.amount_cents))
        .execute(db)
        .await?;
    ensure!(changed == 1, "the account is missing");
    Ok(())
}

//! Many messages in one transaction.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use idem_core::{ErrorKind, MessageId, RequestDigest, RequestHash, Subscription};

use super::Consumption;
use super::claim::{
    Step, began, claim_within, in_flight, is_conflict, keep, one, open, opening, state,
};
use crate::after_commit::AfterCommit;
use crate::connection::{Flavor, IdempotentConnection, Run};
use crate::driver::{Driver, Opening};
use crate::error::Error;
use crate::fault::{Point, reach};
use crate::guard::{ClaimedMessage, Running, patience};
use crate::migrations::explain;
use crate::running::Place;
use crate::store::{MarkAll, MessageKey, NoMark, Retake, SeenAll};
use crate::transaction::Transaction;

/// How often a batch starts anew after a conflict with a concurrent transaction.
const MAX_ROUNDS: u32 = 32;

/// What is to be done about one message of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchItem {
    /// It is new, and marked: do its work in the batch's transaction.
    New,
    /// It was processed before, or stands in the batch a second time.
    Duplicate,
    /// Another message was processed under its id.
    Mismatch,
    /// It was given up.
    Parked,
}

/// Marked messages and their open transaction. Dropping it rolls back, and all of them are as new.
#[must_use = "a batch that is dropped is rolled back"]
pub struct Batch<'c, C: IdempotentConnection> {
    items: Vec<BatchItem>,
    consumption: Consumption<'c, C>,
}

impl<'c, C: IdempotentConnection> Batch<'c, C> {
    /// What is to be done about each message, in the order in which they were given.
    pub fn items(&self) -> &[BatchItem] {
        &self.items
    }

    /// The transaction they share: do the work on its connection, then [`finish`](Consumption::finish).
    pub fn into_consumption(self) -> Consumption<'c, C> {
        self.consumption
    }
}

/// Marks many messages at once, in one statement and in the order of their ids, so that two batches never wait for each other in a circle.
///
/// ```
/// use diesel::prelude::*;
/// use idem_diesel::inbox::{BatchItem, begin_batch};
/// use idem_diesel::{Error, MessageId, Retention, Subscription};
///
/// const STOCK: Subscription = Subscription::new("stock", Retention::literal("7d"));
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # idem_diesel::ensure_schema(&mut db)?;
/// # diesel::sql_query("CREATE TABLE moves (amount BIGINT)").execute(&mut db)?;
/// let messages = [("evt-1", 5_i64), ("evt-2", 7), ("evt-1", 5)].map(|(id, amount)| (MessageId::new(id).expect("an id"), amount));
/// let batch = begin_batch(&mut db, &STOCK, &messages)?;
/// assert_eq!(batch.items(), [BatchItem::New, BatchItem::New, BatchItem::Duplicate]);
///
/// let new: Vec<i64> = batch.items().iter().zip(&messages)
///     .filter(|(item, _)| **item == BatchItem::New)
///     .map(|(_, (_, amount))| *amount)
///     .collect();
/// let mut consumption = batch.into_consumption();
/// for amount in new {
///     diesel::sql_query(format!("INSERT INTO moves VALUES ({amount})")).execute(consumption.connection())?;
/// }
/// consumption.finish(Ok::<_, Error>(()))?;
/// assert_eq!(begin_batch(&mut db, &STOCK, &messages)?.items(), [BatchItem::Duplicate; 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As for [`begin`](super::begin), but what concerns one message alone is told in [`Batch::items`].
///
/// # Cancellation
///
/// Dropping the future, or the batch it gives, rolls back: all messages are as new.
///
/// # SQL
///
/// ```sql
/// INSERT INTO processed_messages (…) SELECT … FROM jsonb_array_elements(…) ORDER BY … ON CONFLICT DO NOTHING RETURNING message_id
/// ```
pub fn begin_batch<'c, C: IdempotentConnection, M: RequestHash>(
    db: &'c mut C,
    subscription: &Subscription,
    messages: &[(MessageId, M)],
) -> Run<'c, C, Result<Batch<'c, C>, Error>> {
    let subscription = *subscription;
    let hashed: Result<Vec<_>, Error> = messages
        .iter()
        .map(|(id, message)| Ok((id.clone(), RequestDigest::of(message)?.to_hex())))
        .collect();
    C::Flavor::run(async move {
        let claimed = match hashed {
            Ok(hashed) => claim(db, &subscription, &hashed).await,
            Err(error) => Err(error),
        };
        let subscriber = subscription.subscriber();
        claimed.map_err(|error| error.into_core().in_operation(subscriber).into())
    })
}

type Hashed = (MessageId, String);

async fn claim<'c, C: IdempotentConnection>(
    db: &'c mut C,
    subscription: &Subscription,
    messages: &[Hashed],
) -> Result<Batch<'c, C>, Error> {
    let operation = subscription.operation();
    let mut transaction = Transaction::new(db, operation.policy().get_nested())?;
    transaction.set_patience(patience(operation)).await?;
    let marked = mark(&mut transaction, subscription, messages).await;
    transaction.restore_patience().await?;
    let (items, began_at) = match marked {
        Ok(marked) => marked,
        Err(error) => {
            transaction.rollback().await;
            return Err(explain(transaction.inner(), error).await);
        }
    };
    let claimed = ClaimedMessage {
        intent: None,
        began_at,
        runs: Place::of(transaction.inner()).run(None),
    };
    let running = Running::of_message(&mut transaction, operation, claimed).await?;
    Ok(Batch {
        items,
        consumption: Consumption {
            transaction,
            running,
            after_commit: AfterCommit::default(),
        },
    })
}

async fn mark<C: IdempotentConnection>(
    transaction: &mut Transaction<'_, C>,
    subscription: &Subscription,
    messages: &[Hashed],
) -> Result<(Vec<BatchItem>, i64), Error> {
    let operation = subscription.operation();
    let opening = opening(transaction, operation, None)?;
    for _ in 0..MAX_ROUNDS {
        reach(Point::BeforeBegin, operation.name()).await?;
        let started = Instant::now();
        let mark = MarkAll {
            subscriber: subscription.subscriber(),
            messages: as_json(messages),
            keep: keep(operation),
        };
        let marked = match open(transaction, operation, &opening, mark).await {
            Ok(marked) => look(transaction, subscription, messages, &marked).await,
            Err(error) => Err(error),
        };
        match marked {
            Err(error) if is_conflict(&error, transaction) => transaction.rollback().await,
            Err(error) => return Err(in_flight(error, operation, started)),
            Ok(found) => {
                reach(Point::AfterClaim, operation.name()).await?;
                return Ok(found);
            }
        }
    }
    Err(ErrorKind::Conflict.into())
}

/// `[[id, hash], …]`, each id once.
fn as_json(messages: &[Hashed]) -> String {
    let first: BTreeMap<&str, &str> = messages
        .iter()
        .rev()
        .map(|(id, hash)| (id.as_str(), hash.as_str()))
        .collect();
    let pairs: Vec<_> = first.into_iter().collect();
    serde_json::json!(pairs).to_string()
}

/// What is to be done about each message, and when the transaction of the marks began.
async fn look<C: IdempotentConnection>(
    transaction: &mut Transaction<'_, C>,
    subscription: &Subscription,
    messages: &[Hashed],
    marked: &[String],
) -> Result<(Vec<BatchItem>, i64), Error> {
    // Who says when the transaction began has put the session's own bound of statements back.
    let mut began_at = None;
    let mut found = HashMap::new();
    for text in marked {
        let Some((at, id)) = text.split_once(' ') else {
            continue;
        };
        began_at = Some(began(at)?);
        found.insert(id.to_owned(), BatchItem::New);
    }
    let known: Vec<&Hashed> = messages
        .iter()
        .filter(|(id, _)| !found.contains_key(id.as_str()))
        .collect();
    if !known.is_empty() {
        let seen = SeenAll {
            subscriber: subscription.subscriber(),
            messages: serde_json::json!(
                known
                    .iter()
                    .map(|(id, _)| [id.as_str()])
                    .collect::<Vec<_>>()
            )
            .to_string(),
        };
        let seen = transaction.inner().texts(seen).await?;
        // In the order of the ids, like the marks.
        let seen: BTreeMap<String, String> = seen
            .into_iter()
            .flatten()
            .filter_map(|text| {
                let mut parts = text.splitn(3, ' ');
                let (state, hash, id) = (parts.next()?, parts.next()?, parts.next()?);
                Some((id.to_owned(), format!("{state} {hash}")))
            })
            .collect();
        for (id, text) in &seen {
            let Some((id, hash)) = known.iter().find(|(known, _)| known.as_str() == id) else {
                continue;
            };
            let item = match state(text, hash) {
                Ok(Step::Duplicate) => BatchItem::Duplicate,
                Ok(Step::Retake) => {
                    if began_at.is_some() {
                        // The retake may have to wait for another copy, like a mark.
                        let bounded = Opening {
                            claim_within: Some(claim_within(subscription.operation())),
                            ..Opening::PLAIN
                        };
                        transaction.inner().settle_in(&bounded, None).await?;
                    }
                    let retake = Retake {
                        key: MessageKey::new(subscription.subscriber(), id),
                        request_hash: hash.clone(),
                        keep: keep(subscription.operation()),
                    };
                    match one(transaction.inner().texts(retake).await)? {
                        Some(at) => {
                            began_at = Some(began(&at)?);
                            BatchItem::New
                        }
                        // Another transaction has just processed it, or given it up.
                        None => return Err(ErrorKind::Conflict.into()),
                    }
                }
                Err(error) if error.kind() == &ErrorKind::Mismatch => BatchItem::Mismatch,
                Err(error) if error.kind() == &ErrorKind::Parked => BatchItem::Parked,
                Err(error) => return Err(error),
            };
            found.insert(id.as_str().to_owned(), item);
        }
    }
    let mut hashes: HashMap<&str, &str> = HashMap::new();
    let mut items = Vec::with_capacity(messages.len());
    for (id, hash) in messages {
        let first = hashes.insert(id.as_str(), hash);
        items.push(match first {
            Some(first) if first == hash => BatchItem::Duplicate,
            Some(_) => BatchItem::Mismatch,
            // It was removed between the two statements.
            None => *found.get(id.as_str()).ok_or(ErrorKind::Conflict)?,
        });
    }
    let began_at = match began_at {
        Some(began_at) => began_at,
        None => match one(transaction.inner().texts(NoMark).await)? {
            Some(at) => began(&at)?,
            None => unreachable!("I13: what is read gives a row"),
        },
    };
    Ok((items, began_at))
}

//! Steps 1 and 2: the mark, and what it means that it was there.

use std::time::{Duration, Instant};

use diesel::QueryResult;
use idem_core::limits::RETRY_AFTER;
use idem_core::{ErrorKind, Operation};

use super::Delivered;
use crate::connection::IdempotentConnection;
use crate::driver::{Driver, Opening};
use crate::error::{Error, has_text_alone};
use crate::fault::{Pace, Point, pace, reach};
use crate::guard::{ClaimedMessage, Running, opening_of, patience};
use crate::migrations::explain;
use crate::running::Place;
use crate::store::{Mark, Retake, RowKey, Seen, SeenState};
use crate::texts::TextQuery;
use crate::transaction::Transaction;

/// How often a claim starts anew after a conflict with a concurrent transaction.
const MAX_ROUNDS: u32 = 32;

/// How often a row that changed between two statements is looked at again within one round.
const MAX_LOOKS: u32 = 8;

/// The shortest time in which the claim must be done: the mark of a subscriber that does not wait still takes a moment.
const SHORTEST_CLAIM: Duration = Duration::from_millis(50);

/// How the claim of messages begins.
pub(super) fn opening<C: IdempotentConnection>(
    transaction: &Transaction<'_, C>,
    operation: &Operation,
    intent: Option<&idem_core::Intent>,
) -> Result<Opening, Error> {
    Ok(Opening {
        claim_within: Some(claim_within(operation)),
        ..opening_of(operation, intent, transaction.entry())?
    })
}

/// How long the statement that claims a message may take.
pub(super) fn claim_within(operation: &Operation) -> Duration {
    patience(operation).max(SHORTEST_CLAIM)
}

/// An open transaction that has the mark, and what runs in it; `None` for a duplicate, and then nothing is open.
pub(super) async fn claim<C: IdempotentConnection>(
    db: &mut C,
    delivered: Delivered,
) -> Result<Option<(Transaction<'_, C>, Running)>, Error> {
    let operation = *delivered.subscription.operation();
    let mut transaction = Transaction::new(db, operation.policy().get_nested())?;
    transaction.set_patience(patience(&operation)).await?;
    let marked = mark(&mut transaction, &operation, &delivered).await;
    transaction.restore_patience().await?;
    let began_at = match marked {
        Ok(Some(began_at)) => began_at,
        Ok(None) => {
            transaction.leave().await;
            return Ok(None);
        }
        Err(error) => {
            transaction.rollback().await;
            return Err(explain(transaction.inner(), error).await);
        }
    };
    let key = RowKey::of_message(delivered.intent.as_deref(), operation.name(), &delivered.id);
    let claimed = ClaimedMessage {
        intent: delivered.intent,
        began_at,
        runs: Place::of(transaction.inner()).run(Some(key)),
    };
    let running = Running::of_message(&mut transaction, &operation, claimed).await?;
    Ok(Some((transaction, running)))
}

/// When the transaction began that has the mark; `None` for a duplicate.
async fn mark<C: IdempotentConnection>(
    transaction: &mut Transaction<'_, C>,
    operation: &Operation,
    delivered: &Delivered,
) -> Result<Option<i64>, Error> {
    let key = RowKey::of_message(delivered.intent.as_deref(), operation.name(), &delivered.id);
    if Place::of(transaction.inner()).is_running(&key) {
        return Err(ErrorKind::Reentrant.into());
    }
    let intent = delivered.intent.as_deref();
    let opening = opening(transaction, operation, intent)?;
    for _ in 0..MAX_ROUNDS {
        reach(Point::BeforeBegin, operation.name()).await?;
        let started = Instant::now();
        match try_mark(transaction, operation, &opening, delivered).await {
            Err(error) if is_conflict(&error, transaction) => transaction.rollback().await,
            Err(error) => return Err(in_flight(error, operation, started)),
            marked => return marked,
        }
    }
    Err(ErrorKind::Conflict.into())
}

/// Whether the claim may start over, on a new snapshot. In a transaction of the caller's the snapshot stays, and the conflict with it.
pub(super) fn is_conflict<C: IdempotentConnection>(
    error: &Error,
    transaction: &Transaction<'_, C>,
) -> bool {
    error.kind() == &ErrorKind::Conflict && !transaction.is_joined()
}

/// The claim waited for another copy for as long as it may, if that is what the error says: only in the server's own language, so it is known by what it has not, and by
/// how long it took. SQLite has one writer for all messages, so there it is never known to be this one.
pub(super) fn in_flight(error: Error, operation: &Operation, started: Instant) -> Error {
    let is_unknown = error.kind() == &ErrorKind::Database && has_text_alone(&error);
    if !is_unknown || started.elapsed() < claim_within(operation) {
        return error;
    }
    let retry_after = RETRY_AFTER;
    error
        .into_core()
        .into_kind(ErrorKind::InFlight { retry_after })
        .into()
}

/// Opens the transaction with its first statement: in one message, unless a test takes them one by one.
pub(super) async fn open<C, Q>(
    transaction: &mut Transaction<'_, C>,
    operation: &Operation,
    opening: &Opening,
    query: Q,
) -> Result<Vec<String>, Error>
where
    C: IdempotentConnection,
    Q: TextQuery<<C::Inner as Driver>::Dialect>,
{
    let name = operation.name();
    let texts = if pace(name) == Pace::Together {
        transaction.open_and_texts(opening, query).await?
    } else {
        transaction.open(opening, None).await?;
        reach(Point::AfterBegin, name).await?;
        transaction.inner().texts(query).await?
    };
    reach(Point::AfterRead, name).await?;
    Ok(texts.into_iter().flatten().collect())
}

async fn try_mark<C: IdempotentConnection>(
    transaction: &mut Transaction<'_, C>,
    operation: &Operation,
    opening: &Opening,
    delivered: &Delivered,
) -> Result<Option<i64>, Error> {
    let mark = || Mark {
        key: delivered.key.clone(),
        request_hash: delivered.request_hash.clone(),
        keep: keep(operation),
    };
    let mut marked = open(transaction, operation, opening, mark()).await?.pop();
    for _ in 0..MAX_LOOKS {
        if let Some(began_at) = marked {
            reach(Point::AfterClaim, operation.name()).await?;
            return began(&began_at).map(Some);
        }
        let db = transaction.inner();
        let key = delivered.key.clone();
        let seen = one(db.texts(Seen { key }).await)?;
        marked = match seen.as_deref() {
            Some(text) => match state(text, &delivered.request_hash)? {
                Step::Duplicate => return Ok(None),
                Step::Retake => {
                    let retake = Retake {
                        key: delivered.key.clone(),
                        request_hash: delivered.request_hash.clone(),
                        keep: keep(operation),
                    };
                    one(db.texts(retake).await)?
                }
            },
            // It was removed in the meantime.
            None => one(db.texts(mark()).await)?,
        };
    }
    Err(ErrorKind::RecordHidden.into())
}

/// What to do about a message whose row is there.
pub(super) enum Step {
    Duplicate,
    Retake,
}

pub(super) fn state(text: &str, request_hash: &str) -> Result<Step, Error> {
    match SeenState::from_text(text, request_hash) {
        Some(SeenState::Processed) => Ok(Step::Duplicate),
        Some(SeenState::Failed) => Ok(Step::Retake),
        Some(SeenState::Mismatch) => Err(ErrorKind::Mismatch.into()),
        Some(SeenState::OtherScheme(stored)) => Err(ErrorKind::SchemeChanged { stored }.into()),
        Some(SeenState::Dead) => Err(ErrorKind::Parked.into()),
        None => Err(malformed()),
    }
}

fn malformed() -> Error {
    let problem = "processed_messages.state has an unknown value".to_owned();
    ErrorKind::SchemaWrong { problem }.into()
}

/// The beginning of the transaction, as the mark gives it.
pub(super) fn began(text: &str) -> Result<i64, Error> {
    text.parse().map_err(|_| malformed())
}

/// The text of the only row.
pub(super) fn one(texts: QueryResult<Vec<Option<String>>>) -> Result<Option<String>, Error> {
    Ok(texts?.pop().flatten())
}

/// How long a processed message is remembered, in seconds.
pub(super) fn keep(operation: &Operation) -> i64 {
    // A retention is at most ten years.
    i64::try_from(operation.retention().as_secs()).unwrap_or(i64::MAX)
}

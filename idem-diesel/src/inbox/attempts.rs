//! Counting the attempts at a message, outside of the work.

use std::time::Instant;

use idem_core::{ErrorKind, MessageId, Nested, Operation, Subscription};

use super::claim::{claim_within, in_flight, keep};
use crate::connection::{Flavor, IdempotentConnection, Run};
use crate::driver::Opening;
use crate::error::Error;
use crate::guard::patience;
use crate::migrations::explain;
use crate::store::{Failed, FailedState, MessageKey};
use crate::transaction::Transaction;

/// What a broker says about how often it has delivered a message.
///
/// ```
/// use idem_diesel::inbox::DeliveryCount;
///
/// // JetStream's `num_delivered`; one more than RabbitMQ's `x-delivery-count` of a quorum queue.
/// assert_eq!(DeliveryCount::Exact(1), DeliveryCount::First.or(Some(1)));
/// assert_eq!(DeliveryCount::Again, DeliveryCount::Again.or(None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryCount {
    /// This is the delivery of that number, counted from 1.
    Exact(u32),
    /// It was not delivered before.
    First,
    /// It was delivered before, nobody knows how often.
    Again,
}

impl DeliveryCount {
    /// The exact number, if there is one, or else this.
    #[must_use]
    pub fn or(self, exact: Option<u32>) -> Self {
        exact.map_or(self, Self::Exact)
    }
}

/// Whether a message is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The attempt of this number, counted from 1.
    Go {
        /// Its number.
        number: u32,
    },
    /// It has been tried as often as the subscription allows, and is dead now.
    GivenUp,
}

/// What becomes of a message after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It may come again.
    Again,
    /// It is dead: the broker may forget it.
    Dead,
}

/// Says whether a delivered message is tried, before it is.
///
/// It writes only if the message was delivered before: a first delivery costs nothing, and neither does a broker that counts, until its count is too high. Where the broker only
/// says "again", the attempt is counted now, so that one that ends with its process is counted, too.
///
/// ```
/// # use diesel::{Connection, SqliteConnection};
/// use idem_diesel::inbox::{Attempt, DeliveryCount, attempt};
/// use idem_diesel::{MessageId, Retention, Subscription};
///
/// const MAIL: Subscription = Subscription::new("mail", Retention::literal("7d")).with_max_attempts(2);
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # idem_diesel::ensure_schema(&mut db)?;
/// let id = MessageId::new("evt-17")?;
/// let mut deliver = |count| attempt(&mut db, &MAIL, &id, count, b"hello");
/// assert_eq!(deliver(DeliveryCount::First)?, Attempt::Go { number: 1 });
/// assert_eq!(deliver(DeliveryCount::Again)?, Attempt::Go { number: 2 });
/// // Nobody said how these ended: their processes were killed.
/// assert_eq!(deliver(DeliveryCount::Again)?, Attempt::GivenUp);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// What the database says; the message is then as it was.
///
/// # Cancellation
///
/// One statement: it has counted or it has not.
pub fn attempt<'c, C: IdempotentConnection>(
    db: &'c mut C,
    subscription: &Subscription,
    id: &MessageId,
    count: DeliveryCount,
    payload: &'c [u8],
) -> Run<'c, C, Result<Attempt, Error>> {
    let (subscription, id) = (*subscription, id.clone());
    C::Flavor::run(async move {
        let number = match count {
            DeliveryCount::Exact(number) => number.max(1),
            DeliveryCount::First => 1,
            DeliveryCount::Again => {
                let again = Noted {
                    attempts: 2,
                    added: 1,
                    ..Noted::failed(&subscription, &id)
                };
                // Nothing is noted of what is processed or dead: the handler's mark says which.
                note(db, again).await?.unwrap_or(1)
            }
        };
        if number <= subscription.max_attempts() {
            return Ok(Attempt::Go { number });
        }
        let dead = Noted {
            state: FailedState::Dead,
            attempts: number - 1,
            // The attempt that is not made was counted above, if it was counted.
            added: if count == DeliveryCount::Again { -1 } else { 0 },
            payload: Some(payload.to_vec()),
            ..Noted::failed(&subscription, &id)
        };
        Ok(match note(db, dead).await? {
            Some(_) => Attempt::GivenUp,
            // It was processed all the same, or it is dead already.
            None => Attempt::Go { number },
        })
    })
}

/// Notes how an attempt at a message failed, after it was rolled back, and gives the message up if it was the last.
///
/// `number` is what [`attempt`] gave. The error is kept for the person who looks; the payload only when the message is dead.
///
/// ```
/// # use diesel::{Connection, SqliteConnection};
/// use idem_diesel::inbox::{Fate, dead, failed};
/// use idem_diesel::{MessageId, Retention, Subscription};
///
/// const MAIL: Subscription = Subscription::new("mail", Retention::literal("7d")).with_max_attempts(2);
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # idem_diesel::ensure_schema(&mut db)?;
/// let id = MessageId::new("evt-17")?;
/// assert_eq!(failed(&mut db, &MAIL, &id, 1, "no such mailbox", b"hello")?, Fate::Again);
/// assert_eq!(failed(&mut db, &MAIL, &id, 2, "no such mailbox", b"hello")?, Fate::Dead);
/// assert_eq!(dead(&mut db, "mail", 10)?[0].last_error.as_deref(), Some("no such mailbox"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// What the database says; the message is then as it was.
///
/// # Cancellation
///
/// One statement: it has noted or it has not.
pub fn failed<'c, C: IdempotentConnection>(
    db: &'c mut C,
    subscription: &Subscription,
    id: &MessageId,
    number: u32,
    error: &str,
    payload: &'c [u8],
) -> Run<'c, C, Result<Fate, Error>> {
    let is_last = number >= subscription.max_attempts();
    let noted = Noted {
        attempts: number,
        error: Some(shown(error)),
        ..Noted::failed(subscription, id)
    };
    C::Flavor::run(async move {
        if is_last {
            note(db, noted.dead(payload)).await?;
            return Ok(Fate::Dead);
        }
        note(db, noted).await?;
        Ok(Fate::Again)
    })
}

/// Gives a message up at once, because no further attempt can help: it cannot be read, or nobody knows what to do with it.
///
/// ```
/// # use diesel::{Connection, SqliteConnection};
/// use idem_diesel::inbox::{dead, give_up};
/// use idem_diesel::{MessageId, Retention, Subscription};
///
/// const MAIL: Subscription = Subscription::new("mail", Retention::literal("7d"));
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # idem_diesel::ensure_schema(&mut db)?;
/// give_up(&mut db, &MAIL, &MessageId::new("evt-17")?, 1, "not JSON", b"\xff")?;
/// assert_eq!(dead(&mut db, "mail", 10)?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// What the database says; the message is then as it was.
///
/// # Cancellation
///
/// One statement: it is dead or it is not.
pub fn give_up<'c, C: IdempotentConnection>(
    db: &'c mut C,
    subscription: &Subscription,
    id: &MessageId,
    number: u32,
    error: &str,
    payload: &'c [u8],
) -> Run<'c, C, Result<(), Error>> {
    let noted = Noted {
        attempts: number,
        error: Some(shown(error)),
        ..Noted::failed(subscription, id)
    };
    C::Flavor::run(async move { note(db, noted.dead(payload)).await.map(drop) })
}

/// How much of an error is kept, in bytes.
const MAX_ERROR_BYTES: usize = 2000;

/// The highest number of attempts that is noted: what the column holds.
const MOST_ATTEMPTS: i64 = i32::MAX as i64;

/// An error as it is kept: not longer than that, and without the one character that PostgreSQL does not store.
pub(crate) fn shown(error: &str) -> String {
    let mut end = error.len().min(MAX_ERROR_BYTES);
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    error.get(..end).unwrap_or_default().replace('\0', " ")
}

struct Noted {
    subscription: Subscription,
    id: MessageId,
    state: FailedState,
    attempts: u32,
    added: i64,
    error: Option<String>,
    payload: Option<Vec<u8>>,
}

impl Noted {
    fn failed(subscription: &Subscription, id: &MessageId) -> Self {
        Self {
            subscription: *subscription,
            id: id.clone(),
            state: FailedState::Failed,
            attempts: 1,
            added: 0,
            error: None,
            payload: None,
        }
    }

    fn dead(self, payload: &[u8]) -> Self {
        Self {
            state: FailedState::Dead,
            payload: Some(payload.to_vec()),
            ..self
        }
    }
}

/// How many attempts there were, or nothing if the message is processed or dead.
async fn note<C: IdempotentConnection>(db: &mut C, noted: Noted) -> Result<Option<u32>, Error> {
    let operation = noted.subscription.operation();
    let statement = Failed {
        key: MessageKey::new(operation.name(), &noted.id),
        state: noted.state,
        attempts: i64::from(noted.attempts).min(MOST_ATTEMPTS),
        added: noted.added,
        error: noted.error,
        payload: noted.payload,
        keep: keep(operation),
    };
    match within(db, operation, statement).await?.pop() {
        Some(text) => text.parse().map(Some).map_err(|_| {
            let problem = "processed_messages.attempts is negative".to_owned();
            ErrorKind::SchemaWrong { problem }.into()
        }),
        None => Ok(None),
    }
}

/// Runs a statement that may have to wait for another copy of the message, in a transaction of its own, for as long as a claim would wait.
async fn within<C: IdempotentConnection>(
    db: &mut C,
    operation: &Operation,
    statement: Failed,
) -> Result<Vec<String>, Error> {
    let mut transaction = Transaction::new(db, Nested::Refuse)?;
    transaction.set_patience(patience(operation)).await?;
    let opening = Opening {
        max_idle: operation.policy().get_max_idle(),
        claim_within: Some(claim_within(operation)),
        ..Opening::PLAIN
    };
    let started = Instant::now();
    let texts = transaction.open_and_texts(&opening, statement).await;
    transaction.restore_patience().await?;
    let done = match texts {
        Ok(texts) => transaction
            .commit(patience(operation))
            .await
            .map(|()| texts),
        Err(error) => Err(error),
    };
    match done {
        Ok(texts) => Ok(texts.into_iter().flatten().collect()),
        Err(error) => {
            let error = in_flight(error.into(), operation, started);
            Err(explain(transaction.inner(), error).await)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_kept_in_part() {
        assert_eq!(shown("a\0b"), "a b");
        let long = "é".repeat(MAX_ERROR_BYTES);
        assert_eq!(shown(&long).len(), MAX_ERROR_BYTES);
        assert_eq!(shown(&format!("a{long}")).len(), MAX_ERROR_BYTES - 1);
    }
}

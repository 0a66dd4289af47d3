//! For the person who looks after messages that were given up.

use idem_core::{ErrorKind, MessageId};

use crate::connection::{Flavor, IdempotentConnection, Run};
use crate::error::Error;
use crate::store::{Dead, ForgetDead, MessageKey, Revive};
use crate::transaction::alone;

/// A message that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadMessage {
    /// Its id.
    pub id: MessageId,
    /// How often it was tried; not at all, once it is [redriven](redrive).
    pub attempts: u32,
    /// How the last attempt failed; absent when no attempt lived to say so.
    pub last_error: Option<String>,
    /// What was delivered.
    pub payload: Vec<u8>,
}

impl DeadMessage {
    fn from_json(json: &str) -> Result<Self, Error> {
        let parsed: Result<(String, u32, Option<String>, Option<String>), _> =
            serde_json::from_str(json);
        let malformed = || -> Error {
            let problem = "a dead row of processed_messages is malformed".to_owned();
            ErrorKind::SchemaWrong { problem }.into()
        };
        let (id, attempts, last_error, payload) = parsed.map_err(|_| malformed())?;
        let payload = payload.unwrap_or_default();
        let bytes = payload.as_bytes().chunks(2).map(|pair| {
            let digits = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(digits, 16).ok()
        });
        Ok(Self {
            id: MessageId::new(id).map_err(|_| malformed())?,
            attempts,
            last_error,
            payload: bytes.collect::<Option<_>>().ok_or_else(malformed)?,
        })
    }
}

/// Lists at most so many messages that a subscriber gave up, in the order of their ids.
///
/// ```
/// # use diesel::{Connection, SqliteConnection};
/// use idem_diesel::inbox::{dead, give_up, redrive};
/// use idem_diesel::{MessageId, Retention, Subscription};
///
/// const MAIL: Subscription = Subscription::new("mail", Retention::literal("7d"));
///
/// # let mut db = SqliteConnection::establish(":memory:")?;
/// # idem_diesel::ensure_schema(&mut db)?;
/// let id = MessageId::new("evt-17")?;
/// give_up(&mut db, &MAIL, &id, 3, "no such mailbox", b"hello")?;
/// let [message] = &dead(&mut db, "mail", 10)?[..] else { unreachable!("one was given up") };
/// assert_eq!((message.attempts, &message.payload[..]), (3, &b"hello"[..]));
///
/// // The mailbox is there now: hand the message to the handler again.
/// assert!(redrive(&mut db, "mail", &id)?.is_some());
/// assert!(dead(&mut db, "mail", 10)?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// What the database says.
///
/// # Cancellation
///
/// It only reads.
pub fn dead<'c, C: IdempotentConnection>(
    db: &'c mut C,
    subscriber: &str,
    at_most: u32,
) -> Run<'c, C, Result<Vec<DeadMessage>, Error>> {
    let query = Dead {
        subscriber: subscriber.to_owned(),
        at_most: at_most.into(),
    };
    C::Flavor::run(async move {
        let rows = alone(db, query).await?;
        rows.iter()
            .map(|json| DeadMessage::from_json(json))
            .collect()
    })
}

/// Lets a message that was given up be tried again, and gives it: the caller hands it to its handler, or publishes it once more.
///
/// `None` when there is no such dead message.
///
/// # Errors
///
/// What the database says.
///
/// # Cancellation
///
/// One statement: the message is dead or it is not.
pub fn redrive<'c, C: IdempotentConnection>(
    db: &'c mut C,
    subscriber: &str,
    id: &MessageId,
) -> Run<'c, C, Result<Option<DeadMessage>, Error>> {
    let key = MessageKey::new(subscriber, id);
    C::Flavor::run(async move {
        let rows = alone(db, Revive { key }).await?;
        let revived = rows.first().map(|json| DeadMessage::from_json(json));
        revived.transpose()
    })
}

/// Removes a message that was given up, and says whether there was one. A later delivery of it is new.
///
/// # Errors
///
/// What the database says.
///
/// # Cancellation
///
/// One statement: the row is there or it is not.
pub fn forget_dead<'c, C: IdempotentConnection>(
    db: &'c mut C,
    subscriber: &str,
    id: &MessageId,
) -> Run<'c, C, Result<bool, Error>> {
    let key = MessageKey::new(subscriber, id);
    C::Flavor::run(async move { Ok(!alone(db, ForgetDead { key }).await?.is_empty()) })
}

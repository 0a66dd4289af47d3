//! What a handler answers, and how the answer is kept.
//!
//! ```
//! use idem_core::Verdict;
//! use idem_core::answer::{Answer, Origin};
//!
//! let declined: Verdict<u64, String> = Verdict::Failed("declined".into());
//! let stored = declined.encode()?;
//! assert_eq!(Verdict::decode(&stored, Origin::Replayed)?, declined);
//! # Ok::<(), idem_core::Error>(())
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, ErrorKind};
use crate::outcome::{Outcome, Verdict};

/// How a call ended.
///
/// ```
/// use idem_core::Verdict;
/// use idem_core::answer::{Answer, End};
///
/// let declined: Verdict<u64, String> = Verdict::Failed("declined".into());
/// assert_eq!(declined.encode()?.end(), End::Failed);
/// assert_eq!(7_u64.encode()?.end(), End::Completed);
/// # Ok::<(), idem_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// With a result.
    Completed,
    /// With a final failure.
    Failed,
}

/// An answer as the database keeps it: bytes, and how to read them.
///
/// ```
/// use idem_core::Answer;
///
/// let stored = ("order-17".to_owned(), 500).encode()?;
/// assert_eq!((stored.codec(), stored.body()), ("json", &br#"["order-17",500]"#[..]));
/// # Ok::<(), idem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    end: End,
    codec: String,
    body: Vec<u8>,
}

/// The codec of every answer that this version writes.
const JSON: &str = "json";

impl StoredAnswer {
    /// An answer in JSON.
    ///
    /// ```
    /// use idem_core::StoredAnswer;
    /// use idem_core::answer::{Answer, End};
    ///
    /// assert_eq!(7_u64.encode()?, StoredAnswer::json(End::Completed, b"7".to_vec()));
    /// # Ok::<(), idem_core::Error>(())
    /// ```
    pub fn json(end: End, body: Vec<u8>) -> Self {
        Self::new(end, JSON, body)
    }

    /// An answer as it was read from the database.
    ///
    /// ```
    /// use idem_core::answer::{Answer, End, Origin};
    /// use idem_core::{ErrorKind, StoredAnswer};
    ///
    /// let row = StoredAnswer::new(End::Completed, "a codec of tomorrow", b"7".to_vec());
    /// let error = u64::decode(&row, Origin::Replayed).unwrap_err();
    /// assert!(matches!(error.kind(), ErrorKind::Undecodable { .. }));
    /// ```
    pub fn new(end: End, codec: impl Into<String>, body: Vec<u8>) -> Self {
        Self {
            end,
            codec: codec.into(),
            body,
        }
    }

    /// How the call ended.
    ///
    /// ```
    /// use idem_core::StoredAnswer;
    /// use idem_core::answer::End;
    ///
    /// let row = StoredAnswer::json(End::Failed, br#""declined""#.to_vec());
    /// assert_eq!(row.end(), End::Failed);
    /// ```
    pub fn end(&self) -> End {
        self.end
    }

    /// How the bytes are to be read.
    ///
    /// ```
    /// use idem_core::Answer;
    ///
    /// assert_eq!("paid".to_owned().encode()?.codec(), "json");
    /// # Ok::<(), idem_core::Error>(())
    /// ```
    pub fn codec(&self) -> &str {
        &self.codec
    }

    /// The bytes, as they were stored.
    ///
    /// ```
    /// use idem_core::{Answer, Verdict};
    ///
    /// // Which of the two ends it is does not stand in the bytes.
    /// let [paid, declined] = [Verdict::Completed(402), Verdict::Failed(402)];
    /// assert_eq!(paid.encode()?.body(), declined.encode()?.body());
    /// # Ok::<(), idem_core::Error>(())
    /// ```
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

/// Which call an answer is for.
///
/// ```
/// use idem_core::Outcome;
/// use idem_core::answer::{Answer, Origin};
///
/// let stored = 7_u64.encode()?;
/// assert_eq!(Outcome::decode(&stored, Origin::Executed)?, Outcome::Executed(7_u64));
/// assert!(Outcome::<u64>::decode(&stored, Origin::Replayed)?.is_replayed());
/// # Ok::<(), idem_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The one that executed.
    Executed,
    /// A later one.
    Replayed,
}

/// What a handler may return inside `Result<_, E>`: a serde type, an [`Outcome`] of an answer, or a [`Verdict`].
///
/// Both the executing call and every replay get their value from the stored bytes, so that they are equal.
///
/// ```
/// use idem_core::answer::{Answer, Origin};
/// use idem_core::Outcome;
///
/// let stored = Outcome::from(7_u64).encode()?;
/// let later = Outcome::<u64>::decode(&stored, Origin::Replayed)?;
/// assert!(later.is_replayed());
/// assert_eq!(later.into_inner(), 7);
/// # Ok::<(), idem_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored as the answer of an idempotent handler",
    label = "this answer must be stored, and read again by a replay",
    note = "derive `serde::Serialize` and `serde::Deserialize` for it (owned, without borrowed fields)",
    note = "or return an `Outcome<T>` or a `Verdict<T, F>` of such types"
)]
pub trait Answer: Sized {
    /// Whether the handler may end with a final failure, so that its writes need a savepoint.
    #[doc(hidden)]
    const MAY_FAIL: bool;

    /// The bytes to store.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use idem_core::{Answer, ErrorKind};
    ///
    /// assert_eq!(Some("paid".to_owned()).encode()?.body(), br#""paid""#);
    ///
    /// // JSON names members by text, so a map with another key has no JSON form.
    /// let error = BTreeMap::from([((1, 2), 3)]).encode().unwrap_err();
    /// assert!(matches!(error.kind(), ErrorKind::NotReplayable { .. }));
    /// # Ok::<(), idem_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NotReplayable`](ErrorKind::NotReplayable) when the value has no JSON form.
    fn encode(&self) -> Result<StoredAnswer, Error>;

    /// The value of stored bytes.
    ///
    /// ```
    /// use idem_core::answer::{Answer, Origin};
    /// use idem_core::{ErrorKind, Verdict};
    ///
    /// let stored = Verdict::<u64, String>::Failed("declined".into()).encode()?;
    /// assert!(Verdict::<u64, String>::decode(&stored, Origin::Replayed)?.is_failed());
    ///
    /// // A final failure is never read as a success, even by a type that its bytes would fit.
    /// let error = String::decode(&stored, Origin::Replayed).unwrap_err();
    /// assert!(matches!(error.kind(), ErrorKind::Undecodable { .. }));
    /// # Ok::<(), idem_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Undecodable`](ErrorKind::Undecodable) when the bytes are not of this type.
    fn decode(stored: &StoredAnswer, origin: Origin) -> Result<Self, Error>;
}

// Without this attribute a missing derive is reported as serde's business instead of with the note above.
#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Answer for T {
    const MAY_FAIL: bool = false;

    fn encode(&self) -> Result<StoredAnswer, Error> {
        encode(End::Completed, self)
    }

    fn decode(stored: &StoredAnswer, _: Origin) -> Result<Self, Error> {
        match stored.end {
            End::Completed => decode(stored),
            End::Failed => Err(undecodable::<Self>(stored)),
        }
    }
}

impl<A: Answer> Answer for Outcome<A> {
    const MAY_FAIL: bool = A::MAY_FAIL;

    fn encode(&self) -> Result<StoredAnswer, Error> {
        self.get().encode()
    }

    fn decode(stored: &StoredAnswer, origin: Origin) -> Result<Self, Error> {
        let value = A::decode(stored, origin)?;
        Ok(match origin {
            Origin::Executed => Self::Executed(value),
            Origin::Replayed => Self::replayed(value),
        })
    }
}

impl<T, F> Answer for Verdict<T, F>
where
    T: Serialize + DeserializeOwned,
    F: Serialize + DeserializeOwned,
{
    const MAY_FAIL: bool = true;

    fn encode(&self) -> Result<StoredAnswer, Error> {
        match self {
            Self::Completed(value) => encode(End::Completed, value),
            Self::Failed(failure) => encode(End::Failed, failure),
        }
    }

    fn decode(stored: &StoredAnswer, _: Origin) -> Result<Self, Error> {
        match stored.end {
            End::Completed => decode(stored).map(Self::Completed),
            End::Failed => decode(stored).map(Self::Failed),
        }
    }
}

fn encode<T: Serialize>(end: End, value: &T) -> Result<StoredAnswer, Error> {
    let body = serde_json::to_vec(value).map_err(|error| {
        Error::new(ErrorKind::NotReplayable {
            answer: std::any::type_name::<T>(),
        })
        .with_source(error)
    })?;
    Ok(StoredAnswer::json(end, body))
}

fn decode<T: DeserializeOwned>(stored: &StoredAnswer) -> Result<T, Error> {
    if stored.codec != JSON {
        return Err(undecodable::<T>(stored));
    }
    serde_json::from_slice(&stored.body)
        .map_err(|error| undecodable::<T>(stored).with_source(error))
}

fn undecodable<T>(stored: &StoredAnswer) -> Error {
    Error::new(ErrorKind::Undecodable {
        answer: std::any::type_name::<T>(),
        codec: stored.codec.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn survives<A: Answer + PartialEq + std::fmt::Debug>(answer: &A, body: &str, end: End) {
        let stored = answer.encode().unwrap();
        assert_eq!(std::str::from_utf8(stored.body()).unwrap(), body);
        assert_eq!(stored.end(), end);
        assert_eq!(&A::decode(&stored, Origin::Executed).unwrap(), answer);
    }

    #[test]
    fn empty_answers_are_answers() {
        survives(&(), "null", End::Completed);
        survives(&None::<u8>, "null", End::Completed);
        survives(&String::new(), "\"\"", End::Completed);
        survives(&Vec::<u8>::new(), "[]", End::Completed);
        survives(&serde_json::json!({}), "{}", End::Completed);
    }

    #[test]
    fn a_verdict_keeps_which_end_it_is() {
        survives(&Verdict::<u8, String>::Completed(1), "1", End::Completed);
        survives(
            &Verdict::<u8, String>::Failed("declined".into()),
            "\"declined\"",
            End::Failed,
        );
        survives(
            &Outcome::Executed(Verdict::<(), u8>::Failed(3)),
            "3",
            End::Failed,
        );
    }

    #[test]
    fn a_value_without_a_json_form_is_refused() {
        let by_pair = std::collections::BTreeMap::from([((1, 2), 3)]);
        let error = by_pair.encode().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotReplayable { .. }));
    }

    #[test]
    fn a_value_that_does_not_survive_does_not_decode() {
        let stored = f64::NAN.encode().unwrap();
        let error = f64::decode(&stored, Origin::Executed).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Undecodable { .. }));
    }

    #[test]
    fn a_final_failure_is_never_read_as_a_success() {
        let failed = Verdict::<u8, u8>::Failed(1).encode().unwrap();
        assert!(u8::decode(&failed, Origin::Replayed).is_err());
    }
}

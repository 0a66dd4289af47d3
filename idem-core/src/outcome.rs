//! What a caller learns besides the value: whether it was executed or replayed, and whether it is a final failure.
//!
//! ```
//! use idem_core::{Outcome, Verdict};
//!
//! let outcome: Outcome<Verdict<u64, &str>> = Outcome::from(Verdict::Failed("declined"));
//! assert!(!outcome.is_replayed());
//! assert!(outcome.get().is_failed());
//! ```

/// A value, and whether this call executed the handler or replayed an earlier answer.
///
/// A handler builds it with `.into()`; only the library builds what is in `Replayed`.
///
/// ```
/// use idem_core::Outcome;
///
/// let outcome: Outcome<i32> = 7.into();
/// match outcome {
///     Outcome::Executed(value) => assert_eq!(value, 7),
///     Outcome::Replayed(value) => unreachable!("{} was not stored before", *value),
/// }
/// assert!(!outcome.is_replayed());
/// assert_eq!(outcome.into_inner(), 7);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome<T> {
    /// The handler ran in this call.
    Executed(T),
    /// The handler ran in an earlier call; this is what it answered then.
    Replayed(Replayed<T>),
}

/// A value that an earlier call answered. It derefs to the value; only the library builds it.
///
/// ```
/// use idem_core::Outcome;
/// use idem_core::answer::{Answer, Origin};
///
/// let later = Outcome::<String>::decode(&"paid".to_owned().encode()?, Origin::Replayed)?;
/// let Outcome::Replayed(value) = later else { unreachable!("it was asked for") };
/// assert_eq!(value.len(), 4);
/// # Ok::<(), idem_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Replayed<T>(T);

impl<T> Replayed<T> {
    /// The value.
    ///
    /// ```
    /// use idem_core::Outcome;
    /// use idem_core::answer::{Answer, Origin};
    ///
    /// let value = match Outcome::<u64>::decode(&7_u64.encode()?, Origin::Replayed)? {
    ///     Outcome::Executed(value) => value,
    ///     Outcome::Replayed(earlier) => earlier.into_inner(),
    /// };
    /// assert_eq!(value, 7);
    /// # Ok::<(), idem_core::Error>(())
    /// ```
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> std::ops::Deref for Replayed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Outcome<T> {
    pub(crate) const fn replayed(value: T) -> Self {
        Self::Replayed(Replayed(value))
    }

    /// Whether the value comes from an earlier call.
    ///
    /// ```
    /// use idem_core::Outcome;
    ///
    /// let outcome = Outcome::from("paid");
    /// let header = outcome.is_replayed().then_some("Idempotent-Replayed: true");
    /// assert_eq!(header, None);
    /// ```
    pub const fn is_replayed(&self) -> bool {
        matches!(self, Self::Replayed(_))
    }

    /// The value, from whichever call.
    ///
    /// ```
    /// use idem_core::Outcome;
    ///
    /// assert_eq!(Outcome::from("paid").into_inner(), "paid");
    /// ```
    pub fn into_inner(self) -> T {
        match self {
            Self::Executed(value) | Self::Replayed(Replayed(value)) => value,
        }
    }

    /// Another value in its place, still executed or replayed.
    ///
    /// ```
    /// use idem_core::Outcome;
    ///
    /// assert_eq!(Outcome::from(7).map(|cents| cents * 2), Outcome::Executed(14));
    /// ```
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Executed(value) => Outcome::Executed(change(value)),
            Self::Replayed(Replayed(value)) => Outcome::replayed(change(value)),
        }
    }

    /// A reference to the value.
    ///
    /// ```
    /// use idem_core::Outcome;
    ///
    /// let outcome = Outcome::from(vec![17, 18]);
    /// assert_eq!(outcome.get().len(), 2);
    /// assert!(!outcome.is_replayed());
    /// ```
    pub const fn get(&self) -> &T {
        match self {
            Self::Executed(value) | Self::Replayed(Replayed(value)) => value,
        }
    }
}

impl<T> From<T> for Outcome<T> {
    fn from(value: T) -> Self {
        Self::Executed(value)
    }
}

/// A result that is final either way: a failure of the business, such as a declined card, is an answer like a success.
///
/// A `Failed` rolls the body's writes back, is stored, and is replayed. An `Err` beside it releases the key instead, so a
/// database error can never become an answer.
///
/// ```
/// use idem_core::Verdict;
///
/// let verdict: Verdict<u64, &str> = Err("declined").into();
/// assert_eq!(verdict, Verdict::Failed("declined"));
/// assert_eq!(verdict.into_result(), Err("declined"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict<T, F> {
    /// The command was carried out.
    Completed(T),
    /// The command was refused for good.
    Failed(F),
}

impl<T, F> Verdict<T, F> {
    /// The verdict as a result.
    ///
    /// ```
    /// use idem_core::Verdict;
    ///
    /// let declined: Verdict<u64, &str> = Verdict::Failed("declined");
    /// assert_eq!(declined.into_result(), Err("declined"));
    /// assert_eq!(Verdict::<u64, &str>::Completed(7).into_result(), Ok(7));
    /// ```
    ///
    /// # Errors
    ///
    /// The final failure, when it is one.
    pub fn into_result(self) -> Result<T, F> {
        match self {
            Self::Completed(value) => Ok(value),
            Self::Failed(failure) => Err(failure),
        }
    }

    /// Whether it is a final failure.
    ///
    /// ```
    /// use idem_core::Verdict;
    ///
    /// assert!(Verdict::<u64, &str>::Failed("declined").is_failed());
    /// assert!(!Verdict::<u64, &str>::Completed(7).is_failed());
    /// ```
    pub const fn is_failed(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

impl<T, F> From<Result<T, F>> for Verdict<T, F> {
    fn from(result: Result<T, F>) -> Self {
        match result {
            Ok(value) => Self::Completed(value),
            Err(failure) => Self::Failed(failure),
        }
    }
}

//! Why a value has no request hash, and where in the value.

use std::fmt;

/// A value that has no request hash, such as a NaN: names the field and what is wrong with it.
///
/// It holds no part of the request itself: keys of maps and members of JSON objects are not named.
///
/// ```
/// use idem_core::RequestDigest;
///
/// let error = RequestDigest::of_fields(&[("amount", &f64::NAN)]).unwrap_err();
/// assert_eq!(error.path(), "amount");
/// assert_eq!(error.to_string(), "no request hash: `amount` is not a number");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashError {
    /// From the innermost step to the outermost, in which order they become known.
    steps: Vec<Step>,
    problem: &'static str,
    json_offset: Option<usize>,
}

/// One step on the way from the whole request to the value that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Name(Box<str>),
    Index(usize),
    /// Inside a map or a set, whose keys are payload and have no place in an error.
    Entry,
}

impl HashError {
    pub(super) fn new(problem: &'static str) -> Self {
        Self {
            steps: Vec::new(),
            problem,
            json_offset: None,
        }
    }

    pub(super) fn in_json(problem: &'static str, offset: usize) -> Self {
        Self {
            json_offset: Some(offset),
            ..Self::new(problem)
        }
    }

    pub(super) fn inside(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// The way to the field, such as `amount` or `items[2].price`; empty when it is the whole request.
    ///
    /// An entry of a map or a set is `[..]`, an element of a tuple is `[0]`.
    ///
    /// ```
    /// use idem_core::RequestDigest;
    ///
    /// let error = RequestDigest::of_fields(&[("prices", &[0.5, f64::INFINITY])]).unwrap_err();
    /// assert_eq!(error.path(), "prices[1]");
    /// ```
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in self.steps.iter().rev() {
            match step {
                Step::Name(name) if path.is_empty() => path.push_str(name),
                Step::Name(name) => path.extend([".", name]),
                Step::Index(index) => path.extend(["[", &index.to_string(), "]"]),
                Step::Entry => path.push_str("[..]"),
            }
        }
        path
    }
}

impl fmt::Display for HashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no request hash: ")?;
        match self.path() {
            path if path.is_empty() => f.write_str("the value")?,
            path => write!(f, "`{path}`")?,
        }
        write!(f, " {}", self.problem)?;
        match self.json_offset {
            Some(offset) => write!(f, " (at byte {offset} of the JSON text)"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for HashError {}

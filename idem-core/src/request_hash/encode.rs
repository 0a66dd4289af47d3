//! Writes values as canonical bytes: `tag, length, content`, one after the other into one buffer.
//!
//! A container's length is filled in when the container ends. Because every value says its own length, entries of
//! maps, sets and structs can be found again and sorted in place, and it costs nothing to check that an implementation
//! wrote exactly one value.

mod layout;
mod parts;

use std::fmt;

use self::layout::{Entries, Entry, HEADER_BYTES, split_value, without_leading_zeros};
use super::error::Step;
use super::{HashError, RequestHash};

pub(super) use self::layout::{Keys, Sign, Tag};
pub use self::parts::{Elements, Fields};

/// Enough for a usual command, so that the buffer grows only for large ones.
const INITIAL_CAPACITY: usize = 512;

/// The bytes whose SHA-256 is the request hash, to look into them when two requests that should agree do not.
///
/// ```
/// use idem_core::request_hash::canonical_bytes;
///
/// assert_eq!(canonical_bytes("ab")?, [5, 0, 0, 0, 2, b'a', b'b']);
/// # Ok::<(), idem_core::HashError>(())
/// ```
///
/// # Errors
///
/// As [`RequestDigest::of`](super::RequestDigest::of).
pub fn canonical_bytes<T: RequestHash + ?Sized>(value: &T) -> Result<Vec<u8>, HashError> {
    let mut encoder = Encoder::new();
    value.encode(&mut encoder);
    finish(encoder)
}

pub(super) fn finish(mut encoder: Encoder) -> Result<Vec<u8>, HashError> {
    encoder.expect_one_value(0);
    match encoder.error {
        None => Ok(encoder.bytes),
        Some(error) => Err(error),
    }
}

/// Takes the parts of one request and writes them as canonical bytes.
///
/// [`RequestHash::encode`] is given one. Simple values are written by their own `encode`; the methods here write what is
/// made of parts. The first thing that cannot be hashed is kept as the error of the whole request.
///
/// ```
/// use idem_core::request_hash::{Encoder, RequestHash, canonical_bytes};
///
/// struct Transfer { cents: u64, to: String }
///
/// impl RequestHash for Transfer {
///     fn encode(&self, encoder: &mut Encoder) {
///         encoder.structure(|fields| {
///             fields.field("to", &self.to);
///             fields.field("cents", &self.cents);
///         });
///     }
/// }
///
/// let bytes = canonical_bytes(&Transfer { cents: 500, to: "Ada".into() })?;
/// assert_eq!(bytes[..5], [9, 0, 0, 0, 33]);
/// # Ok::<(), idem_core::HashError>(())
/// ```
pub struct Encoder {
    bytes: Vec<u8>,
    error: Option<HashError>,
}

impl Encoder {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(INITIAL_CAPACITY),
            error: None,
        }
    }

    /// Writes a struct: values with names, in any order. Two values of one name are refused.
    ///
    /// ```
    /// use idem_core::request_hash::{Encoder, RequestHash, canonical_bytes};
    ///
    /// struct Point { x: i32, y: i32 }
    ///
    /// impl RequestHash for Point {
    ///     fn encode(&self, encoder: &mut Encoder) {
    ///         encoder.structure(|fields| {
    ///             fields.field("y", &self.y);
    ///             fields.field("x", &self.x);
    ///         });
    ///     }
    /// }
    ///
    /// assert!(canonical_bytes(&Point { x: 1, y: 2 })? != canonical_bytes(&Point { x: 2, y: 1 })?);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    pub fn structure(&mut self, write: impl FnOnce(&mut Fields<'_>)) {
        let start = self.open(Tag::Struct);
        write(&mut Fields { encoder: self });
        if self.close_sorted(start, 2) == Keys::Repeated {
            self.refuse("has two fields of one name");
        }
    }

    /// Writes a tuple: a fixed number of values that are known by their position.
    ///
    /// ```
    /// use idem_core::request_hash::{Encoder, RequestHash, canonical_bytes};
    ///
    /// struct Range { from: u32, to: u32 }
    ///
    /// impl RequestHash for Range {
    ///     fn encode(&self, encoder: &mut Encoder) {
    ///         encoder.tuple(|elements| {
    ///             elements.element(&self.from);
    ///             elements.element(&self.to);
    ///         });
    ///     }
    /// }
    ///
    /// assert_eq!(canonical_bytes(&Range { from: 1, to: 9 })?, canonical_bytes(&(1, 9))?);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    pub fn tuple(&mut self, write: impl FnOnce(&mut Elements<'_>)) {
        self.elements(Tag::Tuple, write);
    }

    /// Writes a sequence: any number of values whose order counts.
    ///
    /// ```
    /// use idem_core::request_hash::{Encoder, RequestHash, canonical_bytes};
    ///
    /// struct Words(String);
    ///
    /// impl RequestHash for Words {
    ///     fn encode(&self, encoder: &mut Encoder) {
    ///         encoder.sequence(|elements| {
    ///             for word in self.0.split_whitespace() {
    ///                 elements.element(word);
    ///             }
    ///         });
    ///     }
    /// }
    ///
    /// assert_eq!(canonical_bytes(&Words("to  be".into()))?, canonical_bytes(&["to", "be"])?);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    pub fn sequence(&mut self, write: impl FnOnce(&mut Elements<'_>)) {
        self.elements(Tag::Sequence, write);
    }

    /// Writes a variant of an enum: its name, and as its content one value.
    ///
    /// A variant without content has an empty struct, so that it may later get fields that can be absent.
    ///
    /// ```
    /// use idem_core::request_hash::{Encoder, RequestHash, canonical_bytes};
    ///
    /// enum Method { Cash, Card(u32) }
    ///
    /// impl RequestHash for Method {
    ///     fn encode(&self, encoder: &mut Encoder) {
    ///         match self {
    ///             Self::Cash => encoder.variant("Cash", |content| content.structure(|_| {})),
    ///             Self::Card(number) => encoder.variant("Card", |content| number.encode(content)),
    ///         }
    ///     }
    /// }
    ///
    /// assert!(canonical_bytes(&Method::Cash)? != canonical_bytes(&Method::Card(0))?);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    pub fn variant(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        let start = self.open(Tag::Variant);
        self.text(name);
        self.within(|| Step::Name(name.into()), write);
        self.close(start);
    }

    /// Writes a map: keys with values, in any order.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use idem_core::request_hash::{Encoder, RequestHash, canonical_bytes};
    ///
    /// struct Headers(Vec<(String, String)>);
    ///
    /// impl RequestHash for Headers {
    ///     fn encode(&self, encoder: &mut Encoder) {
    ///         encoder.map(self.0.iter().map(|(name, value)| (name, value)));
    ///     }
    /// }
    ///
    /// let headers = Headers(vec![("b".into(), "2".into()), ("a".into(), "1".into())]);
    /// assert_eq!(canonical_bytes(&headers)?, canonical_bytes(&BTreeMap::from([("a", "1"), ("b", "2")]))?);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    pub fn map<K: RequestHash, V: RequestHash>(
        &mut self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) {
        let start = self.open(Tag::Map);
        for (key, value) in entries {
            self.within(|| Step::Entry, |encoder| key.encode(encoder));
            self.within(|| Step::Entry, |encoder| value.encode(encoder));
        }
        self.close_sorted(start, 2);
    }

    /// Writes a set: values in any order.
    ///
    /// ```
    /// use idem_core::request_hash::{Encoder, RequestHash, canonical_bytes};
    ///
    /// struct Tags(Vec<&'static str>);
    ///
    /// impl RequestHash for Tags {
    ///     fn encode(&self, encoder: &mut Encoder) {
    ///         encoder.set(&self.0);
    ///     }
    /// }
    ///
    /// assert_eq!(canonical_bytes(&Tags(vec!["a", "b"]))?, canonical_bytes(&Tags(vec!["b", "a"]))?);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    pub fn set<T: RequestHash>(&mut self, elements: impl IntoIterator<Item = T>) {
        let start = self.open(Tag::Set);
        for element in elements {
            self.within(|| Step::Entry, |encoder| element.encode(encoder));
        }
        self.close_sorted(start, 1);
    }

    /// Says that this value has no request hash, and why: `problem` continues a sentence that begins with the field.
    ///
    /// The text is fixed, so that no part of the request gets into an error or a log.
    ///
    /// ```
    /// use idem_core::RequestDigest;
    /// use idem_core::request_hash::{Encoder, RequestHash};
    ///
    /// struct Secret;
    ///
    /// impl RequestHash for Secret {
    ///     fn encode(&self, encoder: &mut Encoder) {
    ///         encoder.refuse("is a secret");
    ///     }
    /// }
    ///
    /// let error = RequestDigest::of_fields(&[("pin", &Secret)]).unwrap_err();
    /// assert_eq!(error.to_string(), "no request hash: `pin` is a secret");
    /// ```
    pub fn refuse(&mut self, problem: &'static str) {
        self.fail(HashError::new(problem));
    }

    pub(super) fn fail(&mut self, error: HashError) {
        self.error.get_or_insert(error);
    }

    /// Writes a value whose content is known at once.
    pub(super) fn leaf<const PARTS: usize>(&mut self, tag: Tag, content: [&[u8]; PARTS]) {
        let start = self.open(tag);
        for part in content {
            self.push(part);
        }
        self.close(start);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.leaf(Tag::Text, [text.as_bytes()]);
    }

    pub(super) fn byte_string<'b>(&mut self, bytes: impl Iterator<Item = &'b u8>) {
        let start = self.open(Tag::Bytes);
        self.bytes.extend(bytes);
        self.close(start);
    }

    /// Minimal, so that equal numbers of all integer types are written equally.
    pub(super) fn integer(&mut self, tag: Tag, sign: Sign, magnitude: u128) {
        let magnitude = magnitude.to_be_bytes();
        self.leaf(tag, [&[sign as u8], without_leading_zeros(&magnitude)]);
    }

    /// Writes `None` with so many `Some` around it.
    pub(super) fn nothing(&mut self, somes: u64) {
        let somes = somes.to_be_bytes();
        self.leaf(Tag::Nothing, [without_leading_zeros(&somes)]);
    }

    /// Writes `Some(value)` like `value`; if that is nothing, one more `Some` is around it.
    pub(super) fn some<T: RequestHash>(&mut self, value: &T) {
        let start = self.bytes.len();
        value.encode(self);
        if let Some(somes) = self.somes_around_nothing(start) {
            self.bytes.truncate(start);
            self.nothing(somes + 1);
        }
    }

    /// If the one value written since `start` is a `None`, the number of `Some` around it.
    fn somes_around_nothing(&self, start: usize) -> Option<u64> {
        let written = self.bytes.get(start..)?;
        if written.first() != Some(&(Tag::Nothing as u8)) {
            return None;
        }
        let (nothing, []) = split_value(written)? else {
            return None;
        };
        let count = nothing.get(HEADER_BYTES..)?;
        Some(
            count
                .iter()
                .fold(0, |count, byte| count << 8 | u64::from(*byte)),
        )
    }

    pub(super) fn open(&mut self, tag: Tag) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[tag as u8, 0, 0, 0, 0]);
        start
    }

    pub(super) fn push(&mut self, content: &[u8]) {
        self.bytes.extend_from_slice(content);
    }

    pub(super) fn close(&mut self, start: usize) {
        let content = self.bytes.len().saturating_sub(start + HEADER_BYTES);
        let Ok(length) = u32::try_from(content) else {
            return self.refuse("is longer than 4 GiB");
        };
        if let Some(place) = self.bytes.get_mut(start + 1..start + HEADER_BYTES) {
            place.copy_from_slice(&length.to_be_bytes());
        }
    }

    /// Ends a container whose entries, of so many values each, have no order of their own.
    pub(super) fn close_sorted(&mut self, start: usize, values_per_entry: usize) -> Keys {
        self.close(start);
        self.sort(start + HEADER_BYTES, values_per_entry)
    }

    fn sort(&mut self, start: usize, values_per_entry: usize) -> Keys {
        let entries = || Entries {
            rest: self.bytes.get(start..).unwrap_or_default(),
            values_per_entry,
        };
        // The derive writes fields in order and one entry is always in order: then nothing is moved.
        if entries().is_sorted_by(|one, next| one.key < next.key) {
            return Keys::Distinct;
        }
        let mut sorted: Vec<Entry<'_>> = entries().collect();
        sorted.sort_unstable_by_key(|entry| entry.whole);
        let distinct = sorted.is_sorted_by(|one, next| one.key < next.key);
        let bytes = sorted
            .iter()
            .map(|entry| entry.whole)
            .collect::<Vec<_>>()
            .concat();
        self.bytes.truncate(start);
        self.bytes.extend_from_slice(&bytes);
        if distinct {
            Keys::Distinct
        } else {
            Keys::Repeated
        }
    }

    fn elements(&mut self, tag: Tag, write: impl FnOnce(&mut Elements<'_>)) {
        let start = self.open(tag);
        write(&mut Elements {
            encoder: self,
            next: 0,
        });
        self.close(start);
    }

    /// Writes a part of a container; an error that happens in it learns on its way out where it happened.
    fn within(&mut self, step: impl FnOnce() -> Step, write: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        let clean = self.error.is_none();
        write(self);
        self.expect_one_value(start);
        if clean && let Some(error) = &mut self.error {
            error.inside(step());
        }
    }

    /// Two values where one belongs could be taken for another request, so an implementation that writes them is refused.
    fn expect_one_value(&mut self, start: usize) {
        let written = self.bytes.get(start..).unwrap_or_default();
        if !matches!(split_value(written), Some((_, []))) {
            self.refuse("was not written as exactly one value");
        }
    }
}

/// Without the bytes: they are the request.
impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("length", &self.bytes.len())
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

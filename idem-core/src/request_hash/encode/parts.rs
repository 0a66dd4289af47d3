//! The parts of a container, as the derive and own implementations write them.

use super::Encoder;
use crate::request_hash::RequestHash;
use crate::request_hash::error::Step;

/// The fields of a struct, given by [`Encoder::structure`].
///
/// ```
/// use idem_core::request_hash::{Encoder, RequestHash, canonical_bytes};
///
/// struct Page { size: u32 }
///
/// impl RequestHash for Page {
///     fn encode(&self, encoder: &mut Encoder) {
///         encoder.structure(|fields| fields.field_unless_default("size", &self.size, &50));
///     }
/// }
///
/// assert_eq!(canonical_bytes(&Page { size: 50 })?, [9, 0, 0, 0, 0]);
/// # Ok::<(), idem_core::HashError>(())
/// ```
#[derive(Debug)]
pub struct Fields<'e> {
    pub(super) encoder: &'e mut Encoder,
}

impl Fields<'_> {
    /// Writes a field; `None` adds nothing.
    ///
    /// ```
    /// use idem_core::RequestDigest;
    ///
    /// let with_none = RequestDigest::of_fields(&[("id", &1), ("note", &None::<String>)])?;
    /// assert_eq!(with_none, RequestDigest::of_fields(&[("id", &1)])?);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    pub fn field<T: RequestHash + ?Sized>(&mut self, name: &str, value: &T) {
        self.field_with(name, |encoder| value.encode(encoder));
    }

    /// Writes a field whose value a function writes; what it writes like `None` adds nothing.
    ///
    /// ```
    /// use idem_core::request_hash::{Encoder, RequestHash, canonical_bytes};
    ///
    /// struct Login { email: String }
    ///
    /// impl RequestHash for Login {
    ///     fn encode(&self, encoder: &mut Encoder) {
    ///         encoder.structure(|fields| {
    ///             fields.field_with("email", |encoder| self.email.to_lowercase().encode(encoder));
    ///         });
    ///     }
    /// }
    ///
    /// let [one, other] = ["Ada", "ada"].map(|email| canonical_bytes(&Login { email: email.into() }));
    /// assert_eq!(one?, other?);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    pub fn field_with(&mut self, name: &str, write: impl FnOnce(&mut Encoder)) {
        let start = self.encoder.bytes.len();
        let value = self.named(name, write);
        if self.encoder.somes_around_nothing(value) == Some(0) {
            self.encoder.bytes.truncate(start);
        }
    }

    /// Writes a field unless it equals its default; a `None` that is not the default is written.
    ///
    /// ```
    /// use idem_core::request_hash::{Encoder, RequestHash, canonical_bytes};
    ///
    /// struct Search { limit: Option<u32> }
    ///
    /// impl RequestHash for Search {
    ///     fn encode(&self, encoder: &mut Encoder) {
    ///         encoder.structure(|fields| fields.field_unless_default("limit", &self.limit, &Some(10)));
    ///     }
    /// }
    ///
    /// assert!(canonical_bytes(&Search { limit: None })? != canonical_bytes(&Search { limit: Some(10) })?);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    pub fn field_unless_default<T: RequestHash + PartialEq>(
        &mut self,
        name: &str,
        value: &T,
        default: &T,
    ) {
        self.field_with_unless_default(name, value, default, T::encode);
    }

    /// [`field_with`](Self::field_with) and [`field_unless_default`](Self::field_unless_default) in one.
    ///
    /// ```
    /// use idem_core::request_hash::{Encoder, RequestHash, canonical_bytes};
    ///
    /// struct Login { locale: String }
    ///
    /// impl RequestHash for Login {
    ///     fn encode(&self, encoder: &mut Encoder) {
    ///         encoder.structure(|fields| {
    ///             fields.field_with_unless_default("locale", &self.locale, &String::new(), |locale, encoder| {
    ///                 locale.to_lowercase().encode(encoder);
    ///             });
    ///         });
    ///     }
    /// }
    ///
    /// assert_eq!(canonical_bytes(&Login { locale: String::new() })?, [9, 0, 0, 0, 0]);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    pub fn field_with_unless_default<T: PartialEq>(
        &mut self,
        name: &str,
        value: &T,
        default: &T,
        write: impl FnOnce(&T, &mut Encoder),
    ) {
        if value != default {
            self.named(name, |encoder| write(value, encoder));
        }
    }

    /// Writes name and value, and says where the value begins.
    fn named(&mut self, name: &str, write: impl FnOnce(&mut Encoder)) -> usize {
        self.encoder.text(name);
        let value = self.encoder.bytes.len();
        self.encoder.within(|| Step::Name(name.into()), write);
        value
    }
}

/// The elements of a tuple or a sequence, given by [`Encoder::tuple`] and [`Encoder::sequence`].
///
/// ```
/// use idem_core::request_hash::{Encoder, RequestHash, canonical_bytes};
///
/// struct Countdown(u8);
///
/// impl RequestHash for Countdown {
///     fn encode(&self, encoder: &mut Encoder) {
///         encoder.sequence(|elements| (0..self.0).rev().for_each(|number| elements.element(&number)));
///     }
/// }
///
/// assert_eq!(canonical_bytes(&Countdown(3))?, canonical_bytes(&[2, 1, 0])?);
/// # Ok::<(), idem_core::HashError>(())
/// ```
#[derive(Debug)]
pub struct Elements<'e> {
    pub(super) encoder: &'e mut Encoder,
    pub(super) next: usize,
}

impl Elements<'_> {
    /// Writes the next element.
    ///
    /// ```
    /// use idem_core::request_hash::canonical_bytes;
    ///
    /// assert!(canonical_bytes(&[None, Some(1)])? != canonical_bytes(&[Some(1), None])?);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    pub fn element<T: RequestHash + ?Sized>(&mut self, value: &T) {
        self.element_with(|encoder| value.encode(encoder));
    }

    /// Writes the next element by a function.
    ///
    /// ```
    /// use idem_core::request_hash::{Encoder, RequestHash, canonical_bytes};
    ///
    /// struct Pair(String, u8);
    ///
    /// impl RequestHash for Pair {
    ///     fn encode(&self, encoder: &mut Encoder) {
    ///         encoder.tuple(|elements| {
    ///             elements.element_with(|encoder| self.0.trim().encode(encoder));
    ///             elements.element(&self.1);
    ///         });
    ///     }
    /// }
    ///
    /// assert_eq!(canonical_bytes(&Pair(" a ".into(), 1))?, canonical_bytes(&("a", 1))?);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    pub fn element_with(&mut self, write: impl FnOnce(&mut Encoder)) {
        let index = self.next;
        self.next += 1;
        self.encoder.within(|| Step::Index(index), write);
    }
}

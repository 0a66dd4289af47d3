//! The request hash: is a second call with the same key really the same request?
//!
//! A value is written as *canonical bytes*, and the SHA-256 of these bytes, with a scheme byte in front, is its
//! [`RequestDigest`]. Two different values of one type never have the same bytes, and the bytes of one value stay the
//! same over restarts, deploys and the changes to a type that keep its meaning.
//!
//! ```
//! use idem_core::RequestDigest;
//!
//! let first = RequestDigest::of(&("ab", "c"))?;
//! let other = RequestDigest::of(&("a", "bc"))?;
//! assert_ne!(first, other);
//! assert!(first.to_string().starts_with("01"));
//! # Ok::<(), idem_core::HashError>(())
//! ```
//!
//! # The format
//!
//! Every value is `tag` (one byte), `length` (four bytes, big-endian) and `length` bytes of content. A container's
//! content is the values that it holds.
//!
//! | tag | kind | content |
//! |---|---|---|
//! | 0 | nothing: `None`, JSON `null`, `PhantomData` | empty; inside of `n` times `Some`: `n`, without leading zero bytes |
//! | 1 | `bool` | one byte, 0 or 1 |
//! | 2 | integer | sign byte (1 is negative), absolute value big-endian without leading zero bytes |
//! | 3 | `f32`, `f64` | the eight bytes of the `f64`, big-endian, `-0.0` as `0.0` |
//! | 4 | decimal, JSON number | sign byte, power of ten (four bytes), decimal digits without zeros at either end |
//! | 5 | text: `str`, `String`, `char` | UTF-8 |
//! | 6 | byte string | the bytes |
//! | 7 | sequence | the elements |
//! | 8 | tuple, `()` | the elements |
//! | 9 | struct | name and value of each field, sorted by name: shorter names first, then byte by byte |
//! | 10 | enum | the variant's name and its content: a value, a tuple or a struct (empty for a unit variant) |
//! | 11 | map | key and value of each entry, sorted by the encoded key |
//! | 12 | set | the elements, sorted by their encoding |
//! | 13 | duration | sign byte, nanoseconds big-endian without leading zero bytes |
//! | 14, 17 | instant, local date and time | seconds since 1970 (eight bytes), nanoseconds (four bytes) |
//! | 15 | date | days since the first of January of the year 1, which is day 1 (four bytes) |
//! | 16 | time of day | seconds since midnight, nanoseconds (four bytes each) |
//! | 18 | UUID | sixteen bytes |
//!
//! ```
//! use idem_core::request_hash::canonical_bytes;
//!
//! assert_eq!(canonical_bytes(&300_u16)?, [2, 0, 0, 0, 3, 0, 0x01, 0x2c]);
//! # Ok::<(), idem_core::HashError>(())
//! ```
//!
//! # What keeps a hash, and what does not
//!
//! * Type names and the order of fields do not count, names of fields and variants do.
//! * A newtype is written like what it holds; an integer or float that grows (`u32` to `u64`, `f32` to `f64`) keeps its
//!   hash. Maps and sets have no order: `HashMap` and `BTreeMap` agree.
//! * **`Some(x)` is written like `x`**, so a field may grow from `T` to `Option<T>`. Only where `x` is itself a `None`,
//!   the number of `Some` around it is counted, so `None`, `Some(None)` and `Some(Some(None))` all differ.
//! * **A named field adds nothing when it is `None`**, so a new optional field keeps the hashes that are stored already.
//!   This holds for everything that is written like `None`, such as a newtype around it. With
//!   `#[request_hash(default)]` a field adds nothing when it equals its default, and only then.
//! * In sequences, tuples and at the top level a `None` is written, because positions count there.
//! * `-0.0` equals `0.0`. NaN and the infinities are an error that names the field.
//! * Floats, integers and decimals are different kinds: `1_u8`, `1.0_f64` and the JSON number `1` differ.
//! * `Vec<u8>`, `[u8; N]`, `[u8]` and `VecDeque<u8>` are one byte string, not a sequence. Only of `u8` itself: a
//!   `Vec` of a newtype around it is a sequence.
//!
//! The bytes change only together with [`RequestDigest::CURRENT_SCHEME`]; the golden vectors of this crate watch over it.

mod digest;
mod encode;
mod error;
mod impls;
mod json;

pub use digest::RequestDigest;
pub use encode::{Elements, Encoder, Fields, canonical_bytes};
pub use error::HashError;
pub use json::{Json, MAX_JSON_DEPTH, MAX_NUMBER_EXPONENT, json};

/// A value that can be part of a request hash.
///
/// Derive it for your own types:
///
/// ```
/// use idem_core::{RequestDigest, RequestHash};
/// # use idem_macros::RequestHash;
///
/// #[derive(RequestHash)]
/// # #[request_hash(crate = idem_core)]
/// struct PayOrder {
///     order_id: i64,
///     amount_cents: i64,
///     #[request_hash(skip)]
///     trace_id: String,
/// }
///
/// let first = PayOrder { order_id: 1, amount_cents: 500, trace_id: "a1".into() };
/// let retry = PayOrder { order_id: 1, amount_cents: 500, trace_id: "b2".into() };
/// assert_eq!(RequestDigest::of(&first)?, RequestDigest::of(&retry)?);
/// # assert!(!first.trace_id.is_empty() && !retry.trace_id.is_empty());
/// # Ok::<(), idem_core::HashError>(())
/// ```
///
/// It is there for the integers and their `NonZero` forms, `bool`, `char`, `f32`, `f64`, `str`, `String`, `()`, tuples up
/// to twelve elements, arrays, slices, `Vec`, `VecDeque`, `Option`, `HashMap`, `BTreeMap`, `HashSet`, `BTreeSet`,
/// `Duration`, `PhantomData`, the transparent `&T`, `&mut T`, `Box`, `Rc`, `Arc` and `Cow`, `serde_json`'s `Value` and `Map`, and JSON
/// text as [`Json`]. Features add `chrono` (`DateTime` as the instant that it is, whatever its offset, `NaiveDate`,
/// `NaiveTime`, `NaiveDateTime`, `TimeDelta`), `uuid` (`Uuid`) and `rust_decimal` (`Decimal` by value: `1.0` equals `1.00`).
///
/// # The words of the derive
///
/// | on | `#[request_hash(…)]` | meaning |
/// |---|---|---|
/// | field | `skip` | does not count: trace ids, times of arrival, card data |
/// | field with a name | `rename = "name"` | is hashed under this name, so a field can be renamed in the code |
/// | field with a name | `default` | adds nothing when it equals `Default::default()` (compared with `==`) |
/// | field with a name | `default = path` | adds nothing when it equals what this function gives |
/// | field | `with = path` | is written by this function, `fn(&T, &mut Encoder)` |
/// | variant | `rename = "name"` | is hashed under this name |
/// | type | `crate = path` | where the library is, when its dependency was renamed |
///
/// Structs, tuples and enums of every shape can be derived, with type parameters, lifetimes and recursion. A parameter
/// of the type must have the trait when a field that counts holds a value of it. A tuple of which one field counts is
/// written like this field. Attributes of serde are not looked at: what the hash is made of is said in one place.
///
/// A digest of a card number can be reversed by trying all of them. Give such a field `skip`, or a `with` function that
/// writes a keyed digest (HMAC) of it.
///
/// ```
/// use idem_core::request_hash::{Encoder, RequestHash};
/// use idem_core::RequestDigest;
/// # use idem_macros::RequestHash;
///
/// #[derive(RequestHash)]
/// # #[request_hash(crate = idem_core)]
/// struct SignUp {
///     #[request_hash(with = without_case)]
///     email: String,
///     #[request_hash(rename = "lang", default)]
///     language: String,
///     referrer: Option<String>,
/// }
///
/// fn without_case(text: &str, encoder: &mut Encoder) {
///     text.to_lowercase().encode(encoder);
/// }
///
/// let sign_up = SignUp { email: "Ada@example.org".into(), language: String::new(), referrer: None };
/// let same = RequestDigest::of_fields(&[("email", &"ada@example.org")])?;
/// assert_eq!(RequestDigest::of(&sign_up)?, same);
/// # Ok::<(), idem_core::HashError>(())
/// ```
///
/// # Writing it by hand
///
/// An implementation writes **exactly one value**, in most cases by handing on to another type's `encode`. Equal values
/// must be written equally, different ones differently.
///
/// ```
/// use idem_core::request_hash::{Encoder, RequestHash};
/// use idem_core::RequestDigest;
///
/// /// Compared without regard to case.
/// struct Email(String);
///
/// impl RequestHash for Email {
///     fn encode(&self, encoder: &mut Encoder) {
///         self.0.to_lowercase().encode(encoder);
///     }
/// }
///
/// let shouted = RequestDigest::of(&Email("ADA@EXAMPLE.ORG".into()))?;
/// assert_eq!(shouted, RequestDigest::of("ada@example.org")?);
/// # Ok::<(), idem_core::HashError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a request hash",
    label = "`RequestHash` is not implemented for `{Self}`",
    note = "for your own type: `#[derive(RequestHash)]`",
    note = "for a field of a foreign type: `#[request_hash(with = path)]`, where `fn path(value: &T, encoder: &mut Encoder)` writes it",
    note = "for what does not belong to the request: `#[request_hash(skip)]` on a field, `#[idempotent(skip)]` on a parameter",
    note = "types of `chrono`, `uuid` and `rust_decimal` need the feature of that name"
)]
pub trait RequestHash {
    /// Writes this value, and nothing else, into the encoder.
    ///
    /// What cannot be hashed is reported with [`Encoder::refuse`]; [`RequestDigest::of`] then returns it as an error.
    ///
    /// ```
    /// use idem_core::request_hash::{Encoder, RequestHash, canonical_bytes};
    ///
    /// /// Degrees, of which whole turns make no difference.
    /// struct Angle(i32);
    ///
    /// impl RequestHash for Angle {
    ///     fn encode(&self, encoder: &mut Encoder) {
    ///         self.0.rem_euclid(360).encode(encoder);
    ///     }
    /// }
    ///
    /// assert_eq!(canonical_bytes(&Angle(-90))?, canonical_bytes(&Angle(270))?);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    fn encode(&self, encoder: &mut Encoder);

    /// Writes several values as a sequence. Rust has no specialisation, so this is how `u8` makes it one byte string.
    #[doc(hidden)]
    fn encode_elements<'e>(elements: impl Iterator<Item = &'e Self>, encoder: &mut Encoder)
    where
        Self: Sized + 'e,
    {
        encoder.sequence(|sequence| {
            for element in elements {
                sequence.element(element);
            }
        });
    }
}

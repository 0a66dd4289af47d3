//! The digest of a request, as it is stored and compared.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::encode::{Encoder, finish};
use super::{HashError, RequestHash, canonical_bytes};
use crate::hex;

/// The SHA-256 of a request's canonical bytes, with the number of the scheme that wrote them.
///
/// Digests of different schemes are never equal, so a stored one is compared under its own scheme or not at all.
///
/// ```
/// use idem_core::RequestDigest;
///
/// let digest = RequestDigest::of(&42_i64)?;
/// assert_eq!(digest, RequestDigest::of(&42_u8)?);
/// assert_eq!(RequestDigest::from_hex(&digest.to_hex()), Some(digest));
/// # Ok::<(), idem_core::HashError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestDigest {
    scheme: u8,
    sha256: [u8; 32],
}

impl RequestDigest {
    /// The scheme of the digests that this version makes. It changes when the canonical bytes of any value would.
    ///
    /// ```
    /// use idem_core::RequestDigest;
    ///
    /// assert_eq!(RequestDigest::CURRENT_SCHEME, 1);
    /// ```
    pub const CURRENT_SCHEME: u8 = 1;

    /// The digest of one value. A newtype has the digest of what it holds.
    ///
    /// ```
    /// use idem_core::RequestDigest;
    ///
    /// assert_eq!(RequestDigest::of("pay")?, RequestDigest::of(&String::from("pay"))?);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first part of the value that has no request hash: a NaN, an infinity, invalid JSON, or what an own
    /// implementation refused.
    pub fn of<T: RequestHash + ?Sized>(value: &T) -> Result<Self, HashError> {
        canonical_bytes(value).map(|bytes| Self::of_canonical_bytes(&bytes))
    }

    /// The digest of several values, hashed exactly as a struct with these named fields; their order does not count.
    ///
    /// ```
    /// use idem_core::RequestDigest;
    ///
    /// let one = RequestDigest::of_fields(&[("order_id", &7_i64), ("note", &None::<String>)])?;
    /// let other = RequestDigest::of_fields(&[("order_id", &7_i32)])?;
    /// assert_eq!(one, other);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`RequestDigest::of`], and when two fields have one name.
    pub fn of_fields(fields: &[(&str, &dyn RequestHash)]) -> Result<Self, HashError> {
        let mut encoder = Encoder::new();
        encoder.structure(|structure| {
            for (name, value) in fields {
                structure.field(name, *value);
            }
        });
        finish(encoder).map(|bytes| Self::of_canonical_bytes(&bytes))
    }

    fn of_canonical_bytes(bytes: &[u8]) -> Self {
        Self {
            scheme: Self::CURRENT_SCHEME,
            sha256: Sha256::digest(bytes).into(),
        }
    }

    /// The scheme that wrote the canonical bytes.
    ///
    /// ```
    /// use idem_core::RequestDigest;
    ///
    /// assert_eq!(RequestDigest::of(&())?.scheme(), RequestDigest::CURRENT_SCHEME);
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    pub fn scheme(&self) -> u8 {
        self.scheme
    }

    /// 66 lower-case hexadecimal characters, the scheme byte first: what the column `request_hash` holds.
    ///
    /// ```
    /// use idem_core::RequestDigest;
    ///
    /// let hex = RequestDigest::of(&true)?.to_hex();
    /// assert_eq!(hex.len(), 66);
    /// assert_eq!(&hex[..2], "01");
    /// # Ok::<(), idem_core::HashError>(())
    /// ```
    pub fn to_hex(&self) -> String {
        let mut text = String::with_capacity(66);
        hex::push(&mut text, &[self.scheme]);
        hex::push(&mut text, &self.sha256);
        text
    }

    /// Reads what [`to_hex`](Self::to_hex) wrote, of any scheme; `None` for everything else.
    ///
    /// ```
    /// use idem_core::RequestDigest;
    ///
    /// let later = RequestDigest::from_hex(&"02".repeat(33)).expect("66 characters");
    /// assert_eq!(later.scheme(), 2);
    /// assert_eq!(RequestDigest::from_hex("0123"), None);
    /// ```
    pub fn from_hex(hex: &str) -> Option<Self> {
        let (pairs, []) = hex.as_bytes().as_chunks::<2>() else {
            return None;
        };
        let (scheme, pairs) = pairs.split_first()?;
        let pairs: &[[u8; 2]; 32] = pairs.try_into().ok()?;
        let mut sha256 = [0; 32];
        for (byte, pair) in sha256.iter_mut().zip(pairs) {
            *byte = byte_of_hex(*pair)?;
        }
        Some(Self {
            scheme: byte_of_hex(*scheme)?,
            sha256,
        })
    }
}

fn byte_of_hex([high, low]: [u8; 2]) -> Option<u8> {
    Some(value_of_hex_digit(high)? << 4 | value_of_hex_digit(low)?)
}

/// Upper case is refused: each digest has one text, so that texts can be compared, too.
fn value_of_hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for RequestDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl fmt::Debug for RequestDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestDigest({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::RequestDigest;

    #[track_caller]
    fn check(hex: &str, expected_scheme: Option<u8>) {
        let digest = RequestDigest::from_hex(hex);
        assert_eq!(digest.as_ref().map(RequestDigest::scheme), expected_scheme);
        if let Some(digest) = digest {
            assert_eq!(digest.to_hex(), hex);
        }
    }

    #[test]
    fn only_66_lower_case_hexadecimal_characters_are_a_digest() {
        check(&"01".repeat(33), Some(1));
        check(&"fe".repeat(33), Some(0xfe));
        check(&"00".repeat(33), Some(0));
        check("", None);
        check(&"01".repeat(32), None);
        check(&"01".repeat(34), None);
        check(&format!("{}0", "01".repeat(32)), None);
        check(&"0A".repeat(33), None);
        check(&"0g".repeat(33), None);
        check(&"é".repeat(33), None);
    }

    #[test]
    fn debug_shows_the_hex() {
        let digest = RequestDigest::from_hex(&"ab".repeat(33)).unwrap();
        assert_eq!(
            format!("{digest:?}"),
            format!("RequestDigest({})", "ab".repeat(33))
        );
    }
}

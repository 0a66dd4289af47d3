//! The idempotency key: what a caller sends to say "this is the same intent again".
//!
//! ```
//! use idem_core::IdempotencyKey;
//!
//! let sent: IdempotencyKey = "8e03978e-40d5-43e8-bc93-6894a57f9324".parse()?;
//! let of_business_data = IdempotencyKey::from_parts(["invoice-1017", "2026-11"])?;
//! assert_ne!(sent, of_business_data);
//! # Ok::<(), idem_core::Invalid>(())
//! ```

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::invalid::{Invalid, Problem};
use crate::limits::MAX_KEY_BYTES;

const WHAT: &str = "idempotency key";

/// 1 to 255 bytes of visible ASCII, with spaces inside but not around.
///
/// These are the characters of a string in an HTTP header field (RFC 9651, section 3.3.3), less the spaces around it, which HTTP
/// takes off a bare value (RFC 9110, section 5.5). For the length see [`MAX_KEY_BYTES`].
///
/// A key names a business intent, not an attempt: every retry of one command sends the same key, a second order sends
/// another. A request id, a timestamp or a retry counter is not a key, so no clock or number type converts into one.
/// Keys compare byte by byte.
///
/// ```
/// use idem_core::IdempotencyKey;
///
/// let key = IdempotencyKey::new("8e03978e-40d5-43e8-bc93-6894a57f9324")?;
/// assert_eq!(key.as_str(), "8e03978e-40d5-43e8-bc93-6894a57f9324");
/// assert!(IdempotencyKey::new("tab\there").is_err());
/// # Ok::<(), idem_core::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Takes a key as a client sent it.
    ///
    /// ```
    /// use idem_core::IdempotencyKey;
    ///
    /// assert!(IdempotencyKey::new("order 17, second try").is_ok());
    /// assert!(IdempotencyKey::new("").is_err());
    /// assert!(IdempotencyKey::new(" order 17").is_err());
    /// assert!(IdempotencyKey::new("k".repeat(256)).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`] when it is empty, longer than 255 bytes, has a byte outside visible ASCII, or a space around it.
    pub fn new(key: impl Into<String>) -> Result<Self, Invalid> {
        let key = key.into();
        check(&key).map_err(|problem| Invalid::new(WHAT, problem))?;
        Ok(Self(key))
    }

    /// The key of an intent that business data names already, such as invoice and month: equal parts, equal key, on
    /// every machine and after every restart.
    ///
    /// It is the SHA-256 of the parts with their lengths, in hexadecimal, so `["ab", "c"]` and `["a", "bc"]` differ.
    ///
    /// ```
    /// use idem_core::IdempotencyKey;
    ///
    /// let key = IdempotencyKey::from_parts(["invoice-1017", "2026-11"])?;
    /// assert_eq!(key, IdempotencyKey::from_parts(["invoice-1017", "2026-11"])?);
    /// assert_ne!(key, IdempotencyKey::from_parts(["invoice-10172026", "-11"])?);
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`] when there is no part or a part is empty: a missing business value must not become a key that others share.
    pub fn from_parts<I>(parts: I) -> Result<Self, Invalid>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let mut hasher = Sha256::new();
        hasher.update(b"idem key from parts 1\0");
        let mut count = 0_u64;
        for part in parts {
            let part = part.as_ref();
            if part.is_empty() {
                return Err(Invalid::new("part of an idempotency key", Problem::Empty));
            }
            update_with_length(&mut hasher, part);
            count += 1;
        }
        if count == 0 {
            return Err(Invalid::new(WHAT, Problem::Empty));
        }
        Ok(Self(hex(&hasher.finalize())))
    }

    /// A new random key (UUID version 4), for a client that starts a new intent and keeps the key over its retries.
    ///
    /// ```
    /// use idem_core::IdempotencyKey;
    ///
    /// assert_ne!(IdempotencyKey::random(), IdempotencyKey::random());
    /// ```
    ///
    /// # Panics
    ///
    /// When the operating system gives no random bytes.
    #[cfg(feature = "uuid")]
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().to_string())
    }

    /// The key as it was sent.
    ///
    /// ```
    /// use idem_core::IdempotencyKey;
    ///
    /// // Nothing is trimmed, folded or decoded.
    /// assert_eq!(IdempotencyKey::new("Order%2017")?.as_str(), "Order%2017");
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A key of the server's own, in a namespace that no client can send: it begins with a character that is not ASCII.
    pub(crate) fn of_server(kind: &str, parts: &[&str]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(b"idem key of server 1\0");
        for part in [kind].iter().chain(parts) {
            update_with_length(&mut hasher, part);
        }
        Self(format!("§{kind}:{}", hex(&hasher.finalize())))
    }
}

fn check(key: &str) -> Result<(), Problem> {
    if key.is_empty() {
        return Err(Problem::Empty);
    }
    if key.len() > MAX_KEY_BYTES {
        return Err(Problem::TooLong {
            bytes: key.len(),
            limit: MAX_KEY_BYTES,
        });
    }
    if let Some(position) = key.bytes().position(|b| !matches!(b, b' '..=b'~')) {
        return Err(Problem::BadByte { position });
    }
    if key.starts_with(' ') || key.ends_with(' ') {
        return Err(Problem::OuterSpace);
    }
    Ok(())
}

/// Adds `text` so that two texts cannot run into each other.
pub(crate) fn update_with_length(hasher: &mut Sha256, text: &str) {
    hasher.update((text.len() as u64).to_be_bytes());
    hasher.update(text.as_bytes());
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    crate::hex::push(&mut text, bytes);
    text
}

impl FromStr for IdempotencyKey {
    type Err = Invalid;

    fn from_str(key: &str) -> Result<Self, Invalid> {
        Self::new(key)
    }
}

impl TryFrom<&str> for IdempotencyKey {
    type Error = Invalid;

    fn try_from(key: &str) -> Result<Self, Invalid> {
        Self::new(key)
    }
}

impl TryFrom<String> for IdempotencyKey {
    type Error = Invalid;

    fn try_from(key: String) -> Result<Self, Invalid> {
        Self::new(key)
    }
}

impl AsRef<str> for IdempotencyKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_key(key: &str, expected: Result<(), Problem>) {
        assert_eq!(
            IdempotencyKey::new(key)
                .map(|_| ())
                .map_err(|e| e.problem()),
            expected
        );
    }

    #[test]
    fn keys_are_visible_ascii_of_1_to_255_bytes() {
        check_key("a", Ok(()));
        check_key("order 17 / retry-safe", Ok(()));
        check_key(&"k".repeat(255), Ok(()));
        check_key("", Err(Problem::Empty));
        check_key(
            &"k".repeat(256),
            Err(Problem::TooLong {
                bytes: 256,
                limit: 255,
            }),
        );
        check_key("naïve", Err(Problem::BadByte { position: 2 }));
        check_key("line\n", Err(Problem::BadByte { position: 4 }));
        check_key("\u{7f}", Err(Problem::BadByte { position: 0 }));
        check_key(" a", Err(Problem::OuterSpace));
        check_key("a ", Err(Problem::OuterSpace));
        check_key(" ", Err(Problem::OuterSpace));
    }

    #[test]
    fn no_client_can_send_a_key_of_the_server() {
        let key = IdempotencyKey::of_server("message", &["billing", "evt-17"]);
        assert_eq!(
            key.as_str(),
            "§message:1632d0aca127b4156478d94b675e606d85c75d73edceeb7ec4f3e554f7222808"
        );
        assert!(IdempotencyKey::new(key.as_str()).is_err());
    }

    #[test]
    fn keys_from_parts_never_change() {
        let key = IdempotencyKey::from_parts(["order", "17"]).unwrap();
        assert_eq!(
            key.as_str(),
            "537d19f282a82eaf881aa83b6fe88d71a8d1118e34ef684555cf9610f50897c5"
        );
        assert_ne!(key, IdempotencyKey::from_parts(["order1", "7"]).unwrap());
        assert!(IdempotencyKey::from_parts(Vec::<String>::new()).is_err());
        assert!(IdempotencyKey::from_parts(["order", ""]).is_err());
    }
}

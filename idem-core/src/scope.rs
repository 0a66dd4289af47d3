//! What a key is unique in: the tenant that owns it, and the operation it is for.
//!
//! ```
//! use idem_core::{IdempotencyKey, Intent, Tenant};
//!
//! let key = IdempotencyKey::new("order-17")?;
//! let [acme, zeta] = [Tenant::shared("acme")?, Tenant::shared("zeta")?];
//! assert_ne!(Intent::new(acme, key.clone()), Intent::new(zeta, key));
//! # Ok::<(), idem_core::Invalid>(())
//! ```

use std::fmt;

use crate::invalid::{Invalid, Problem};
use crate::limits::MAX_NAME_BYTES;

/// The owner of a key: an account, and whoever acts for it.
///
/// A replay gives back an answer without running the body, so it also skips whatever authorisation the body does.
/// Therefore a key belongs to one principal of an account unless [`Tenant::shared`] says otherwise. Both parts come from the
/// application's own authentication, never from what a client claims.
///
/// ```
/// use idem_core::Tenant;
///
/// let alice = Tenant::of("acme", "alice")?;
/// assert_eq!(alice.as_str(), "acme/alice");
/// assert_ne!(alice, Tenant::of("acme", "bob")?);
/// assert_ne!(Tenant::of("a", "b/c")?, Tenant::of("a/b", "c")?);
/// # Ok::<(), idem_core::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(String);

impl Tenant {
    /// One principal of one account: 1 to 255 bytes each, no control characters.
    ///
    /// ```
    /// use idem_core::Tenant;
    ///
    /// assert_eq!(Tenant::of("acme", "alice")?.as_str(), "acme/alice");
    /// assert_eq!(Tenant::of("acme", "").unwrap_err().to_string(), "principal is empty");
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`] when a part is empty, too long, or has a control character.
    pub fn of(account: impl AsRef<str>, principal: impl AsRef<str>) -> Result<Self, Invalid> {
        let account = part("account", account.as_ref())?;
        let principal = part("principal", principal.as_ref())?;
        Ok(Self(format!("{account}/{principal}")))
    }

    /// Every principal of an account shares its keys: one may be given the answer to what another asked.
    ///
    /// ```
    /// use idem_core::Tenant;
    ///
    /// assert_eq!(Tenant::shared("nightly-import")?.as_str(), "nightly-import");
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`] when the account is empty, too long, or has a control character.
    pub fn shared(account: impl AsRef<str>) -> Result<Self, Invalid> {
        part("account", account.as_ref()).map(Self)
    }

    /// The text of the column `tenant_id`: `account/principal` or `account`, with `/` and `%` inside a part written
    /// `%2F` and `%25` (RFC 3986, section 2.1), so that two tenants never share a text.
    ///
    /// ```
    /// use idem_core::Tenant;
    ///
    /// assert_eq!(Tenant::of("acme/eu", "100%")?.as_str(), "acme%2Feu/100%25");
    /// # Ok::<(), idem_core::Invalid>(())
    /// ```
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn part(what: &'static str, text: &str) -> Result<String, Invalid> {
    check_name(text).map_err(|problem| Invalid::new(what, problem))?;
    Ok(text.replace('%', "%25").replace('/', "%2F"))
}

/// The rule of every name: 1 to 255 bytes, no control characters. `const`, because operations are checked by the compiler.
pub(crate) const fn check_name(name: &str) -> Result<(), Problem> {
    let bytes = name.as_bytes();
    if bytes.is_empty() {
        return Err(Problem::Empty);
    }
    if bytes.len() > MAX_NAME_BYTES {
        return Err(Problem::TooLong {
            bytes: bytes.len(),
            limit: MAX_NAME_BYTES,
        });
    }
    let mut rest = bytes;
    let mut position = 0;
    // C1 controls (U+0080 to U+009F) are `C2 80` to `C2 9F` in UTF-8.
    let mut after_c2 = false;
    while let [byte, tail @ ..] = rest {
        if *byte < 0x20 || *byte == 0x7f || (after_c2 && *byte < 0xa0) {
            return Err(Problem::BadByte { position });
        }
        after_c2 = *byte == 0xc2;
        rest = tail;
        position += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_1_to_255_bytes_and_no_control_characters() {
        assert!(check_name("orders.pay").is_ok());
        assert!(check_name("Größe µ").is_ok());
        assert!(check_name(&"n".repeat(255)).is_ok());
        assert_eq!(check_name(""), Err(Problem::Empty));
        assert_eq!(
            check_name(&"n".repeat(256)),
            Err(Problem::TooLong {
                bytes: 256,
                limit: 255
            })
        );
        assert_eq!(check_name("a\0b"), Err(Problem::BadByte { position: 1 }));
        assert_eq!(
            check_name("a\u{85}b"),
            Err(Problem::BadByte { position: 2 })
        );
    }

    #[test]
    fn different_owners_never_share_a_text() {
        let texts = [
            Tenant::shared("a"),
            Tenant::shared("a/b"),
            Tenant::of("a", "b"),
            Tenant::of("a/b", "c"),
            Tenant::of("a", "b/c"),
            Tenant::of("a%2Fb", "c"),
        ]
        .map(|tenant| tenant.unwrap().to_string());
        let distinct: std::collections::HashSet<_> = texts.iter().collect();
        assert_eq!(distinct.len(), texts.len(), "{texts:?}");
    }

    #[test]
    fn empty_owners_are_refused_by_name() {
        assert_eq!(Tenant::of("", "x").unwrap_err().what(), "account");
        assert_eq!(Tenant::of("x", "").unwrap_err().what(), "principal");
        assert_eq!(Tenant::shared("").unwrap_err().what(), "account");
    }
}

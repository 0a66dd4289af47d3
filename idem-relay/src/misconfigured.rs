//! What cannot work, said before anything is done.

use std::error::Error as StdError;
use std::fmt;

/// Why a publisher or a consume loop cannot be made as it was asked for. It shows no secret and no password.
///
/// ```
/// # #[cfg(feature = "http")]
/// # {
/// use idem_relay::publisher::WebhookSecret;
///
/// let error = WebhookSecret::new("whsec_").unwrap_err();
/// assert_eq!(error.to_string(), "the webhook secret has 0 bytes, and it must have 24 to 64");
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misconfigured(String);

impl Misconfigured {
    #[cfg(any(feature = "jetstream", feature = "rabbitmq", feature = "http"))]
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Misconfigured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for Misconfigured {}

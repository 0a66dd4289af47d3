//! The signature of Standard Webhooks, version 1: pure, without a clock.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::misconfigured::Misconfigured;

/// How a secret is marked, so that it is known when it is found where it should not be. It is no part of the key.
const PREFIX: &str = "whsec_";

/// How many bytes a secret has (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>).
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// What a sender and an endpoint share. It is never shown.
///
/// ```
/// use idem_relay::publisher::WebhookSecret;
///
/// let secret = WebhookSecret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// assert_eq!(format!("{secret:?}"), "WebhookSecret");
/// # Ok::<(), idem_relay::Misconfigured>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

impl WebhookSecret {
    /// The secret as endpoints hand it out: `whsec_` and 24 to 64 bytes in base64.
    ///
    /// ```
    /// use idem_relay::publisher::WebhookSecret;
    ///
    /// assert!(WebhookSecret::new("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").is_ok());
    /// let error = WebhookSecret::new("whsec_not base64").unwrap_err();
    /// assert_eq!(error.to_string(), "the webhook secret is not base64");
    /// ```
    ///
    /// # Errors
    ///
    /// [`Misconfigured`] for what is no base64, or shorter or longer.
    pub fn new(secret: &str) -> Result<Self, Misconfigured> {
        let key = STANDARD
            .decode(secret.strip_prefix(PREFIX).unwrap_or(secret))
            .map_err(|_| Misconfigured::new("the webhook secret is not base64"))?;
        if SECRET_BYTES.contains(&key.len()) {
            return Ok(Self(key));
        }
        let (bytes, least, most) = (key.len(), SECRET_BYTES.start(), SECRET_BYTES.end());
        let why =
            format!("the webhook secret has {bytes} bytes, and it must have {least} to {most}");
        Err(Misconfigured::new(why))
    }

    /// `v1,` and the HMAC of SHA-256 over id, timestamp and body, in base64.
    fn signature(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else {
            unreachable!("HMAC takes a key of any length");
        };
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

/// The value of `webhook-signature`: a signature for each secret, since an endpoint that changes its secret accepts either for a while.
pub(super) fn sign(secrets: &[WebhookSecret], id: &str, timestamp: &str, body: &[u8]) -> String {
    let signatures = secrets
        .iter()
        .map(|secret| secret.signature(id, timestamp, body));
    signatures.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::Value;

    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn every_secret_signs() {
        let secrets = [SECRET, "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"]
            .map(|secret| WebhookSecret::new(secret).unwrap());
        let [new, old] = &secrets;
        let both = sign(&secrets, "evt-17", "1614265330", b"{}");
        let each = [new, old].map(|secret| secret.signature("evt-17", "1614265330", b"{}"));
        assert_eq!(both, each.join(" "));
        assert_ne!(each[0], each[1]);
    }

    #[test]
    fn the_specification_says_how_long_a_secret_is() {
        for (bytes, good) in [(0, false), (23, false), (24, true), (64, true), (65, false)] {
            let secret = format!("whsec_{}", STANDARD.encode(vec![7; bytes]));
            assert_eq!(WebhookSecret::new(&secret).is_ok(), good, "{bytes}");
        }
    }

    /// They stand beside the repository, because they have their own licences.
    #[test]
    fn the_vectors_of_standard_webhooks_have_our_signatures() {
        let vectors = std::env::var_os("IDEM_VECTORS").map_or_else(
            || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors"),
            PathBuf::from,
        );
        let folder = vectors.join("webhook-signatures");
        if !folder.is_dir() {
            let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(
                !in_ci,
                "the webhook vectors are missing: set IDEM_VECTORS to the folder that holds `webhook-signatures`"
            );
            println!("outside suite not run: webhook-signatures");
            return;
        }
        let vectors = std::fs::read(folder.join("standard-webhooks.json")).unwrap();
        let vectors: Value = serde_json::from_slice(&vectors).unwrap();
        let (mut signed, mut refused) = (0, 0);
        for case in vectors["verify"].as_array().unwrap() {
            let text = |name: &str| case[name].as_str();
            let (Some(id), Some(timestamp), Some(signatures)) = (
                text("webhook-id"),
                text("webhook-timestamp"),
                text("webhook-signature"),
            ) else {
                continue;
            };
            let secret = WebhookSecret::new(text("secret").unwrap()).unwrap();
            let body = text("payload").unwrap();
            let ours = sign(&[secret], id, timestamp, body.as_bytes());
            let is_theirs = signatures.split(' ').any(|signature| signature == ours);
            // The others are old, or from the future: that is the receiver's matter.
            let is_about_time = text("why_invalid").is_some_and(|why| why.contains("timestamp"));
            if case["valid"] == true || is_about_time && text("webhook-timestamp") != Some("hello")
            {
                assert!(is_theirs, "{}", case["name"]);
                signed += 1;
            } else {
                assert!(!is_theirs, "{}", case["name"]);
                refused += 1;
            }
        }
        for case in vectors["bad_secrets"].as_array().unwrap() {
            let secret = case["secret"].as_str().unwrap();
            assert!(WebhookSecret::new(secret).is_err(), "{}", case["name"]);
        }
        assert!(signed >= 6 && refused >= 6, "{signed} and {refused}");
    }
}

//! HTTP, signed as Standard Webhooks.

use std::fmt;
use std::time::{Duration, SystemTime};

use idem_diesel::outbox::OutboxEvent;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Response, StatusCode, Url};

use super::signature::{WebhookSecret, sign};
use super::{PublishError, Publisher};
use crate::headers;
use crate::misconfigured::Misconfigured;
use crate::relay::shown;

/// How long a whole request may take, unless it is said: less than what a relay allows, so that the error says what was slow.
pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(8);

/// The longest rest that an endpoint is granted, however long it asks for.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);

/// How much of an answer is read. Nobody looks at it: a connection whose answer was read can take another request.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024;

/// Posts each event to one endpoint, signed as the Standard Webhooks specification says (<https://www.standardwebhooks.com>).
///
/// The body is the payload of the event. `webhook-id` is the id of the event, the same on every attempt; `webhook-timestamp` is the time of this one; `webhook-signature` has one signature for each
/// secret, so that a secret can be changed while both are accepted. Of the other [headers](crate::headers) only those go with it that say nothing of the call that caused the event: the
/// endpoint may be a stranger's.
///
/// ```
/// use idem_relay::publisher::{HttpPublisher, WebhookSecret};
///
/// let secret = WebhookSecret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// let publisher = HttpPublisher::new("http://localhost:8080/events", [secret])?;
/// assert!(!format!("{publisher:?}").contains("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
/// # Ok::<(), idem_relay::Misconfigured>(())
/// ```
///
/// For `https` turn on a TLS of reqwest, `reqwest = { version = "0.13", default-features = false, features = ["rustls"] }`, or give a client that has one to [`with_client`](Self::with_client).
///
/// # What its errors mean
///
/// * Unavailable: no connection to the endpoint could be made.
/// * Rejected: the endpoint answers 410 or 413, or with a redirect, which is not followed: the signature and the payload would go to somebody else.
/// * Failed: any other answer but 2xx, no answer in time, or a connection that was lost. What 429 and 503 say in `Retry-After` is honoured, up to [`LONGEST_RETRY_AFTER`].
pub struct HttpPublisher {
    client: Client,
    endpoint: Url,
    secrets: Vec<WebhookSecret>,
    request_timeout: Duration,
    clock: fn() -> SystemTime,
}

impl HttpPublisher {
    /// A publisher for an endpoint, with the secrets that it accepts; the newest first.
    ///
    /// # Errors
    ///
    /// [`Misconfigured`] when this is not a URL of HTTP, there is no secret, or no client can be made.
    pub fn new(
        endpoint: &str,
        secrets: impl IntoIterator<Item = WebhookSecret>,
    ) -> Result<Self, Misconfigured> {
        Self::with_client(Client::builder(), endpoint, secrets)
    }

    /// The same with a client of its own: its certificates, its proxy, the name it gives itself. Redirects stay off.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn with_client(
        client: ClientBuilder,
        endpoint: &str,
        secrets: impl IntoIterator<Item = WebhookSecret>,
    ) -> Result<Self, Misconfigured> {
        let endpoint = endpoint.parse().ok();
        let endpoint: Option<Url> =
            endpoint.filter(|url: &Url| matches!(url.scheme(), "http" | "https"));
        let endpoint =
            endpoint.ok_or_else(|| Misconfigured::new("the endpoint is not a URL of HTTP"))?;
        let secrets: Vec<_> = secrets.into_iter().collect();
        if secrets.is_empty() {
            return Err(Misconfigured::new(
                "an endpoint needs a secret, at least one",
            ));
        }
        let client = client.redirect(Policy::none()).build();
        let client = client
            .map_err(|error| Misconfigured::new(format!("no HTTP client: {}", shown(&error))))?;
        Ok(Self {
            client,
            endpoint,
            secrets,
            request_timeout: DEFAULT_REQUEST_TIMEOUT,
            clock: SystemTime::now,
        })
    }

    /// How long a whole request may take.
    #[must_use]
    pub fn request_timeout(self, request_timeout: Duration) -> Self {
        Self {
            request_timeout,
            ..self
        }
    }

    /// Where the time comes from that is signed, and that a date in `Retry-After` is compared with.
    #[must_use]
    pub fn clock(self, clock: fn() -> SystemTime) -> Self {
        Self { clock, ..self }
    }

    fn headers(&self, event: &OutboxEvent) -> HeaderMap {
        let id = event.id.to_string();
        let timestamp = unix_seconds((self.clock)()).to_string();
        let signatures = sign(&self.secrets, &id, &timestamp, event.payload.as_bytes());
        let mut map = HeaderMap::new();
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let webhook = [
            ("webhook-id", id.as_str()),
            ("webhook-timestamp", timestamp.as_str()),
            ("webhook-signature", signatures.as_str()),
        ];
        for (name, value) in webhook.into_iter().chain(headers::for_outsiders(event)) {
            // What is not visible ASCII is left out: HTTP does not say in which encoding it would be.
            let is_visible = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
            if is_visible && let Ok(value) = HeaderValue::from_str(value) {
                map.insert(HeaderName::from_static(name), value);
            }
        }
        map
    }

    fn verdict(&self, status: StatusCode, headers: &HeaderMap) -> Result<(), PublishError> {
        if status.is_success() {
            return Ok(());
        }
        let answered = format!("the endpoint answered {status}");
        Err(match status {
            StatusCode::GONE | StatusCode::PAYLOAD_TOO_LARGE => PublishError::rejected(answered),
            _ if status.is_redirection() => {
                PublishError::rejected(format!("{answered}, and redirects are not followed"))
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                match retry_after(headers, (self.clock)()) {
                    Some(rest) => PublishError::failed_until(rest, answered),
                    None => PublishError::failed(answered),
                }
            }
            _ => PublishError::failed(answered),
        })
    }
}

impl Publisher for HttpPublisher {
    async fn publish(&self, event: &OutboxEvent) -> Result<(), PublishError> {
        let request = self
            .client
            .post(self.endpoint.clone())
            .timeout(self.request_timeout)
            .headers(self.headers(event))
            .body(event.payload.clone());
        match request.send().await {
            Ok(response) => {
                let verdict = self.verdict(response.status(), response.headers());
                read_in_part(response).await;
                verdict
            }
            Err(error) => {
                // The URL may have a token in it.
                let error = error.without_url();
                Err(if error.is_connect() {
                    PublishError::unavailable(shown(&error))
                } else {
                    PublishError::failed(shown(&error))
                })
            }
        }
    }
}

impl fmt::Debug for HttpPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpPublisher")
            .field("endpoint", &self.endpoint.host_str())
            .finish_non_exhaustive()
    }
}

async fn read_in_part(mut response: Response) {
    let mut read = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        read += chunk.len();
        if read > MAX_ANSWER_BYTES {
            return;
        }
    }
}

/// Seconds or a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let rest = if let Ok(seconds) = text.parse() {
        Duration::from_secs(seconds)
    } else {
        let until = httpdate::parse_http_date(text).ok()?;
        until.duration_since(now).unwrap_or_default()
    };
    Some(rest.min(LONGEST_RETRY_AFTER))
}

fn unix_seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publisher::Kind;
    use crate::publisher::tests::event;

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    fn clock() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
    }

    fn publisher() -> HttpPublisher {
        let secret = WebhookSecret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let publisher = HttpPublisher::new("http://localhost/", [secret]).unwrap();
        publisher.clock(clock)
    }

    #[track_caller]
    fn check(status: u16, retry_after: Option<&'static str>, expected: Kind) {
        let mut headers = HeaderMap::new();
        if let Some(value) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(value));
        }
        let status = StatusCode::from_u16(status).unwrap();
        let error = publisher().verdict(status, &headers).unwrap_err();
        assert_eq!(error.kind(), expected, "{status}, {retry_after:?}");
    }

    #[test]
    fn statuses_say_whether_there_is_another_attempt() {
        let failed = |not_before| Kind::Failed { not_before };
        let after = |seconds| failed(Some(Duration::from_secs(seconds)));
        for status in [400, 401, 404, 409, 422, 500, 502, 504] {
            check(status, None, failed(None));
            check(status, Some("7"), failed(None));
        }
        for status in [300, 301, 302, 304, 307, 308, 410, 413] {
            check(status, None, Kind::Rejected);
        }
        for status in [429, 503] {
            check(status, None, failed(None));
            check(status, Some("soon"), failed(None));
            check(status, Some("-1"), failed(None));
            check(status, Some("0"), after(0));
            check(status, Some(" 7 "), after(7));
            check(status, Some("99999999"), failed(Some(LONGEST_RETRY_AFTER)));
            check(status, Some("Sun, 06 Nov 1994 08:50:07 GMT"), after(30));
            check(status, Some("Sun, 06 Nov 1994 08:00:00 GMT"), after(0));
        }
        for status in [200, 201, 202, 204] {
            let status = StatusCode::from_u16(status).unwrap();
            assert!(publisher().verdict(status, &HeaderMap::new()).is_ok());
        }
    }

    #[test]
    fn an_outsider_learns_nothing_of_the_call() {
        let mut event = event();
        event.tenant = "acme/alice".to_owned();
        event.operation = Some("orders.pay".to_owned());
        event.idempotency_key = Some("order-17".to_owned());
        event.aggregate_id = "zeven €".to_owned();
        let headers = publisher().headers(&event);
        let shown = format!("{headers:?}");
        for secret in ["acme", "orders.pay", "order-17"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert_eq!(headers["webhook-timestamp"], "784111777");
        assert_eq!(headers[headers::EVENT_TYPE], "order.paid");
        assert!(!headers.contains_key(headers::AGGREGATE_ID));
    }

    #[test]
    fn what_cannot_work_is_refused_when_it_is_made() {
        let secret = || WebhookSecret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        for url in ["", "localhost", "ftp://localhost", "file:///etc/passwd"] {
            assert!(HttpPublisher::new(url, [secret()]).is_err(), "{url}");
        }
        assert!(HttpPublisher::new("http://localhost", []).is_err());
    }
}

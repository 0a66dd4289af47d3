//! A message as a handler sees it.

use idem_diesel::inbox::DeliveryCount;
use idem_diesel::{Intent, MessageId, Subscription, Tenant};
use serde::de::DeserializeOwned;

use super::HandlerError;
use crate::headers;

/// A delivered message.
///
/// ```
/// use idem_diesel::inbox::DeliveryCount;
/// use idem_diesel::{MessageId, Retention, Subscription, Tenant};
/// use idem_relay::Received;
///
/// const BILLING: Subscription = Subscription::new("billing", Retention::literal("7d"));
///
/// // A loop makes it from a delivery; a test of a handler makes it so.
/// let id = MessageId::new("evt-17")?;
/// let message = Received::new(&BILLING, id, r#"{"cents":500}"#, DeliveryCount::First)
///     .with_header("idem-tenant", "acme");
/// assert_eq!(message.payload(), br#"{"cents":500}"#);
/// assert_eq!(message.header("IDEM-Tenant"), Some("acme"));
/// assert!(message.intent(Tenant::shared("acme")?).is_of_message("billing", message.id()));
/// # Ok::<(), idem_diesel::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    subscriber: &'static str,
    id: MessageId,
    payload: Vec<u8>,
    headers: Vec<(String, String)>,
    count: DeliveryCount,
}

impl Received {
    /// A message without headers.
    pub fn new(
        subscription: &Subscription,
        id: MessageId,
        payload: impl Into<Vec<u8>>,
        count: DeliveryCount,
    ) -> Self {
        Self {
            subscriber: subscription.subscriber(),
            id,
            payload: payload.into(),
            headers: Vec::new(),
            count,
        }
    }

    /// The same message with one header more.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The id, the same on every delivery.
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// What was delivered.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The payload, read from JSON.
    ///
    /// ```
    /// # use idem_diesel::inbox::DeliveryCount;
    /// # use idem_diesel::{MessageId, Retention, Subscription};
    /// # use idem_relay::Received;
    /// # let mail = Subscription::new("mail", Retention::literal("7d"));
    /// # let received = |payload| MessageId::new("evt-17").map(|id| Received::new(&mail, id, payload, DeliveryCount::First));
    /// assert_eq!(received("[1, 2]")?.json::<Vec<u8>>().ok(), Some(vec![1, 2]));
    /// assert!(received("[1, ")?.json::<Vec<u8>>().unwrap_err().is_permanent());
    /// # Ok::<(), idem_diesel::Invalid>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A [permanent](HandlerError::permanent) error: it is not read any better the next time.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HandlerError> {
        serde_json::from_slice(&self.payload).map_err(HandlerError::permanent)
    }

    /// The first header of that name. Whether it has capital letters does not matter: brokers differ in that.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(other, _)| other.eq_ignore_ascii_case(name))?;
        Some(value)
    }

    /// What happened, if it was published by this crate.
    pub fn event_type(&self) -> Option<&str> {
        self.header(headers::EVENT_TYPE)
    }

    /// Whose call caused it, if it was published by this crate, and in a call. It is what the sender says: whether to believe it depends on who may publish.
    pub fn tenant(&self) -> Option<&str> {
        self.header(headers::TENANT)
    }

    /// The trace in which it was published.
    pub fn traceparent(&self) -> Option<&str> {
        self.header(headers::TRACEPARENT)
    }

    /// What the broker says about how often it has delivered it.
    pub fn delivery_count(&self) -> DeliveryCount {
        self.count
    }

    /// What this subscriber means to do about the message for `tenant`: downstream calls take their keys from it, the same on every delivery.
    pub fn intent(&self, tenant: Tenant) -> Intent {
        Intent::of_message(tenant, self.subscriber, &self.id)
    }
}

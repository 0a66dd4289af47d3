//! The trace that an event belongs to.

use std::sync::{PoisonError, RwLock};

/// Gives the `traceparent` of the current span.
type Provider = fn() -> Option<String>;

static PROVIDER: RwLock<Option<Provider>> = RwLock::new(None);

/// Makes every event carry the trace in which it was published, as the W3C's `traceparent` (<https://www.w3.org/TR/trace-context/>).
///
/// `provider` is asked at each [`publish`](super::publish) and gives the current span's. Which one that is, only the tracing library of the application knows; with
/// OpenTelemetry it is what its `TraceContextPropagator` injects for `Span::current().context()`. Relays pass it on, and record it in their own spans. What is not a `traceparent` is left out.
///
/// ```
/// idem_diesel::outbox::carry_trace_context(|| {
///     Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned())
/// });
/// ```
pub fn carry_trace_context(provider: fn() -> Option<String>) {
    *PROVIDER.write().unwrap_or_else(PoisonError::into_inner) = Some(provider);
}

/// The current one, or nothing.
pub(super) fn current() -> String {
    let provider = *PROVIDER.read().unwrap_or_else(PoisonError::into_inner);
    let current = provider.and_then(|provider| provider());
    current
        .filter(|text| is_traceparent(text))
        .unwrap_or_default()
}

/// `version-trace-parent-flags`, each in lower-case hexadecimal.
fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths = [2, 32, 16, 2];
    parts.len() == lengths.len()
        && parts.iter().zip(lengths).all(|(part, length)| {
            part.len() == length
                && part
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        })
}

#[cfg(test)]
mod tests {
    use super::is_traceparent;

    #[test]
    fn a_traceparent_has_four_parts_in_hexadecimal() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert!(is_traceparent(good));
        for bad in ["", "00", &good.to_uppercase(), &good[1..], "x\r\ny"] {
            assert!(!is_traceparent(bad), "{bad}");
        }
    }
}

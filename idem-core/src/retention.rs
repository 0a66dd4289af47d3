//! How long an answer is remembered.
//!
//! ```
//! use idem_core::Retention;
//!
//! assert!(Retention::literal("45d") > Retention::literal("48h"));
//! assert_eq!(Retention::parse("forever"), None);
//! ```

use std::time::Duration;

use crate::limits::LONGEST_RETENTION;

/// How long an answer is kept after its call completed, in whole seconds.
///
/// Retention is a business decision: it must cover every way in which the same intent can come back.
/// [`Retention::covering`] takes those horizons by name.
///
/// ```
/// use idem_core::{Horizon, Retention};
///
/// const ORDERS: Retention = Retention::literal("48h");
/// const PAYMENTS: Retention = Retention::covering(&[
///     Horizon::ClientRetries(Retention::literal("24h")),
///     Horizon::WebhookRedelivery(Retention::literal("3d")),
///     Horizon::Settlement(Retention::literal("45d")),
/// ]);
/// assert_eq!(ORDERS.as_secs(), 172_800);
/// assert_eq!(PAYMENTS, Retention::literal("45d"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Retention {
    seconds: u64,
}

/// A way in which the same intent can come back, and for how long it can.
///
/// ```
/// use idem_core::{Horizon, Retention};
///
/// let redelivery = Horizon::QueueRedelivery(Retention::literal("14d"));
/// assert_eq!(Retention::covering(&[redelivery]), Retention::literal("2w"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Horizon {
    /// Clients that retry, also hours later when a connection is restored.
    ClientRetries(Retention),
    /// A queue that redelivers.
    QueueRedelivery(Retention),
    /// A webhook sender that redelivers, also by hand.
    WebhookRedelivery(Retention),
    /// An operator who runs a batch again.
    OperatorReplay(Retention),
    /// Settlement or compensation of what moved money.
    Settlement(Retention),
}

impl Horizon {
    const fn retention(self) -> Retention {
        match self {
            Self::ClientRetries(retention)
            | Self::QueueRedelivery(retention)
            | Self::WebhookRedelivery(retention)
            | Self::OperatorReplay(retention)
            | Self::Settlement(retention) => retention,
        }
    }
}

impl Retention {
    /// So many seconds; `None` for zero and for more than ten years.
    ///
    /// ```
    /// use idem_core::Retention;
    ///
    /// assert_eq!(Retention::from_secs(86_400), Some(Retention::literal("1d")));
    /// assert_eq!(Retention::from_secs(0), None);
    /// ```
    pub const fn from_secs(seconds: u64) -> Option<Self> {
        if seconds == 0 || seconds > LONGEST_RETENTION.as_secs() {
            return None;
        }
        Some(Self { seconds })
    }

    /// Reads a number with a unit: `s`, `m`, `h`, `d` or `w`, such as `"48h"`; `None` for everything else, for zero and for more
    /// than ten years. A day has 24 hours.
    ///
    /// ```
    /// use idem_core::Retention;
    ///
    /// assert_eq!(Retention::parse("90m").map(Retention::as_secs), Some(5_400));
    /// assert_eq!(Retention::parse("2 days"), None);
    /// assert_eq!(Retention::parse("0h"), None);
    /// ```
    pub const fn parse(text: &str) -> Option<Self> {
        let [digits @ .., unit] = text.as_bytes() else {
            return None;
        };
        let unit_seconds = match unit {
            b's' => 1,
            b'm' => 60,
            b'h' => 3_600,
            b'd' => 86_400,
            b'w' => 604_800,
            _ => return None,
        };
        if digits.is_empty() {
            return None;
        }
        let mut count = 0_u64;
        let mut rest = digits;
        while let [digit, tail @ ..] = rest {
            if !digit.is_ascii_digit() {
                return None;
            }
            let Some(shifted) = count.checked_mul(10) else {
                return None;
            };
            let Some(sum) = shifted.checked_add((*digit - b'0') as u64) else {
                return None;
            };
            count = sum;
            rest = tail;
        }
        match count.checked_mul(unit_seconds) {
            Some(seconds) => Self::from_secs(seconds),
            None => None,
        }
    }

    /// [`parse`](Self::parse) for constants: a wrong literal does not compile.
    ///
    /// ```
    /// use idem_core::Retention;
    ///
    /// const WEEK: Retention = Retention::literal("7d");
    /// assert_eq!(WEEK, Retention::literal("168h"));
    /// ```
    ///
    /// # Panics
    ///
    /// When `text` is not a number with a unit, zero, or more than ten years; in a `const` that is a compile error.
    pub const fn literal(text: &str) -> Self {
        match Self::parse(text) {
            Some(retention) => retention,
            None => {
                panic!("a retention is a whole number and a unit, s, m, h, d or w, such as \"48h\"")
            }
        }
    }

    /// The longest of the named horizons.
    ///
    /// ```
    /// use idem_core::{Horizon, Retention};
    ///
    /// const WEBHOOKS: Retention = Retention::covering(&[
    ///     Horizon::WebhookRedelivery(Retention::literal("3d")),
    ///     Horizon::OperatorReplay(Retention::literal("30d")),
    /// ]);
    /// assert_eq!(WEBHOOKS, Retention::literal("30d"));
    /// ```
    ///
    /// # Panics
    ///
    /// When `horizons` is empty; in a `const` that is a compile error.
    pub const fn covering(horizons: &[Horizon]) -> Self {
        let mut longest = 0;
        let mut rest = horizons;
        while let [horizon, tail @ ..] = rest {
            if horizon.retention().seconds > longest {
                longest = horizon.retention().seconds;
            }
            rest = tail;
        }
        assert!(longest > 0, "a retention covers at least one horizon");
        Self { seconds: longest }
    }

    /// In seconds.
    ///
    /// ```
    /// use idem_core::Retention;
    ///
    /// assert_eq!(Retention::literal("2h").as_secs(), 7_200);
    /// ```
    pub const fn as_secs(self) -> u64 {
        self.seconds
    }

    /// As a duration.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use idem_core::Retention;
    ///
    /// let completed_at = SystemTime::UNIX_EPOCH;
    /// let expires_at = completed_at + Retention::literal("1m").as_duration();
    /// assert_eq!(expires_at.duration_since(completed_at).ok(), Some(Duration::from_secs(60)));
    /// ```
    pub const fn as_duration(self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, seconds: Option<u64>) {
        assert_eq!(Retention::parse(text).map(Retention::as_secs), seconds);
    }

    #[test]
    fn a_literal_is_a_number_and_a_unit() {
        check("1s", Some(1));
        check("30m", Some(1_800));
        check("24h", Some(86_400));
        check("7d", Some(604_800));
        check("2w", Some(1_209_600));
        for wrong in [
            "",
            "h",
            "48",
            "48 h",
            "-1h",
            "1.5h",
            "1h30m",
            "48H",
            "0s",
            "99999999999999999999h",
            "521w1",
            "11000d",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn the_longest_horizon_decides() {
        let day = Retention::literal("1d");
        let week = Retention::literal("7d");
        let all = [
            Horizon::ClientRetries(day),
            Horizon::QueueRedelivery(day),
            Horizon::WebhookRedelivery(day),
            Horizon::OperatorReplay(week),
            Horizon::Settlement(day),
        ];
        assert_eq!(Retention::covering(&all), week);
        assert_eq!(Retention::covering(&[Horizon::Settlement(day)]), day);
    }
}

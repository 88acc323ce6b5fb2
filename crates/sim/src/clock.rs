//! The one place where this crate reads time.

use std::time::Duration;
use tokio::time::Instant;

/// Now, on tokio's clock: virtual where tokio's time is paused.
#[expect(clippy::disallowed_methods, reason = "the simulator's own door to time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// `start` plus `nanos`, or a time no one waits for where that cannot be represented.
pub(crate) fn after(start: Instant, nanos: u64) -> Instant {
    const FAR: Duration = Duration::from_hours(365 * 24);
    let limit = start + FAR;
    start.checked_add(Duration::from_nanos(nanos)).map_or(limit, |at| at.min(limit))
}

/// Nanoseconds from `start` to `at`, 0 if `at` is earlier.
pub(crate) fn nanos_since(start: Instant, at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(start).as_nanos()).unwrap_or(u64::MAX)
}

/// A duration in whole nanoseconds.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Durations as milliseconds in JSON, as in `"itl_ms": 12.5`.
pub(crate) mod millis {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::time::Duration;

    pub(crate) fn serialize<S: Serializer>(value: &Duration, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_f64(value.as_secs_f64() * 1e3)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        from_millis(f64::deserialize(from)?).map_err(D::Error::custom)
    }

    /// Milliseconds, rounded to a nanosecond, so that 0.1 ms is exactly 100 µs.
    pub(crate) fn from_millis(ms: f64) -> Result<Duration, &'static str> {
        if !(0.0..=1e10).contains(&ms) {
            return Err("milliseconds must lie between 0 and 1e10");
        }
        Ok(Duration::from_nanos((ms * 1e6).round() as u64))
    }
}

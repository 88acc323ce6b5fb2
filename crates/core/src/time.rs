//! Time enters through [`Clock`] and leaves as [`Stamp`].

use serde::{Deserialize, Serialize};
use std::future::Future;
use std::ops::Sub;
use std::time::Duration;

/// Nanoseconds since the run began. The only time type that leaves the load engine.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Stamp(pub u64);

impl Stamp {
    /// The stamp `ms` milliseconds into the run.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// The stamp `seconds` into the run; negative and non-finite values become the start.
    pub fn from_secs_f64(seconds: f64) -> Self {
        // `as` saturates and maps NaN to zero, which is what is promised.
        Self((seconds * 1e9).round() as u64)
    }

    /// Seconds since the run began.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time since the run began.
    pub const fn offset(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// The time from `earlier` to this stamp, zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Seconds from `earlier` to this stamp, zero if `earlier` is later.
    pub fn secs_since(self, earlier: Self) -> f64 {
        self.0.saturating_sub(earlier.0) as f64 / 1e9
    }
}

impl From<Duration> for Stamp {
    fn from(offset: Duration) -> Self {
        Self(u64::try_from(offset.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Sub for Stamp {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// Reads time and waits for it. Cheap to clone: one handle per worker.
///
/// Laws: `now` never goes back, and `sleep_until(at)` never completes before `now() >= at`.
pub trait Clock: Clone + 'static {
    /// Now, as an offset from the start of the run.
    fn now(&self) -> Stamp;

    /// Completes at or after `at`; at once if `at` has passed.
    fn sleep_until(&self, at: Stamp) -> impl Future<Output = ()>;
}

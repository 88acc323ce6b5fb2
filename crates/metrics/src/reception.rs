//! How far receive stamps can be trusted, and what follows for the numbers.

use crate::Distribution;
use serde::Serialize;
use std::time::Duration;

/// A sample counts as exact when its true value is known to within this: the interval in which it
/// lies is at most so wide.
///
/// What a kernel stamps is exact but for chunks that were read together with later ones; those came
/// at some time since the read before. A last token that is read together with the end of its stream
/// is such a chunk, and the reads are then a fraction of this apart.
pub const EXACT_WITHIN: Duration = Duration::from_micros(100);

/// Whether an interval, in seconds, is at most [`EXACT_WITHIN`] wide.
pub(crate) fn is_exact(width: f64) -> bool {
    // Half a nanosecond for the rounding of differences.
    width <= EXACT_WITHIN.as_secs_f64() + 0.5e-9
}

/// How a run's bytes were received, where the kernel told when. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reception {
    /// How long received bytes waited for the client: each request's mean, over all requests.
    pub read_lag: Distribution,
    /// The longest wait of any read.
    pub longest_read_lag: f64,
    /// The most by which kernel stamps may be off against the run's clock.
    pub clock_error: f64,
    /// Token-bearing chunks of the successes whose stamps are upper bounds.
    pub bounded_chunks: u64,
    /// The share of the TTFT samples that are exact, from 0 to 1.
    pub exact_share_ttft: Option<f64>,
    /// The share of the ITL samples that are exact, from 0 to 1.
    pub exact_share_itl: Option<f64>,
    /// How far TTFT may be off.
    pub ttft: Option<Bounds>,
    /// How far ITL may be off.
    pub itl: Option<Bounds>,
    /// How far E2E latency may be off.
    pub e2e: Option<Bounds>,
}

/// The samples of one family as they may truly be: each number of the true distribution lies between
/// that of `low` and that of `high` (but for the deviation).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// Every sample as small as it may be.
    pub low: Distribution,
    /// Every sample as large as it may be.
    pub high: Distribution,
}

impl Bounds {
    /// Of the least and the most of each sample.
    pub(crate) fn of(bounds: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let (mut low, mut high): (Vec<f64>, Vec<f64>) = bounds.unzip();
        Some(Self { low: Distribution::of(&mut low)?, high: Distribution::of(&mut high)? })
    }
}

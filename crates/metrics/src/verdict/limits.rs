//! Where the checks draw their lines, and why there.

use super::Verdict;

/// Where doubt begins, and where it ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// From here on the client may have shaped the number.
    pub doubt: f64,
    /// From here on it has.
    pub certain: f64,
}

impl Limits {
    pub(super) const fn weigh(self, value: f64) -> Verdict {
        if value >= self.certain {
            Verdict::ClientBound
        } else if value >= self.doubt {
            Verdict::Undecided
        } else {
            Verdict::ServerBound
        }
    }

    /// Shares of `scale`, but no less than these floors.
    pub(super) fn of(self, scale: f64, floors: Self) -> Self {
        let at = |share: f64, floor: f64| (share * scale).max(floor);
        Self { doubt: at(self.doubt, floors.doubt), certain: at(self.certain, floors.certain) }
    }
}

/// Shorter runs say too little, in seconds: one hiccup of the machine is a large share of them.
pub const LEAST_DURATION: f64 = 0.5;
/// Fewer requests have no tail to speak of.
pub const LEAST_REQUESTS: u64 = 20;
/// Lateness at p99 as a share of the median TTFT: a server notices a shift of its arrivals that is
/// not small beside its own delays.
pub const LATENESS: Limits = Limits { doubt: 0.1, certain: 0.5 };
/// Less lateness than this, in seconds, is no server's concern: a step of an engine takes longer.
pub const LATENESS_FLOOR: Limits = Limits { doubt: 1e-3, certain: 5e-3 };
/// Turnaround at p99 as a share of the median end-to-end latency: by as much the cap was not filled.
pub const TURNAROUND: Limits = Limits { doubt: 0.03, certain: 0.1 };
/// Less turnaround than this, in seconds, empties no cap that matters.
pub const TURNAROUND_FLOOR: Limits = Limits { doubt: 1e-3, certain: 2e-3 };
/// Share of the time that the busiest worker was on the processor. Queueing theory's rule of thumb: a
/// single server at 70 % makes its customers wait more than twice its service time, at 85 % nearly six.
pub const WORKER: Limits = Limits { doubt: 0.7, certain: 0.85 };
/// The same where stamps are those of the reads: what a read waited for the loop is in the latency.
pub const WORKER_UNSTAMPED: Limits = Limits { doubt: 0.5, certain: 0.85 };
/// Share of the processor time it may use that the process took: nothing is left for bursts.
pub const PROCESS: f64 = 0.95;
/// Share of the run that a loop stood still: above 1 % stalls are in the 99th percentiles, above 0.1 %
/// in those of 99.9.
pub const STALLED: Limits = Limits { doubt: 0.001, certain: 0.01 };
/// A single stall of this length, in seconds, is no turn of a busy loop: the process stood still.
pub const LONG_STALL: f64 = 0.1;
/// How far bounds may move a 99th percentile, as a share of it.
pub const BOUNDS: Limits = Limits { doubt: 0.03, certain: 0.1 };
/// Bounds that move it less than this, in seconds, do not matter: networks differ by more.
pub const BOUNDS_FLOOR: f64 = 1e-4;
/// Share of exact stamps that is enough where nobody worked out how far the others could move anything.
pub const EXACT: f64 = 0.99;
/// Share of requests that failed for want of something of the client's. One is enough for doubt.
pub const CLIENT_FAILURES: f64 = 0.01;
/// Tokens per second as a share of what saturates the client. The cost per token measured at the
/// run's own pace falls somewhat under load, so that the figure errs on the careful side.
pub const SATURATION: Limits = Limits { doubt: 0.6, certain: 0.8 };
/// Mean error of TTFT against a known server, as a share of the median TTFT.
pub const CALIBRATED_TTFT: f64 = 0.05;
/// The least such error that matters, in seconds.
pub const CALIBRATED_TTFT_FLOOR: f64 = 2e-4;
/// 99th percentile of the error of ITL against a known server, as a share of the median ITL.
pub const CALIBRATED_ITL: f64 = 0.1;
/// The least such error that matters, in seconds.
pub const CALIBRATED_ITL_FLOOR: f64 = 5e-4;
/// Segments sent again per request: from here on the network may have shaped latencies. The count is
/// the whole machine's, so that a few are nobody's in particular.
pub const RETRANSMITS: f64 = 0.1;

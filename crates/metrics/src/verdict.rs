//! Whose limit a run's numbers show: the server's or the client's.
//!
//! Every check weighs one piece of evidence, and the heaviest weight is the verdict. What the client
//! did to the *load* (requests that left late, slots that stood empty, a loop without head-room) and
//! what it did to the *stamps* (bytes that were read late) are different things: receive times from
//! the kernel keep latencies true on a busy client, but do not make it faster.

mod checks;
pub mod limits;

use checks::milliseconds;
use limits::{BOUNDS, BOUNDS_FLOOR, EXACT};
use serde::{Deserialize, Serialize};

/// Whose limit a run's numbers show. Ordered by how much is held against the client.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The server's: the client had head-room and its stamps are tight.
    ServerBound,
    /// There is too little evidence to say.
    #[default]
    Undecided,
    /// The client's own limit shaped the numbers.
    ClientBound,
}

impl Verdict {
    /// The name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ServerBound => "server-bound",
            Self::Undecided => "undecided",
            Self::ClientBound => "client-bound",
        }
    }
}

/// What is known of a client during a run. Times are in seconds; `None` is what nobody measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// How long the run took.
    pub duration: f64,
    /// Requests that succeeded.
    pub succeeded: u64,
    /// Requests that were never sent.
    pub unsent: u64,
    /// Requests that failed for want of something of the client's: descriptors, ports, itself.
    pub client_failures: u64,
    /// Whether a free slot sends at once, so that the client's own speed sets the load.
    pub closed_loop: bool,
    /// How much later than due requests left, that had a slot in time.
    pub lateness: Option<Delay>,
    /// From the last byte of a reply to the first byte of the next request in its slot.
    pub turnaround_p99: Option<f64>,
    /// From the receipt of bytes by the kernel until they were read. `None` without its stamps.
    pub read_lag: Option<Delay>,
    /// The share of the time that each worker was on the processor.
    pub worker_cpu: Vec<f64>,
    /// The share of the processor time it may use that the whole process used.
    pub process_cpu: Option<f64>,
    /// Times when an event loop did not come round.
    pub stalls: Option<Stalls>,
    /// Time to first token.
    pub ttft: Option<Stamped>,
    /// Inter-token latency.
    pub itl: Option<Stamped>,
    /// Median end-to-end latency.
    pub e2e_median: Option<f64>,
    /// Output tokens per second.
    pub tokens_per_second: Option<f64>,
    /// Segments that TCP sent again on this machine.
    pub retransmits: Option<u64>,
    /// What a calibration found.
    pub calibrated: Option<Calibrated>,
}

/// Two percentiles of a delay, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delay {
    /// 50th percentile.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// Times when an event loop did not come round, over all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stalls {
    /// How many there were.
    pub count: u64,
    /// The longest, in seconds.
    pub longest: f64,
    /// Those of the worker that stalled most, together, in seconds.
    pub total: f64,
}

/// A latency, and how far its stamps can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stamped {
    /// Median, in seconds.
    pub median: f64,
    /// 99th percentile, in seconds.
    pub p99: f64,
    /// The share of samples whose stamps are exact. `None` where stamps are those of the reads.
    pub exact_share: Option<f64>,
    /// How far the bounds of the others could move the 99th percentile, in seconds.
    pub p99_moves: Option<f64>,
}

/// What the same client measured on a server whose times are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibrated {
    /// Output tokens per second at which this client would be saturated.
    pub saturation_tokens_per_second: Option<f64>,
    /// Mean error of TTFT, in seconds.
    pub ttft_bias: Option<f64>,
    /// 99th percentile of the error of ITL, in seconds.
    pub itl_error_p99: Option<f64>,
}

/// A verdict and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Whose limit the numbers show.
    pub verdict: Verdict,
    /// What was looked at, the weightiest first. Never empty.
    pub reasons: Vec<Reason>,
}

/// One piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The verdict it would give alone.
    pub weight: Verdict,
    /// A sentence with the figure and its limit.
    pub text: String,
}

/// Weighs the evidence.
///
/// The verdict is the heaviest weight of any reason, so that more or worse evidence against the
/// client never makes the verdict lighter.
///
/// ```
/// use servebench_metrics::verdict::{Evidence, Verdict, judge};
///
/// let calm = Evidence {
///     duration: 10.0,
///     succeeded: 500,
///     worker_cpu: vec![0.12, 0.97],
///     closed_loop: true,
///     ..Evidence::default()
/// };
/// let judgement = judge(&calm);
/// assert_eq!(judgement.verdict, Verdict::ClientBound);
/// assert_eq!(
///     judgement.reasons[0].text,
///     "worker 1 was on the processor 97.0 % of the time (limit 85 %)"
/// );
/// ```
pub fn judge(evidence: &Evidence) -> Judgement {
    let mut reasons = checks::reasons(evidence);
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.weight));
    let verdict = reasons.first().map_or(Verdict::Undecided, |reason| reason.weight);
    Judgement { verdict, reasons }
}

impl Evidence {
    /// Whether receive times are the kernel's and their bounds move no percentile that is shown, so
    /// that latencies hold however busy the client was.
    pub fn stamps_hold(&self) -> bool {
        let latencies: Vec<&Stamped> = self.ttft.iter().chain(&self.itl).collect();
        !latencies.is_empty() && latencies.iter().all(|latency| latency.holds())
    }

    /// The busiest worker and its share of the time on the processor.
    pub fn busiest_worker(&self) -> Option<(usize, f64)> {
        self.worker_cpu.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The server's own delay, against which a late arrival is long or short.
    fn server_delay(&self) -> f64 {
        self.ttft.map(|ttft| ttft.median).or(self.e2e_median).unwrap_or(0.0)
    }

    /// The figures that say most, in a few words.
    pub fn summary(&self) -> String {
        let mut parts = Vec::new();
        if let Some(lateness) = self.lateness {
            parts.push(format!("lateness p99 {}", milliseconds(lateness.p99)));
        } else if let Some(turnaround) = self.turnaround_p99 {
            parts.push(format!("turnaround p99 {}", milliseconds(turnaround)));
        }
        if let Some(lag) = self.read_lag {
            parts.push(format!("read lag p99 {}", milliseconds(lag.p99)));
        }
        if let Some((_, share)) = self.busiest_worker() {
            parts.push(format!("busiest worker {:.0} %", share * 100.0));
        }
        parts.join(", ")
    }
}

impl Stamped {
    fn holds(&self) -> bool {
        self.weight() == Some(Verdict::ServerBound)
    }

    /// How far the bounds move the percentile, as a share of it.
    fn moves(&self) -> Option<f64> {
        Some(self.p99_moves? / self.p99.max(f64::MIN_POSITIVE))
    }

    /// What the stamps say; `None` where they are those of the reads.
    fn weight(&self) -> Option<Verdict> {
        let exact = self.exact_share?;
        Some(match self.moves() {
            Some(moves) if self.p99_moves >= Some(BOUNDS_FLOOR) => BOUNDS.weigh(moves),
            None if exact < EXACT => Verdict::Undecided,
            _ => Verdict::ServerBound,
        })
    }
}

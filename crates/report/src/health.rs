//! What a report says about the client that measured.

use serde::{Deserialize, Serialize};
use servebench_metrics::verdict::Verdict;

/// How the client fared, and what that makes of its numbers. `None` is what nobody could measure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientHealth {
    /// Whose limit the numbers show.
    pub verdict: Verdict,
    /// What that rests on, in sentences, the weightiest first.
    pub evidence: Vec<String>,
    /// The figures that say most, in a few words.
    pub summary: String,
    /// Share of the duration that each worker was on the processor.
    pub worker_cpu: Vec<f64>,
    /// Share of the processor time it may use that the whole process used.
    pub process_cpu: Option<f64>,
    /// How often an event loop stood still.
    pub stalls: Option<u64>,
    /// The longest time for which one did, in seconds.
    pub longest_stall: Option<f64>,
    /// Descriptors the process may have open.
    pub descriptor_limit: Option<u64>,
    /// Descriptors it is expected to need.
    pub descriptors_needed: Option<u64>,
    /// What TCP did on this machine during the run.
    pub tcp: Option<TcpCounts>,
    /// What a calibration before the run found.
    pub calibration: Option<Calibration>,
}

impl ClientHealth {
    /// One line: the figures of a client with head-room, else what weighs most against it.
    pub fn line(&self) -> String {
        let reason = self.evidence.first().filter(|_| self.verdict != Verdict::ServerBound);
        format!("Verdict: {} ({})", self.verdict.name(), reason.unwrap_or(&self.summary))
    }
}

/// What TCP did during a run, over all connections of the network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpCounts {
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timers that ran out; each holds a connection up for 200 ms or more.
    pub timeouts: Option<u64>,
    /// Segments that came before others that were sent earlier.
    pub out_of_order: Option<u64>,
}

/// What the client measured on a server whose times are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Seconds it took.
    pub duration: f64,
    /// Requests that were compared.
    pub requests: u64,
    /// Most requests that were under way at once, as planned.
    pub in_flight: Option<u64>,
    /// TTFT of the known server.
    pub server_ttft_ms: f64,
    /// ITL of the known server.
    pub server_itl_ms: f64,
    /// Tokens in each of its events.
    pub tokens_per_event: u64,
    /// Output tokens per second.
    pub tokens_per_s: f64,
    /// Mean of measured TTFT − true TTFT.
    pub ttft_bias_ms: Option<f64>,
    /// 99th percentile of |measured TTFT − true TTFT|.
    pub ttft_error_p99_ms: Option<f64>,
    /// Mean of measured gap − true gap.
    pub itl_bias_ms: Option<f64>,
    /// 99th percentile of |measured gap − true gap|.
    pub itl_error_p99_ms: Option<f64>,
    /// Processor time of the workers per output token.
    pub cpu_per_token_us: Option<f64>,
    /// Output tokens per second at which the workers would have no processor time left.
    pub saturation_tokens_per_s: Option<f64>,
}

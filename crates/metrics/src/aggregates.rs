//! The numbers of one run.

use crate::{CacheReport, Distribution, Goodput, Reception};
use serde::Serialize;
use servebench_core::FailureKind;
use std::collections::BTreeMap;

/// The numbers of one run. Times are in seconds, rates per second.
///
/// Failed requests give no samples and no tokens. When no request succeeded every quotient,
/// distribution and peak is `None`; counts are zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Aggregates {
    /// Requests that succeeded.
    pub completed: u64,
    /// Requests that did not.
    pub failed: u64,
    /// The failed ones by kind.
    pub failures: BTreeMap<FailureKind, FailureTally>,
    /// Dead kept-alive connections that were replaced.
    pub reconnects: u64,
    /// Times a request was sent again since a try had ended before one byte of an answer (`--retries`).
    pub retries: u64,
    /// Time to connect, over the requests that had to connect inside their latency.
    pub connect: Option<Distribution>,
    /// The part of it that the TLS handshake took.
    pub tls: Option<Distribution>,
    /// Prompt tokens of the successes as the dataset counted them.
    pub total_input_tokens: u64,
    /// Prompt tokens of the successes by the server's counts, the dataset's where it gave none.
    pub total_input_tokens_server: u64,
    /// Tokens of the successes' texts by the client's tokenizer; `None` when none was counted.
    pub total_output_tokens_retokenized: Option<u64>,
    /// Everything that depends on where latency and duration end: at the last token, and at the
    /// last response.
    pub own: View,
    /// The same as the Python tool computes it, from the last `data:` lines, its own duration and
    /// its output counts (the length asked for where the server counts nothing).
    pub upstream: View,
    /// `total_output_tokens_retokenized / duration`.
    pub output_throughput_retokenized: Option<f64>,
    /// `(total_input_tokens + total_output_tokens_retokenized) / duration`.
    pub total_throughput_retokenized: Option<f64>,
    /// TTFT: `first token − dispatched`.
    pub ttft: Option<Distribution>,
    /// Inter-token latency by the route's rule.
    pub itl: Option<Distribution>,
    /// Inter-token latency per token, over the requests whose counts allow it.
    pub token_itl: Option<Distribution>,
    /// TTFT from the intended time.
    pub ttft_intended: Option<Distribution>,
    /// E2E latency from the intended time.
    pub e2e_intended: Option<Distribution>,
    /// How late the engine's own timer was, over all requests that had a free slot in time.
    pub lateness: Option<Distribution>,
    /// From the last byte of a reply to the first byte written of the next request in its slot, over
    /// the requests of a closed loop.
    pub turnaround: Option<Distribution>,
    /// `dispatched − intended`, over all requests.
    pub queue_wait: Option<Distribution>,
    /// How true the receive stamps are; `None` where they are the times of the reads.
    pub reception: Option<Reception>,
    /// `(requests − 1) / (last dispatched − first dispatched)`, over all requests.
    pub achieved_request_rate: Option<f64>,
    /// Tokens per verification step of speculative decoding, over the replies that told theirs:
    /// `Σ tokens / Σ (tokens / accept length)`.
    pub accept_length: Option<f64>,
    /// Cached prompt tokens.
    pub cache: CacheReport,
}

/// What one way of reading the clock and counting tokens makes of the successes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct View {
    /// Seconds all rates are divided by. `None` for a run without requests.
    pub duration: Option<f64>,
    /// Output tokens.
    pub total_output_tokens: u64,
    /// `completed / duration`.
    pub request_throughput: Option<f64>,
    /// `total_input_tokens / duration`.
    pub input_throughput: Option<f64>,
    /// `total_output_tokens / duration`.
    pub output_throughput: Option<f64>,
    /// `(total_input_tokens + total_output_tokens) / duration`.
    pub total_throughput: Option<f64>,
    /// End-to-end latency.
    pub e2e: Option<Distribution>,
    /// Time per output token after the first.
    pub tpot: Option<Distribution>,
    /// `Σ latency / duration`.
    pub concurrency: Option<f64>,
    /// Most output tokens in one second.
    pub max_output_tokens_per_s: Option<u64>,
    /// Most requests at the same time.
    pub max_concurrent_requests: Option<u64>,
    /// Objectives met; `None` when none were set.
    pub goodput: Option<Goodput>,
}

/// The failures of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailureTally {
    /// How many there were.
    pub count: u64,
    /// The first of them, in plan order.
    pub first_id: u64,
    /// What was said about the first one.
    pub first_detail: String,
}

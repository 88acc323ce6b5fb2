//! What a report says about a run besides its measurements.

use crate::ClientHealth;
use serde_json::{Map, Value};
use servebench_metrics::{Aggregates, ItlRule, Measured, SteadyState};

/// The arrival rate that was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RequestRate {
    /// Requests per second; infinite means all at once.
    PerSecond(f64),
    /// The times of a trace.
    Trace,
}

impl Default for RequestRate {
    fn default() -> Self {
        Self::PerSecond(f64::INFINITY)
    }
}

/// What a result tells about its run besides the measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunInfo {
    /// The user's own label.
    pub tag: Option<String>,
    /// Name of the backend.
    pub backend: String,
    /// Name of the dataset.
    pub dataset_name: String,
    /// The arrival rate that was asked for.
    pub request_rate: RequestRate,
    /// Cap on requests in flight.
    pub max_concurrency: Option<u64>,
    /// `--sharegpt-output-len`, whatever the dataset.
    pub sharegpt_output_len: Option<u64>,
    /// `--random-input-len`, whatever the dataset.
    pub random_input_len: Option<u64>,
    /// `--random-output-len`, whatever the dataset.
    pub random_output_len: Option<u64>,
    /// `--random-range-ratio`, whatever the dataset.
    pub random_range_ratio: Option<f64>,
    /// The server's own description of itself, or null.
    pub server_info: Value,
    /// Tokens per verification step by `server_info`: an average since the server's start.
    pub server_accept_length: Option<f64>,
    /// Whether prompts have images.
    pub has_images: bool,
    /// The part of the input tokens that stands for images; `None` where there are none, and where it is
    /// not known how the model counts them.
    pub vision_input_tokens: Option<u64>,
    /// True for backends that return no text.
    pub embeddings: bool,
    /// Whether cached tokens are reported.
    pub cache_report: bool,
    /// Whether the experts that tokens were routed to were asked for.
    pub routed_experts: bool,
    /// Whether a steady state was asked for.
    pub wants_steady_state: bool,
    /// The steady state, if one was asked for and there was one.
    pub steady_state: Option<SteadyState>,
    /// Version of the tool.
    pub version: String,
    /// Whether the server was a simulated one.
    pub simulated: bool,
    /// Wall-clock time of the first send, in seconds since 1970 (UTC).
    pub started_at_unix: Option<f64>,
    /// SHA-256 over schedule and payloads: equal hash, equal workload.
    pub plan_sha256: Option<String>,
    /// Whether the run was stopped by a signal.
    pub interrupted: bool,
    /// Whether requests of the plan were left out or cut short.
    pub partial: bool,
    /// Where warm-up prompts came from.
    pub warmup_prompts: Option<String>,
    /// Threads that sent requests.
    pub workers: Option<u64>,
    /// How the client fared.
    pub client: Option<ClientHealth>,
    /// Further keys of the result line, written after ours. A key that the line has anyway is
    /// not written twice: the line's own value stands.
    pub extra: Map<String, Value>,
}

/// Everything that is reported of one run.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// What was run.
    pub info: RunInfo,
    /// What was measured.
    pub aggregates: Aggregates,
    /// How the gap before a chunk became inter-token samples.
    pub itl_rule: ItlRule,
    /// Every request of the plan, for the details. `None` leaves them out.
    pub details: Option<&'a [Measured<'a>]>,
}

impl Report<'_> {
    /// Tokens per verification step: this run's replies where they tell, else the server's average.
    pub fn accept_length(&self) -> Option<f64> {
        self.aggregates.accept_length.or(self.info.server_accept_length)
    }
}

//! The table, the result file and the file names of `vllm bench serve`.
//!
//! A [`VllmReport`] holds what both show. The numbers are those of the [`Report`] inside it, and of its
//! requests; under the key `servebench` the result has that report's own keys.

mod describe;
mod file;
mod json;
mod metric;
mod pytorch;
mod structured;
mod table;

pub use describe::{Series, describe, worthwhile_percentiles};
pub use file::{check_folder, file_name, write};
pub use json::result;
pub use metric::{Metric, percentile_label};
pub use pytorch::{pytorch, pytorch_record};
pub use structured::{Replies, structured_file_name, structured_result, structured_table};
pub use table::table;

use crate::Report;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use servebench_metrics::{Distribution, Measured, percentile};

/// What a run was, beside what was measured.
#[derive(Clone, Debug, Default)]
pub struct VllmInfo {
    /// Local time at the end of the run, `YYYYMMDD-HHMMSS`.
    pub date: String,
    /// Name of the backend.
    pub backend: String,
    /// The user's own label.
    pub label: Option<String>,
    /// Model, as tokenizers and file names know it.
    pub model_id: String,
    /// Tokenizer; `None` without one.
    pub tokenizer_id: Option<String>,
    /// `--num-prompts`, as given.
    pub num_prompts: i64,
    /// `--metadata`, in order.
    pub metadata: Vec<(String, String)>,
    /// Requests per second; infinite means all at once, or a ramp.
    pub request_rate: f64,
    /// How bursty arrivals are.
    pub burstiness: f64,
    /// Cap on requests in flight.
    pub max_concurrency: Option<u64>,
    /// The ramp, if there is one.
    pub ramp: Option<RampInfo>,
    /// Whether replies hold vectors or scores in place of tokens.
    pub pooling: bool,
    /// Which latencies are shown and kept.
    pub metrics: Vec<Metric>,
    /// Which percentiles of them.
    pub percentiles: Vec<f64>,
    /// Whether per-request arrays are kept.
    pub detailed: bool,
    /// Prompts in all successful requests.
    pub input_sequences: u64,
    /// Seconds of audio in all successful requests, per second.
    pub rtfx: f64,
    /// What became of the probe requests, if one succeeded.
    pub probe: Option<ProbeStats>,
    /// What the server's counters say of speculative decoding.
    pub speculation: Option<Speculation>,
    /// What they say of a diffusion model.
    pub diffusion: Option<Diffusion>,
    /// What of ours goes into the result, beside the report's own keys.
    pub own: Map<String, Value>,
}

/// A rate that rose.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RampInfo {
    /// `linear` or `exponential`.
    pub strategy: String,
    /// Requests per second at the start.
    pub start: f64,
    /// Requests per second at the end.
    pub end: f64,
    /// Each whole rate reached, and when, as ISO local time.
    pub events: Vec<(f64, String)>,
}

/// Latencies of probe requests, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeStats {
    /// Probes that succeeded.
    pub completed: u64,
    /// Probes that did not.
    pub failed: u64,
    /// Their latency.
    pub latency: Distribution,
}

/// Counters of speculative decoding over a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Speculation {
    /// Drafts made.
    pub drafts: u64,
    /// Tokens in them.
    pub draft_tokens: u64,
    /// Tokens of them that were accepted.
    pub accepted_tokens: u64,
    /// Share of drafts accepted up to each position, where the server tells.
    pub per_position: Vec<(u64, f64)>,
}

impl Speculation {
    /// Accepted draft tokens, in percent.
    pub fn acceptance_rate(&self) -> f64 {
        self.accepted_tokens as f64 / self.draft_tokens as f64 * 100.0
    }

    /// Tokens for each draft, the one that needs no draft included; 0 without a draft.
    pub fn acceptance_length(&self) -> f64 {
        if self.drafts == 0 {
            return 0.0;
        }
        1.0 + self.accepted_tokens as f64 / self.drafts as f64
    }
}

/// Counters of a diffusion model over a run, all of them above zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diffusion {
    /// Steps over a canvas, those included that commit it.
    pub steps: u64,
    /// Positions of the canvas, summed over steps.
    pub positions: u64,
    /// Tokens that were committed.
    pub committed: u64,
}

impl Diffusion {
    /// How many canvases were committed, each by one step: tokens over the positions of a canvas.
    fn canvases(&self) -> f64 {
        let canvas = self.positions as f64 / self.steps as f64;
        self.committed as f64 / canvas
    }

    /// Steps that did not commit.
    pub fn denoising_steps(&self) -> f64 {
        self.steps as f64 - self.canvases()
    }

    /// Denoising steps for each canvas.
    pub fn steps_per_canvas(&self) -> f64 {
        self.denoising_steps() / self.canvases()
    }

    /// Tokens for each denoising step; `None` without one.
    pub fn committed_per_step(&self) -> Option<f64> {
        let steps = self.denoising_steps();
        (steps > 0.0).then(|| self.committed as f64 / steps)
    }
}

/// Everything that is reported of one run of `vllm bench serve`.
#[derive(Debug)]
pub struct VllmReport<'a> {
    /// What was run.
    pub info: VllmInfo,
    /// What was measured, and how the client fared.
    pub base: Report<'a>,
    /// Every request, in plan order.
    pub requests: &'a [Measured<'a>],
}

/// The samples of one metric, in ascending order, and what they come to.
pub(crate) struct Samples {
    ascending: Vec<f64>,
    pub(crate) distribution: Option<Distribution>,
}

impl Samples {
    /// A percentile, in milliseconds.
    pub(crate) fn percentile_ms(&self, q: f64) -> Option<f64> {
        percentile(&self.ascending, q).map(|seconds| seconds * 1e3)
    }

    /// A statistic, in milliseconds.
    pub(crate) fn ms(&self, of: fn(&Distribution) -> f64) -> Option<f64> {
        self.distribution.as_ref().map(|distribution| of(distribution) * 1e3)
    }
}

impl VllmReport<'_> {
    /// Tokens that a diffusion model committed, per second.
    pub(crate) fn committed_throughput(&self) -> Option<f64> {
        let duration = self.base.aggregates.own.duration.filter(|duration| *duration > 0.0)?;
        self.info.diffusion.map(|diffusion| diffusion.committed as f64 / duration)
    }

    /// Whether tokens were counted at all.
    pub(crate) fn tokenized(&self) -> bool {
        self.info.tokenizer_id.is_some()
    }

    /// Whether the rows and keys of `metric` are there.
    pub(crate) fn has(&self, metric: Metric) -> bool {
        let info = &self.info;
        let asked = info.metrics.contains(&metric);
        let capped = info.max_concurrency.is_some();
        asked
            && match metric {
                Metric::Ttft | Metric::Tpot | Metric::Itl => !info.pooling && self.tokenized(),
                Metric::E2el => true,
                Metric::ClientQueueTime => capped,
                Metric::E2elIncludingClientQueue => {
                    capped && (info.request_rate.is_finite() || info.ramp.is_some())
                }
            }
    }

    /// The samples of `metric` over the successes.
    pub(crate) fn samples(&self, metric: Metric) -> Samples {
        let mut ascending = Vec::new();
        for request in self.requests.iter().filter(|request| request.record.is_success()) {
            match metric {
                Metric::Ttft => ascending.extend(request.ttft()),
                Metric::Tpot => ascending.extend(request.tpot()),
                Metric::Itl => {
                    for gap in request.itls(self.base.itl_rule) {
                        ascending.extend(std::iter::repeat_n(gap.seconds, gap.tokens as usize));
                    }
                }
                Metric::E2el => ascending.extend(request.latency()),
                Metric::ClientQueueTime => ascending.push(request.queue_wait()),
                Metric::E2elIncludingClientQueue => {
                    let latency = request.latency();
                    ascending.extend(latency.map(|latency| latency + request.queue_wait()));
                }
            }
        }
        let distribution = Distribution::of(&mut ascending);
        Samples { ascending, distribution }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_commit_do_not_denoise() {
        // 8 canvases of 32 positions, each committed by one of 40 steps.
        let diffusion = Diffusion { steps: 40, positions: 1280, committed: 256 };
        assert!((diffusion.denoising_steps() - 32.0).abs() < 1e-9);
        assert!((diffusion.steps_per_canvas() - 4.0).abs() < 1e-9);
        assert_eq!(diffusion.committed_per_step(), Some(8.0));
        let at_once = Diffusion { steps: 8, positions: 256, committed: 256 };
        assert_eq!(at_once.committed_per_step(), None);
    }
}

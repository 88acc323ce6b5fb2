//! What the server says about itself.

use super::{Call, SimBody, reply};
use crate::clock;
use crate::config::Timing;
use crate::engine::{EngineTotals, Timeline};
use crate::sync::lock;
use http::Response;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Requests at once that a server with canned timing claims to run.
const CANNED_RUNNING: u32 = 1 << 20;
/// Tokens that it claims to hold.
const CANNED_CAPACITY: u64 = 1 << 40;

pub(super) fn models(call: &Call<'_>) -> Response<SimBody> {
    let config = &call.live.config;
    let model = json!({"id": config.model, "object": "model", "created": config.created,
        "owned_by": "servebench-sim", "root": config.model, "parent": null,
        "max_model_len": config.context_tokens});
    reply::json(200, json!({"object": "list", "data": [model]}).to_string())
}

pub(super) fn model_info(call: &Call<'_>) -> Response<SimBody> {
    let model = &call.live.config.model;
    let info = json!({"model_path": model, "tokenizer_path": model, "is_generation": true,
        "preferred_sampling_params": null});
    reply::json(200, info.to_string())
}

/// The engine as seen from outside.
struct Load {
    max_running: u32,
    capacity: u64,
    used: u64,
    running: u64,
    waiting: u64,
    totals: EngineTotals,
    /// Output tokens per second, by the step under way.
    rate: f64,
}

impl Load {
    fn of(call: &Call<'_>) -> Self {
        let in_flight = call.state.stats().in_flight;
        match (&call.live.timeline, &call.live.config.timing) {
            (Some(timeline), _) => {
                let mut timeline = lock(timeline);
                timeline.advance(call.state.nanos(clock::now()));
                Self::of_engine(&timeline)
            }
            (None, Timing::Canned { itl, .. }) if !itl.is_zero() => {
                Self::canned(in_flight, in_flight as f64 / itl.as_secs_f64())
            }
            (None, _) => Self::canned(in_flight, 0.0),
        }
    }

    fn of_engine(timeline: &Timeline) -> Self {
        let engine = timeline.engine();
        let rate = timeline.current().map_or(0.0, |report| {
            let tokens: u32 = report.advanced.iter().map(|advance| advance.tokens).sum();
            f64::from(tokens) / report.took.as_secs_f64().max(1e-9)
        });
        Self {
            max_running: engine.cost().max_running,
            capacity: engine.cost().kv_tokens,
            used: engine.kv_used(),
            running: engine.running() as u64,
            waiting: engine.waiting() as u64,
            totals: engine.totals(),
            rate,
        }
    }

    fn canned(in_flight: u64, rate: f64) -> Self {
        Self {
            max_running: CANNED_RUNNING,
            capacity: CANNED_CAPACITY,
            used: 0,
            running: in_flight,
            waiting: 0,
            totals: EngineTotals::default(),
            rate,
        }
    }

    /// Tokens per verification step; `None` without speculative decoding.
    fn accept_length(&self) -> Option<f64> {
        let EngineTotals { drafts, accepted, .. } = self.totals;
        (drafts > 0).then(|| 1.0 + accepted as f64 / drafts as f64)
    }
}

pub(super) fn server_info(call: &Call<'_>) -> Response<SimBody> {
    let load = Load::of(call);
    let config = &call.live.config;
    let mut internal = json!({
        "effective_max_running_requests_per_dp": load.max_running,
        "dp_size": 1,
        "attn_dp_size": 1,
        "memory_usage": {"token_capacity": load.capacity},
        "last_gen_throughput": load.rate,
    });
    if let (Some(length), Value::Object(fields)) = (load.accept_length(), &mut internal) {
        fields.insert("avg_spec_accept_length".to_owned(), json!(length));
    }
    let info = json!({
        "model_path": config.model,
        "served_model_name": config.model,
        "tokenizer_path": config.model,
        "context_length": config.context_tokens,
        "internal_states": [internal],
        "simulated": true,
        "version": concat!("servebench-sim ", env!("CARGO_PKG_VERSION")),
    });
    reply::json(200, info.to_string())
}

/// Prometheus text with the names of both server families.
pub(super) fn metrics(call: &Call<'_>) -> Response<SimBody> {
    let load = Load::of(call);
    let stats = call.state.stats();
    let totals = load.totals;
    let usage = load.used as f64 / load.capacity as f64;
    let share = |part: u64, whole: u64| if whole > 0 { part as f64 / whole as f64 } else { 0.0 };
    let hits = share(totals.cached_tokens, totals.prompt_tokens);
    let name = label(&call.live.config.model);
    let mut page = Page { text: String::new(), labels: format!("{{model_name=\"{name}\"}}") };
    page.counter("sglang:prompt_tokens_total", stats.prompt_tokens);
    page.counter("sglang:generation_tokens_total", stats.tokens);
    page.counter("sglang:cached_tokens_total", stats.cached_tokens);
    page.counter("sglang:num_requests_total", stats.requests);
    page.counter("sglang:num_aborted_requests_total", stats.aborted);
    page.gauge("sglang:num_running_reqs", load.running as f64);
    page.gauge("sglang:num_queue_reqs", load.waiting as f64);
    page.gauge("sglang:num_used_tokens", load.used as f64);
    page.gauge("sglang:token_usage", usage);
    page.gauge("sglang:cache_hit_rate", hits);
    page.gauge("sglang:gen_throughput", load.rate);
    page.gauge("sglang:spec_accept_length", load.accept_length().unwrap_or(0.0));
    page.labels = format!("{{engine=\"0\",model_name=\"{name}\"}}");
    page.counter("vllm:prompt_tokens_total", stats.prompt_tokens);
    page.counter("vllm:generation_tokens_total", stats.tokens);
    page.counter("vllm:prefix_cache_queries_total", totals.prompt_tokens);
    page.counter("vllm:prefix_cache_hits_total", totals.cached_tokens);
    page.counter("vllm:request_success_total", stats.finished);
    page.gauge("vllm:num_requests_running", load.running as f64);
    page.gauge("vllm:num_requests_waiting", load.waiting as f64);
    page.gauge("vllm:kv_cache_usage_perc", usage);
    if call.live.cost().is_some_and(|cost| cost.speculative.is_some()) {
        page.counter("vllm:spec_decode_num_drafts_total", totals.drafts);
        page.counter("vllm:spec_decode_num_draft_tokens_total", totals.drafted);
        page.counter("vllm:spec_decode_num_accepted_tokens_total", totals.accepted);
    }
    reply::text(200, page.text)
}

struct Page {
    text: String,
    labels: String,
}

impl Page {
    fn counter(&mut self, name: &str, value: u64) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# TYPE {name} counter\n{name}{} {value}", self.labels);
    }

    fn gauge(&mut self, name: &str, value: f64) {
        let _ = writeln!(self.text, "# TYPE {name} gauge\n{name}{} {value}", self.labels);
    }
}

/// A label value, escaped as the text format wants it.
fn label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

//! The result as JSON.

use super::{Metric, VllmInfo, VllmReport, percentile_label};
use crate::json::own_keys;
use serde_json::{Map, Number, Value, json};
use servebench_metrics::Measured;

/// The key under which everything of ours stands.
pub(super) const OWN: &str = "servebench";

/// The result of a run: every key of `vllm bench serve` in its order and with its meaning, then
/// `servebench`, an object with our own.
///
/// The JSON is strict: what was not measured is `null`, and an infinite rate or burstiness is the text
/// `inf`.
pub fn result(report: &VllmReport<'_>) -> Map<String, Value> {
    let mut keys = Map::new();
    let info = &report.info;
    setup(info, &mut keys);
    if info.pooling {
        pooling(report, &mut keys);
    } else {
        generation(report, &mut keys);
    }
    after(report, &mut keys);
    for metric in Metric::ALL.into_iter().filter(|metric| report.has(*metric)) {
        statistics(report, metric, &mut keys);
    }
    let mut own = own_keys(&report.base);
    own.extend(info.own.clone());
    keys.insert(OWN.to_owned(), Value::Object(own));
    keys
}

/// A number; the text `inf` for an infinite one, and null for what is none.
pub(super) fn number(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value == f64::INFINITY => json!("inf"),
        None => Value::Null,
    }
}

fn setup(info: &VllmInfo, keys: &mut Map<String, Value>) {
    let mut put = |key: &str, value: Value| keys.insert(key.to_owned(), value);
    put("date", json!(info.date));
    put("endpoint_type", json!(info.backend));
    put("backend", json!(info.backend));
    put("label", json!(info.label));
    put("model_id", json!(info.model_id));
    put("tokenizer_id", json!(info.tokenizer_id));
    put("num_prompts", json!(info.num_prompts));
    for (key, value) in &info.metadata {
        put(key, json!(value));
    }
    put("request_rate", number(info.request_rate));
    put("burstiness", number(info.burstiness));
    put("max_concurrency", json!(info.max_concurrency));
    if let Some(ramp) = &info.ramp {
        put("ramp_up_strategy", json!(ramp.strategy));
        put("ramp_up_start_rps", whole(ramp.start));
        put("ramp_up_end_rps", whole(ramp.end));
    }
}

/// A rate, as the integer that it mostly is.
fn whole(rate: f64) -> Value {
    if rate.fract() == 0.0 && rate.abs() < 1e15 { json!(rate as i64) } else { json!(rate) }
}

fn generation(report: &VllmReport<'_>, keys: &mut Map<String, Value>) {
    let (run, details) = (&report.base.aggregates, report.info.detailed);
    let mut put = |key: &str, value: Value| keys.insert(key.to_owned(), value);
    put("duration", json!(run.own.duration));
    put("completed", json!(run.completed));
    put("failed", json!(run.failed));
    put("total_input_tokens", json!(run.total_input_tokens_server));
    put("total_output_tokens", json!(run.own.total_output_tokens));
    put("request_throughput", json!(run.own.request_throughput));
    let goodput = run.own.goodput.as_ref().and_then(|goodput| goodput.request_goodput);
    put("request_goodput", json!(goodput));
    put("output_throughput", json!(run.own.output_throughput));
    put("total_token_throughput", json!(report.total_token_throughput()));
    if details {
        put("input_lens", report.each(|request| json!(request.prompt_tokens())));
        put("output_lens", report.each(|request| json!(output_len(request))));
        put("ttfts", report.each(|request| json!(request.ttft())));
        put("itls", report.each(|request| itls(report, request)));
    }
    put("latencies", report.each(|request| json!(request.latency())));
    if details {
        put("start_times", report.each(|request| json!(request.record.dispatched.as_secs_f64())));
    }
    put("queue_times", report.each(|request| json!(request.queue_wait())));
    if details {
        put("generated_texts", report.each(|request| json!(request.record.reply.text)));
        put("errors", report.each(error));
    }
    put("max_output_tokens_per_s", json!(run.own.max_output_tokens_per_s));
    put("max_concurrent_requests", json!(run.own.max_concurrent_requests));
    put("rtfx", json!(report.info.rtfx));
}

fn pooling(report: &VllmReport<'_>, keys: &mut Map<String, Value>) {
    let (run, details) = (&report.base.aggregates, report.info.detailed);
    let mut put = |key: &str, value: Value| keys.insert(key.to_owned(), value);
    put("duration", json!(run.own.duration));
    put("completed", json!(run.completed));
    put("failed", json!(run.failed));
    put("total_input_tokens", json!(run.total_input_tokens_server));
    put("total_input_sequences", json!(report.info.input_sequences));
    put("request_throughput", json!(run.own.request_throughput));
    put("input_sequence_throughput", json!(report.input_sequence_throughput()));
    put("total_token_throughput", json!(report.total_token_throughput()));
    if details {
        put("input_lens", report.each(|request| json!(request.prompt_tokens())));
    }
    put("latencies", report.each(|request| json!(request.latency())));
    put("queue_times", report.each(|request| json!(request.queue_wait())));
    if details {
        put("errors", report.each(error));
    }
}

pub(super) fn output_len(request: &Measured<'_>) -> u64 {
    if request.record.is_success() { request.output_count().tokens } else { 0 }
}

pub(super) fn error(request: &Measured<'_>) -> Value {
    let failure = request.record.reply.failure.as_ref();
    json!(failure.map(ToString::to_string).unwrap_or_default())
}

pub(super) fn itls(report: &VllmReport<'_>, request: &Measured<'_>) -> Value {
    let gaps = request.itls(report.base.itl_rule);
    let samples = gaps.flat_map(|gap| std::iter::repeat_n(gap.seconds, gap.tokens as usize));
    samples.map(|seconds| json!(seconds)).collect()
}

fn after(report: &VllmReport<'_>, keys: &mut Map<String, Value>) {
    let info = &report.info;
    let mut put = |key: &str, value: Value| keys.insert(key.to_owned(), value);
    if let Some(probe) = &info.probe {
        put("probe_completed", json!(probe.completed));
        put("probe_failed", json!(probe.failed));
        put("probe_median_e2el_ms", json!(probe.latency.median * 1e3));
        put("probe_p99_e2el_ms", json!(probe.latency.p99 * 1e3));
        put("probe_max_e2el_ms", json!(probe.latency.max * 1e3));
    }
    if let Some(ramp) = &info.ramp {
        let event = |(rps, at): &(f64, String)| json!({"rps": whole(*rps), "timestamp": at});
        put("rps_change_events", ramp.events.iter().map(event).collect());
    }
    if let Some(speculation) = &info.speculation {
        put("spec_decode_acceptance_rate", json!(speculation.acceptance_rate()));
        put("spec_decode_acceptance_length", json!(speculation.acceptance_length()));
        put("spec_decode_num_drafts", json!(speculation.drafts));
        put("spec_decode_draft_tokens", json!(speculation.draft_tokens));
        put("spec_decode_accepted_tokens", json!(speculation.accepted_tokens));
        let shares = speculation.per_position.iter().map(|(_, share)| json!(share));
        put("spec_decode_per_position_acceptance_rates", shares.collect());
    }
    if let Some(diffusion) = &info.diffusion {
        put("diffusion_committed_throughput", json!(report.committed_throughput()));
        put("diffusion_steps_per_canvas", json!(diffusion.steps_per_canvas()));
        put("diffusion_committed_per_step", json!(diffusion.committed_per_step()));
        put("diffusion_committed_tokens", json!(diffusion.committed));
        put("diffusion_denoising_steps", json!(diffusion.denoising_steps() as i64));
        put("diffusion_canvas_positions", json!(diffusion.positions));
    }
}

pub(super) fn statistics(report: &VllmReport<'_>, metric: Metric, keys: &mut Map<String, Value>) {
    let (name, samples) = (metric.name(), report.samples(metric));
    let mut put = |statistic: &str, value: Option<f64>| {
        keys.insert(format!("{statistic}_{name}_ms"), json!(value));
    };
    put("mean", samples.ms(|d| d.mean));
    put("median", samples.ms(|d| d.median));
    put("std", samples.ms(|d| d.std));
    for &q in &report.info.percentiles {
        put(&format!("p{}", percentile_label(q)), samples.percentile_ms(q));
    }
}

impl VllmReport<'_> {
    pub(super) fn each(&self, of: impl Fn(&Measured<'_>) -> Value) -> Value {
        self.requests.iter().map(of).collect()
    }

    fn per_second(&self, amount: u64) -> Option<f64> {
        let run = &self.base.aggregates;
        let duration = run.own.duration.filter(|duration| *duration > 0.0)?;
        (run.completed > 0).then(|| amount as f64 / duration)
    }

    /// Prompts per second.
    pub(crate) fn input_sequence_throughput(&self) -> Option<f64> {
        self.per_second(self.info.input_sequences)
    }

    /// Prompt and output tokens per second, by the server's counts.
    pub(crate) fn total_token_throughput(&self) -> Option<f64> {
        let run = &self.base.aggregates;
        let output = if self.info.pooling { 0 } else { run.own.total_output_tokens };
        self.per_second(run.total_input_tokens_server + output)
    }
}

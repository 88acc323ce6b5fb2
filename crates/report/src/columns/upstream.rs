//! The Python tool's keys, in its order and with its meaning.

use super::statistics::{FAMILIES, UPSTREAM};
use super::{Presence, Table};
use crate::{Report, RequestRate};
use serde_json::{Value, json};
use servebench_metrics::{Goodput, Slo};

pub(super) fn add(table: &mut Table) {
    plan(table);
    totals(table);
    for family in &FAMILIES {
        table.family("", family, UPSTREAM);
    }
    load(table);
}

fn plan(t: &mut Table) {
    t.text("tag", "The user's own label.", |r| r.info.tag.as_deref());
    t.text("backend", "Name of the backend.", |r| Some(&r.info.backend));
    t.text("dataset_name", "Name of the dataset.", |r| Some(&r.info.dataset_name));
    t.value(
        "request_rate",
        &["number", "string"],
        "Requests per second asked for; the string `inf` when all start at once, `trace` when a \
         trace gives the times.",
        |r| match r.info.request_rate {
            RequestRate::PerSecond(rate) if rate.is_finite() => json!(rate),
            RequestRate::PerSecond(_) => json!("inf"),
            RequestRate::Trace => json!("trace"),
        },
    );
    t.optional("max_concurrency", "requests", "Cap on requests in flight.", |r| {
        r.info.max_concurrency
    });
    t.optional("sharegpt_output_len", "tokens", "The flag of that name.", |r| {
        r.info.sharegpt_output_len
    });
    t.optional("random_input_len", "tokens", "The flag of that name.", |r| r.info.random_input_len);
    t.optional("random_output_len", "tokens", "The flag of that name.", |r| {
        r.info.random_output_len
    });
    t.number("random_range_ratio", "", "The flag of that name.", |r| r.info.random_range_ratio);
    t.value(
        "server_info",
        &["object", "array", "string", "number", "boolean", "null"],
        "The server's own description of itself.",
        |r| r.info.server_info.clone(),
    );
}

fn totals(t: &mut Table) {
    t.number(
        "duration",
        "s",
        "From the first send to the end of the last response; all rates are divided by it.",
        |r| r.aggregates.own.duration,
    );
    t.count("completed", "requests", "Requests that succeeded.", |r| r.aggregates.completed);
    t.count(
        "total_input_tokens",
        "tokens",
        "Prompt tokens of the successful requests, as the dataset counts them.",
        |r| r.aggregates.total_input_tokens,
    );
    t.count(
        "total_input_text_tokens",
        "tokens",
        "The part of `total_input_tokens` that stands for text.",
        |r| r.aggregates.total_input_tokens.saturating_sub(r.info.vision_input_tokens.unwrap_or(0)),
    );
    t.optional(
        "total_input_vision_tokens",
        "tokens",
        "The part of `total_input_tokens` that stands for images. `null` where it is not known how the \
         model counts them; `total_input_tokens` is then that of the text alone.",
        |r| r.info.vision_input_tokens.or((!r.info.has_images).then_some(0)),
    );
    t.count(
        "total_output_tokens",
        "tokens",
        "Output tokens of the successful requests: the server's counts, else the tokenizer's, else \
         one per chunk.",
        |r| r.aggregates.own.total_output_tokens,
    );
    t.optional(
        "total_output_tokens_retokenized",
        "tokens",
        "Output tokens of the successful requests by the client's tokenizer.",
        |r| r.aggregates.total_output_tokens_retokenized,
    );
    t.number("request_throughput", "requests/s", "Successful requests per second.", |r| {
        r.aggregates.own.request_throughput
    });
    t.number("input_throughput", "tokens/s", "`total_input_tokens` per second.", |r| {
        r.aggregates.own.input_throughput
    });
    t.number("output_throughput", "tokens/s", "`total_output_tokens` per second.", |r| {
        r.aggregates.own.output_throughput
    });
    t.number("total_throughput", "tokens/s", "Input and output tokens per second.", |r| {
        r.aggregates.own.total_throughput
    });
}

fn load(t: &mut Table) {
    t.number(
        "concurrency",
        "requests",
        "Requests in flight on average: the sum of all latencies over the duration.",
        |r| r.aggregates.own.concurrency,
    );
    t.number(
        "accept_length",
        "tokens",
        "Tokens per verification step of speculative decoding: this run's replies where they tell, \
         else the server's average since its start.",
        accept_length,
    );
    t.number(
        "max_output_tokens_per_s",
        "tokens/s",
        "Most output tokens in any window of one second.",
        |r| r.aggregates.own.max_output_tokens_per_s.map(|tokens| tokens as f64),
    );
    t.optional(
        "max_concurrent_requests",
        "requests",
        "Most requests in flight at the same time.",
        |r| r.aggregates.own.max_concurrent_requests,
    );
    t.value("goodput_slos_ms", &["object"], "The objectives, in milliseconds.", |r| {
        by_metric(r.aggregates.own.goodput.as_ref(), |(slo, _)| Some(slo.limit_ms))
    });
    t.only(Presence::Goodput);
    t.number(
        "request_goodput",
        "requests/s",
        "Requests per second that met every objective.",
        |r| r.aggregates.own.goodput.as_ref()?.request_goodput,
    );
    t.only(Presence::Goodput);
    t.number(
        "slo_attainment",
        "",
        "Share of all requests, failed ones included, that met every objective.",
        |r| r.aggregates.own.goodput.as_ref()?.attainment,
    );
    t.only(Presence::Goodput);
    t.value(
        "slo_attainment_by_metric",
        &["object"],
        "The same share for each objective alone.",
        |r| shares(r.aggregates.own.goodput.as_ref()),
    );
    t.only(Presence::Goodput);
    t.value(
        "cache_report",
        &["object"],
        "Prompt tokens of the successful requests, how many of them were cached, and where.",
        cache_report,
    );
    t.only(Presence::CacheReport);
}

/// Each objective's own share, by the metric's name.
pub(super) fn shares(goodput: Option<&Goodput>) -> Value {
    by_metric(goodput, |(_, share)| *share)
}

fn by_metric(goodput: Option<&Goodput>, of: fn(&(Slo, Option<f64>)) -> Option<f64>) -> Value {
    let objectives = goodput.into_iter().flat_map(|goodput| &goodput.by_objective);
    objectives.map(|objective| (objective.0.metric.name(), of(objective))).collect()
}

/// The method as a function of any report: its path alone fits one lifetime only.
fn accept_length(report: &Report<'_>) -> Option<f64> {
    report.accept_length()
}

fn cache_report(report: &Report<'_>) -> Value {
    let cache = &report.aggregates.cache;
    let places = cache.places.as_ref();
    json!({
        "total_prompt_tokens": cache.prompt_tokens,
        "total_cached_tokens": cache.cached_tokens,
        "cache_hit_rate_pct": (cache.hit_rate_percent() * 100.0).round() / 100.0,
        "device_cached_tokens": places.map(|places| places.device),
        "host_cached_tokens": places.map(|places| places.host),
        "storage_cached_tokens": places.map(|places| places.storage).filter(|tokens| *tokens > 0),
        "storage_backend": places.and_then(|places| places.storage_backend.as_deref()),
    })
}

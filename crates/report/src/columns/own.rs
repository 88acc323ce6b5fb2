//! Our own keys, and the twins of those that the Python tool computes otherwise.

use super::statistics::{
    ALL, CONNECT, FAMILIES, FROM_INTENDED, FURTHER, INTENDED, LATE, LATENESS, QUEUE_WAIT, TLS,
    TOKEN_ITL, TURNAROUND, TWINS, UPSTREAM, WAIT,
};
use super::upstream::shares;
use super::{Presence, Table, health, reception};
use serde_json::{Value, json};

/// Version of the result line's schema: raised when a key of ours changes its meaning or goes away.
pub const SCHEMA_VERSION: u64 = 1;

pub(super) fn add(table: &mut Table) {
    about(table);
    health::add(table);
    outcome(table);
    for family in &FAMILIES {
        table.family("", family, FURTHER);
    }
    table.family("", &TOKEN_ITL, ALL);
    for family in &FROM_INTENDED {
        table.family("", family, INTENDED);
    }
    table.delay(&LATENESS, LATE);
    table.delay(&TURNAROUND, LATE);
    table.delay(&QUEUE_WAIT, WAIT);
    table.delay(&CONNECT, WAIT);
    table.delay(&TLS, WAIT);
    reception::add(table);
    twins(table);
    steady(table);
}

fn about(t: &mut Table) {
    t.count("schema_version", "", "Version of this schema.", |_| SCHEMA_VERSION);
    t.text("version", "Version of the tool that measured.", |r| Some(&r.info.version));
    t.flag("simulated", "Whether the server was a simulated one.", |r| r.info.simulated);
    t.number("started_at_unix", "s", "Time of the first send, since 1970 (UTC).", |r| {
        r.info.started_at_unix
    });
    t.flag("interrupted", "Whether the run was stopped by a signal.", |r| r.info.interrupted);
    t.flag("partial", "Whether requests of the plan were left out or cut short.", |r| {
        r.info.partial
    });
    t.text("plan_sha256", "SHA-256 over schedule and payloads: equal hash, equal workload.", |r| {
        r.info.plan_sha256.as_deref()
    });
    t.text("warmup_prompts", "Where the warm-up's prompts came from.", |r| {
        r.info.warmup_prompts.as_deref()
    });
    t.optional("workers", "threads", "Threads that sent requests.", |r| r.info.workers);
}

fn outcome(t: &mut Table) {
    t.count("failed", "requests", "Requests that did not succeed.", |r| r.aggregates.failed);
    t.value("failures", &["object"], "Number of failed requests of each kind.", |r| {
        let failures = &r.aggregates.failures;
        Value::Object(failures.iter().map(|(k, n)| (k.name().to_owned(), json!(n.count))).collect())
    });
    t.value(
        "failure_examples",
        &["array"],
        "Of each kind the first failed request: its index, and what was said.",
        |r| {
            let failures = r.aggregates.failures.iter();
            let example = failures.map(|(kind, first)| {
                json!({"kind": kind, "request": first.first_id, "detail": first.first_detail})
            });
            example.collect()
        },
    );
    t.count("reconnects", "connections", "Dead kept-alive connections that were replaced.", |r| {
        r.aggregates.reconnects
    });
    t.count(
        "retries",
        "tries",
        "Times a request was sent again since a try had ended before one byte of an answer; none unless \
         `--retries` allows them. Latencies hold all tries.",
        |r| r.aggregates.retries,
    );
    t.count("connects", "requests", "Requests that had to connect inside their latency.", |r| {
        r.aggregates.connect.map_or(0, |connect| connect.count)
    });
    t.count(
        "total_input_tokens_server",
        "tokens",
        "Prompt tokens of the successful requests by the server's counts, the dataset's where it \
         gave none.",
        |r| r.aggregates.total_input_tokens_server,
    );
    t.number(
        "output_throughput_retokenized",
        "tokens/s",
        "`total_output_tokens_retokenized` per second.",
        |r| r.aggregates.output_throughput_retokenized,
    );
    t.number(
        "total_throughput_retokenized",
        "tokens/s",
        "Input tokens and `total_output_tokens_retokenized` per second.",
        |r| r.aggregates.total_throughput_retokenized,
    );
    t.number(
        "achieved_request_rate",
        "requests/s",
        "Rate at which requests really left: (requests − 1) / (last dispatch − first dispatch).",
        |r| r.aggregates.achieved_request_rate,
    );
}

fn steady(t: &mut Table) {
    t.value(
        "steady_state",
        &["object", "null"],
        "The longest time in which enough requests were under way, and what was measured in it: the keys \
         of SGLang's `steady_state_serving`, but `window_start` and `window_end` in seconds since the \
         start of the run. `null` when nothing succeeded.",
        |r| json!(r.info.steady_state),
    );
    t.only(Presence::SteadyState);
}

fn twins(t: &mut Table) {
    t.number(
        "upstream_duration",
        "s",
        "`duration` as the Python tool takes it: with what it does after the last response.",
        |r| r.aggregates.upstream.duration,
    );
    t.count(
        "upstream_total_output_tokens",
        "tokens",
        "`total_output_tokens` as the Python tool counts: the length asked for where the server \
         counts nothing.",
        |r| r.aggregates.upstream.total_output_tokens,
    );
    const RATE: &str = "The Python tool's value: over `upstream_duration`.";
    t.number("upstream_request_throughput", "requests/s", RATE, |r| {
        r.aggregates.upstream.request_throughput
    });
    t.number("upstream_input_throughput", "tokens/s", RATE, |r| {
        r.aggregates.upstream.input_throughput
    });
    t.number("upstream_output_throughput", "tokens/s", RATE, |r| {
        r.aggregates.upstream.output_throughput
    });
    t.number("upstream_total_throughput", "tokens/s", RATE, |r| {
        r.aggregates.upstream.total_throughput
    });
    for family in &TWINS {
        t.family("upstream_", family, UPSTREAM);
    }
    t.number(
        "upstream_concurrency",
        "requests",
        "The Python tool's value: latencies up to the last `data:` line, over `upstream_duration`.",
        |r| r.aggregates.upstream.concurrency,
    );
    t.number(
        "upstream_accept_length",
        "tokens",
        "The Python tool's value: the server's average since its start.",
        |r| r.info.server_accept_length,
    );
    t.number(
        "upstream_max_output_tokens_per_s",
        "tokens/s",
        "The Python tool's value: one token and one per ITL sample, in whole seconds since the \
         first send.",
        |r| r.aggregates.upstream.max_output_tokens_per_s.map(|tokens| tokens as f64),
    );
    t.optional(
        "upstream_max_concurrent_requests",
        "requests",
        "The Python tool's value: the most requests that touch one whole second since the first \
         send.",
        |r| r.aggregates.upstream.max_concurrent_requests,
    );
    const GOODPUT: &str =
        "The Python tool's value: latencies up to the last `data:` line, over `upstream_duration`.";
    t.number("upstream_request_goodput", "requests/s", GOODPUT, |r| {
        r.aggregates.upstream.goodput.as_ref()?.request_goodput
    });
    t.only(Presence::Goodput);
    t.number("upstream_slo_attainment", "", GOODPUT, |r| {
        r.aggregates.upstream.goodput.as_ref()?.attainment
    });
    t.only(Presence::Goodput);
    t.value("upstream_slo_attainment_by_metric", &["object"], GOODPUT, |r| {
        shares(r.aggregates.upstream.goodput.as_ref())
    });
    t.only(Presence::Goodput);
}

//! The keys that tell how the client fared.

use super::Table;
use crate::{ClientHealth, Report};
use serde_json::{Value, json};

fn health<'a>(report: &'a Report<'_>) -> Option<&'a ClientHealth> {
    report.info.client.as_ref()
}

pub(super) fn add(t: &mut Table) {
    t.text(
        "verdict",
        "Whose limit the numbers show: `server-bound`, `client-bound` or `undecided`.",
        |r| health(r).map(|client| client.verdict.name()),
    );
    t.value(
        "verdict_evidence",
        &["array"],
        "What the verdict rests on: sentences, the weightiest first.",
        |r| health(r).map_or(json!([]), |client| json!(client.evidence)),
    );
    t.value(
        "worker_cpu_share",
        &["array"],
        "Share of the duration that each worker's thread was on the processor.",
        |r| {
            health(r).map_or(json!([]), |client| {
                client.worker_cpu.iter().map(|share| json!(rounded(*share))).collect()
            })
        },
    );
    t.number(
        "process_cpu_share",
        "",
        "Share of the processor time it may use that the whole process used, a simulated server in \
         it included.",
        |r| health(r)?.process_cpu.map(rounded),
    );
    t.optional(
        "loop_stalls",
        "stalls",
        "How often an event loop stood still for 5 ms or more.",
        |r| health(r)?.stalls,
    );
    t.number(
        "loop_stall_max_ms",
        "ms",
        "The longest time for which an event loop stood still.",
        |r| Some(health(r)?.longest_stall? * 1e3),
    );
    t.optional("fd_limit", "descriptors", "Descriptors that the process may have open.", |r| {
        health(r)?.descriptor_limit
    });
    t.optional(
        "fd_needed",
        "descriptors",
        "Descriptors that the run was expected to need: the requests under way at once, and some \
         for everything else.",
        |r| health(r)?.descriptors_needed,
    );
    t.optional(
        "tcp_retransmits",
        "segments",
        "Segments that TCP sent again during the run, for all programs of the network namespace.",
        |r| Some(health(r)?.tcp?.retransmits),
    );
    t.optional(
        "tcp_timeouts",
        "timeouts",
        "Retransmission timers that ran out during the run, for all programs of the network \
         namespace: each holds a connection up for 200 ms or more.",
        |r| health(r)?.tcp?.timeouts,
    );
    t.optional(
        "tcp_out_of_order",
        "segments",
        "Segments that came out of order during the run, for all programs of the network namespace.",
        |r| health(r)?.tcp?.out_of_order,
    );
    t.value(
        "calibration",
        &["object", "null"],
        "What the client measured before the run on a server whose times are known; null without a \
         calibration.",
        |r| health(r).map_or(Value::Null, |client| json!(client.calibration)),
    );
}

/// Four digits of a share are more than it can be known to.
fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

//! The keys with one entry per request.

use super::{Presence, Source, Table, Types, describe};
use crate::json::put;
use servebench_metrics::{Gap, ItlRule, Measured};

/// One request of the details.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) request: &'a Measured<'a>,
    pub(crate) rule: ItlRule,
}

impl Table {
    fn each(
        &mut self,
        key: &'static str,
        types: Types,
        unit: &'static str,
        doc: &'static str,
        write: fn(Row<'_>, &mut Vec<u8>),
    ) {
        let source = Source::PerRequest(write);
        self.add(key, describe(types, unit, doc, Presence::Details), source);
    }
}

const SECONDS: Types = &["number", "null"];

pub(super) fn add_upstream(t: &mut Table) {
    t.each(
        "input_lens",
        &["integer"],
        "tokens",
        "Prompt tokens: the server's count, the dataset's where it gave none.",
        |row, out| put(out, &row.request.prompt_tokens()),
    );
    t.each(
        "output_lens",
        &["integer"],
        "tokens",
        "Output tokens; 0 for a failed request. `output_len_sources` says who counted.",
        |row, out| {
            let success = row.request.record.is_success();
            put(out, &if success { row.request.output_count().tokens } else { 0 });
        },
    );
    t.each("ttfts", SECONDS, "s", "Time to first token; `null` without a token.", |row, out| {
        put(out, &row.request.ttft());
    });
    t.each(
        "itls",
        &["array"],
        "s",
        "Inter-token latencies by the route's rule, those of a failed request too.",
        |row, out| put_gaps(out, row.request.itls(row.rule)),
    );
    t.each("generated_texts", &["string"], "", "The text received.", |row, out| {
        put(out, &row.request.record.reply.text);
    });
    t.each("errors", &["string"], "", "`kind: detail`; empty for a success.", |row, out| {
        let failure = row.request.record.reply.failure.as_ref();
        put(out, &failure.map(ToString::to_string).unwrap_or_default());
    });
    t.each(
        "cached_tokens",
        &["integer"],
        "tokens",
        "Cached prompt tokens; 0 where the server told of none.",
        |row, out| put(out, &row.request.record.reply.cached_tokens.unwrap_or(0)),
    );
    t.only(Presence::CacheDetails);
    t.each(
        "cached_tokens_details",
        &["object", "null"],
        "tokens",
        "Where they were found; `null` where the server did not tell.",
        |row, out| put(out, &row.request.record.reply.rare().cached_details),
    );
    t.only(Presence::CacheDetails);
}

pub(super) fn add_own(t: &mut Table) {
    t.each(
        "routed_experts",
        &["string", "null"],
        "",
        "The experts that the tokens were routed to, as the server wrote them: SGLang's is base64 of \
         32-bit integers, token by layer by expert. `null` where a reply told of none.",
        |row, out| put(out, &row.request.record.reply.rare().routed_experts),
    );
    t.only(Presence::ExpertDetails);
    t.each("success", &["boolean"], "", "Whether the request succeeded.", |row, out| {
        put(out, &row.request.record.is_success());
    });
    t.each(
        "token_itls",
        &["array", "null"],
        "s",
        "Inter-token latencies per token; `null` where the counts do not allow it.",
        |row, out| match row.request.token_itls() {
            Some(gaps) => put_gaps(out, gaps),
            None => put(out, &()),
        },
    );
    t.each(
        "latencies",
        SECONDS,
        "s",
        "From dispatch to the last token; `null` for a failed request without one.",
        |row, out| put(out, &row.request.latency()),
    );
    t.each(
        "stream_latencies",
        SECONDS,
        "s",
        "From dispatch to the last `data:` line: the Python tool's latency.",
        |row, out| put(out, &row.request.stream_latency()),
    );
    t.each("start_times", &["number"], "s", "Dispatch, since the start of the run.", |row, out| {
        put(out, &row.request.record.dispatched.as_secs_f64());
    });
    t.each(
        "read_lags",
        SECONDS,
        "s",
        "Mean time that received bytes waited for the client; `null` with `user` stamps.",
        |row, out| {
            let lag = row.request.record.reply.read_lag;
            put(out, &lag.map(|lag| lag.mean().as_secs_f64()));
        },
    );
    t.each(
        "exact_ttfts",
        &["boolean", "null"],
        "",
        "Whether TTFT is exact: known to within 0.1 ms. `null` with `user` stamps, and without a \
         token.",
        |row, out| put(out, &row.request.ttft_is_exact()),
    );
    t.each(
        "exact_itl_shares",
        &["number", "null"],
        "",
        "Share of the inter-token latencies that are exact: known to within 0.1 ms. `null` with \
         `user` stamps, and without any.",
        |row, out| put(out, &row.request.exact_itl_share(row.rule)),
    );
    t.each(
        "finish_reasons",
        &["string", "null"],
        "",
        "Why the server stopped, in its own words.",
        |row, out| put(out, &row.request.record.reply.finish_reason),
    );
    t.each(
        "output_len_sources",
        &["string", "null"],
        "",
        "Who counted the output: `server`, `tokenizer` or `chunks`; `null` for a failed request.",
        |row, out| {
            let success = row.request.record.is_success();
            put(out, &success.then(|| row.request.output_count().source));
        },
    );
}

/// An array of all samples. A gap that many tokens share is formatted once.
fn put_gaps(out: &mut Vec<u8>, gaps: impl Iterator<Item = Gap>) {
    out.push(b'[');
    let start = out.len();
    for gap in gaps {
        if out.len() > start {
            out.push(b',');
        }
        let number = out.len();
        put(out, &gap.seconds);
        let end = out.len();
        for _ in 1..gap.tokens {
            out.push(b',');
            out.extend_from_within(number..end);
        }
    }
    out.push(b']');
}

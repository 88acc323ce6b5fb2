//! The console table.

use crate::number::{percent_g, python_float};
use crate::{Report, RequestRate};
use servebench_metrics::{Bounds, CacheReport, Distribution, Goodput, ItlRule, SloMetric};
use std::fmt::Display;

/// Below this, in seconds, the client's own delays are not worth a line.
const WORTH_A_LINE: f64 = 0.001;
/// A tail that could not be further off than this part of it needs no bounds beside it.
const WORTH_MENTIONING: f64 = 0.01;

/// The console table: the Python tool's rows to the character, then a section of our own.
///
/// Where there are no samples the Python tool's rows show `0.00` (the result line has `null`). Our
/// section holds only what is out of the ordinary; without anything of the kind there is none.
pub fn table(report: &Report<'_>) -> String {
    let mut table = Table(String::from("\n"));
    table.banner(" Serving Benchmark Result ", '=');
    table.totals(report);
    if let Some(goodput) = &report.aggregates.own.goodput {
        table.goodput(goodput);
    }
    table.latencies(report);
    if report.info.cache_report {
        table.cache(&report.aggregates.cache);
    }
    table.client(report);
    table.banner("", '=');
    table.0
}

/// A table while it is written.
pub(crate) struct Table(pub(crate) String);

impl Table {
    pub(crate) fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// Text in the middle of 50 columns; an odd fill character goes to the right.
    pub(crate) fn banner(&mut self, text: &str, fill: char) {
        self.line(&match fill {
            '=' => format!("{text:=^50}"),
            _ => format!("{text:-^50}"),
        });
    }

    fn section(&mut self, title: &str) {
        self.banner(title, '-');
    }

    pub(crate) fn row(&mut self, label: &str, value: impl Display) {
        // The inner `format!` makes padding work for every value.
        self.line(&format!("{label:<40} {:<10}", value.to_string()));
    }

    pub(crate) fn number(&mut self, label: &str, value: Option<f64>) {
        self.row(label, format_args!("{:.2}", value.unwrap_or(0.0)));
    }

    fn milliseconds(&mut self, label: &str, seconds: Option<f64>) {
        self.number(label, seconds.map(|seconds| seconds * 1e3));
    }

    fn totals(&mut self, report: &Report<'_>) {
        let (info, run) = (&report.info, &report.aggregates);
        let generates = !info.embeddings;
        self.row("Backend:", &info.backend);
        match info.request_rate {
            RequestRate::PerSecond(rate) => self.row("Traffic request rate:", python_float(rate)),
            RequestRate::Trace => self.row("Traffic request rate:", "trace"),
        }
        match info.max_concurrency {
            Some(cap) => self.row("Max request concurrency:", cap),
            None => self.row("Max request concurrency:", "not set"),
        }
        self.row("Successful requests:", run.completed);
        self.number("Benchmark duration (s):", run.own.duration);
        let vision = info.vision_input_tokens;
        self.row("Total input tokens:", run.total_input_tokens);
        let text = run.total_input_tokens.saturating_sub(vision.unwrap_or(0));
        self.row("Total input text tokens:", text);
        match vision {
            Some(tokens) => self.row("Total input vision tokens:", tokens),
            None if info.has_images => self.row("Total input vision tokens:", "not known"),
            None => {}
        }
        if generates {
            self.row("Total generated tokens:", run.own.total_output_tokens);
            let label = "Total generated tokens (retokenized):";
            match run.total_output_tokens_retokenized {
                Some(tokens) => self.row(label, tokens),
                None => self.row(label, "n/a"),
            }
        }
        self.number("Request throughput (req/s):", run.own.request_throughput);
        self.number("Input token throughput (tok/s):", run.own.input_throughput);
        if generates {
            self.number("Output token throughput (tok/s):", run.own.output_throughput);
            let peak = run.own.max_output_tokens_per_s.map(|tokens| tokens as f64);
            self.number("Peak output token throughput (tok/s):", peak);
        }
        let peak = run.own.max_concurrent_requests.unwrap_or(0);
        self.row("Peak concurrent requests:", peak);
        if generates {
            self.number("Total token throughput (tok/s):", run.own.total_throughput);
        }
        self.number("Concurrency:", run.own.concurrency);
        if let Some(length) = report.accept_length().filter(|length| *length != 0.0) {
            self.number("Accept length:", Some(length));
        }
    }

    fn goodput(&mut self, goodput: &Goodput) {
        self.section("Goodput");
        let slos: Vec<String> = goodput
            .by_objective
            .iter()
            .map(|(slo, _)| format!("{}:{}", slo.metric.name(), percent_g(slo.limit_ms)))
            .collect();
        self.row("SLOs (ms):", slos.join(" "));
        self.number("Request goodput (req/s):", goodput.request_goodput);
        let percent = |share: Option<f64>| share.map(|share| share * 100.0);
        self.number("SLO attainment (%):", percent(goodput.attainment));
        for (slo, share) in &goodput.by_objective {
            let name = match slo.metric {
                SloMetric::Ttft => "TTFT",
                SloMetric::Tpot => "TPOT",
                SloMetric::E2el => "E2EL",
            };
            self.number(&format!("{name} SLO attainment (%):"), percent(*share));
        }
    }

    fn latencies(&mut self, report: &Report<'_>) {
        let run = &report.aggregates;
        self.family("End-to-End Latency", "E2E Latency", run.own.e2e);
        if report.info.embeddings {
            return;
        }
        self.family("Time to First Token", "TTFT", run.ttft);
        self.family("Time per Output Token (excl. 1st token)", "TPOT", run.own.tpot);
        self.family("Inter-Token Latency", "ITL", run.itl);
        self.milliseconds("Max ITL (ms):", run.itl.map(|itl| itl.max));
    }

    fn family(&mut self, title: &str, name: &str, samples: Option<Distribution>) {
        self.section(title);
        let values = [
            ("Mean", samples.map(|d| d.mean)),
            ("Median", samples.map(|d| d.median)),
            ("P90", samples.map(|d| d.p90)),
            ("P95", samples.map(|d| d.p95)),
            ("P99", samples.map(|d| d.p99)),
        ];
        for (statistic, seconds) in values {
            self.milliseconds(&format!("{statistic} {name} (ms):"), seconds);
        }
    }

    fn cache(&mut self, cache: &CacheReport) {
        self.section("Cache Hit Details");
        self.row("Total prompt tokens:", cache.prompt_tokens);
        self.row("Total cached tokens:", cache.cached_tokens);
        let places = cache.places.as_ref().filter(|_| cache.cached_tokens > 0);
        let mut parts: Vec<(String, u64)> = Vec::new();
        if let Some(places) = places {
            parts.push(("  Device:".to_owned(), places.device));
            parts.push(("  Host:".to_owned(), places.host));
            if places.storage > 0 {
                let name = places.storage_backend.as_deref();
                let label = name.map_or("  Storage:".to_owned(), |n| format!("  Storage ({n}):"));
                parts.push((label, places.storage));
            }
        }
        for (label, tokens) in &parts {
            self.row(label, tokens);
        }
        // Percentages are not padded, as in the Python tool.
        self.line(&format!("{:<40} {:.1}%", "Cache hit rate:", cache.hit_rate_percent()));
        for (label, tokens) in &parts {
            let share = *tokens as f64 / cache.cached_tokens as f64 * 100.0;
            self.line(&format!("{label:<40} {share:.1}%"));
        }
    }

    /// How far the times can be trusted.
    fn reception(&mut self, report: &Report<'_>) {
        let run = &report.aggregates;
        let Some(reception) = &run.reception else {
            self.row("Receive stamps:", "user");
            return;
        };
        self.row("Receive stamps:", "kernel");
        let lag = reception.read_lag;
        let waits = [lag.median, lag.p99, reception.longest_read_lag];
        let waits = waits.map(|seconds| format!("{:.2}", seconds * 1e3)).join(" / ");
        self.row("Read lag, P50 / P99 / max (ms):", waits);
        if report.info.embeddings {
            return;
        }
        let shares = [reception.exact_share_ttft, reception.exact_share_itl];
        let percent = |share: Option<f64>| match share {
            // Rounding must not make all of nearly all.
            Some(share) => format!("{:.2}", (share * 1e4).floor() / 1e2),
            None => "n/a".to_owned(),
        };
        self.row("Exact to 0.1 ms, TTFT / ITL (%):", shares.map(percent).join(" / "));
        self.bounds("TTFT", run.ttft, reception.ttft);
        self.bounds("ITL", run.itl, reception.itl);
    }

    /// Where bounds could move a tail, how far.
    fn bounds(&mut self, name: &str, shown: Option<Distribution>, bounds: Option<Bounds>) {
        let Some((shown, Bounds { low, high })) = shown.zip(bounds) else { return };
        let moved = (shown.p99 - low.p99).max(high.p99 - shown.p99);
        if moved > WORTH_MENTIONING * shown.p99 {
            let [low, high] = [low, high].map(|d| format!("{:.2}", d.p99 * 1e3));
            self.row(&format!("P99 {name}, by bounds (ms):"), format!("{low} to {high}"));
        }
    }

    /// What the Python tool does not show, as far as it is out of the ordinary.
    pub(crate) fn client(&mut self, report: &Report<'_>) {
        let start = self.0.len();
        let run = &report.aggregates;
        if let Some(client) = &report.info.client {
            self.line(&client.line());
        }
        if run.completed > 0 {
            self.reception(report);
        }
        if run.failed > 0 {
            self.row("Failed requests:", run.failed);
            for (kind, tally) in &run.failures {
                self.row(&format!("Failures ({kind}):"), tally.count);
            }
        }
        // When all are due at once a cap makes the others wait, as it is meant to.
        let paced = report.info.request_rate != RequestRate::default();
        if paced && run.queue_wait.is_some_and(|wait| wait.p99 >= WORTH_A_LINE) {
            self.number("Requests sent per second:", run.achieved_request_rate);
            self.milliseconds("Mean queue wait (ms):", run.queue_wait.map(|d| d.mean));
            self.milliseconds("P99 queue wait (ms):", run.queue_wait.map(|d| d.p99));
            self.milliseconds("Mean TTFT from intended (ms):", run.ttft_intended.map(|d| d.mean));
            self.milliseconds("P99 TTFT from intended (ms):", run.ttft_intended.map(|d| d.p99));
            self.milliseconds("Mean E2E from intended (ms):", run.e2e_intended.map(|d| d.mean));
            self.milliseconds("P99 E2E from intended (ms):", run.e2e_intended.map(|d| d.p99));
        }
        if run.lateness.is_some_and(|lateness| lateness.p99 >= WORTH_A_LINE) {
            self.milliseconds("P99 timer lateness (ms):", run.lateness.map(|d| d.p99));
        }
        if run.turnaround.is_some_and(|turnaround| turnaround.p99 >= WORTH_A_LINE) {
            self.milliseconds("P99 turnaround (ms):", run.turnaround.map(|d| d.p99));
        }
        if run.itl != run.token_itl && !report.info.embeddings {
            let shown = match report.itl_rule {
                ItlRule::PerChunk => "per chunk",
                ItlRule::SpreadOverTokens => "per token",
            };
            self.row("Inter-Token Latency above is:", shown);
            if run.token_itl.is_some() {
                self.milliseconds("Median ITL per token (ms):", run.token_itl.map(|d| d.median));
                self.milliseconds("P99 ITL per token (ms):", run.token_itl.map(|d| d.p99));
            }
        }
        if run.cache.cached_tokens > 0 && !report.info.cache_report {
            // A warm cache explains a TTFT that is too good.
            self.number("Prompt tokens cached (%):", Some(run.cache.hit_rate_percent()));
        }
        if let Some(connect) = run.connect {
            self.row("Connects inside requests:", connect.count);
            self.milliseconds("Mean connect time (ms):", Some(connect.mean));
        }
        if run.reconnects > 0 {
            self.row("Reconnects:", run.reconnects);
        }
        if run.retries > 0 {
            self.row("Retries:", run.retries);
        }
        let flags = [
            ("Interrupted:", report.info.interrupted),
            ("Partial:", report.info.partial),
            ("Simulated server:", report.info.simulated),
        ];
        for (label, _) in flags.into_iter().filter(|(_, set)| *set) {
            self.row(label, "yes");
        }
        if self.0.len() > start {
            self.0.insert_str(start, &format!("{:-^50}\n", "Client"));
        }
    }
}

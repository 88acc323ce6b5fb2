//! The console table.

use super::{Diffusion, Metric, VllmReport, percentile_label};
use crate::table::Table as Rows;
use std::fmt::Display;

/// The table of `vllm bench serve` to the character, with a section of our own before its last line.
pub fn table(report: &VllmReport<'_>) -> String {
    let mut table = Table(String::new());
    table.totals(report);
    table.probe(report);
    for metric in Metric::ALL {
        if report.has(metric) {
            table.metric(report, metric);
        }
    }
    match &report.info.diffusion {
        Some(diffusion) => table.diffusion(report, diffusion),
        None => table.speculation(report),
    }
    table.end(report);
    table.0
}

pub(super) struct Table(pub(super) String);

impl Table {
    pub(super) fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// The section of our own, and the last line.
    pub(super) fn end(&mut self, report: &VllmReport<'_>) {
        let mut own = Rows(String::new());
        own.client(&report.base);
        self.0.push_str(&own.0);
        self.line(&"=".repeat(50));
    }

    fn section(&mut self, title: &str) {
        self.line(&format!("{title:-^50}"));
    }

    pub(super) fn row(&mut self, label: &str, value: impl Display) {
        self.line(&format!("{label:<40} {:<10}", value.to_string()));
    }

    pub(super) fn number(&mut self, label: &str, value: Option<f64>) {
        self.row(label, format_args!("{:.2}", value.unwrap_or(0.0)));
    }

    fn totals(&mut self, report: &VllmReport<'_>) {
        let (info, run) = (&report.info, &report.base.aggregates);
        let tokens = report.tokenized();
        let generates = !info.pooling;
        self.line(&format!("{:=^50}", " Serving Benchmark Result "));
        self.row("Successful requests:", run.completed);
        self.row("Failed requests:", run.failed);
        if let Some(cap) = info.max_concurrency {
            self.row("Maximum request concurrency:", cap);
        }
        if info.request_rate.is_finite() {
            self.number("Request rate configured (RPS):", Some(info.request_rate));
        }
        self.number("Benchmark duration (s):", run.own.duration);
        self.row("Total input tokens:", run.total_input_tokens_server);
        if generates && tokens {
            self.row("Total generated tokens:", run.own.total_output_tokens);
        }
        self.number("Request throughput (req/s):", run.own.request_throughput);
        if info.pooling {
            self.number("Input throughput (inputs/s):", report.input_sequence_throughput());
        }
        if let Some(goodput) = run.own.goodput.as_ref().filter(|_| generates) {
            self.number("Request goodput (req/s):", goodput.request_goodput);
        }
        if generates && tokens {
            self.number("Output token throughput (tok/s):", run.own.output_throughput);
            let peak = run.own.max_output_tokens_per_s.map(|tokens| tokens as f64);
            self.number("Peak output token throughput (tok/s):", peak);
        }
        if generates {
            let peak = run.own.max_concurrent_requests.map(|requests| requests as f64);
            self.number("Peak concurrent requests:", peak);
            if info.rtfx > 0.0 {
                self.number("RTFx (Inverse Real-Time Factor):", Some(info.rtfx));
            }
        }
        if tokens {
            self.number("Total token throughput (tok/s):", report.total_token_throughput());
        }
    }

    fn probe(&mut self, report: &VllmReport<'_>) {
        let Some(probe) = &report.info.probe else { return };
        self.section("Probe Requests");
        self.row("Probe requests completed:", probe.completed);
        self.row("Probe requests failed:", probe.failed);
        self.number("Median probe E2EL (ms):", Some(probe.latency.median * 1e3));
        self.number("P99 probe E2EL (ms):", Some(probe.latency.p99 * 1e3));
        self.number("Max probe E2EL (ms):", Some(probe.latency.max * 1e3));
    }

    pub(super) fn metric(&mut self, report: &VllmReport<'_>, metric: Metric) {
        let (title, name) = metric.words();
        let samples = report.samples(metric);
        self.section(title);
        self.number(&format!("Mean {name} (ms):"), samples.ms(|d| d.mean));
        self.number(&format!("Median {name} (ms):"), samples.ms(|d| d.median));
        for &q in &report.info.percentiles {
            let label = format!("P{} {name} (ms):", percentile_label(q));
            self.number(&label, samples.percentile_ms(q));
        }
    }

    fn diffusion(&mut self, report: &VllmReport<'_>, diffusion: &Diffusion) {
        self.section("Diffusion Decoding");
        self.number("Committed throughput (tok/s):", report.committed_throughput());
        self.number("Denoising steps per canvas:", Some(diffusion.steps_per_canvas()));
        self.number("Committed per denoising step:", diffusion.committed_per_step());
        self.row("Committed tokens:", diffusion.committed);
        self.row("Denoising steps:", diffusion.denoising_steps() as i64);
        self.row("Canvas positions evaluated:", diffusion.positions);
    }

    fn speculation(&mut self, report: &VllmReport<'_>) {
        let Some(speculation) = &report.info.speculation else { return };
        self.section("Speculative Decoding");
        self.number("Acceptance rate (%):", Some(speculation.acceptance_rate()));
        self.number("Acceptance length:", Some(speculation.acceptance_length()));
        self.row("Drafts:", speculation.drafts);
        self.row("Draft tokens:", speculation.draft_tokens);
        self.row("Accepted tokens:", speculation.accepted_tokens);
        if !speculation.per_position.is_empty() {
            self.line("Per-position acceptance (%):");
        }
        for (position, share) in &speculation.per_position {
            self.number(&format!("  Position {position}:"), Some(share * 100.0));
        }
    }
}

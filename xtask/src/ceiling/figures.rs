//! The figures of one cell, and how they are shown.

use crate::rig::{Client, Run, Scenario};
use std::collections::BTreeMap;

/// A column of the table, or a figure that only a goal looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Figure {
    RequestsPerSecond,
    TokensPerSecond,
    CpuPerToken,
    MeanTtftError,
    P99TtftError,
    P99Itl,
    /// ITL p99 as the client has it, over the server's.
    P99ItlRatio,
    ExactTtft,
    ExactItl,
    ReadLag,
    PeakMemory,
    FirstRequest,
}

/// What is known of one client in one scenario.
pub(super) type Figures = BTreeMap<Figure, f64>;

impl Figure {
    /// The columns, in their order.
    pub(super) const COLUMNS: [Self; 12] = [
        Self::RequestsPerSecond,
        Self::TokensPerSecond,
        Self::CpuPerToken,
        Self::MeanTtftError,
        Self::P99TtftError,
        Self::P99Itl,
        Self::P99ItlRatio,
        Self::ExactTtft,
        Self::ExactItl,
        Self::ReadLag,
        Self::PeakMemory,
        Self::FirstRequest,
    ];

    /// The figures that stand beside vllm-rs's.
    pub(super) const COMPARED: [Self; 2] = [Self::TokensPerSecond, Self::CpuPerToken];

    /// The head of the column.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::RequestsPerSecond => "requests/s",
            Self::TokensPerSecond => "k tokens/s",
            Self::CpuPerToken => "CPU µs/token",
            Self::MeanTtftError => "TTFT error, mean ms",
            Self::P99TtftError => "p99 ms",
            Self::P99Itl => "ITL p99 ms",
            Self::P99ItlRatio => "× server's",
            Self::ExactTtft => "exact TTFT %",
            Self::ExactItl => "exact ITL %",
            Self::ReadLag => "read lag p99 ms",
            Self::PeakMemory => "peak MB",
            Self::FirstRequest => "launch → request s",
        }
    }

    /// A value as the table has it.
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::RequestsPerSecond | Self::PeakMemory => format!("{value:.0}"),
            Self::TokensPerSecond | Self::ExactTtft | Self::ExactItl => format!("{value:.1}"),
            Self::CpuPerToken | Self::P99Itl | Self::ReadLag => format!("{value:.2}"),
            Self::MeanTtftError | Self::P99TtftError | Self::P99ItlRatio | Self::FirstRequest => {
                format!("{value:.3}")
            }
        }
    }
}

/// The figures of one run.
pub(super) fn figures(client: &Client, scenario: &Scenario, run: &Run) -> Figures {
    let Run { report, usage, truth } = run;
    let each = f64::from(scenario.output_tokens);
    let begin = truth.arrivals.first().copied().unwrap_or(truth.last);
    // A client that counts time leaves replies unfinished, and works until it stops.
    let (tokens, end) = match client.requests(scenario) {
        Some(_) => (truth.arrivals.len() as f64 * each, truth.last),
        None => (truth.tokens, usage.ended),
    };
    let seconds = (end - begin).max(1e-9);
    let cpu = usage.cpu_between(begin, end);
    let above = |own: Option<f64>, servers: Option<f64>| Some(own? - servers?);
    let p99_itl = report.number("p99_itl_ms");
    // Without delays there is no server's time to compare with.
    let timed = scenario.ttft_ms > 0;
    let percent = |key| report.number(key).map(|share| share * 100.0);
    let known = [
        (Figure::RequestsPerSecond, Some(tokens / each / seconds)),
        (Figure::TokensPerSecond, Some(tokens / seconds / 1e3)),
        // The ideal client spins: its time on the processor says nothing.
        (Figure::CpuPerToken, (!matches!(client, Client::Ideal(_))).then_some(cpu / tokens * 1e6)),
        (Figure::MeanTtftError, above(report.number("mean_ttft_ms"), truth.ttft.mean)),
        (Figure::P99TtftError, above(report.number("p99_ttft_ms"), truth.ttft.p99)),
        (Figure::P99Itl, p99_itl),
        (
            Figure::P99ItlRatio,
            p99_itl.zip(truth.itl.p99.filter(|_| timed)).map(|(own, servers)| own / servers),
        ),
        (Figure::ExactTtft, percent("exact_share_ttft")),
        (Figure::ExactItl, percent("exact_share_itl")),
        (Figure::ReadLag, report.number("read_lag_p99_ms")),
        (Figure::PeakMemory, Some(usage.peak_memory as f64 / 1e6)),
        (Figure::FirstRequest, Some(truth.first - usage.launched)),
    ];
    known.into_iter().filter_map(|(figure, value)| Some((figure, value?))).collect()
}

/// The median of each figure over several runs.
pub(super) fn medians(runs: &[Figures]) -> Figures {
    let mut all: BTreeMap<Figure, Vec<f64>> = BTreeMap::new();
    for (figure, value) in runs.iter().flatten() {
        all.entry(*figure).or_default().push(*value);
    }
    all.into_iter().filter_map(|(figure, values)| Some((figure, median(values)?))).collect()
}

/// The value in the middle, or between the two in the middle.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    crate::rig::percentile(&values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_its_own_median() {
        let run = |memory: f64, cpu: Option<f64>| {
            let mut figures = Figures::from([(Figure::PeakMemory, memory)]);
            figures.extend(cpu.map(|cpu| (Figure::CpuPerToken, cpu)));
            figures
        };
        let middle = medians(&[run(1.0, Some(6.0)), run(9.0, None), run(2.0, Some(8.0))]);
        let wanted = Figures::from([(Figure::CpuPerToken, 7.0), (Figure::PeakMemory, 2.0)]);
        assert_eq!(middle, wanted);
    }
}

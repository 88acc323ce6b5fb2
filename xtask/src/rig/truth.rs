//! What the server saw.

use anyhow::{Context, Result};
use serde_json::Value;

/// The server's own account of a run; times in milliseconds where nothing else is said.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    /// Arrival of each measured request, in seconds since the epoch, earliest first.
    pub(crate) arrivals: Vec<f64>,
    /// Arrival of the very first request, warm-up or not, in seconds since the epoch.
    pub(crate) first: f64,
    /// When the last token left, in seconds since the epoch.
    pub(crate) last: f64,
    /// Tokens sent, those of replies that were given up too.
    pub(crate) tokens: f64,
    /// From request to first token.
    pub(crate) ttft: Spread,
    /// From token to token.
    pub(crate) itl: Spread,
}

/// Mean and percentiles, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread {
    pub(crate) mean: Option<f64>,
    pub(crate) p50: Option<f64>,
    pub(crate) p99: Option<f64>,
}

impl Truth {
    /// From a mock's `/mock/stats` and `/mock/arrivals`; its percentiles are those of a histogram,
    /// and warm-up counts.
    pub(super) fn of_mock(stats: &str, arrivals: &str, measured: Option<u32>) -> Result<Self> {
        let stats: Value = serde_json::from_str(stats)?;
        let mut arrivals: Vec<f64> = serde_json::from_str(arrivals)?;
        arrivals.sort_by(f64::total_cmp);
        for arrival in &mut arrivals {
            *arrival /= 1e6;
        }
        let last = stats["last_us"].as_f64().context("the server's stats have no `last_us`")?;
        let spread = |key: &str| Spread {
            mean: stats[key]["mean_ms"].as_f64(),
            p50: stats[key]["p50_ms"].as_f64(),
            p99: stats[key]["p99_ms"].as_f64(),
        };
        Ok(Self {
            first: arrivals.first().copied().unwrap_or(0.0),
            arrivals: arrivals.split_off(warm_up(arrivals.len(), measured)),
            last: last / 1e6,
            tokens: ["ttft", "itl"].iter().filter_map(|key| stats[*key]["n"].as_f64()).sum(),
            ttft: spread("ttft"),
            itl: spread("itl"),
        })
    }

    /// From sim-server's truth log, whose times count from `epoch` (seconds since the epoch).
    pub(super) fn of_simulator(log: &str, epoch: f64, measured: Option<u32>) -> Result<Self> {
        let log: Value = serde_json::from_str(log)?;
        let records = log.as_array().context("the simulator's truth is no list")?;
        let received = |record: &Value| record["received_ns"].as_f64().unwrap_or(0.0) / 1e9;
        let mut records: Vec<&Value> = records.iter().collect();
        records.sort_by(|a, b| received(a).total_cmp(&received(b)));
        let first = records.first().map_or(0.0, |record| epoch + received(record));
        let records = records.split_off(warm_up(records.len(), measured));
        let mut truth = Self { first, ..Self::default() };
        let (mut ttfts, mut itls) = (Vec::new(), Vec::new());
        for record in records {
            let received = received(record);
            truth.arrivals.push(epoch + received);
            let mut before = received;
            for (place, sent) in record["sent"].as_array().into_iter().flatten().enumerate() {
                let at = sent["at_ns"].as_f64().context("a token without a time")? / 1e9;
                let gaps = if place == 0 { &mut ttfts } else { &mut itls };
                gaps.push((at - before) * 1e3);
                // Tokens of one moment are one entry; between them there is no time.
                let tokens = sent["tokens"].as_u64().unwrap_or(1);
                truth.tokens += tokens as f64;
                itls.extend(std::iter::repeat_n(0.0, tokens.saturating_sub(1) as usize));
                before = at;
            }
            truth.last = truth.last.max(epoch + before);
        }
        truth.ttft = Spread::of(ttfts);
        truth.itl = Spread::of(itls);
        Ok(truth)
    }
}

impl Spread {
    fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        Self {
            mean: (!samples.is_empty()).then_some(mean),
            p50: percentile(&samples, 0.5),
            p99: percentile(&samples, 0.99),
        }
    }
}

/// The sample below which a share of the sorted samples lies, by linear interpolation.
pub(crate) fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = sorted.len().checked_sub(1)? as f64 * share;
    let low = sorted.get(place.floor() as usize)?;
    let high = sorted.get(place.ceil() as usize)?;
    Some(low + (high - low) * place.fract())
}

/// What came before the measured requests was warm-up.
fn warm_up(all: usize, measured: Option<u32>) -> usize {
    measured.map_or(0, |measured| all.saturating_sub(measured as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulators_log_becomes_times() {
        let log = r#"[
            {"received_ns": 9e9, "sent": [{"at_ns": 9.05e9, "tokens": 1}, {"at_ns": 9.06e9, "tokens": 2}]},
            {"received_ns": 1e9, "sent": [{"at_ns": 8e9, "tokens": 1}]}
        ]"#;
        let truth = Truth::of_simulator(log, 100.0, Some(1)).expect("a log");
        assert_eq!((truth.arrivals.as_slice(), truth.first), ([109.0].as_slice(), 101.0));
        assert!((truth.last - 109.06).abs() < 1e-9);
        assert!((truth.tokens - 3.0).abs() < 1e-9);
        assert!(truth.ttft.mean.is_some_and(|mean| (mean - 50.0).abs() < 1e-6));
        assert!(truth.itl.mean.is_some_and(|mean| (mean - 5.0).abs() < 1e-6));
    }

    #[test]
    fn the_mocks_stats_become_times() {
        let stats = r#"{"last_us": 7e6, "ttft": {"n": 2, "mean_ms": 2, "p50_ms": 1, "p99_ms": 3}}"#;
        let truth = Truth::of_mock(stats, "[6e6, 5e6]", Some(1)).expect("stats");
        assert_eq!((truth.arrivals.as_slice(), truth.first), ([6.0].as_slice(), 5.0));
        assert_eq!((truth.last, truth.tokens), (7.0, 2.0));
        assert_eq!((truth.ttft.p99, truth.itl.p99), (Some(3.0), None));
    }

    #[test]
    fn percentiles_interpolate() {
        assert_eq!(percentile(&[], 0.5), None);
        assert_eq!(percentile(&[1.0, 2.0], 0.5), Some(1.5));
        assert_eq!(percentile(&[1.0, 2.0, 9.0], 1.0), Some(9.0));
    }
}

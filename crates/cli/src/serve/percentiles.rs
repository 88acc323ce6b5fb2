//! Percentiles that somebody asked for, beside those that each result has.

use serde_json::{Map, Value, json};
use servebench_metrics::{Gap, ItlRule, Measured, percentile};
use std::fmt::Write;

/// Key, name, and what is at each percentile asked for.
type Row = (&'static str, &'static str, Vec<(f64, Option<f64>)>);

/// Percentiles of four latencies, in milliseconds.
pub(super) struct Percentiles {
    rows: Vec<Row>,
}

impl Percentiles {
    /// `None` when none was asked for.
    pub(super) fn of(requests: &[Measured<'_>], rule: ItlRule, asked: &[f64]) -> Option<Self> {
        if asked.is_empty() {
            return None;
        }
        let successes = || requests.iter().filter(|request| request.record.is_success());
        let row = |key, name, samples: Vec<f64>| {
            let mut samples = samples;
            samples.sort_unstable_by(f64::total_cmp);
            let at = |q: &f64| (*q, percentile(&samples, *q).map(|seconds| seconds * 1e3));
            (key, name, asked.iter().map(at).collect())
        };
        let gaps = successes().flat_map(|request| request.itls(rule).flat_map(Gap::samples));
        Some(Self {
            rows: vec![
                ("ttft_ms", "TTFT", successes().filter_map(Measured::ttft).collect()),
                ("tpot_ms", "TPOT", successes().filter_map(Measured::tpot).collect()),
                ("itl_ms", "ITL", gaps.collect()),
                (
                    "e2e_latency_ms",
                    "E2E Latency",
                    successes().filter_map(Measured::latency).collect(),
                ),
            ]
            .into_iter()
            .map(|(key, name, samples)| row(key, name, samples))
            .collect(),
        })
    }

    /// What a result holds: `{"ttft_ms": {"p99.9": 12.5}}`.
    pub(super) fn json(&self) -> Value {
        let row = |(key, _, found): &Row| {
            let found = found.iter().map(|(q, ms)| (format!("p{q}"), json!(ms)));
            ((*key).to_owned(), Value::Object(found.collect::<Map<_, _>>()))
        };
        self.rows.iter().map(row).collect()
    }

    /// The same as lines below a table.
    pub(super) fn block(&self) -> String {
        let mut block = String::new();
        for (_, name, found) in &self.rows {
            for (q, ms) in found {
                let label = format!("P{q} {name} (ms):");
                let value = ms.map_or_else(|| "n/a".to_owned(), |ms| format!("{ms:.2}"));
                // Writing to a string cannot fail.
                let _ = writeln!(block, "{label:<40} {value:<10}");
            }
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use servebench_core::{Record, Stamp};

    #[test]
    fn percentiles_are_those_of_successes() {
        let records: Vec<Record> = (1..=3)
            .map(|n| {
                let mut record = Record::default();
                record.reply.push_chunk(Stamp::from_millis(10 * n), None, 0, "a");
                record.reply.push_chunk(Stamp::from_millis(10 * n + 5), None, 0, "b");
                record.reply.last_line = record.reply.last_token();
                record
            })
            .collect();
        let requests: Vec<_> = records.iter().map(Measured::from).collect();
        assert!(Percentiles::of(&requests, ItlRule::PerChunk, &[]).is_none());
        let found =
            Percentiles::of(&requests, ItlRule::PerChunk, &[50.0, 75.0]).map(|it| it.json());
        // To the resolution of stamps.
        let near = |key: &str, q: &str, want: f64| {
            let got = found.as_ref().and_then(|found| found[key][q].as_f64()).unwrap();
            assert!((got - want).abs() < 1e-3, "{key} {q}: {got} is not {want}");
        };
        near("ttft_ms", "p50", 20.0);
        near("ttft_ms", "p75", 25.0);
        near("itl_ms", "p50", 5.0);
        near("e2e_latency_ms", "p75", 30.0);
    }
}

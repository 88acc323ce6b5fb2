//! Requests of several kinds, and how each kind fared.

use serde_json::{Value, json};
use servebench_core::Record;
use servebench_metrics::{Distribution, Measured};
use std::fmt::Write as _;

/// What a table calls the first column of its numbers, and those after it.
const COLUMNS: [&str; 7] = ["requests", "TTFT mean", "median", "p99", "E2E mean", "median", "p99"];

/// The requests of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::vllm) struct Kind {
    name: String,
    completed: u64,
    failed: u64,
    ttft: Option<Distribution>,
    latency: Option<Distribution>,
}

impl Kind {
    pub(in crate::vllm) fn of<'a>(
        name: impl Into<String>,
        records: impl Iterator<Item = &'a Record>,
    ) -> Self {
        let (mut completed, mut failed) = (0, 0);
        let (mut ttft, mut latency) = (Vec::new(), Vec::new());
        for record in records {
            if record.is_success() {
                completed += 1;
                let measured = Measured::from(record);
                ttft.extend(measured.ttft());
                latency.extend(measured.latency());
            } else {
                failed += 1;
            }
        }
        let (ttft, latency) = (Distribution::of(&mut ttft), Distribution::of(&mut latency));
        Self { name: name.into(), completed, failed, ttft, latency }
    }

    /// Counts, and latencies in milliseconds.
    pub(in crate::vllm) fn json(&self) -> Value {
        let of = |distribution: &Option<Distribution>| {
            let statistics = |d: &Distribution| {
                let [mean, median, p90, p99, max] = [d.mean, d.median, d.p90, d.p99, d.max];
                json!({
                    "mean": mean * 1e3, "median": median * 1e3, "p90": p90 * 1e3,
                    "p99": p99 * 1e3, "max": max * 1e3,
                })
            };
            distribution.as_ref().map(statistics)
        };
        json!({
            "completed": self.completed,
            "failed": self.failed,
            "ttft_ms": of(&self.ttft),
            "e2el_ms": of(&self.latency),
        })
    }

    /// A table of the kinds that there are, under `title`, in milliseconds.
    pub(in crate::vllm) fn table(title: &str, kinds: &[Self]) -> String {
        let mut text = format!("{title:<20}");
        for column in COLUMNS {
            // Writing to a string cannot fail.
            let _ = write!(text, " {column:>9}");
        }
        for kind in kinds {
            let _ = write!(text, "\n{:<20} {:>9}", kind.name, kind.completed);
            for distribution in [&kind.ttft, &kind.latency] {
                let values = distribution.as_ref().map(|d| [d.mean, d.median, d.p99]);
                for place in 0..3 {
                    let _ = match values {
                        Some(values) => write!(text, " {:>9.2}", values[place] * 1e3),
                        None => write!(text, " {:>9}", "-"),
                    };
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use servebench_core::{Failure, FailureKind, Stamp};

    fn reply(first_ms: u64, last_ms: u64) -> Record {
        let mut record = Record { prompt_len: 1, output_len: 2, ..Record::default() };
        for ms in [first_ms, last_ms] {
            record.reply.push_chunk(Stamp::from_millis(ms), Some(1), 0, "a");
        }
        record.reply.finish_reason = Some("length".into());
        record
    }

    #[test]
    fn each_kind_has_its_latencies() {
        let mut failed = Record::default();
        failed.reply.fail(Failure::new(FailureKind::Status, "400"));
        let records = [reply(10, 30), reply(20, 50), failed];
        let kinds = [Kind::of("one", records.iter()), Kind::of("none", std::iter::empty())];
        let wanted = "\
Latency (ms)          requests TTFT mean    median       p99  E2E mean    median       p99
one                          2     15.00     15.00     19.90     40.00     40.00     49.80
none                         0         -         -         -         -         -         -";
        assert_eq!(Kind::table("Latency (ms)", &kinds), wanted);
        let json = kinds[0].json();
        assert_eq!((&json["completed"], &json["failed"]), (&2.into(), &1.into()));
        assert!((json["ttft_ms"]["max"].as_f64().unwrap() - 20.0).abs() < 1e-9, "{json}");
        assert_eq!(kinds[1].json()["e2el_ms"], Value::Null);
    }
}

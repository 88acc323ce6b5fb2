//! What the client measured beside what the server did.

use servebench_core::Record;
use servebench_metrics::Distribution;
use servebench_sim::TruthRecord;
use std::collections::HashMap;

/// The errors of all requests that both sides know.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Errors {
    pub(super) requests: u64,
    pub(super) ttft: Option<Summary>,
    pub(super) itl: Option<Summary>,
}

/// Seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Summary {
    /// Mean of measured − true.
    pub(super) bias: f64,
    /// 99th percentile of |measured − true|.
    pub(super) p99: f64,
}

impl Errors {
    /// Compares times between moments of one side only: the two clocks need not agree.
    pub(super) fn between(
        records: &[Record],
        truth: &[TruthRecord],
        tokens_per_event: u32,
    ) -> Self {
        let id = |truth: &TruthRecord| truth.request_id.as_ref()?.parse().ok();
        let truth: HashMap<u64, &TruthRecord> =
            truth.iter().filter_map(|truth| Some((id(truth)?, truth))).collect();
        let (mut requests, mut ttft, mut itl) = (0, Vec::new(), Vec::new());
        for record in records {
            let Some(truth) = truth.get(&record.id) else { continue };
            let Some((first, first_true)) = record.reply.first_token().zip(truth.first_token_ns())
            else {
                continue;
            };
            requests += 1;
            let first_true = first_true.saturating_sub(truth.received_ns) as f64 / 1e9;
            ttft.push(first.secs_since(record.dispatched) - first_true);
            itl.extend(gap_errors(record, truth, tokens_per_event));
        }
        Self { requests, ttft: Summary::of(ttft), itl: Summary::of(itl) }
    }
}

/// Measured − true of each gap between two events of the first choice.
fn gap_errors(record: &Record, truth: &TruthRecord, tokens_per_event: u32) -> Vec<f64> {
    let sent = truth.token_times(0);
    let mut tokens = 0;
    let chunks = record.reply.chunks.iter().filter(|chunk| chunk.choice == 0);
    // An event was sent when the last token in it was; the very last event may hold fewer.
    let events: Vec<(u64, u64)> = chunks
        .map_while(|chunk| {
            tokens += chunk.tokens.unwrap_or(tokens_per_event).max(1) as usize;
            let sent = sent.get(tokens.min(sent.len()).checked_sub(1)?)?;
            Some((chunk.at.0, *sent))
        })
        .collect();
    let gap = |pair: &[(u64, u64)]| {
        let [before, after] = pair else { return 0.0 };
        let measured = after.0.saturating_sub(before.0) as f64;
        (measured - after.1.saturating_sub(before.1) as f64) / 1e9
    };
    events.windows(2).map(gap).collect()
}

impl Summary {
    fn of(mut errors: Vec<f64>) -> Option<Self> {
        let bias = Distribution::of(&mut errors)?.mean;
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        Some(Self { bias, p99: Distribution::of(&mut sizes)?.p99 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use servebench_core::Stamp;
    use servebench_sim::Sent;

    fn truth(id: &str, received_ms: u64, sent_ms: &[u64], tokens: u32) -> TruthRecord {
        let sent = |ms: &u64| Sent { at_ns: ms * 1_000_000, choice: 0, tokens };
        TruthRecord {
            request_id: Some(id.to_owned()),
            received_ns: received_ms * 1_000_000,
            sent: sent_ms.iter().map(sent).collect(),
            ..TruthRecord::default()
        }
    }

    fn record(id: u64, dispatched_ms: u64, chunks_ms: &[u64]) -> Record {
        let dispatched = Stamp::from_millis(dispatched_ms);
        let mut record = Record { id, dispatched, ..Record::default() };
        for ms in chunks_ms {
            record.reply.push_chunk(Stamp::from_millis(*ms), None, 0, "t");
        }
        record
    }

    fn near(value: f64, want: f64) {
        assert!((value - want).abs() < 1e-6, "{value} is not {want}");
    }

    #[test]
    fn errors_are_differences_of_each_sides_own_times() {
        // TTFT 52 for 50 and 50 for 50; gaps 12, 8 for 10, 10.
        let records = [record(3, 1000, &[1052, 1064, 1072]), record(4, 1100, &[1150])];
        let truth = [
            truth("4", 0, &[50], 1),
            truth("3", 7000, &[7050, 7060, 7070], 1),
            truth("99", 0, &[1], 1),
            truth("no number", 0, &[1], 1),
        ];
        let errors = Errors::between(&records, &truth, 1);
        assert_eq!(errors.requests, 2);
        let (ttft, itl) = (errors.ttft.unwrap(), errors.itl.unwrap());
        near(ttft.bias, 0.001);
        near(ttft.p99, 0.00198);
        near(itl.bias, 0.0);
        near(itl.p99, 0.002);
    }

    #[test]
    fn events_of_several_tokens_are_matched_by_their_last_one() {
        // Two tokens in an event; the log joins what was sent at one time, here two events.
        let records = [record(0, 0, &[10, 10, 20])];
        let truth = [truth("0", 0, &[10, 20], 4)];
        let errors = Errors::between(&records, &truth, 2);
        near(errors.itl.unwrap().p99, 0.0);
    }

    #[test]
    fn a_reply_that_never_came_is_no_error() {
        let records = [record(0, 0, &[]), record(1, 0, &[5])];
        assert_eq!(Errors::between(&records, &[truth("0", 0, &[], 1)], 1), Errors::default());
    }
}

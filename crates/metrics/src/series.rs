//! A run over its time: what came, and how much was under way.

use crate::Measured;
use servebench_core::{Chunk, Stamp};

const SECOND_NS: u64 = 1_000_000_000;

/// Output tokens and requests in flight, in steps of equal length from the first dispatch on.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Length of a step, in seconds: 1, 2 or 5 times a power of ten, and 0.1 at least.
    pub step: f64,
    /// Output tokens per second, of each step.
    pub tokens_per_s: Vec<f64>,
    /// Most requests under way at once, in each step.
    pub in_flight: Vec<u64>,
}

impl Series {
    /// The successes of a run in at most `most` steps, the shortest that are enough. Without a success
    /// there are none.
    pub fn of(requests: &[Measured<'_>], most: usize) -> Self {
        let stay = |request: &&Measured<'_>| {
            let lasting = (request.record.dispatched, request.end()?);
            request.record.is_success().then_some(lasting)
        };
        let stays: Vec<(Stamp, Stamp)> = requests.iter().filter_map(|it| stay(&it)).collect();
        let start = stays.iter().map(|(start, _)| *start).min().unwrap_or_default();
        let end = stays.iter().map(|(_, end)| *end).max().unwrap_or_default();
        let span = end.0.saturating_sub(start.0);
        let step = step(span, most.max(1) as u64);
        let steps = if stays.is_empty() { 0 } else { (span / step + 1) as usize };
        let place = |at: Stamp| (at.0.saturating_sub(start.0) / step) as usize;
        let mut tokens = vec![0u64; steps];
        let mut chunks: Vec<Chunk> = Vec::new();
        for request in requests.iter().filter(|request| request.record.is_success()) {
            chunks.clear();
            chunks.extend(request.record.reply.chunks.iter());
            for (at, count) in request.token_stamps(&chunks) {
                if let Some(step) = tokens.get_mut(place(at)) {
                    *step += u64::from(count);
                }
            }
        }
        let seconds = step as f64 / SECOND_NS as f64;
        let tokens_per_s = tokens.into_iter().map(|tokens| tokens as f64 / seconds).collect();
        Self { step: seconds, tokens_per_s, in_flight: most_in_flight(&stays, steps, place) }
    }
}

/// The shortest step in which a span is at most `most` of them.
fn step(span: u64, most: u64) -> u64 {
    let decades = std::iter::successors(Some(SECOND_NS / 10), |unit| unit.checked_mul(10));
    let mut steps = decades.flat_map(|unit| [1, 2, 5].map(|times| unit.saturating_mul(times)));
    steps.find(|step| span / step < most).unwrap_or(u64::MAX)
}

fn most_in_flight(
    stays: &[(Stamp, Stamp)],
    steps: usize,
    place: impl Fn(Stamp) -> usize,
) -> Vec<u64> {
    // At one moment ends come before starts: who follows somebody was never there together with them.
    let lasting = stays.iter().filter(|(start, end)| end > start);
    let mut changes: Vec<(Stamp, i64)> =
        lasting.flat_map(|(start, end)| [(*start, 1), (*end, -1)]).collect();
    changes.sort_unstable();
    let mut most = vec![0u64; steps];
    let (mut level, mut since) = (0u64, Stamp::default());
    for (at, change) in changes {
        if level > 0 {
            let last = if at > since { place(Stamp(at.0 - 1)) } else { place(at) };
            for step in most.iter_mut().take(last + 1).skip(place(since)) {
                *step = (*step).max(level);
            }
        }
        level = level.saturating_add_signed(change);
        since = at;
    }
    // What took no time was there for a moment.
    for step in stays.iter().map(|(start, _)| place(*start)) {
        most[step] = most[step].max(1);
    }
    most
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use servebench_core::Record;

    fn record(start: u64, tokens: &[u64]) -> Record {
        let mut record = Record { dispatched: Stamp::from_millis(start), ..Record::default() };
        for at in tokens {
            record.reply.push_chunk(Stamp::from_millis(*at), Some(2), 0, "t");
        }
        record
    }

    #[test]
    fn steps_hold_what_came_in_them() {
        let records =
            [record(1000, &[1050, 1250]), record(1100, &[1199, 1200]), record(1200, &[1300])];
        let requests: Vec<_> = records.iter().map(Measured::from).collect();
        let series = Series::of(&requests, 60);
        assert_eq!((series.step, series.tokens_per_s), (0.1, vec![20.0, 20.0, 40.0, 20.0]));
        assert_eq!(series.in_flight, [1, 2, 2, 0]);
        let coarse = Series::of(&requests, 2);
        assert_eq!((coarse.step, coarse.in_flight), (0.2, vec![2, 2]));
        let one = Series::of(&requests, 1);
        assert_eq!((one.step, one.tokens_per_s, one.in_flight), (0.5, vec![20.0], vec![2]));
    }

    #[test]
    fn nothing_gives_no_steps() {
        let none = Series::of(&[], 60);
        assert_eq!((none.tokens_per_s, none.in_flight), (vec![], vec![]));
    }

    #[test]
    fn an_instant_counts_where_it_was() {
        let records = [record(0, &[0]), record(900, &[900])];
        let requests: Vec<_> = records.iter().map(Measured::from).collect();
        assert_eq!(Series::of(&requests, 3).in_flight, [1, 1]);
    }

    proptest! {
        #[test]
        fn tokens_are_kept_and_the_peak_is_the_runs(
            stays in prop::collection::vec((0..5_000_u64, prop::collection::vec(1..900_u64, 1..6)), 1..20),
            most in 1..80_usize,
        ) {
            let records: Vec<Record> = stays.iter().map(|(start, gaps)| {
                let mut at = *start;
                let times: Vec<u64> = gaps.iter().map(|gap| { at += gap; at }).collect();
                record(*start, &times)
            }).collect();
            let requests: Vec<_> = records.iter().map(Measured::from).collect();
            let series = Series::of(&requests, most);
            prop_assert!(series.tokens_per_s.len() <= most);
            prop_assert_eq!(series.tokens_per_s.len(), series.in_flight.len());
            let tokens: f64 = series.tokens_per_s.iter().map(|rate| rate * series.step).sum();
            let sent: usize = stays.iter().map(|(_, gaps)| 2 * gaps.len()).sum();
            prop_assert!((tokens - sent as f64).abs() < 1e-6 * sent as f64);
            let ends = records.iter().map(|it| (it.dispatched, it.reply.last_token().unwrap()));
            prop_assert_eq!(series.in_flight.iter().copied().max(), crate::peak_overlap(ends));
        }
    }
}

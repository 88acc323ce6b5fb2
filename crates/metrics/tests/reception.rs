//! What is said of stamps: exact shares, bounds, read lag.

#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "tests may fail, and mean exact values")]

use proptest::collection::vec;
use proptest::prelude::*;
use servebench_core::{Chunks, ReadLag, Record, Stamp};
use servebench_metrics::{Bounds, Distribution, ItlRule, Measured, Options, aggregate};
use std::time::Duration;

/// A record whose tokens were read at once where the stamps are the same; each read follows the one
/// before it by `pause` nanoseconds and brings the newest of `tokens`.
fn received(id: u64, reads: &[(u64, u32)], last_is_followed: bool) -> Record {
    let mut record = Record { id, ..Record::default() };
    let mut now = 0;
    let mut chunks = Chunks::default();
    for &(pause, tokens) in reads {
        let before = now;
        now += pause;
        chunks.read_after(Stamp(before));
        for _ in 0..tokens {
            chunks.push(Stamp(now), Some(1), 0);
        }
    }
    if last_is_followed {
        chunks.followed(Stamp(now));
    }
    record.reply.chunks = chunks;
    let mut lag = ReadLag::default();
    lag.add(Duration::from_micros(20), Duration::ZERO);
    lag.add(Duration::from_micros(40), Duration::ZERO);
    record.reply.read_lag = Some(lag);
    record
}

const MS: u64 = 1_000_000;

fn run(records: &[Record]) -> servebench_metrics::Aggregates {
    aggregate(records.iter().map(Measured::from), &Options::default())
}

#[test]
fn stamps_of_reads_are_not_known_to_be_exact() {
    let mut record = received(0, &[(10 * MS, 1), (10 * MS, 1)], false);
    record.reply.read_lag = None;
    assert_eq!(run(std::slice::from_ref(&record)).reception, None);
    let one = Measured::from(&record);
    assert_eq!((one.ttft_bounds(), one.ttft_is_exact()), (None, None));
    assert_eq!(one.exact_itl_share(ItlRule::PerChunk), None);
}

#[test]
fn tokens_read_together_are_bounds() {
    // Reads at 10, 20 and 60 ms; the last brings three tokens.
    let records = [received(0, &[(10 * MS, 1), (10 * MS, 1), (40 * MS, 3)], false)];
    let run = run(&records);
    let reception = run.reception.unwrap();
    assert_eq!((reception.exact_share_ttft, reception.exact_share_itl), (Some(1.0), Some(0.25)));
    assert_eq!(reception.bounded_chunks, 2);
    assert_eq!((reception.read_lag.count, reception.longest_read_lag), (1, 0.000_04));
    assert_eq!(reception.read_lag.mean, 0.000_03);
    // Gaps 10, 40, 0 and 0 ms; least 10, 0, 0, 0; most 10, 40, 40, 40.
    let Bounds { low, high } = reception.itl.unwrap();
    assert_eq!(run.itl, Distribution::of(&mut [0.0, 0.0, 0.01, 0.04]));
    assert_eq!(Some(low), Distribution::of(&mut [0.0, 0.0, 0.0, 0.01]));
    assert_eq!(Some(high), Distribution::of(&mut [0.01, 0.04, 0.04, 0.04]));
    assert_eq!(reception.ttft.unwrap().low.mean, 0.01);
    assert_eq!(reception.e2e.unwrap().low, reception.e2e.unwrap().high);
}

#[test]
fn a_token_read_with_the_end_of_its_stream_is_exact_to_a_tenth_of_a_millisecond() {
    for (pause, exact) in [(99_968, true), (100_032, false)] {
        let records = [received(0, &[(10 * MS, 1), (pause, 1)], true)];
        let run = run(&records);
        let reception = run.reception.unwrap();
        assert_eq!(reception.bounded_chunks, 1);
        assert_eq!(reception.exact_share_itl, Some(if exact { 1.0 } else { 0.0 }), "{pause}");
        let e2e = reception.e2e.unwrap();
        assert_eq!((e2e.low.mean, e2e.high.mean), (0.01, (10 * MS + pause) as f64 / 1e9));
    }
}

#[test]
fn what_a_client_took_to_send_is_not_in_the_least_that_ttft_may_be() {
    let mut record = received(0, &[(10 * MS, 1)], false);
    record.reply.sent = Some(Stamp(3 * MS));
    assert_eq!(Measured::from(&record).ttft_bounds(), Some((0.007, 0.01)));
    // A connect inside the request belongs to it.
    record.reply.rare_mut().connect = Some(Duration::from_millis(2));
    assert_eq!(Measured::from(&record).ttft_bounds(), Some((0.009, 0.01)));
}

#[test]
fn the_clocks_error_counts_against_ttft_alone() {
    let mut record = received(0, &[(10 * MS, 1), (10 * MS, 1)], false);
    let mut with_error = |micros| {
        let mut lag = ReadLag::default();
        lag.add(Duration::ZERO, Duration::from_micros(micros));
        record.reply.read_lag = Some(lag);
        run(std::slice::from_ref(&record)).reception.unwrap()
    };
    let small = with_error(50);
    assert_eq!((small.exact_share_ttft, small.exact_share_itl), (Some(1.0), Some(1.0)));
    let ttft = small.ttft.unwrap();
    assert_eq!((ttft.low.mean, ttft.high.mean), (0.009_95, 0.010_05));
    let large = with_error(60);
    assert_eq!((large.exact_share_ttft, large.exact_share_itl), (Some(0.0), Some(1.0)));
    assert_eq!(large.clock_error, 0.000_06);
}

proptest! {
    /// Wherever in its interval each token truly came, the true numbers are within the bounds.
    #[test]
    fn the_truth_lies_within_the_bounds(
        streams in vec(
            (vec((1..5_000_000_u64, 0..5_u32), 1..12), vec(0.0..=1.0_f64, 60), any::<bool>()), 1..6),
    ) {
        let mut records = Vec::new();
        let (mut itls, mut ttfts, mut e2es) = (Vec::new(), Vec::new(), Vec::new());
        for (reads, places, followed) in streams {
            let record = received(0, &reads, followed);
            // In order within a read, as bytes are.
            let mut truth: Vec<f64> = record
                .reply
                .chunks
                .iter()
                .zip(&places)
                .map(|(c, at)| c.after.as_secs_f64() + c.at.secs_since(c.after) * at)
                .collect();
            truth.sort_by(f64::total_cmp);
            itls.extend(truth.windows(2).map(|pair| pair[1] - pair[0]));
            ttfts.extend(truth.first());
            e2es.extend(truth.last());
            records.push(record);
        }
        let run = run(&records);
        let reception = run.reception.unwrap();
        let families = [
            (reception.itl, Distribution::of(&mut itls)),
            (reception.ttft, Distribution::of(&mut ttfts)),
            // A request without a token ends with its last line, and here it has none.
            (reception.e2e, Distribution::of(&mut e2es)),
        ];
        for (bounds, truth) in families {
            prop_assert_eq!(bounds.is_some(), truth.is_some());
            let Some((Bounds { low, high }, truth)) = bounds.zip(truth) else { continue };
            let of = |d: Distribution| [d.mean, d.median, d.p90, d.p99, d.max, d.min];
            for ((low, truth), high) in of(low).into_iter().zip(of(truth)).zip(of(high)) {
                prop_assert!(low <= truth + 1e-12 && truth <= high + 1e-12, "{low} {truth} {high}");
            }
        }
    }
}

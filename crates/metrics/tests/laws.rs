//! Laws of percentiles, of inter-token gaps and of the fold.

#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "tests may fail, and mean exact values")]

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use servebench_core::{CachedDetails, Failure, FailureKind, ReadLag, Record, Stamp};
use servebench_metrics::{
    Aggregate, Distribution, Gap, ItlRule, Measured, Options, Slo, SloMetric, aggregate,
    peak_overlap, peak_per_second, percentile,
};
use std::time::Duration;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-9)
}

/// A percentile by its textbook definition, without care for rounding.
fn plain_percentile(sorted: &[f64], q: f64) -> f64 {
    let rank = q / 100.0 * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    low + (high - low) * rank.fract()
}

prop_compose! {
    fn a_record()(
        id in 0..1000_u64,
        intended in 0..5_000_000_000_u64,
        wait in 0..1_000_000_000_u64,
        gaps in vec((0..300_000_000_u64, option::of(0..4_u32)), 0..12),
        choices in 1..3_u32,
        tail in 0..100_000_000_u64,
        (prompt, completion) in (option::of(0..50_u32), option::of(0..30_u32)),
        (lateness, accept) in (option::of(0..9999_u64), option::of(1.0..4.0_f64)),
        (lag, pause, followed) in (option::of(0..9999_u64), 1..300_000_000_u64, any::<bool>()),
        cached in option::of((0..20_u64, 0..20_u64, option::of(0..5_u64))),
        failure in option::weighted(0.2, prop_oneof![
            Just(FailureKind::Status), Just(FailureKind::Reset), Just(FailureKind::Timeout),
        ]),
    ) -> Record {
        let mut record = Record { id, prompt_len: 8, output_len: 5, ..Record::default() };
        record.intended = Stamp(intended);
        record.dispatched = Stamp(intended + wait);
        record.lateness = lateness.map(Duration::from_nanos);
        let mut at = record.dispatched;
        for (index, (gap, tokens)) in gaps.into_iter().enumerate() {
            at = Stamp(at.0 + gap);
            if lag.is_some() {
                record.reply.chunks.read_after(Stamp(at.0.saturating_sub(pause)));
            }
            record.reply.push_chunk(at, tokens, index as u32 % choices, "t");
        }
        record.reply.last_line = Some(Stamp(at.0 + tail));
        if let Some(lag) = lag {
            let mut lags = ReadLag::default();
            lags.add(Duration::from_nanos(lag), Duration::from_nanos(lag / 3));
            record.reply.read_lag = Some(lags);
        }
        if followed {
            record.reply.chunks.followed(at);
        }
        record.reply.prompt_tokens = prompt;
        record.reply.completion_tokens = completion;
        record.reply.rare_mut().accept_length = accept;
        if let Some((device, host, storage)) = cached {
            record.reply.cached_tokens = Some(device + host + storage.unwrap_or(0));
            let details = CachedDetails { device, host, storage, storage_backend: None };
            record.reply.rare_mut().cached_details = Some(details);
        }
        if let Some(kind) = failure {
            record.reply.fail(Failure::new(kind, format!("request {id}")));
        }
        record
    }
}

fn options() -> Options {
    let slo = |metric, limit_ms| Slo { metric, limit_ms };
    let slos =
        vec![slo(SloMetric::Tpot, 150.0), slo(SloMetric::Ttft, 200.0), slo(SloMetric::E2el, 900.0)];
    Options { itl_rule: ItlRule::SpreadOverTokens, slos, ..Options::default() }
}

proptest! {
    #[test]
    fn percentiles_are_those_of_the_definition(
        mut samples in vec(-1e6..1e6_f64, 1..60),
        q in 0.0..=100.0_f64,
    ) {
        samples.sort_by(f64::total_cmp);
        let got = percentile(&samples, q).unwrap();
        let want = plain_percentile(&samples, q);
        prop_assert!((got - want).abs() < 1e-6, "{} is not {}", got, want);
        prop_assert!(samples[0] <= got && got <= samples[samples.len() - 1]);
    }

    #[test]
    fn a_distribution_is_in_order_and_within_bounds(mut samples in vec(0.0..1e3_f64, 1..300)) {
        let plain_mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let d = Distribution::of(&mut samples).unwrap();
        prop_assert!([d.min, d.median, d.p90, d.p95, d.p99, d.p99_9, d.max].is_sorted());
        prop_assert!(close(d.mean, plain_mean));
        let variance =
            samples.iter().map(|x| (x - d.mean).powi(2)).sum::<f64>() / samples.len() as f64;
        prop_assert!((d.std - variance.sqrt()).abs() < 1e-9);
        prop_assert_eq!(d.count, samples.len() as u64);
        prop_assert!(close(d.median, percentile(&samples, 50.0).unwrap()));
    }

    #[test]
    fn gaps_sum_to_latency_minus_ttft(mut record in a_record()) {
        // One choice: with several, each has gaps of its own.
        let mut one_choice = servebench_core::Chunks::default();
        for chunk in record.reply.chunks.iter() {
            one_choice.push(chunk.at, chunk.tokens, 0);
        }
        record.reply.chunks = one_choice;
        let one = Measured::from(&record);
        let (Some(ttft), Some(latency)) = (one.ttft(), one.latency()) else { return Ok(()) };
        let sum = |gaps: &mut dyn Iterator<Item = Gap>| -> f64 {
            gaps.map(|gap| gap.seconds * f64::from(gap.tokens)).sum()
        };
        prop_assert!(close(sum(&mut one.itls(ItlRule::PerChunk)), latency - ttft));
        prop_assert!(close(sum(&mut one.itls(ItlRule::SpreadOverTokens)), latency - ttft));
        if let Some(mut gaps) = one.token_itls() {
            prop_assert!(close(sum(&mut gaps), latency - ttft));
        }
        for pieces in [vec![], vec![0; record.reply.chunks.len()], vec![2; 3]] {
            let one = Measured { piece_tokens: Some(&pieces), ..one };
            let run = aggregate([one], &Options::default());
            let total = run.itl.map_or(0.0, |itl| itl.mean * itl.count as f64);
            if record.is_success() {
                prop_assert!(close(total, latency - ttft));
            }
        }
    }

    #[test]
    fn per_token_gaps_are_as_many_as_the_tokens_after_the_first_chunk(
        counts in vec(1..5_u32, 1..20),
    ) {
        let mut record = Record::default();
        for (i, &tokens) in counts.iter().enumerate() {
            record.reply.push_chunk(Stamp::from_millis(i as u64 * 7), Some(tokens), 0, "t");
        }
        let gaps = Measured::from(&record).token_itls().unwrap();
        let samples = gaps.flat_map(Gap::samples).count() as u32;
        prop_assert_eq!(samples, counts[1..].iter().sum::<u32>());
    }

    #[test]
    fn the_whole_is_its_merged_parts(
        records in vec(a_record(), 0..40),
        owners in vec(0..4_usize, 40),
        reverse: bool,
    ) {
        // Ids are unique in a run: the first failure of a kind is one record.
        let records: Vec<Record> =
            records.into_iter().enumerate().map(|(i, r)| Record { id: i as u64, ..r }).collect();
        let options = options();
        let whole = aggregate(records.iter().map(Measured::from), &options);
        let mut parts: Vec<_> = (0..4).map(|_| Aggregate::new(&options)).collect();
        for (record, &owner) in records.iter().zip(&owners) {
            parts[owner].add(Measured::from(record));
        }
        if reverse {
            parts.reverse();
        }
        let mut sum = Aggregate::new(&options);
        for part in parts {
            sum.merge(part);
        }
        prop_assert_eq!(sum.finish(), whole);
    }

    #[test]
    fn numbers_are_finite_whatever_the_records(records in vec(a_record(), 0..30)) {
        let run = aggregate(records.iter().map(Measured::from), &options());
        let successes = records.iter().filter(|record| record.is_success()).count() as u64;
        prop_assert_eq!((run.completed, run.completed + run.failed), (successes, records.len() as u64));
        prop_assert_eq!(run.failures.values().map(|tally| tally.count).sum::<u64>(), run.failed);
        prop_assert_eq!(run.own.e2e.map_or(0, |d| d.count), run.completed);
        for rate in [run.own.request_throughput, run.own.concurrency, run.accept_length] {
            prop_assert!(rate.is_none_or(f64::is_finite));
        }
        let goodput = run.own.goodput.unwrap();
        prop_assert!(goodput.good <= run.completed);
        prop_assert!(goodput.by_objective.iter().all(|(_, share)| *share >= goodput.attainment));
    }

    #[test]
    fn the_sliding_window_finds_the_fullest_second(mut ns in vec(0..4_000_000_000_u64, 1..60)) {
        let naive = ns
            .iter()
            .map(|&from| ns.iter().filter(|&&t| t >= from && t - from < 1_000_000_000).count())
            .max();
        ns.reverse();
        let mut stamps: Vec<Stamp> = ns.into_iter().map(Stamp).collect();
        prop_assert_eq!(peak_per_second(&mut stamps), naive.map(|peak| peak as u64));
    }

    #[test]
    fn the_sweep_finds_the_most_open_intervals(list in vec((0..100_u64, 1..30_u64), 1..40)) {
        let open_at = |t: u64| list.iter().filter(|&&(s, len)| s <= t && t < s + len).count();
        let naive = (0..130).map(open_at).max();
        let intervals: Vec<_> =
            list.iter().map(|&(start, len)| (Stamp(start), Stamp(start + len))).collect();
        prop_assert_eq!(peak_overlap(intervals), naive.map(|peak| peak as u64));
    }
}

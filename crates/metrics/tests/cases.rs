//! Exact numbers of the specification's examples and of known bug reports.

#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "tests may fail, and mean exact values")]

use servebench_core::{CountSource, Failure, FailureKind, Record, Stamp};
use servebench_metrics::{
    Aggregates, Distribution, Gap, ItlRule, Measured, Options, Slo, SloMetric, aggregate,
};
use std::time::Duration;

/// A record dispatched at zero, with chunks of `(ms, tokens)` and its last line at `last_line` ms.
fn record(chunks: &[(u64, Option<u32>)], last_line: u64, completion: Option<u32>) -> Record {
    let mut record = Record { prompt_len: 8, output_len: 4, ..Record::default() };
    for &(ms, tokens) in chunks {
        record.reply.push_chunk(Stamp::from_millis(ms), tokens, 0, "x");
    }
    record.reply.last_line = Some(Stamp::from_millis(last_line));
    record.reply.completion_tokens = completion;
    record
}

fn at(record: Record, id: u64, intended: u64, dispatched: u64) -> Record {
    let shifted = |stamp: Stamp| Stamp(stamp.0 + Stamp::from_millis(dispatched).0);
    let mut chunks = servebench_core::Chunks::default();
    for chunk in record.reply.chunks.iter() {
        chunks.push(shifted(chunk.at), chunk.tokens, chunk.choice);
    }
    let mut record = record;
    record.id = id;
    record.intended = Stamp::from_millis(intended);
    record.dispatched = Stamp::from_millis(dispatched);
    record.reply.chunks = chunks;
    record.reply.last_line = record.reply.last_line.map(shifted);
    record
}

fn failed(id: u64, kind: FailureKind, detail: &str) -> Record {
    let mut record = Record { id, prompt_len: 8, output_len: 4, ..Record::default() };
    record.reply.fail(Failure::new(kind, detail));
    record
}

fn run(records: &[Record], options: &Options) -> Aggregates {
    aggregate(records.iter().map(Measured::from), options)
}

fn ms(gaps: impl Iterator<Item = Gap>) -> Vec<f64> {
    gaps.flat_map(Gap::samples).map(|seconds| (seconds * 1e9).round() / 1e6).collect()
}

fn mean_ms(distribution: Option<Distribution>) -> f64 {
    (distribution.unwrap().mean * 1e9).round() / 1e6
}

fn native() -> Options {
    Options { itl_rule: ItlRule::SpreadOverTokens, ..Options::default() }
}

#[test]
fn native_accounting_of_the_specification() {
    // 1 token at 0.50, still 1 at 0.60, 4 at 0.90, 5 at 1.00, [DONE] at 1.20.
    let record =
        record(&[(500, Some(1)), (600, Some(0)), (900, Some(3)), (1000, Some(1))], 1200, Some(5));
    let one = Measured::from(&record);
    let third = 400.0 / 3.0;
    let expected = [third, third, third, 100.0];
    for gaps in [ms(one.itls(ItlRule::SpreadOverTokens)), ms(one.token_itls().unwrap())] {
        assert_eq!(gaps.len(), 4);
        assert!(gaps.iter().zip(expected).all(|(got, want)| (got - want).abs() < 1e-5), "{gaps:?}");
    }
    assert_eq!(one.ttft(), Some(0.5));
    assert_eq!(one.stream_latency(), Some(1.2));
    assert_eq!(one.latency(), Some(1.0));
    assert!((one.upstream_tpot().unwrap() - 0.175).abs() < 1e-12);
    assert_eq!(one.tpot(), Some(0.125));
}

#[test]
fn frames_with_three_six_and_eight_tokens_give_five_gaps_for_eight_tokens() {
    let record = record(&[(10, Some(3)), (40, Some(3)), (60, Some(2))], 60, Some(8));
    let one = Measured::from(&record);
    assert_eq!(ms(one.itls(ItlRule::SpreadOverTokens)), [10.0; 5]);
    assert_eq!(one.output_count().tokens, 8);
}

/// TOK-06, the OpenAI route with usage on every chunk, and the native route.
#[test]
fn several_tokens_per_chunk() {
    let record = record(&[(100, Some(2)), (220, Some(3)), (280, Some(1))], 280, Some(6));
    let one = Measured::from(&record);
    assert_eq!(ms(one.itls(ItlRule::PerChunk)), [120.0, 60.0]);
    assert_eq!(ms(one.itls(ItlRule::SpreadOverTokens)), [40.0, 40.0, 40.0, 60.0]);
    assert_eq!(ms(one.token_itls().unwrap()), [40.0, 40.0, 40.0, 60.0]);

    let run = run(&[record], &Options::default());
    assert_eq!(mean_ms(run.own.tpot), 36.0);
    assert_eq!(run.own.max_output_tokens_per_s, Some(6), "tokens, not chunks");
    assert_eq!(run.upstream.max_output_tokens_per_s, Some(3), "upstream counts chunks");
    assert_eq!((run.itl.unwrap().count, run.token_itl.unwrap().count), (2, 4));
    assert_eq!(mean_ms(run.token_itl), 45.0);
}

/// TOK-07: text `a`, `z`, `bb`, of which the tokenizer makes 1, 0 and 2 tokens.
#[test]
fn a_piece_that_is_no_token() {
    let record = record(&[(100, None), (160, None), (220, None)], 220, Some(4));
    let pieces = [1, 0, 2];
    let one =
        Measured { retokenized: Some(3), piece_tokens: Some(&pieces), ..Measured::from(&record) };
    let run = aggregate([one], &Options::default());
    let itl = run.itl.unwrap();
    assert_eq!((itl.count, mean_ms(run.itl)), (2, 60.0));
    assert_eq!((itl.min, itl.max), (0.06, 0.06));
    assert_eq!(ms(one.itls(ItlRule::PerChunk)), [60.0, 60.0]);
    assert!(one.token_itls().is_none(), "three chunks for the server's four tokens");
    assert_eq!(run.own.total_output_tokens, 4);
    assert_eq!(run.total_output_tokens_retokenized, Some(3));
}

/// TOK-09: four tokens until 250 ms, usage at 800, `[DONE]` at 900.
fn trailing_usage() -> Record {
    record(&[(100, None), (150, None), (200, None), (250, None)], 900, Some(4))
}

#[test]
fn latency_ends_at_the_last_token() {
    let record = trailing_usage();
    let one = Measured::from(&record);
    assert_eq!((one.latency(), one.stream_latency()), (Some(0.25), Some(0.9)));
    assert_eq!(ms(one.token_itls().unwrap()), [50.0, 50.0, 50.0]);
    let run = run(&[record], &Options::default());
    assert_eq!(mean_ms(run.own.tpot), 50.0);
    assert!((run.upstream.tpot.unwrap().mean * 1e3 - 266.666_666).abs() < 1e-3);
    assert_eq!((mean_ms(run.own.e2e), mean_ms(run.upstream.e2e)), (250.0, 900.0));
    // The last response ends with its last line: 0.25 s busy out of 0.9 s.
    assert_eq!(run.own.duration, Some(0.9));
    assert!((run.own.concurrency.unwrap() - 0.25 / 0.9).abs() < 1e-12);
    assert!((run.upstream.concurrency.unwrap() - 1.0).abs() < 1e-12);
}

/// TOK-12 (a), (b), (d).
#[test]
fn one_token_replies() {
    let one_token = record(&[(100, None)], 100, Some(1));
    let slo = Slo { metric: SloMetric::Tpot, limit_ms: 1.0 };
    let options = Options { slos: vec![slo], ..Options::default() };
    let alone = run(std::slice::from_ref(&one_token), &options);
    assert_eq!((alone.own.tpot, alone.itl, alone.token_itl), (None, None, None));
    let goodput = alone.own.goodput.unwrap();
    assert_eq!((goodput.good, goodput.attainment), (1, Some(1.0)));
    assert_eq!(goodput.request_goodput, Some(10.0));

    let mixed = run(&[one_token, trailing_usage()], &Options::default());
    assert_eq!(mean_ms(mixed.own.tpot), 50.0);
}

/// TOK-12 (c): the whole answer after 300 ms.
#[test]
fn a_reply_in_one_piece_has_no_time_per_token() {
    let record = record(&[(300, Some(16))], 300, Some(16));
    let run = run(&[record], &Options::default());
    assert_eq!((mean_ms(run.ttft), mean_ms(run.own.e2e)), (300.0, 300.0));
    assert_eq!((run.own.tpot, run.itl), (None, None));
    assert_eq!(mean_ms(run.upstream.tpot), 0.0);
    assert_eq!(run.own.max_output_tokens_per_s, Some(16));
}

/// LOAD-02: due every 100 ms, one slot, 500 ms each.
#[test]
fn the_clients_own_queue_is_visible() {
    let records: Vec<_> =
        (0..8).map(|i| at(record(&[(500, Some(1))], 500, Some(1)), i, 100 * i, 500 * i)).collect();
    let run = run(&records, &Options::default());
    assert_eq!(mean_ms(run.queue_wait), 1400.0);
    assert_eq!(run.queue_wait.unwrap().max, 2.8);
    assert_eq!((mean_ms(run.own.e2e), mean_ms(run.e2e_intended)), (500.0, 1900.0));
    assert_eq!(run.e2e_intended.unwrap().max, 3.3);
    assert_eq!(mean_ms(run.ttft_intended), 1900.0);
    assert_eq!(run.own.duration, Some(4.0));
    assert_eq!(run.own.request_throughput, Some(2.0));
    assert_eq!(run.achieved_request_rate, Some(2.0));
    assert_eq!(run.own.concurrency, Some(1.0), "the wait is not work");
    assert_eq!(run.own.max_concurrent_requests, Some(1));
    // One request ends when the next starts; whole-second buckets see up to three of them.
    assert_eq!(run.upstream.max_concurrent_requests, Some(3));
}

/// ERR-06.
#[test]
fn when_everything_fails_there_are_counts_and_nothing_else() {
    let records: Vec<_> = (0..3).map(|id| failed(id, FailureKind::Status, "500")).collect();
    let slo = Slo { metric: SloMetric::Ttft, limit_ms: 100.0 };
    let options = Options { slos: vec![slo], duration: Some(1.5), ..Options::default() };
    let run = run(&records, &options);
    assert_eq!((run.completed, run.failed), (0, 3));
    assert_eq!((run.total_input_tokens, run.own.total_output_tokens), (0, 0));
    for view in [&run.own, &run.upstream] {
        assert_eq!(view.duration, Some(1.5));
        let rates = [
            view.request_throughput,
            view.input_throughput,
            view.output_throughput,
            view.total_throughput,
        ];
        assert_eq!(rates, [None; 4]);
        assert_eq!((view.e2e, view.tpot, view.concurrency), (None, None, None));
        assert_eq!((view.max_output_tokens_per_s, view.max_concurrent_requests), (None, None));
        let goodput = view.goodput.as_ref().unwrap();
        assert_eq!((goodput.request_goodput, goodput.attainment), (None, None));
        assert_eq!(goodput.by_objective, [(slo, None)]);
    }
    assert_eq!((run.ttft, run.itl, run.token_itl), (None, None, None));
    let tally = &run.failures[&FailureKind::Status];
    assert_eq!((tally.count, tally.first_id, tally.first_detail.as_str()), (3, 0, "500"));

    let nothing = aggregate([], &Options::default());
    assert_eq!((nothing.completed, nothing.failed, nothing.own.duration), (0, 0, None));
    assert!(!serde_json::to_string(&nothing).unwrap().contains("NaN"));
}

/// ERR-07: every second request fails.
#[test]
fn failures_give_no_samples_but_count_against_the_objectives() {
    let mut records = Vec::new();
    for i in 0..5 {
        records.push(at(record(&[(100, Some(1))], 100, Some(1)), 2 * i, 0, 200 * i));
        records.push(failed(2 * i + 1, FailureKind::Status, "503"));
    }
    // A broken reply: its tokens and times are no samples either.
    let mut broken = trailing_usage();
    broken.reply.fail(Failure::new(FailureKind::Reset, "connection reset"));
    records.push(at(broken, 10, 0, 0));
    let slo = Slo { metric: SloMetric::E2el, limit_ms: 100.0 };
    let options = Options { slos: vec![slo], duration: Some(1.0), ..Options::default() };
    let run = run(&records, &options);
    assert_eq!((run.completed, run.failed), (5, 6));
    assert_eq!((mean_ms(run.own.e2e), run.own.e2e.unwrap().count), (100.0, 5));
    assert_eq!(run.own.request_throughput, Some(5.0));
    assert_eq!((run.own.total_output_tokens, run.total_input_tokens), (5, 40));
    let goodput = run.own.goodput.unwrap();
    assert_eq!((goodput.good, goodput.attainment), (5, Some(5.0 / 11.0)));
}

#[test]
fn output_is_counted_by_the_best_source_there_is() {
    let mut record = record(&[(10, None), (20, None)], 20, Some(7));
    let count = |record: &Record, retokenized| {
        let count = Measured { retokenized, ..Measured::from(record) }.output_count();
        (count.tokens, count.source)
    };
    assert_eq!(count(&record, Some(5)), (7, CountSource::Server));
    record.reply.completion_tokens = None;
    assert_eq!(count(&record, Some(5)), (5, CountSource::Tokenizer));
    assert_eq!(count(&record, None), (2, CountSource::Chunks));
    // The Python tool believes in the length it asked for.
    assert_eq!(Measured::from(&record).upstream_output_tokens(), 4);
}

#[test]
fn tokens_that_no_chunk_explains_are_dealt_to_the_chunks() {
    // Ten tokens in four chunks without counts, 400 ms apart: at most three chunks in a second.
    let chunks = [(100, None), (500, None), (900, None), (1300, None)];
    let run = run(&[record(&chunks, 1300, Some(10))], &Options::default());
    assert_eq!(run.own.max_output_tokens_per_s, Some(8));
}

#[test]
fn accept_length_is_weighted_by_verification_steps() {
    // 8 tokens in 2 steps and 8 tokens in 8 steps.
    let mut records = [record(&[(1, None)], 1, Some(8)), record(&[(1, None)], 1, Some(8))];
    records[0].reply.rare_mut().accept_length = Some(4.0);
    records[1].reply.rare_mut().accept_length = Some(1.0);
    let accepted = run(&records, &Options::default()).accept_length.unwrap();
    assert!((accepted - 1.6).abs() < 1e-12);
    records[0].reply.rare_mut().accept_length = Some(0.0);
    assert_eq!(run(&records, &Options::default()).accept_length, Some(1.0));
    records[1].reply.rare_mut().accept_length = None;
    assert_eq!(run(&records, &Options::default()).accept_length, None);
}

#[test]
fn a_limit_that_is_reached_exactly_is_met() {
    // 0.29 s is 290 ms, though 0.29 · 1000 may be more in binary.
    for limit in [1_u64, 29, 57, 290, 570, 1001] {
        let slo = Slo { metric: SloMetric::Ttft, limit_ms: limit as f64 };
        let options = Options { slos: vec![slo], ..Options::default() };
        let met = run(&[record(&[(limit, None)], limit, Some(1))], &options);
        assert_eq!(met.own.goodput.unwrap().good, 1, "{limit}");
        let missed = run(&[record(&[(limit + 1, None)], limit, Some(1))], &options);
        assert_eq!(missed.own.goodput.unwrap().good, 0, "{limit}");
    }
}

#[test]
fn durations_can_be_given() {
    let options = Options { duration: Some(2.0), upstream_duration: Some(4.0), ..native() };
    let run = run(&[trailing_usage()], &options);
    assert_eq!(run.own.output_throughput, Some(2.0));
    assert_eq!(run.upstream.output_throughput, Some(1.0));
    assert_eq!(run.own.total_throughput, Some(6.0));
    let zero = aggregate([], &Options { duration: Some(0.0), ..Options::default() });
    assert_eq!(zero.own.request_throughput, None);
}

#[test]
fn connects_and_lateness_are_kept() {
    let mut records = [trailing_usage(), trailing_usage()];
    records[0].reply.rare_mut().connect = Some(Duration::from_millis(3));
    records[0].reply.rare_mut().reconnects = 1;
    records[1].lateness = Some(Duration::from_micros(500));
    let run = run(&records, &Options::default());
    assert_eq!((run.reconnects, run.connect.unwrap().count), (1, 1));
    assert_eq!(run.lateness.unwrap().max, 0.0005);
}

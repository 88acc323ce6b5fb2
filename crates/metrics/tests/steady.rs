//! The steady state: the Python tool's own numbers, values worked out by hand, and laws.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use proptest::prelude::*;
use serde_json::Value;
use servebench_core::{Failure, FailureKind, Record, Stamp};
use servebench_metrics::{ItlRule, Measured, SteadyError, SteadyState, SteadyWindow};

/// The record of a reply as the golden file has it; all its times are whole nanoseconds.
fn record(id: usize, prompt_len: &Value, reply: &Value) -> Record {
    let seconds = |value: &Value| Stamp((value.as_f64().unwrap() * 1e9) as u64);
    let start = seconds(&reply["start_time"]);
    let mut record = Record {
        id: id as u64,
        dispatched: start,
        prompt_len: prompt_len.as_u64().unwrap() as u32,
        ..Record::default()
    };
    let mut at = start.0 + seconds(&reply["ttft"]).0;
    record.reply.push_chunk(Stamp(at), None, 0, "");
    for gap in reply["itl"].as_array().unwrap() {
        at += seconds(gap).0;
        record.reply.push_chunk(Stamp(at), None, 0, "");
    }
    assert_eq!(at, start.0 + seconds(&reply["latency"]).0);
    record.reply.completion_tokens = Some(reply["output_len"].as_u64().unwrap() as u32);
    if !reply["success"].as_bool().unwrap() {
        record.reply.fail(Failure::new(FailureKind::Server, "no"));
    }
    record
}

#[test]
fn every_number_is_the_python_tools() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/steady.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 35);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let replies = case["replies"].as_array().unwrap();
        let records: Vec<Record> = (0..replies.len())
            .map(|id| record(id, &case["prompt_lens"][id], &replies[id]))
            .collect();
        let letters = |id: usize| replies[id]["generated_text"].as_str().unwrap().len() as u32;
        let requests: Vec<Measured<'_>> = (0..records.len())
            .map(|id| Measured { retokenized: Some(letters(id)), ..Measured::from(&records[id]) })
            .collect();
        let ratio = case["ratio"].as_f64().unwrap();
        let state = SteadyState::of(&requests, ratio, ItlRule::PerChunk);
        if !case["error"].is_null() {
            assert_eq!(state, Err(SteadyError::NoSuccess), "{name}");
            continue;
        }
        let ours = serde_json::to_value(state.unwrap()).unwrap();
        let theirs = case["metrics"].as_object().unwrap();
        let keys = |value: &serde_json::Map<String, Value>| {
            value.keys().cloned().collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(keys(ours.as_object().unwrap()), keys(theirs), "{name}");
        for (key, value) in theirs {
            let (value, mine) = (value.as_f64().unwrap(), ours[key].as_f64().unwrap());
            // Sums of fractions are taken in another order.
            let close = (value - mine).abs() <= 1e-12 * value.abs();
            assert!(close, "{name}, {key}: {mine} is not {value}");
        }
    }
}

fn reply(id: u64, start: u64, chunks: &[(u64, u32)]) -> Record {
    let dispatched = Stamp::from_millis(start);
    let mut record = Record { id, dispatched, prompt_len: 10, ..Record::default() };
    for (at, tokens) in chunks {
        record.reply.push_chunk(Stamp::from_millis(*at), Some(*tokens), 0, "");
    }
    record.reply.completion_tokens = Some(chunks.iter().map(|(_, tokens)| tokens).sum());
    record
}

#[test]
fn tokens_that_share_a_chunk_share_its_time_where_the_route_says_so() {
    // Alone until 1000 ms, two until 2000 ms, alone again until 3000 ms.
    let records =
        [reply(0, 0, &[(500, 1), (1500, 4), (3000, 3)]), reply(1, 1000, &[(1250, 1), (2000, 3)])];
    let requests: Vec<_> = records.iter().map(Measured::from).collect();
    let state = SteadyState::of(&requests, 1.0, ItlRule::SpreadOverTokens).unwrap();
    // Of request 0 (8 tokens, 8 arrivals): 1000, 1250 and 1500 of the second chunk, 2000 of the third.
    // All 4 of request 1.
    assert_eq!((state.total_output, state.output_throughput), (8.0, 8.0));
    assert_eq!((state.window_start, state.window_end, state.duration), (1.0, 2.0, 1.0));
    assert_eq!((state.concurrency_threshold, state.peak_concurrency), (2, 2));
    assert_eq!((state.completed, state.total_input), (1, 10));
    assert_eq!((state.average_concurrency, state.peak_output_throughput), (2.0, 8.0));
    assert_eq!((state.total_output_retokenized, state.output_throughput_retokenized), (None, None));
    // As one arrival for each chunk: of request 0 one of three, which stands for 8/3 tokens.
    let state = SteadyState::of(&requests, 1.0, ItlRule::PerChunk).unwrap();
    assert!((state.total_output - (8.0 / 3.0 + 4.0)).abs() < 1e-12);
}

#[test]
fn only_the_lasting_successes_count() {
    let mut failed = reply(0, 0, &[(900, 5)]);
    failed.reply.fail(Failure::new(FailureKind::Server, "no"));
    let instant = reply(1, 50, &[(50, 3)]);
    let records = [failed, instant];
    let requests: Vec<_> = records.iter().map(Measured::from).collect();
    let none = SteadyState::of(&requests, 0.5, ItlRule::PerChunk);
    assert_eq!(none, Err(SteadyError::NoSuccess));
    assert_eq!(SteadyState::of(&[], 0.5, ItlRule::PerChunk), Err(SteadyError::NoSuccess));
}

#[test]
fn a_ratio_that_is_none_is_refused() {
    for ratio in [0.0, -0.5, 1.1, f64::INFINITY] {
        let window = SteadyWindow::find([(Stamp(0), Stamp(9))], ratio);
        assert_eq!(window, Err(SteadyError::Ratio(ratio)));
    }
    assert!(SteadyWindow::find([(Stamp(0), Stamp(9))], f64::NAN).is_err());
}

fn at_most_once(stays: &[(u64, u64)], at: u64) -> u64 {
    stays.iter().filter(|(start, end)| (*start..*end).contains(&at)).count() as u64
}

proptest! {
    #[test]
    fn the_window_is_the_longest_of_those_with_enough_requests(
        stays in prop::collection::vec((0..60_u64, 1..30_u64), 1..25), ratio in 0.01..=1.0_f64,
    ) {
        let stays: Vec<(u64, u64)> = stays.iter().map(|(start, long)| (*start, start + long)).collect();
        let window = SteadyWindow::find(
            stays.iter().map(|(start, end)| (Stamp(*start), Stamp(*end))), ratio).unwrap();
        // By looking at every moment.
        let first = stays.iter().map(|stay| stay.0).min().unwrap();
        let last = stays.iter().map(|stay| stay.1).max().unwrap();
        let levels: Vec<u64> = (first..last).map(|at| at_most_once(&stays, at)).collect();
        let peak = levels.iter().copied().max().unwrap();
        let threshold = ((peak as f64 * ratio).ceil() as u64).max(1);
        let mut best = (0, first);
        let mut run = 0;
        for (at, level) in (first..).zip(&levels) {
            run = if *level >= threshold { run + 1 } else { 0 };
            if run > best.0 {
                best = (run, at + 1 - run);
            }
        }
        prop_assert_eq!((window.peak, window.threshold), (peak, threshold));
        prop_assert_eq!((window.start.0, window.end.0), (best.1, best.1 + best.0));
    }

    #[test]
    fn numbers_fit_each_other_and_do_not_depend_on_the_order(
        replies in prop::collection::vec(
            (0..3_000_u64, prop::collection::vec((1..700_u64, 1..5_u32), 1..8)), 1..15),
        ratio in 0.01..=1.0_f64,
    ) {
        let records: Vec<Record> = replies.iter().enumerate().map(|(id, (start, gaps))| {
            let mut at = *start;
            let chunks: Vec<(u64, u32)> =
                gaps.iter().map(|(gap, tokens)| { at += gap; (at, *tokens) }).collect();
            reply(id as u64, *start, &chunks)
        }).collect();
        let mut requests: Vec<_> = records.iter().map(Measured::from).collect();
        let state = SteadyState::of(&requests, ratio, ItlRule::SpreadOverTokens).unwrap();
        requests.reverse();
        let backwards = SteadyState::of(&requests, ratio, ItlRule::SpreadOverTokens).unwrap();
        prop_assert_eq!(&state, &backwards);
        let sent: f64 = requests.iter().map(|it| it.output_count().tokens as f64).sum();
        let first = records.iter().map(|it| it.dispatched.as_secs_f64()).fold(f64::MAX, f64::min);
        let last = records.iter().filter_map(|it| it.reply.last_token());
        let last = last.map(Stamp::as_secs_f64).fold(0.0, f64::max);
        prop_assert!(first <= state.window_start && state.window_end <= last);
        prop_assert!(state.total_output <= sent + 1e-9);
        prop_assert!(state.completed <= records.len() as u64);
        let (low, high) = (state.concurrency_threshold as f64, state.peak_concurrency as f64);
        let held = state.average_concurrency;
        prop_assert!(low - 1e-9 <= held && held <= high + 1e-9, "{low} {held} {high}");
        prop_assert!(state.peak_output_throughput <= state.total_output + 1e-9);
    }
}

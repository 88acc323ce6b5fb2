//! Table and line beside those recorded from the Python tool.
//!
//! The recorded clock is not reproduced: numbers that depend on it are masked on both sides.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use serde_json::Value;
use servebench_core::{CachedDetails, Failure, FailureKind, Record, Stamp};
use servebench_metrics::{ItlRule, Measured, Options, Slo, SloMetric, aggregate};
use servebench_report::{Report, RequestRate, RunInfo, json_line, table};

/// Prompt lengths of the recording's dataset.
const PROMPT_LENS: [u32; 5] = [12, 9, 10, 12, 8];

fn cases() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/results.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    golden["cases"].as_array().unwrap().clone()
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

/// A record with as many tokens and gaps as the recorded request, sent 15 ms after the one before.
fn record(line: &Value, i: usize, native: bool) -> Record {
    let mut record = Record { id: i as u64, prompt_len: PROMPT_LENS[i], ..Record::default() };
    record.dispatched = Stamp::from_millis(15 * i as u64);
    record.intended = record.dispatched;
    let error = line["errors"][i].as_str().unwrap();
    if !error.is_empty() {
        record.reply.fail(Failure::new(FailureKind::Status, error));
        return record;
    }
    let output = number(&line["output_lens"][i]);
    let gaps = line["itls"][i].as_array().unwrap().len() as u32;
    let count = |tokens| native.then_some(tokens);
    for chunk in 0..=gaps {
        let at = Stamp(record.dispatched.0 + u64::from(chunk + 3) * 1_000_000);
        let tokens = if chunk == 0 { output - gaps } else { 1 };
        record.reply.push_stamp(at, count(tokens), 0);
        record.reply.last_line = Some(at);
    }
    record.reply.text.push_str(line["generated_texts"][i].as_str().unwrap());
    record.reply.completion_tokens = Some(output);
    record.reply.prompt_tokens = Some(number(&line["input_lens"][i]));
    if let Some(cached) = line.get("cached_tokens") {
        record.reply.cached_tokens = cached[i].as_u64();
        let details = &line["cached_tokens_details"][i];
        record.reply.rare_mut().cached_details = details.is_object().then(|| CachedDetails {
            device: details["device"].as_u64().unwrap(),
            host: details["host"].as_u64().unwrap(),
            storage: details["storage"].as_u64(),
            storage_backend: details["storage_backend"].as_str().map(str::to_owned),
        });
    }
    record
}

fn info(line: &Value) -> RunInfo {
    let text = |key: &str| line[key].as_str().map(str::to_owned);
    RunInfo {
        tag: text("tag"),
        backend: text("backend").unwrap(),
        dataset_name: text("dataset_name").unwrap(),
        request_rate: RequestRate::PerSecond(
            line["request_rate"].as_f64().unwrap_or(f64::INFINITY),
        ),
        max_concurrency: line["max_concurrency"].as_u64(),
        sharegpt_output_len: line["sharegpt_output_len"].as_u64(),
        random_input_len: line["random_input_len"].as_u64(),
        random_output_len: line["random_output_len"].as_u64(),
        random_range_ratio: line["random_range_ratio"].as_f64(),
        server_info: line["server_info"].clone(),
        server_accept_length: line["accept_length"].as_f64(),
        cache_report: line.get("cache_report").is_some(),
        ..RunInfo::default()
    }
}

/// Plays a recorded case, and hands line and table to `check`.
fn play(case: &Value, check: impl FnOnce(&str, &Value, &str)) {
    let line = &case["line"];
    // The one case without details has one request, which the first row describes.
    let details = line.get("input_lens").is_some();
    let native = ["sglang", "sglang-native"].contains(&line["backend"].as_str().unwrap());
    let itl_rule = if native { ItlRule::SpreadOverTokens } else { ItlRule::PerChunk };
    let records: Vec<Record> = if details {
        let rows = line["errors"].as_array().unwrap().len();
        (0..rows).map(|i| record(line, i, native)).collect()
    } else {
        Vec::new()
    };
    let retokenized = number(&line["total_output_tokens_retokenized"]);
    let first = records.iter().position(Record::is_success);
    let requests: Vec<Measured<'_>> = records
        .iter()
        .enumerate()
        .map(|(i, record)| Measured {
            retokenized: Some(if Some(i) == first { retokenized } else { 0 }),
            ..Measured::from(record)
        })
        .collect();
    let slos = line.get("goodput_slos_ms").and_then(Value::as_object);
    let slo = |(name, limit): (&String, &Value)| Slo {
        metric: SloMetric::from_name(name).unwrap(),
        limit_ms: limit.as_f64().unwrap(),
    };
    let slos = slos.into_iter().flatten().map(slo).collect();
    let options = Options { itl_rule, slos, ..Options::default() };
    let aggregates = aggregate(requests.iter().copied(), &options);
    let report =
        Report { info: info(line), aggregates, itl_rule, details: details.then_some(&requests) };
    let own = serde_json::from_str(&json_line(&report)).unwrap();
    check(case["name"].as_str().unwrap(), &own, &table(&report));
}

#[test]
fn recorded_keys_come_in_the_recorded_order() {
    for case in cases() {
        play(&case, |name, own, _| {
            let recorded: Vec<&str> =
                case["keys"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
            let shared = own.as_object().unwrap().keys().map(String::as_str);
            let shared: Vec<&str> = shared.filter(|key| recorded.contains(key)).collect();
            assert_eq!(shared, recorded, "{name}");
        });
    }
}

#[test]
fn values_that_no_clock_decides_are_the_recorded_ones() {
    let mut compared = 0;
    for case in cases().iter().filter(|case| case["line"].get("input_lens").is_some()) {
        play(case, |name, own, _| {
            for (key, recorded) in case["line"].as_object().unwrap() {
                // Texts of errors are our own words; an infinite rate is a string.
                if recorded == "{NUMBER}"
                    || ["errors", "ttfts", "itls", "request_rate"].contains(&&**key)
                {
                    continue;
                }
                let twin = own.get(format!("upstream_{key}")).unwrap_or(&own[key]);
                // Where the Python tool writes 0 for a family without samples, we write null.
                let none = twin.is_null() && recorded == 0.0;
                assert!(none || twin == recorded, "{name}: {key} is {twin}, not {recorded}");
                compared += 1;
            }
            for i in 0..own["itls"].as_array().unwrap().len() {
                let gaps = own["itls"][i].as_array().unwrap().len() as u64;
                assert_eq!(Some(gaps), case["itl_counts"][i].as_u64(), "{name}, request {i}");
            }
        });
    }
    assert!(compared > 800, "only {compared} values");
}

/// Numbers that depend on the clock become `#`, in a field of the same width.
fn masked(row: &str) -> String {
    let (Some(label), Some(value)) = (row.get(..41), row.get(41..)) else { return row.to_owned() };
    let timed =
        ["Benchmark", "throughput", "Concurrency:", "(ms):", "Request goodput", "Peak concurrent"];
    let clock = timed.iter().any(|word| label.contains(word)) && !label.starts_with("SLOs");
    let is_number = value.trim_end().parse::<f64>().is_ok();
    if clock && is_number { format!("{label}# in {}", value.len()) } else { row.to_owned() }
}

#[test]
fn the_table_is_the_recorded_one() {
    let mut compared = 0;
    for case in cases().iter().filter(|case| case.get("console").is_some()) {
        play(case, |name, _, own| {
            let console =
                case["console"].as_array().unwrap().iter().map(|row| row.as_str().unwrap());
            let recorded: Vec<String> = console
                .skip_while(|row| !row.contains(" Serving Benchmark Result "))
                .map(masked)
                .collect();
            // Our own section stands between the recorded rows and the closing line.
            let (upstream, closing) = match own.split_once("----------------------Client") {
                Some((upstream, rest)) => (upstream, rest.lines().last().unwrap()),
                None => (own, ""),
            };
            let rows = upstream.lines().skip(1).chain((!closing.is_empty()).then_some(closing));
            assert_eq!(rows.map(masked).collect::<Vec<_>>(), recorded, "{name}");
            compared += recorded.len();
        });
    }
    assert!(compared > 400, "only {compared} rows");
}

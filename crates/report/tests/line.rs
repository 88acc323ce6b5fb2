//! The result line: keys, values, strictness.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::{broken, cached, info, measured, options, refused, report, slos, success};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use servebench_core::{ReadLag, Record, Stamp};
use servebench_metrics::{ItlRule, Measured, Options, SteadyState};
use servebench_report::{Presence, Report, RequestRate, RunInfo, json_line, keys, schema, table};
use std::time::Duration;

fn line(report: &Report<'_>) -> Value {
    let text = json_line(report);
    assert!(!text.contains('\n'));
    serde_json::from_str(&text).unwrap()
}

/// What a command adds.
fn extra() -> Map<String, Value> {
    let values = json!({
        "model": "m", "served_model_name": "m", "num_prompts": 2, "seed": 42, "cache_flushed": false,
        "dns_ms": 0.5, "unsent": 0, "ended_by": null, "plan": {}, "conversations": {},
        "conversation_indices": [0, 0], "turn_numbers": [1, 2], "targets": [], "profile_workers": [],
    });
    values.as_object().unwrap().clone()
}

/// With everything that can be asked for.
fn full<'a>(requests: &'a [Measured<'a>]) -> Report<'a> {
    let options = Options { slos: slos(), ..options() };
    let info = RunInfo {
        cache_report: true,
        routed_experts: true,
        wants_steady_state: true,
        steady_state: SteadyState::of(requests, 0.5, ItlRule::SpreadOverTokens).ok(),
        extra: extra(),
        ..info()
    };
    Report { details: Some(requests), ..report(requests, &options, info) }
}

#[test]
fn every_key_written_is_documented_and_the_other_way_round() {
    let records = [cached(success(0, 0), 1, None), refused(1)];
    let requests = measured(&records);
    let written: Vec<String> =
        line(&full(&requests)).as_object().unwrap().keys().cloned().collect();
    let documented: Vec<String> = keys().map(|key| key.key.to_string()).collect();
    assert_eq!(written, documented);

    let plain: Vec<String> =
        line(&report(&requests, &options(), info())).as_object().unwrap().keys().cloned().collect();
    let always = keys().filter(|key| key.presence == Presence::Always);
    assert_eq!(plain, always.map(|key| key.key.to_string()).collect::<Vec<_>>());
}

#[test]
fn the_python_tools_keys_come_in_its_order() {
    let upstream: Vec<_> =
        keys().filter(|key| key.upstream).map(|key| key.key.to_string()).collect();
    let families = ["e2e_latency", "ttft", "tpot", "itl"].iter().flat_map(|family| {
        ["mean", "median", "std", "p90", "p95", "p99"].map(|name| format!("{name}_{family}_ms"))
    });
    let expected: Vec<String> = "tag backend dataset_name request_rate max_concurrency \
         sharegpt_output_len random_input_len random_output_len random_range_ratio server_info \
         duration completed total_input_tokens total_input_text_tokens total_input_vision_tokens \
         total_output_tokens total_output_tokens_retokenized request_throughput input_throughput \
         output_throughput total_throughput"
        .split_whitespace()
        .map(str::to_owned)
        .chain(families)
        .chain(
            "concurrency accept_length max_output_tokens_per_s max_concurrent_requests \
             goodput_slos_ms request_goodput slo_attainment slo_attainment_by_metric cache_report \
             input_lens output_lens ttfts itls generated_texts errors cached_tokens \
             cached_tokens_details"
                .split_whitespace()
                .map(str::to_owned),
        )
        .collect();
    assert_eq!(upstream, expected);
}

#[test]
fn documentation_is_complete_and_keys_are_unique() {
    let mut seen = std::collections::HashSet::new();
    for key in keys() {
        assert!(seen.insert(&key.key), "{} twice", key.key);
        assert!(key.doc.ends_with('.') && !key.types.is_empty(), "{key:?}");
        assert_eq!(key.key.ends_with("_ms") && key.key != "goodput_slos_ms", key.unit == "ms");
    }
}

/// The type of `value` as JSON Schema names it.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_types(line: &Value) {
    let schema = schema();
    for (key, value) in line.as_object().unwrap() {
        let property = &schema["properties"][key];
        let allowed = |types: &Value, value: &Value| {
            types.as_array().unwrap().contains(&json!(type_of(value)))
        };
        if let Some(items) = property.get("items") {
            for item in value.as_array().unwrap() {
                assert!(allowed(&items["type"], item), "{key}: {item}");
            }
        } else {
            assert!(allowed(&property["type"], value), "{key}: {value}");
        }
    }
    for key in schema["required"].as_array().unwrap() {
        assert!(line.get(key.as_str().unwrap()).is_some(), "{key} is missing");
    }
}

#[test]
fn details_have_one_entry_per_request_in_plan_order() {
    // Out of order, as workers hand their records over.
    let records = [broken(2), success(0, 0), cached(success(3, 300), 1, None), refused(1)];
    let requests = measured(&records);
    let line = line(&full(&requests));
    check_types(&line);
    for key in keys().filter(|key| key.is_per_request()) {
        assert_eq!(line[&*key.key].as_array().unwrap().len(), 4, "{}", key.key);
    }
    assert_eq!(line["success"], json!([true, false, false, true]));
    assert_eq!(line["input_lens"], json!([8, 9, 9, 8]));
    assert_eq!(line["output_lens"], json!([4, 0, 0, 4]));
    assert_eq!(line["ttfts"], json!([0.1, null, 0.1, 0.1]));
    assert_eq!(line["itls"], json!([[0.05, 0.05, 0.05], [], [0.03], [0.05, 0.05, 0.05]]));
    assert_eq!(line["token_itls"], line["itls"]);
    assert_eq!(line["latencies"], json!([0.25, null, 0.13, 0.25]));
    assert_eq!(line["stream_latencies"], json!([0.3, null, 0.13, 0.3]));
    assert_eq!(line["start_times"], json!([0.0, 0.0, 0.0, 0.3]));
    assert_eq!(line["generated_texts"], json!(["ab\n\"c\"é🙂", "", "xy", "ab\n\"c\"é🙂"]));
    assert_eq!(line["errors"], json!(["", "status: 503: busy", "reset: connection reset", ""]));
    assert_eq!(line["finish_reasons"], json!(["length", null, null, "length"]));
    assert_eq!(line["output_len_sources"], json!(["server", null, null, "server"]));
    assert_eq!(line["cached_tokens"], json!([0, 0, 0, 1]));
    assert_eq!(line["cached_tokens_details"], json!([null, null, null, {"device": 1, "host": 0}]));
    assert_eq!(line["failures"], json!({"status": 1, "reset": 1}));
    assert_eq!(
        line["failure_examples"],
        json!([
            {"kind": "status", "request": 1, "detail": "503: busy"},
            {"kind": "reset", "request": 2, "detail": "connection reset"},
        ])
    );
}

#[test]
fn receive_stamps_have_their_say() {
    let mut kernel = success(0, 0);
    let mut chunks = servebench_core::Chunks::default();
    for (after, ms) in [(90, 100), (150, 190), (150, 190), (230, 240)] {
        chunks.read_after(Stamp::from_millis(after));
        chunks.push(Stamp::from_millis(ms), Some(1), 0);
    }
    kernel.reply.chunks = chunks;
    let mut lag = ReadLag::default();
    lag.add(Duration::from_millis(1), Duration::from_micros(1));
    lag.add(Duration::from_millis(3), Duration::from_micros(2));
    kernel.reply.read_lag = Some(lag);
    let records = [kernel, refused(1)];
    let requests = measured(&records);
    let written = line(&full(&requests));
    check_types(&written);
    let keys = [
        ("stamps", json!("kernel")),
        ("read_lag_p50_ms", json!(2.0)),
        ("read_lag_p99_ms", json!(2.0)),
        ("read_lag_max_ms", json!(3.0)),
        ("receive_clock_error_ms", json!(0.002)),
        ("exact_share_ttft", json!(1.0)),
        ("exact_share_itl", json!(1.0 / 3.0)),
        ("bounded_chunks", json!(1)),
        // Gaps of 90, 0 and 50 ms, the first two at least 50 and 0, at most 90 and 40.
        ("p50_itl_low_ms", json!(50.0)),
        ("p50_itl_high_ms", json!(50.0)),
        ("read_lags", json!([0.002, null])),
        ("exact_ttfts", json!([true, null])),
        ("exact_itl_shares", json!([1.0 / 3.0, null])),
    ];
    for (key, want) in keys {
        assert_eq!(written[key], want, "{key}");
    }
    let near = |key: &str, want: f64| {
        let got = written[key].as_f64().unwrap();
        assert!((got - want).abs() < 1e-9, "{key} is {got}, not {want}");
    };
    near("mean_ttft_low_ms", 99.998);
    near("p99_ttft_high_ms", 100.002);
    near("mean_e2e_low_ms", 239.998);
    near("mean_itl_low_ms", 100.0 / 3.0);
    near("mean_itl_high_ms", 60.0);

    // Nothing of the kind is known of the client's own stamps.
    let records = [success(0, 0)];
    let written = line(&full(&measured(&records)));
    assert_eq!(written["stamps"], "user");
    for key in ["read_lag_p99_ms", "exact_share_ttft", "bounded_chunks", "p99_e2e_high_ms"] {
        assert_eq!(written[key], Value::Null, "{key}");
    }
}

#[test]
fn gaps_shared_by_tokens_are_written_once_each() {
    let mut record = Record::default();
    for (ms, tokens) in [(100, 2), (220, 3), (280, 1)] {
        record.reply.push_chunk(Stamp::from_millis(ms), Some(tokens), 0, "t");
    }
    let records = [record];
    let requests = measured(&records);
    let mut report = full(&requests);
    report.itl_rule = ItlRule::PerChunk;
    let line = line(&report);
    assert_eq!(line["itls"], json!([[0.12, 0.06]]));
    assert_eq!(line["token_itls"], json!([[0.04, 0.04, 0.04, 0.06]]));
}

#[test]
fn a_run_without_a_success_has_nulls_and_counts() {
    let records = [refused(0), refused(1), refused(2)];
    let requests = measured(&records);
    let line = line(&full(&requests));
    check_types(&line);
    assert_eq!((&line["completed"], &line["failed"]), (&json!(0), &json!(3)));
    let measured_keys = keys().filter(|key| {
        let client = ["duration", "wait", "started", "range_ratio", "dns_ms"]
            .iter()
            .any(|word| key.key.contains(word));
        key.types.contains(&"number")
            && !key.is_per_request()
            && !client
            && !["request_rate", "server_info"].contains(&&*key.key)
    });
    let mut checked = 0;
    for key in measured_keys {
        assert_eq!(line[&*key.key], Value::Null, "{}", key.key);
        checked += 1;
    }
    assert!(checked > 60, "only {checked} keys");
    assert_eq!(line["max_concurrent_requests"], Value::Null);
    assert_eq!(line["slo_attainment_by_metric"], json!({"ttft": null, "tpot": null, "e2el": null}));
    assert_eq!(line["goodput_slos_ms"], json!({"ttft": 500.0, "tpot": 50.0, "e2el": 3.0}));
}

#[test]
fn an_infinite_rate_is_a_string() {
    let rate = |request_rate| {
        line(&report(&[], &options(), RunInfo { request_rate, ..info() }))["request_rate"].clone()
    };
    assert_eq!(rate(RequestRate::PerSecond(f64::INFINITY)), "inf");
    assert_eq!(rate(RequestRate::PerSecond(50.0)), json!(50.0));
    assert_eq!(rate(RequestRate::Trace), "trace");
}

#[test]
fn extra_keys_follow_ours_and_never_replace_one() {
    let extra = json!({"remark": "server-bound", "completed": "a lie"});
    let info = RunInfo { extra: extra.as_object().unwrap().clone(), ..info() };
    let records = [success(0, 0)];
    let requests = measured(&records);
    let text =
        json_line(&Report { details: Some(&requests), ..report(&requests, &options(), info) });
    assert_eq!(text.matches("\"completed\"").count(), 1);
    let line: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&line["completed"], &line["remark"]), (&json!(1), &json!("server-bound")));
    let position = |key| text.find(key).unwrap();
    assert!(position("\"remark\"") > position("\"upstream_max_concurrent"));
    assert!(position("\"remark\"") < position("\"input_lens\""));
}

#[test]
fn twins_hold_what_the_python_tool_says() {
    let records = [success(0, 0)];
    let requests = measured(&records);
    let info = RunInfo { server_accept_length: Some(2.5), ..info() };
    let options = Options { upstream_duration: Some(0.6), ..options() };
    let line = line(&report(&requests, &options, info));
    let pairs = [
        ("mean_e2e_latency_ms", 250.0, 300.0),
        ("duration", 0.3, 0.6),
        ("concurrency", 0.25 / 0.3, 0.5),
        ("output_throughput", 4.0 / 0.3, 4.0 / 0.6),
        ("mean_tpot_ms", 50.0, 200.0 / 3.0),
        ("accept_length", 2.5, 2.5),
    ];
    for (key, own, upstream) in pairs {
        let close = |key: &str, want: f64| {
            let got = line[key].as_f64().unwrap();
            assert!((got - want).abs() < 1e-9, "{key}: {got} is not {want}");
        };
        close(key, own);
        close(&format!("upstream_{key}"), upstream);
    }
}

#[test]
fn table_and_line_agree_to_the_printed_digits() {
    let records: Vec<_> = (0..7).map(|id| success(id, id * 137)).collect();
    let requests = measured(&records);
    let report = report(&requests, &options(), info());
    let (text, line) = (table(&report), line(&report));
    for (label, key) in [
        ("Benchmark duration (s):", "duration"),
        ("Request throughput (req/s):", "request_throughput"),
        ("Concurrency:", "concurrency"),
        ("P99 TTFT (ms):", "p99_ttft_ms"),
        ("Max ITL (ms):", "max_itl_ms"),
        ("Peak output token throughput (tok/s):", "max_output_tokens_per_s"),
    ] {
        let row = text.lines().find(|row| row.starts_with(label)).unwrap();
        let shown = row[label.len()..].trim();
        assert_eq!(shown, format!("{:.2}", line[key].as_f64().unwrap()), "{label}");
    }
}

proptest! {
    #[test]
    fn the_line_is_strict_json_whatever_the_strings_and_numbers(
        tag in proptest::option::of(any::<String>()),
        text: String,
        detail: String,
        rate: f64,
        duration in proptest::option::of(any::<f64>()),
        fail: bool,
    ) {
        let mut record = success(0, 0);
        record.reply.text = text.clone();
        if fail {
            let kind = servebench_core::FailureKind::Server;
            record.reply.fail(servebench_core::Failure::new(kind, &detail));
        }
        let records = [record];
        let requests = measured(&records);
        let info = RunInfo {
            tag: tag.clone(),
            request_rate: RequestRate::PerSecond(rate),
            random_range_ratio: duration,
            ..info()
        };
        let options = Options { duration, slos: slos(), ..options() };
        let line = line(&Report { details: Some(&requests), ..report(&requests, &options, info) });
        check_types(&line);
        prop_assert_eq!(&line["tag"], &json!(tag));
        prop_assert_eq!(&line["generated_texts"][0], &json!(text));
    }
}

//! The result: its numbers, the table, the file.

use super::bench::{Bench, number, numbers};
use super::peer::{Peer, content, done, finish, pause, usage, usual};
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// A server that takes its time: a little more for each request, and for each token.
fn slow() -> Peer {
    let count = AtomicU64::new(0);
    Peer::start(move |seen, wire| {
        if !seen.generates() {
            return usual(seen, wire);
        }
        let more = Duration::from_millis(3 * (count.fetch_add(1, SeqCst) + 1));
        wire.begin();
        for text in ["a", "b", "c"] {
            pause(more);
            wire.chunk(&content(text));
        }
        wire.chunk(&[finish("length"), usage(8, 3), done()].concat());
        wire.end()
    })
}

/// The percentile by linear interpolation, as NumPy's default.
fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let at = percent / 100.0 * (sorted.len() - 1) as f64;
    let (low, share) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (sorted[high] - sorted[low]) * share
}

/// OUT-01 (a).
#[test]
fn an_infinite_rate_is_strict_json() {
    let peer = Peer::start(usual);
    let bench = Bench::of(&peer).and("--request-rate inf");
    let ended = bench.run().code(0);
    assert_eq!(ended.line()["request_rate"], "inf");
    let text = fs::read_to_string(bench.path("out.jsonl")).expect("a file");
    for word in ["NaN", "Infinity", ":inf", ",inf"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
}

/// OUT-01 (b), (e): one output token in all leaves no TPOT and no ITL, and counts stay integers.
#[test]
fn what_was_not_measured_is_null_and_counts_are_integers() {
    let peer = Peer::start(usual);
    let ended = Bench::of(&peer).run().code(0);
    let line = ended.line();
    for key in ["mean_tpot_ms", "std_tpot_ms", "mean_itl_ms", "p99_itl_ms"] {
        assert_eq!(line[key], Value::Null, "{key}");
    }
    assert_eq!(line["std_ttft_ms"], 0.0, "one value has no spread");
    for key in ["completed", "failed", "total_input_tokens", "total_output_tokens"] {
        assert!(line[key].is_u64(), "{key}: {}", line[key]);
    }
}

/// OUT-01 (c), (e), (f).
#[test]
fn statistics_are_those_of_the_arrays_and_the_table_is_the_line() {
    let peer = slow();
    let ended = Bench::of(&peer).and("--num-prompts 4 --max-concurrency 1").run().code(0);
    let line = ended.line();
    let near = |key: &str, want: f64| {
        let got = number(&line[key]);
        assert!((got - want).abs() < 1e-6, "{key}: {got}, not {want}");
    };
    let flat: Vec<f64> = line["itls"].as_array().expect("gaps").iter().flat_map(numbers).collect();
    let families = [
        ("ttft", numbers(&line["ttfts"])),
        ("e2e_latency", numbers(&line["latencies"])),
        ("itl", flat),
    ];
    for (name, seconds) in families {
        let mut sorted: Vec<f64> = seconds.iter().map(|time| time * 1e3).collect();
        sorted.sort_by(f64::total_cmp);
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        near(&format!("mean_{name}_ms"), mean);
        let square = |time: &f64| (time - mean).powi(2);
        let variance = sorted.iter().map(square).sum::<f64>() / sorted.len() as f64;
        near(&format!("std_{name}_ms"), variance.sqrt());
        for (key, percent) in
            [("median", 50.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0), ("p99.9", 99.9)]
        {
            near(&format!("{key}_{name}_ms"), percentile(&sorted, percent));
        }
        assert!(sorted[0] < sorted[sorted.len() - 1], "values to tell apart: {name} {sorted:?}");
    }
    for (label, key) in [
        ("Benchmark duration (s):", "duration"),
        ("Request throughput (req/s):", "request_throughput"),
        ("Input token throughput (tok/s):", "input_throughput"),
        ("Output token throughput (tok/s):", "output_throughput"),
        ("Peak output token throughput (tok/s):", "max_output_tokens_per_s"),
        ("Total token throughput (tok/s):", "total_throughput"),
        ("Concurrency:", "concurrency"),
        ("Mean E2E Latency (ms):", "mean_e2e_latency_ms"),
        ("P90 E2E Latency (ms):", "p90_e2e_latency_ms"),
        ("Mean TTFT (ms):", "mean_ttft_ms"),
        ("Median TTFT (ms):", "median_ttft_ms"),
        ("P99 TTFT (ms):", "p99_ttft_ms"),
        ("Mean TPOT (ms):", "mean_tpot_ms"),
        ("P95 ITL (ms):", "p95_itl_ms"),
        ("Max ITL (ms):", "max_itl_ms"),
    ] {
        let row = ended.out.lines().find_map(|row| row.strip_prefix(label)).expect(label);
        assert_eq!(row.trim(), format!("{:.2}", number(&line[key])), "{label} and {key}");
    }
    for (label, key) in [
        ("Successful requests:", "completed"),
        ("Total input tokens:", "total_input_tokens"),
        ("Total generated tokens:", "total_output_tokens"),
        ("Peak concurrent requests:", "max_concurrent_requests"),
    ] {
        let row = ended.out.lines().find_map(|row| row.strip_prefix(label)).expect(label);
        assert_eq!(row.trim(), line[key].to_string(), "{label} and {key}");
    }
}

/// OUT-02 (a).
#[test]
fn a_place_for_the_result_is_made_or_missed_before_the_run() {
    let peer = Peer::start(usual);
    let bench = Bench::of(&peer);
    let file = bench.path("no/such/folder/out.jsonl");
    bench.with("--output-file", &file.to_string_lossy()).run().code(0);
    assert_eq!(peer.generations().len(), 1);

    let bench = Bench::of(&peer);
    let folder = bench.path("").to_string_lossy().into_owned();
    let file = bench.file("file", "");
    for (place, named) in [
        (folder.clone(), folder),
        (format!("{file}/out.jsonl"), file),
        ("/proc/no/such/out.jsonl".into(), "/proc/no/such".into()),
    ] {
        let ended = Bench::of(&peer).with("--output-file", &place).run().code(7);
        ended.says(&[&named]);
        assert!(ended.out.is_empty(), "{}", ended.out);
    }
    assert_eq!(peer.generations().len(), 1, "nothing is sent for a result that has no place");
}

/// OUT-02 (b).
#[test]
fn the_default_name_is_a_file_name_whatever_the_model_is_called() {
    let peer = Peer::start(usual);
    let bench = Bench::of(&peer).without("--output-file").with("--model", "org/name:tag v2");
    bench.start().wait().code(0);
    let names: Vec<String> = fs::read_dir(bench.path(""))
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let [name] = &names[..] else { panic!("not one file: {names:?}") };
    let stem = name.strip_suffix(".jsonl").expect("a name of a JSONL file");
    assert!(stem.starts_with("sglang-oai-chat_") && !stem.contains([':', ' ', '.']), "{name}");
    let line: Value =
        serde_json::from_slice(&fs::read(bench.path(name)).expect("a file")).expect("JSON");
    assert_eq!(line["model"], "org/name:tag v2");
}

/// OUT-02 (c).
#[test]
fn long_lines_of_two_processes_do_not_mix() {
    let text = "\u{1f642}".repeat(12_000);
    let events = [content(&text), finish("length"), usage(8, 1), done()];
    let peer = Peer::start(
        move |seen, wire| {
            if seen.generates() { wire.stream(&events) } else { usual(seen, wire) }
        },
    );
    let shared = Bench::of(&peer);
    let file = shared.file("shared.jsonl", "{\"old\":1}");
    thread::scope(|scope| {
        for _ in 0..2 {
            let (peer, file) = (&peer, &file);
            scope.spawn(move || {
                let bench = Bench::of(peer).and("--num-prompts 5").with("--output-file", file);
                bench.start().wait().code(0);
            });
        }
    });
    let text = fs::read_to_string(file).expect("a file");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    assert_eq!((lines.len(), &lines[0]), (3, &json!({"old": 1})));
    assert!(text.lines().skip(1).all(|line| line.len() > 200 << 10), "long lines");
    assert!(text.ends_with('\n'));
}

/// OUT-02 (g).
#[test]
fn results_are_appended_and_tags_are_escaped() {
    let peer = Peer::start(usual);
    let tag = "a \"tag\" \\ with\nlines, \u{1f642}";
    let bench = Bench::of(&peer).with("--tag", tag);
    bench.run().code(0);
    let ended = bench.run().code(0);
    assert_eq!(ended.lines.len(), 2);
    assert!(ended.lines.iter().all(|line| line["tag"] == tag));
}

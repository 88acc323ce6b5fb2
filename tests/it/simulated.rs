//! Runs against the built-in simulated server: no network, no file.

use crate::support::{Folder, busy_machine};
use serde_json::Value;

/// A run of a second or less.
const SMALL: &[&str] = &[
    "--simulate",
    "--num-prompts",
    "8",
    "--random-input-len",
    "16",
    "--random-output-len",
    "8",
    "--random-range-ratio",
    "1.0",
    "--disable-tqdm",
    "--output-file",
    "out.jsonl",
];

fn small(more: &[&'static str]) -> Vec<&'static str> {
    [SMALL, more].concat()
}

#[test]
fn a_run_prints_the_table_and_appends_one_line() {
    let folder = Folder::new();
    let outcome = folder.run(&small(&[])).expect_code(0);
    for label in [
        " Serving Benchmark Result ",
        "Successful requests:",
        "Request throughput (req/s):",
        "Mean TTFT (ms):",
        "P99 ITL (ms):",
    ] {
        assert!(outcome.stdout.contains(label), "no `{label}` in:\n{}", outcome.stdout);
    }
    folder.run(&small(&["--tag", "second \"run\"\n"])).expect_code(0);
    let lines = folder.results("out.jsonl");
    assert_eq!(lines.len(), 2);
    for line in &lines {
        assert_eq!(line["completed"], 8);
        assert_eq!(line["failed"], 0);
        assert_eq!(line["simulated"], true);
        assert_eq!(line["total_output_tokens"], 64);
        assert_eq!(line["request_rate"], "inf");
        assert_eq!(line["interrupted"], false);
        assert!(line.get("ttfts").is_none(), "details were not asked for");
    }
    assert_eq!(lines[1]["tag"], "second \"run\"\n");
}

#[test]
fn table_and_result_line_agree() {
    let folder = Folder::new();
    let outcome = folder.run(&small(&[])).expect_code(0);
    let line = folder.results("out.jsonl").remove(0);
    for (label, key) in [
        ("Mean TTFT (ms):", "mean_ttft_ms"),
        ("P99 E2E Latency (ms):", "p99_e2e_latency_ms"),
        ("Request throughput (req/s):", "request_throughput"),
        ("Benchmark duration (s):", "duration"),
    ] {
        let row = outcome.stdout.lines().find(|row| row.starts_with(label)).expect(label);
        let shown = row[label.len()..].trim();
        let value = line[key].as_f64().expect(key);
        assert_eq!(shown, format!("{value:.2}"), "{label} and {key}");
    }
}

#[test]
fn details_have_one_entry_for_each_request() {
    let folder = Folder::new();
    folder.run(&small(&["--output-details"])).expect_code(0);
    let line = folder.results("out.jsonl").remove(0);
    for key in [
        "success",
        "input_lens",
        "output_lens",
        "ttfts",
        "itls",
        "token_itls",
        "latencies",
        "stream_latencies",
        "start_times",
        "generated_texts",
        "errors",
        "finish_reasons",
    ] {
        assert_eq!(line[key].as_array().map(Vec::len), Some(8), "{key}");
    }
    for request in 0..8 {
        let number = |value: &Value| value.as_f64().expect("a number");
        let latency = number(&line["latencies"][request]);
        let itls: f64 = line["itls"][request].as_array().expect("gaps").iter().map(number).sum();
        let spread = (latency - number(&line["ttfts"][request]) - itls).abs();
        assert!(spread < 1e-6, "latency is not TTFT plus the gaps: {spread} s apart");
        assert!(number(&line["stream_latencies"][request]) >= latency);
        assert_eq!(line["output_lens"][request], 8);
    }
}

#[test]
fn the_plan_hash_follows_the_workload() {
    let folder = Folder::new();
    let hash = |more: &[&'static str]| {
        folder.run(&small(more)).expect_code(0);
        let line = folder.results("out.jsonl").pop().expect("a line");
        line["plan_sha256"].as_str().expect("a hash").to_owned()
    };
    let first = hash(&[]);
    assert_eq!(first.len(), 64);
    assert_eq!(hash(&["--output-details", "--tag", "x"]), first, "reporting is no workload");
    assert_ne!(hash(&["--seed", "7"]), first);
    assert_ne!(hash(&["--request-rate", "1000"]), first);
    assert_ne!(hash(&["--temperature", "0.5"]), first);
}

#[test]
fn two_processes_append_whole_lines_to_one_file() {
    let folder = Folder::new();
    let _busy = busy_machine();
    let arguments = small(&["--output-details"]);
    let children: Vec<_> = (0..3)
        .map(|_| {
            let mut command = folder.command(&arguments);
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
            command.spawn().expect("the program starts")
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("the program ends").success());
    }
    assert_eq!(folder.results("out.jsonl").len(), 3);
}

#[test]
fn every_generation_backend_runs_in_the_simulation() {
    for backend in [
        "sglang",
        "sglang-native",
        "sglang-oai",
        "sglang-oai-chat",
        "vllm",
        "vllm-chat",
        "lmdeploy",
        "lmdeploy-chat",
    ] {
        let folder = Folder::new();
        folder.run(&[SMALL, &["--backend", backend]].concat()).expect_code(0);
        let line = folder.results("out.jsonl").remove(0);
        assert_eq!(line["backend"], backend);
        assert_eq!(line["completed"], 8, "{backend}");
        assert_eq!(line["total_output_tokens"], 64, "{backend}");
    }
}

#[test]
fn a_missing_final_newline_does_not_glue_two_results_together() {
    let folder = Folder::new();
    std::fs::write(folder.path("out.jsonl"), "{\"old\":1}").expect("a file");
    folder.run(&small(&[])).expect_code(0);
    let lines = folder.results("out.jsonl");
    assert_eq!((lines.len(), &lines[0]["old"]), (2, &Value::from(1)));
}

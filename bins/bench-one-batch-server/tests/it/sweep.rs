//! Sweeps against simulated servers.

use super::{run, run_in, tokenizer};
use serde_json::Value;
use servebench_cli::Environment;
use servebench_sim::{CostModel, Sim, SimConfig, Timing};
use std::path::Path;

/// The keys of spec §4.9, in its order.
const KEYS: [&str; 16] = [
    "run_name",
    "batch_size",
    "input_len",
    "output_len",
    "latency",
    "input_throughput",
    "output_throughput",
    "overall_throughput",
    "last_ttft",
    "last_gen_throughput",
    "acc_length",
    "total_output_tokens",
    "num_early_stopped",
    "steady_state_output_throughput",
    "steady_state_window_s",
    "cache_hit_rate",
];

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("results");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn number(line: &Value, key: &str) -> f64 {
    line[key].as_f64().unwrap_or_else(|| panic!("{key} in {line}"))
}

#[test]
fn two_by_two_cases_make_four_lines_and_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("r.jsonl");
    let (list, summary) = (folder.path().join("list.json"), folder.path().join("summary.md"));
    let name = |path: &Path| path.to_string_lossy().into_owned();
    let environment = Environment::from_pairs([
        ("SGLANG_IS_IN_CI", "true"),
        ("GITHUB_STEP_SUMMARY", &name(&summary)),
    ]);
    let words =
        ["--simulate", "--batch-size", "1", "3", "--input-len", "64", "32", "--output-len", "8"];
    let (file_name, list_name) = (name(&file), name(&list));
    let output = ["--show-report", "--result-filename", &file_name, "--run-name", "x"];
    let list_words =
        ["--pydantic-result-filename", &list_name, "--server-args-for-metrics", "--tp 2"];
    let out = run_in(&environment, &[&words[..], &output, &list_words].concat()).done();

    let results = lines(&file);
    let cases: Vec<_> = results
        .iter()
        .map(|line| (number(line, "batch_size"), number(line, "input_len")))
        .collect();
    assert_eq!(cases, [(1.0, 64.0), (1.0, 32.0), (3.0, 64.0), (3.0, 32.0)]);
    for line in &results {
        let keys: Vec<&str> =
            line.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(keys[..KEYS.len()], KEYS);
        assert_eq!((&line["run_name"], &line["simulated"]), (&"x".into(), &true.into()));
        let (rows, latency) = (number(line, "batch_size"), number(line, "latency"));
        assert_eq!(line["total_output_tokens"], rows as u64 * 8);
        assert_eq!(line["cache_hit_rate"], 0.0, "every case begins with an empty cache");
        let (ttft, input) = (number(line, "last_ttft"), rows * number(line, "input_len"));
        assert!(0.0 < ttft && ttft < latency && number(line, "first_ttft") <= ttft, "{line}");
        // The line's times have four decimals.
        let near = |key: &str, tokens: f64, seconds: f64| {
            let error = number(line, key) * seconds / tokens - 1.0;
            assert!(error.abs() < 1e-4 / seconds, "{key}: {line}");
        };
        near("input_throughput", input, ttft);
        near("output_throughput", rows * 8.0, latency - ttft);
        near("overall_throughput", input + rows * 8.0, latency);
    }
    let report = out.split("\nInput lens: ").nth(1).expect("a report");
    assert!(report.starts_with("[64, 32]. Output lens: [8].\n|   batch size |"), "{report}");
    assert_eq!(report.lines().filter(|line| line.starts_with('|')).count(), 6);
    assert!(
        out.contains("======== Warmup Begin ========\nWarmup with batch_size=[1, 3]\n"),
        "{out}"
    );
    let appended = std::fs::read_to_string(&summary).expect("a summary");
    assert!(out.contains(&appended), "{appended}");
    assert!(appended.contains("|   batch size |"), "{appended}");

    let list: Value =
        serde_json::from_str(&std::fs::read_to_string(&list).expect("a list")).expect("JSON");
    assert_eq!(list.as_array().map(Vec::len), Some(4));
    assert_eq!(list[0]["server_args"], serde_json::json!(["--tp 2"]));
}

#[test]
fn a_seed_makes_the_same_workload() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("r.jsonl");
    let name = file.to_string_lossy().into_owned();
    let base = ["--simulate", "--skip-warmup", "--output-len", "2", "--result-filename", &name];
    for more in
        [&["--input-len", "16"][..], &["--input-len", "16"], &["--input-len", "16", "--seed", "1"]]
    {
        run(&[&base[..], more].concat()).done();
    }
    let hashes: Vec<_> = lines(&file).iter().map(|line| line["plan_sha256"].clone()).collect();
    assert_eq!(hashes[0], hashes[1]);
    assert_ne!(hashes[0], hashes[2]);
}

#[test]
fn early_stops_are_counted_and_have_their_columns() {
    let timing = Timing::Engine(CostModel::default());
    let config = SimConfig { early_stop: 1.0, timing, ..SimConfig::default() };
    let folder = tempfile::tempdir().expect("a folder");
    for backend in ["sglang", "vllm"] {
        // The same draws for both: whether there is a steady window depends on them.
        let sim = Sim::new(config.clone()).spawn_in_thread().expect("a server");
        let url = sim.url();
        let file = folder.path().join(backend);
        let name = file.to_string_lossy().into_owned();
        let base =
            ["--base-url", &url, "--local-tokenizer-path", tokenizer(), "--backend", backend];
        let words = ["--dataset-name", "random-ids", "--batch-size", "4", "--input-len", "16"];
        let more = ["--output-len", "64", "--disable-ignore-eos", "--show-report"];
        let out = run(&[&base[..], &words, &more, &["--result-filename", &name]].concat()).done();
        let line = &lines(&file)[0];
        let early = number(line, "num_early_stopped");
        assert!(early >= 1.0 && number(line, "total_output_tokens") < 256.0, "{line}");
        assert!(out.contains(&format!("early-stopped requests: {early}/4")), "{out}");
        assert!(out.contains("steady-state output throughput: "), "{out}");
        assert!(out.contains("(requested 256)"), "{out}");
        assert!(out.contains("steady ITL (ms)") && out.contains("early stops"), "{out}");
        let window = number(line, "steady_state_window_s");
        assert!(window > 0.0 && window < number(line, "latency"), "{line}");
    }
}

#[test]
fn a_share_of_the_prompts_is_cached_beforehand() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("r.jsonl");
    let name = file.to_string_lossy().into_owned();
    let words = ["--simulate", "--batch-size", "2", "--input-len", "512", "--output-len", "2"];
    let more = ["--cache-hit-rate", "0.5", "--skip-warmup", "--result-filename", &name];
    let out = run(&[&words[..], &more].concat()).done();
    assert!(
        out.starts_with("Warming up cache with 50.0% hit rate (256 tokens per request)\n"),
        "{out}"
    );
    let rate = number(&lines(&file)[0], "cache_hit_rate");
    assert!((rate - 0.5).abs() < 0.1, "{rate}");
}

#[test]
fn completions_are_measured_with_their_counts() {
    let sim = Sim::new(SimConfig::default()).spawn_in_thread().expect("a server");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("r.jsonl");
    let (name, url) = (file.to_string_lossy().into_owned(), sim.url());
    let base =
        ["--base-url", &url, "--local-tokenizer-path", tokenizer(), "--result-filename", &name];
    let words = ["--backend", "vllm", "--dataset-name", "random-words", "--batch-size", "300"];
    let out = run(&[&base[..], &words, &["--input-len", "9", "--output-len", "3"]].concat()).done();
    let line = &lines(&file)[0];
    assert_eq!(line["total_output_tokens"], 900);
    assert_eq!((&line["num_early_stopped"], &line["plan_sha256"].is_string()), (&0.into(), &true));
    assert_eq!(line["output_throughput"], line["upstream_output_throughput"]);
    assert_eq!((number(line, "acc_length"), number(line, "last_gen_throughput")), (-1.0, -1.0));
    assert!(out.contains("last generation throughput: -1.00 tok/s"), "{out}");
}

#[test]
fn prompts_come_from_files_and_lists_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("r.jsonl");
    let (name, prompt) = (file.to_string_lossy().into_owned(), folder.path().join("p.txt"));
    let chats = folder.path().join("chats.jsonl");
    std::fs::write(&prompt, "four").expect("a file");
    let chat = |text: &str| {
        format!("{{\"conversations\":[{{\"value\":\"{text}\"}},{{\"value\":\"a reply\"}}]}}\n")
    };
    std::fs::write(&chats, [chat("seven77"), chat("nine 9999")].concat()).expect("a file");
    let (prompt, chats) = (prompt.to_string_lossy(), chats.to_string_lossy());
    let base = ["--simulate", "--skip-warmup", "--output-len", "3", "--batch-size", "2"];
    let base = [&base[..], &["--result-filename", &name]].concat();
    run(&[&base[..], &["--fixed-prompt-file", &prompt]].concat()).done();
    run(&[&base[..], &["--dataset-name", "custom", "--dataset-path", &chats]].concat()).done();
    run(&[&base[..], &["--input-len-list", "10,15"]].concat()).done();
    let shared =
        ["--gsp-system-prompt-len", "20", "--gsp-question-len", "5", "--gsp-output-len", "4"];
    run(&[&base[..], &["--dataset-name", "generated-shared-prefix"], &shared].concat()).done();
    let results = lines(&file);
    let of =
        |at: usize| (number(&results[at], "input_len"), number(&results[at], "total_input_tokens"));
    assert_eq!(of(0), (4.0, 8.0));
    assert_eq!(of(1), (8.0, 16.0));
    assert_eq!(of(2), (12.0, 25.0), "the mean, rounded down");
    assert!(of(3).0 >= 20.0, "{:?}", of(3));
    let speed = |key: &str| number(&results[2], key);
    let ratio = speed("input_throughput") / speed("upstream_input_throughput");
    assert!((ratio - 25.0 / 24.0).abs() < 1e-3, "upstream takes the mean of both: {ratio}");
    assert_eq!(results[3]["output_len"], 4);
    let few = run(&[
        &base[..],
        &["--dataset-name", "custom", "--dataset-path", &chats, "--batch-size", "3"],
    ]
    .concat());
    let text = few.failed(3);
    assert!(text.contains("2 usable prompts for a batch of 3"), "{text}");
}

#[test]
fn a_profiled_pass_leaves_traces_and_no_results() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("r.jsonl");
    let name = file.to_string_lossy().into_owned();
    let traces = folder.path().join("traces").to_string_lossy().into_owned();
    let words = ["--simulate", "--skip-warmup", "--batch-size", "2", "--input-len", "16"];
    let more = ["--output-len", "24", "--profile", "--profile-steps", "2", "--profile-by-stage"];
    let output = ["--profile-output-dir", &traces, "--show-report", "--result-filename", &name];
    let out = run(&[&words[..], &more, &output].concat()).done();
    assert_eq!(lines(&file).len(), 1);
    assert!(out.contains(&format!("[Profile]({traces}/")), "{out}");
    let named = |name: &str| name.contains("bs-2-il-16");
    let found = std::fs::read_dir(&traces).expect("a folder").flatten().flat_map(|run| {
        let files = std::fs::read_dir(run.path()).into_iter().flatten().flatten();
        files.map(|file| file.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    });
    assert!(found.filter(|name| named(name)).count() >= 2, "prefill and decode");
}

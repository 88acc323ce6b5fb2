//! The commands of `bench-vllm` beside `serve`, and the pictures that `serve` draws: each run once as a
//! whole.

use crate::browser::{drawn, shown};
use serde_json::{Value, json};
use servebench_cli::{Code, Environment, Failure, Io};
use std::path::Path;

/// How a command ended, and what it printed and said.
fn run(words: &[&str]) -> (Result<Code, Failure>, String, String) {
    let (io, captured) = Io::captured();
    let environment = Environment::from_pairs([("HF_HUB_OFFLINE", "1")]);
    let ended = bench_vllm::run(words.iter().map(Into::into).collect(), &environment, &io);
    (ended, captured.out(), captured.err())
}

/// What a command printed that must go well.
fn printed(words: &[&str]) -> String {
    let (ended, out, err) = run(words);
    assert!(matches!(ended, Ok(Code::Done)), "{words:?}: {ended:?}\n{out}{err}");
    out
}

/// The usage error of a command line.
fn refused(words: &[&str]) -> String {
    let failure = run(words).0.expect_err("a failure");
    assert_eq!(failure.code, Code::Usage, "{words:?}: {failure}");
    failure.to_string()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

#[test]
fn hashes_are_timed() {
    let out = printed(&["hash", "--iter", "20"]);
    assert!(out.contains("Iterations: 20\n"), "{out}");
    for name in ["sha256_cbor", "xxhash_cbor", "built-in hash()"] {
        assert!(out.contains(&format!("  {name:<16}: ")), "{name}:\n{out}");
    }
    let chain = ["prefix-block-hash", "--num-blocks", "5", "--trials", "1"];
    let out = printed(&[&chain[..], &["--algorithms", "sha256", "xxhash_cbor"]].concat());
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "Benchmarking 2 algorithms on 5 blocks (block size=32).");
    assert!(lines[1].starts_with("sha256         avg: "), "{out}");
    assert!(lines[2].starts_with("xxhash_cbor    avg: "), "{out}");
    assert_eq!(lines.len(), 3);

    assert!(refused(&["prefix-block-hash", "--algorithms", "md5"]).contains("md5"));
    assert!(refused(&["hash", "--iterations", "0"]).contains("--iterations"));
}

#[test]
fn a_run_draws_its_timeline_and_its_lengths() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("new");
    let words = ["serve", "--simulate", "--num-prompts", "30", "--output-len", "6"];
    let plots = ["--plot-timeline", "--timeline-itl", "1.5,3", "--plot-dataset-stats"];
    let to = ["--disable-tqdm", "--result-dir", text(&dir), "--result-filename", "a.b.json"];
    printed(&[&words[..], &plots[..], &to[..]].concat());

    let mut names: Vec<String> = std::fs::read_dir(&dir)
        .expect("the folder")
        .map(|entry| entry.expect("a file").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    assert_eq!(names, ["a.b.dataset_stats.svg", "a.b.timeline.html"], "and no result");

    let picture = std::fs::read_to_string(dir.join(&names[0])).expect("a picture");
    assert!(picture.contains("of 30 requests"), "{picture}");
    assert!(picture.contains("180 output tokens"), "{picture}");

    let Some(page) = shown(&dir.join(&names[1])) else { return };
    assert_eq!(drawn(&page, "requests"), Some(30), "{page}");
    assert_eq!(drawn(&page, "failed"), Some(0));
    // Two tokens in one event, as a busy machine makes the simulated server send them, have no gap.
    assert!(drawn(&page, "gaps").is_some_and(|gaps| (30..=30 * 5).contains(&gaps)), "{page}");
    assert!(page.contains("1.5 ms ≤ ITL &lt; 3 ms"), "no legend of the thresholds given");
}

#[test]
fn pictures_have_the_name_of_a_result_that_is_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["serve", "--simulate", "--num-prompts", "2", "--output-len", "2"];
    let to = ["--disable-tqdm", "--plot-dataset-stats", "--result-dir", text(folder.path())];
    printed(&[&words[..], &to[..]].concat());
    let entry = std::fs::read_dir(folder.path()).expect("the folder").next().expect("a file");
    let name = entry.expect("a file").file_name().into_string().expect("a name");
    assert!(name.starts_with("openai-infqps-") && name.ends_with(".dataset_stats.svg"), "{name}");
}

#[test]
fn there_is_no_timeline_without_tokens() {
    let said = refused(&["serve", "--backend", "vllm-pooling", "--plot-timeline"]);
    assert!(said.contains("--plot-timeline"), "{said}");
}

fn result(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("a result");
    serde_json::from_str(&text).expect("strict JSON")
}

/// The keys of a result in their order, of which the last is ours.
fn keys(result: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> =
        result.as_object().expect("an object").keys().map(|key| &**key).collect();
    assert_eq!(keys.pop(), Some("servebench"));
    keys
}

#[test]
fn throughput_is_measured_over_http() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("new/result.json");
    let words = ["throughput", "--simulate", "--num-prompts", "20", "--output-len", "8"];
    let more = ["--input-len", "10", "--prefix-len", "6", "--disable-tqdm", "--num-warmups", "1"];
    let out = printed(&[&words[..], &more[..], &["--output-json", text(&path)]].concat());
    let result = result(&path);
    let wanted = ["model_id", "elapsed_time", "num_requests", "total_num_tokens"];
    let rates = ["requests_per_second", "tokens_per_second"];
    assert_eq!(keys(&result), [&wanted[..], &rates[..]].concat());

    let own = &result["servebench"];
    let [prompt, output] = ["total_prompt_tokens", "total_output_tokens"]
        .map(|key| own[key].as_u64().expect("a count"));
    assert_eq!(prompt, input_tokens_of_serve(folder.path()), "the same prompts");
    assert_eq!((output, &result["num_requests"]), (160, &json!(20)));
    assert_eq!(result["total_num_tokens"], prompt + output);
    assert_eq!((&own["over_http"], &own["completed"]), (&json!(true), &json!(20)));
    assert_eq!(own["plan"]["extra_body"], json!({"top_p": 1.0, "temperature": 1.0}));
    assert_eq!(own["plan"]["ignore_eos"], true);

    let lines: Vec<&str> = out.lines().collect();
    let rate = |key: &str| result[key].as_f64().expect("a rate");
    let elapsed = rate("elapsed_time");
    assert_eq!(
        lines[0],
        format!(
            "Throughput: {:.2} requests/s, {:.2} total tokens/s, {:.2} output tokens/s",
            20.0 / elapsed,
            rate("tokens_per_second"),
            160.0 / elapsed
        )
    );
    assert_eq!(lines[1], format!("Total num prompt tokens:  {prompt}"));
    assert_eq!(lines[2], "Total num output tokens:  160");
    assert!(lines[3].starts_with("Measured over HTTP"), "{out}");
}

/// What `serve` counts for the prompts of the test above.
fn input_tokens_of_serve(folder: &Path) -> u64 {
    let words = ["serve", "--simulate", "--num-prompts", "20", "--output-len", "8"];
    let more = ["--input-len", "10", "--random-prefix-len", "6", "--disable-tqdm"];
    let to = ["--save-result", "--result-dir", text(folder), "--result-filename", "serve.json"];
    printed(&[&words[..], &more[..], &to[..]].concat());
    result(&folder.join("serve.json"))["total_input_tokens"].as_u64().expect("a count")
}

#[test]
fn the_latency_of_batches_is_measured_over_http() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("result.json");
    let words = ["latency", "--simulate", "--batch-size", "3", "--input-len", "5"];
    let more = ["--output-len", "4", "--num-iters", "6", "--num-iters-w", "2", "--disable-tqdm"];
    let (ended, out, err) = run(&[&words[..], &more[..], &["--output-json", text(&path)]].concat());
    assert!(matches!(ended, Ok(Code::Done)), "{ended:?}\n{out}{err}");
    assert!(err.contains("Warming up..."), "{err}");
    let result = result(&path);
    assert_eq!(keys(&result), ["model_id", "avg_latency", "latencies", "percentiles"]);
    let latencies: Vec<f64> = serde_json::from_value(result["latencies"].clone()).expect("numbers");
    assert!(latencies.len() == 6 && latencies.iter().all(|latency| *latency > 0.0), "{result}");
    let own = &result["servebench"];
    assert_eq!((&own["over_http"], &own["total_prompt_tokens"]), (&json!(true), &json!(6 * 3 * 5)));
    assert_eq!(own["total_output_tokens"], 6 * 3 * 4);

    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("Avg latency: ") && lines[0].ends_with(" seconds"), "{out}");
    let median = &result["percentiles"]["50"];
    assert_eq!(lines[3], format!("50% percentile latency: {median} seconds"));
    assert!(lines.len() == 8 && lines[7].starts_with("Measured over HTTP"), "{out}");
}

#[test]
fn what_needs_an_engine_is_refused_with_what_to_do() {
    for (words, said) in [
        (&["throughput", "--backend", "hf"][..], "start a server"),
        (&["throughput", "--backend", "vllm-pooling"], "makes no tokens"),
        (&["throughput", "--async-engine"], "leave it out"),
        (&["throughput", "--lora-path", "x"], "--lora-modules"),
        (&["throughput", "--tensor-parallel-size", "2"], "vllm serve"),
        (&["latency", "--gpu-memory-utilization", "0.9"], "vllm serve"),
        (&["latency", "--disable-detokenize"], "leave it out"),
        (&["latency", "--backend", "openai-chat"], "--backend openai"),
        (&["latency", "--num-iters", "0"], "--num-iters"),
    ] {
        let text = refused(words);
        assert!(text.contains(said), "{words:?}: {text}");
    }
}

#[test]
fn long_documents_are_sent_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("result.json");
    let words = ["long-document-qa", "--simulate", "--document-l", "50", "--num-documents", "3"];
    let more = ["--output-len", "4", "--repeat-count", "3", "--disable-tqdm"];
    let to = ["--repeat-mode", "tile", "--output-json", text(&path)];
    let out = printed(&[&words[..], &more[..], &to[..]].concat());
    let result = result(&path);
    let time = |key: &str| {
        let seconds = result[key].as_f64().expect("seconds");
        format!("Time to execute all requests: {seconds:.4} secs")
    };
    let lines: Vec<&str> = out.lines().collect();
    let wanted = ["Repeat mode:  tile", "------warm up------", &time("warmup_time")];
    assert_eq!(lines[..3], wanted);
    assert_eq!(lines[3..5], ["------start generating------", &time("elapsed_time")]);
    assert!(lines.len() == 6 && lines[5].starts_with("Measured over HTTP"), "{out}");
    let own = &result["servebench"];
    assert_eq!((&own["completed"], &own["total_output_tokens"]), (&json!(9), &json!(36)));
    assert_eq!(
        (&own["plan"]["ignore_eos"], &result["repeat_mode"]),
        (&json!(false), &json!("tile"))
    );

    let said = refused(&["long-document-qa", "--repeat-mode", "zigzag"]);
    assert!(said.contains("interleave"), "{said}");
    assert!(refused(&["long-document-qa", "--kv-cache-dtype", "fp8"]).contains("vllm serve"));
    let many = ["--num-documents", "1000000", "--repeat-count", "100"];
    assert!(refused(&[&["long-document-qa"][..], &many].concat()).contains("--repeat-count"));
}

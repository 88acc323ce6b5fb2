//! The datasets of `bench-vllm serve` beside those of `vllm bench serve`, from
//! `tests/golden/vllm_datasets.json` (whose `PROVENANCE_VLLM.md` tells how they were recorded).

use crate::parity::capture::Call;
use crate::support::root;
use crate::vllm::{Case, answer, cases, rerun};
use crate::vllm_media::{form, kept};
use serde_json::{Value, json};
use servebench_cli::{Code, Environment, Io};
use std::collections::BTreeMap;

#[test]
fn every_row_is_the_python_tools() {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for case in cases("datasets") {
        let run = rerun(&case, |call, _| answer(call));
        let lens = run.result["input_lens"].as_array().expect("lengths");
        let rows = case.rows("rows");
        assert_eq!((run.calls.len(), lens.len()), (rows.len(), rows.len()), "{}", case.name());
        for (row, (call, len)) in rows.iter().zip(run.calls.iter().zip(lens)) {
            assert_eq!(&sent(&case, row, call, len), row, "{}", case.name());
        }
        let dataset = case.name().split('/').next().unwrap_or_default().to_owned();
        *names.entry(dataset).or_insert(0) += rows.len();
    }
    let datasets = [
        "burstgpt",
        "custom_audio",
        "custom_image",
        "hf",
        "prefix_repetition",
        "random-mm",
        "random-rerank",
        "sharegpt",
        "spec_bench",
        "speed_bench",
        "timed_trace",
    ];
    assert_eq!(names.keys().collect::<Vec<_>>(), datasets);
    assert!(names.values().all(|rows| *rows >= 20), "{names:?}");
}

/// A call as `row` keeps that of the Python tool.
fn sent(case: &Case, row: &Value, call: &Call, len: &Value) -> Value {
    let id = call.headers.get("x-request-id");
    let body = call.body.as_ref().expect("a body");
    if row.get("form").is_some() {
        let (form, length) = form(call, row);
        return json!({"form": form, "output_len": length, "id": id, "prompt_len": len});
    }
    let either = |a: &str, b: &str| body.get(a).or(body.get(b)).cloned();
    let prompt = either("messages", "prompt").expect("a prompt");
    let mut sent = json!({
        "prompt": kept(prompt, &row["prompt"]),
        "output_len": either("max_completion_tokens", "max_tokens"),
        "id": id, "prompt_len": len,
    });
    for key in ["tools", "tool_choice"] {
        if let Some(value) = body.get(key) {
            sent[key] = value.clone();
        }
    }
    if let Some(texts) = row["prompt"]["holds"].as_array() {
        // Words around these texts are each program's own, and so are lengths.
        let mut rest = sent["prompt"].as_str().expect("a text");
        for text in texts {
            let text = text.as_str().expect("a text");
            let at = rest.find(text).unwrap_or_else(|| panic!("{}: {rest}", case.name()));
            rest = &rest[at + text.len()..];
        }
        sent["prompt"] = row["prompt"].clone();
        sent.as_object_mut().expect("fields").shift_remove("prompt_len");
        if case.name().contains("/edits/") {
            // The Python tool's are numbers of rows.
            sent["id"] = row["id"].clone();
        }
    }
    sent
}

/// A run against the built-in server: its exit code or failure, what it said, its result.
fn simulated(words: &[&str]) -> (Result<Code, String>, String, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("result.json");
    let fixtures = root().join("tests/fixtures");
    let (io, captured) = Io::captured();
    let mut all: Vec<String> =
        ["serve", "--simulate", "--save-result", "--result-filename"].map(str::to_owned).to_vec();
    all.push(path.to_str().expect("UTF-8").to_owned());
    let fixtures = fixtures.to_str().expect("UTF-8");
    all.extend(words.iter().map(|word| word.replace("{FIXTURES}", fixtures)));
    let all = all.into_iter().map(Into::into).collect();
    let ended = bench_vllm::run(all, &Environment::default(), &io);
    let result = std::fs::read_to_string(&path).ok();
    let result = result.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    (ended.map_err(|failure| format!("{failure:#}")), captured.err(), result)
}

#[test]
fn traces_are_replayed_at_their_times() {
    let burst = ["--dataset-name", "burstgpt", "--dataset-path", "{FIXTURES}/vllm_burstgpt.csv"];
    let trace = [
        "--dataset-name",
        "timed_trace",
        "--dataset-path",
        "{FIXTURES}/vllm_trace.jsonl",
        "--num-prompts",
        "7",
    ];
    let millis = ["--timed-trace-sec-multiplier", "0.001"];
    let (ended, said, result) = simulated(&[&trace[..], &millis].concat());
    assert_eq!(ended, Ok(Code::Done), "{said}");
    assert!(result["duration"].as_f64().is_some_and(|seconds| seconds > 0.32), "{result}");
    // A row without blocks has no prompt, which a server refuses.
    assert_eq!((&result["completed"], &result["failed"]), (&json!(6), &json!(1)));
    assert!(said.contains("are shorter than the trace says"), "{said}");

    let (ended, said, result) =
        simulated(&[&trace[..], &millis, &["--no-self-timed", "--request-rate", "500"]].concat());
    assert_eq!((ended, &result["request_rate"]), (Ok(Code::Done), &json!(500.0)), "{said}");

    // The first two rows of GPT-4 that were answered are 0.1 s apart.
    let (ended, said, result) =
        simulated(&[&burst[..], &["--self-timed", "--num-prompts", "2"]].concat());
    assert_eq!(ended, Ok(Code::Done), "{said}");
    assert!(result["duration"].as_f64().is_some_and(|seconds| (0.1..2.0).contains(&seconds)));
    assert_eq!(result["total_input_tokens"], 54);
}

#[test]
fn what_a_dataset_cannot_do_is_said() {
    let trace = ["--dataset-name", "timed_trace", "--dataset-path", "{FIXTURES}/vllm_trace.jsonl"];
    for (words, want) in [
        (&["--self-timed"][..], "whose rows have times"),
        (&["--no-self-timed", "--dataset-name", "sharegpt"], "whose rows have times"),
        (&["--dataset-name", "random-rerank", "--no-reranker"], "--no-reranker"),
        (&["--dataset-name", "burstgpt"], "--dataset-path"),
        (&["--dataset-name", "prefix_repetition", "--num-prompts", "3"], "--prefix-repetition"),
        (
            &["--dataset-name", "speed_bench", "--dataset-path", "/no/such/folder"],
            "qualitative.jsonl",
        ),
        (
            &[
                "--dataset-name",
                "spec_bench",
                "--dataset-path",
                "{FIXTURES}/vllm_spec_bench.jsonl",
                "--spec-bench-category",
                "cooking",
            ],
            "no category `cooking`, only coding, math, qa, rag, writing",
        ),
        (&[&trace[..], &["--backend", "openai-chat"]].concat(), "--backend openai"),
        (
            &[&trace[..], &["--timed-trace-label-timestamp", "when"]].concat(),
            "it has no `when`, only",
        ),
    ] {
        let (ended, ..) = simulated(words);
        let failure = ended.expect_err("a failure");
        assert!(failure.contains(want), "{words:?}: {failure}");
    }
}

//! The other backends of `bench-vllm serve` beside those of `vllm bench serve`, from
//! `tests/golden/vllm_backends.json` (whose `PROVENANCE_VLLM.md` tells how it was recorded), and against the
//! simulated server. The forms of `openai-audio` are compared in the crate that makes them.

use crate::parity::capture::{Answer, Call};
use crate::vllm::{Case, TRANSPORT, cases, compare_tables, recorded, rerun_whole};
use serde_json::{Value, json};
use servebench_backends::vllm::VllmBackend;
use servebench_cli::{Code, Environment, Io};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The recorded runs; recordings were sent without one.
fn runs() -> Vec<Case> {
    let mut runs = cases("backends");
    runs.retain(|case| !case.name().starts_with("openai-audio"));
    assert_eq!(runs.len(), 52);
    runs
}

/// Answers the calls to a case's endpoint as the recorded ones were, one after the other.
fn replay(case: &Case) -> impl Fn(&Call, usize) -> Answer + Send + Sync + 'static {
    let exchanges = case.rows("exchanges").to_vec();
    let next = AtomicUsize::new(0);
    move |call, _| {
        let path = &exchanges[0]["path"];
        if *path != call.path {
            return Answer::text(404, "no such route\n");
        }
        let reply = &exchanges[next.fetch_add(1, SeqCst)]["reply"];
        let mut answer = recorded(reply);
        if let Some(metadata) = reply["metadata"].as_str() {
            // The type is the last line of the head that the server writes for all answers.
            answer.kind = format!("{}\r\nmetadata: {metadata}", answer.kind);
        }
        answer
    }
}

/// Keys of results that do not depend on the clock.
const STEADY: [&str; 9] = [
    "backend",
    "num_prompts",
    "request_rate",
    "max_concurrency",
    "completed",
    "total_input_tokens",
    "total_input_sequences",
    "total_output_tokens",
    "output_lens",
];

#[test]
fn every_backend_is_the_python_tools() {
    let mut backends = BTreeSet::new();
    for case in runs() {
        let (name, recorded) = (case.name(), case.rows("exchanges"));
        let run = rerun_whole(&case, replay(&case));
        let path = recorded[0]["path"].as_str().expect("a path");
        let calls: Vec<&Call> = run.calls.iter().filter(|call| call.path == path).collect();
        assert_eq!(calls.len(), recorded.len(), "{name}");
        for (want, call) in recorded.iter().zip(calls) {
            assert_eq!(call.body.as_ref(), want.get("body"), "{name}");
            let mut headers: BTreeMap<String, String> =
                serde_json::from_value(want["headers"].clone()).expect("headers");
            assert_eq!(call.headers.get("content-type"), headers.get("content-type"), "{name}");
            headers.retain(|name, _| !TRANSPORT.contains(&name.as_str()));
            let mut sent = call.headers.clone();
            sent.retain(|name, _| !TRANSPORT.contains(&name.as_str()));
            assert_eq!(sent, headers, "{name}");
        }
        let want = &case.0["result"];
        let all_failed = want["completed"] == 0;
        assert_eq!(run.ended, if all_failed { Code::Requests } else { Code::Done }, "{name}");
        for key in STEADY {
            if let Some(want) = want.get(key) {
                assert_eq!(&run.result[key], want, "{name}: {key}");
            }
        }
        compare_keys(&case, &run.result);
        compare_requests(&case, &run.result);
        compare_tables(&case, &run.printed);
        backends.insert(name.split('/').next().unwrap_or_default().to_owned());
    }
    assert_eq!(backends.len(), 9);
}

#[test]
fn either_reader_finds_what_counts_an_answer_in_bytes() {
    let is_counted = |case: &Case| case.name() == "openai-embeddings/bytes";
    let mut case = runs().into_iter().find(is_counted).expect("the case");
    let argv = case.0["argv"].as_array_mut().expect("words");
    argv.extend([json!("--http-reader"), json!("hyper")]);
    let run = rerun_whole(&case, replay(&case));
    assert_eq!(run.result["total_input_tokens"], case.0["result"]["total_input_tokens"]);
}

/// The same keys in the same order, and `failed` where the Python tool leaves it out.
fn compare_keys(case: &Case, result: &serde_json::Map<String, Value>) {
    let mut keys: Vec<&str> = result.keys().map(String::as_str).collect();
    assert_eq!(keys.pop(), Some("servebench"), "{}", case.name());
    let recorded: Vec<&str> = case.rows("keys").iter().filter_map(Value::as_str).collect();
    if !recorded.contains(&"failed") {
        keys.retain(|key| *key != "failed");
    }
    assert_eq!(keys, recorded, "{}", case.name());
}

/// Each request's length, failure and number of gaps.
fn compare_requests(case: &Case, result: &serde_json::Map<String, Value>) {
    let (name, want) = (case.name(), &case.0["result"]);
    for (request, error) in want["errors"].as_array().expect("errors").iter().enumerate() {
        let failed = error != "";
        assert_eq!(result["errors"][request] != "", failed, "{name}: request {request}");
        let partial = want["itls"][request].as_array().is_some_and(|gaps| !gaps.is_empty());
        assert_eq!(result["latencies"][request].is_null(), failed && !partial, "{name}");
        if !failed {
            assert_eq!(result["input_lens"][request], want["input_lens"][request], "{name}");
        }
        if let Some(gaps) = want["itls"][request].as_array() {
            let ours = result["itls"][request].as_array().map_or(0, Vec::len);
            assert_eq!(ours, gaps.len(), "{name}: request {request}");
            // Reasoning is a part of the text here.
            let text = want["generated_texts"][request].as_str().unwrap_or_default();
            let ours = result["generated_texts"][request].as_str().unwrap_or_default();
            assert!(ours.ends_with(text), "{name}: {ours} {text}");
        }
    }
}

fn serve(words: &[&str]) -> (Result<Code, servebench_cli::Failure>, String) {
    let words = std::iter::once("serve").chain(words.iter().copied()).map(Into::into).collect();
    let (io, captured) = Io::captured();
    let ended = bench_vllm::run(words, &Environment::default(), &io);
    (ended, captured.out())
}

#[test]
fn every_backend_runs_against_the_simulated_server() {
    let mut pooling = 0;
    for backend in VllmBackend::all().filter(|backend| *backend != VllmBackend::OpenaiAudio) {
        let dataset = if backend == VllmBackend::VllmRerank { "random-rerank" } else { "random" };
        let (ended, out) = serve(&[
            "--simulate",
            "--backend",
            backend.name(),
            "--dataset-name",
            dataset,
            "--num-prompts",
            "4",
            "--output-len",
            "3",
            "--num-warmups",
            "1",
            "--probe-request-rate",
            "500",
            "--disable-tqdm",
        ]);
        assert!(matches!(ended, Ok(Code::Done)), "{backend}: {ended:?}\n{out}");
        let said = |label: &str| out.lines().any(|line| line.starts_with(label));
        assert!(said("Successful requests:                     4 "), "{backend}:\n{out}");
        assert!(out.contains("Probe Requests"), "{backend}:\n{out}");
        if backend.info().pooling {
            pooling += 1;
            assert!(said("Input throughput") && said("Mean E2EL"), "{backend}:\n{out}");
            assert!(!said("Mean TTFT") && !said("Total generated"), "{backend}:\n{out}");
        } else {
            assert!(said("Total generated tokens:                  12 "), "{backend}:\n{out}");
        }
    }
    assert_eq!(pooling, 8);
}

#[test]
fn recordings_are_transcribed_by_the_simulated_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let (rows, result) = (folder.path().join("rows.jsonl"), folder.path().join("result.json"));
    // Half a second each.
    let samples = vec![0.5; 4000];
    let row = json!({"prompt": "what is said?", "audio": [samples, 8000]}).to_string() + "\n";
    std::fs::write(&rows, row.repeat(3)).expect("a file");
    let path = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    let (ended, out) = serve(&[
        "--simulate",
        "--backend",
        "openai-audio",
        "--dataset-name",
        "custom_audio",
        "--dataset-path",
        &path(&rows),
        "--custom-output-len",
        "5",
        "--num-prompts",
        "3",
        "--num-warmups",
        "1",
        "--disable-tqdm",
        "--save-result",
        "--save-detailed",
        "--result-filename",
        &path(&result),
    ]);
    assert!(matches!(ended, Ok(Code::Done)), "{ended:?}\n{out}");
    assert!(out.contains("RTFx (Inverse Real-Time Factor):"), "{out}");
    let result = std::fs::read_to_string(result).expect("a result");
    let result: Value = serde_json::from_str(&result).expect("JSON");
    assert_eq!((&result["completed"], &result["total_output_tokens"]), (&json!(3), &json!(15)));
    let number = |key: &str| result[key].as_f64().expect("a number");
    assert!((number("rtfx") * number("duration") - 1.5).abs() < 1e-6, "{out}");
}

#[test]
fn what_does_not_fit_a_backend_is_found_before_any_request() {
    for (words, code, said) in [
        (
            &["--backend", "openai-responses", "--endpoint", "/v1/completions"][..],
            Code::Usage,
            "end in responses",
        ),
        (
            &["--backend", "openai-audio", "--endpoint", "/v1/responses"],
            Code::Usage,
            "transcriptions or translations",
        ),
        (&["--backend", "vllm-pooling", "--endpoint", "/v1/embeddings"], Code::Usage, "pooling"),
        (&["--backend", "vllm-rerank", "--endpoint", "/v1/score"], Code::Usage, "rerank"),
        (&["--backend", "openai-audio", "--temperature", "0"], Code::Usage, "--temperature"),
        (&["--backend", "vllm-rerank", "--simulate"], Code::Data, "no query with documents"),
        (&["--backend", "openai-audio", "--simulate"], Code::Data, "no recording"),
    ] {
        let (ended, out) = serve(words);
        let failure = ended.expect_err("a failure");
        let text = format!("{failure:#}");
        assert_eq!(failure.code, code, "{words:?}: {text}");
        assert!(text.contains(said) && out.is_empty(), "{words:?}: {text}");
    }
}

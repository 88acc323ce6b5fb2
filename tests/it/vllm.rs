//! `bench-vllm serve` beside what `vllm bench serve` did, from `tests/golden/vllm_*.json` (whose
//! `PROVENANCE_VLLM.md` tells how they were recorded).
//!
//! A recorded run is repeated in process against a loopback server that keeps every call. What differs on
//! purpose is told in the book, `reference/differences-vllm.md`, and where it shows in a test, there.

use crate::parity::capture::{Answer, Call, Capture, is_generation};
use crate::support::root;
use serde_json::{Map, Value, json};
use servebench_arrival::{Burstiness, Ramp, RampShape, Rate, stretched};
use servebench_cli::{Code, Environment, Io};
use servebench_core::Stamp;
use servebench_core::random::NumpyLegacy;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// One recorded run.
pub(crate) struct Case(pub(crate) Value);

pub(crate) fn cases(name: &str) -> Vec<Case> {
    let path = root().join("tests/golden").join(format!("vllm_{name}.json"));
    let text = std::fs::read_to_string(path).expect("the golden file");
    let mut golden: Value = serde_json::from_str(&text).expect("JSON");
    let cases: Vec<Value> = serde_json::from_value(golden["cases"].take()).expect("cases");
    assert!(!cases.is_empty(), "{name}");
    cases.into_iter().map(Case).collect()
}

impl Case {
    pub(crate) fn name(&self) -> &str {
        self.0["name"].as_str().expect("a name")
    }

    pub(crate) fn rows(&self, key: &str) -> &[Value] {
        self.0[key].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn is_chat(&self) -> bool {
        self.name().starts_with("openai-chat")
    }
}

/// A recorded run that was made again.
pub(crate) struct Rerun {
    pub(crate) ended: Code,
    pub(crate) calls: Vec<Call>,
    pub(crate) printed: String,
    pub(crate) result: Map<String, Value>,
}

/// Runs `case` again with its own command line, against a server that answers with `respond`. All must go
/// well; the calls are those that ask for tokens.
pub(crate) fn rerun(
    case: &Case,
    respond: impl Fn(&Call, usize) -> Answer + Send + Sync + 'static,
) -> Rerun {
    let mut run = rerun_whole(case, respond);
    assert_eq!(run.ended, Code::Done, "{}: {}", case.name(), run.printed);
    run.calls.retain(is_generation);
    run
}

/// The same, however it ends, with all calls.
pub(crate) fn rerun_whole(
    case: &Case,
    respond: impl Fn(&Call, usize) -> Answer + Send + Sync + 'static,
) -> Rerun {
    rerun_as("serve", "result.json", case, respond)
}

/// The same for a `command` that writes its result to `file`.
pub(crate) fn rerun_as(
    command: &str,
    file: &str,
    case: &Case,
    respond: impl Fn(&Call, usize) -> Answer + Send + Sync + 'static,
) -> Rerun {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = Capture::start(respond).expect("a server on loopback");
    let fixtures = root().join("tests/fixtures");
    let tokenizer = case.0["tokenizer"].as_str().unwrap_or("tiny-llama");
    let text = |path: &std::path::Path| path.to_str().expect("a path in UTF-8").to_owned();
    let places = [
        ("{URL}", format!("http://{}", server.address)),
        ("{TOKENIZER}", text(&fixtures.join("tokenizers").join(tokenizer))),
        ("{FIXTURES}", text(&fixtures)),
        ("{DIR}", text(folder.path())),
    ];
    let fill = |word: &Value| {
        let word = word.as_str().expect("a word").to_owned();
        places.iter().fold(word, |word, (name, real)| word.replace(name, real))
    };
    let words = std::iter::once(command.to_owned()).chain(case.rows("argv").iter().map(fill));
    let key = case.0["environ"]["OPENAI_API_KEY"].as_str().unwrap_or_default();
    let environment = Environment::from_pairs([("HF_HUB_OFFLINE", "1"), ("OPENAI_API_KEY", key)]);
    let (io, captured) = Io::captured();
    let ended = bench_vllm::run(words.map(Into::into).collect(), &environment, &io);
    let ended = ended.unwrap_or_else(|failure| panic!("{}: {failure}", case.name()));
    let result = std::fs::read_to_string(folder.path().join(file)).ok();
    let result = result.map(|text| serde_json::from_str(&text).expect("strict JSON"));
    let calls = server.calls();
    Rerun { ended, calls, printed: captured.out(), result: result.unwrap_or_default() }
}

/// Some words, whatever is asked.
pub(crate) fn answer(call: &Call) -> Answer {
    if !is_generation(call) {
        return Answer::text(404, "no such route\n");
    }
    let mut choice = json!({"index": 0, "finish_reason": "length"});
    if call.path.ends_with("chat/completions") || call.path.ends_with("/transcriptions") {
        choice["delta"] = json!({"content": "words"});
    } else {
        choice["text"] = json!("words");
    }
    Answer::events(&[json!({"choices": [choice]})])
}

#[test]
fn every_prompt_is_the_python_tools() {
    let (mut rows_compared, mut names) = (0, BTreeMap::new());
    for case in cases("prompts") {
        let run = rerun(&case, |call, _| answer(call));
        let lens = run.result["input_lens"].as_array().expect("lengths");
        let rows = case.rows("rows");
        assert_eq!((run.calls.len(), lens.len()), (rows.len(), rows.len()), "{}", case.name());
        for (row, (call, len)) in rows.iter().zip(run.calls.iter().zip(lens)) {
            let body = call.body.as_ref().expect("a body");
            let sent = json!({
                "prompt": body["prompt"], "output_len": body["max_tokens"],
                "id": call.headers.get("x-request-id"), "prompt_len": len,
            });
            assert_eq!(&sent, row, "{}", case.name());
            rows_compared += 1;
        }
        let dataset = case.name().split('/').next().unwrap_or_default().to_owned();
        *names.entry(dataset).or_insert(0) += 1;
    }
    assert_eq!(names.keys().collect::<Vec<_>>(), ["custom", "random", "sharegpt"]);
    assert!(names.values().all(|cases| cases % 3 == 0) && rows_compared > 500, "{rows_compared}");
}

/// Headers that are no choice of the command line.
pub(crate) const TRANSPORT: [&str; 8] = [
    "host",
    "accept",
    "accept-encoding",
    "user-agent",
    "content-length",
    "connection",
    "content-type",
    "transfer-encoding",
];

#[test]
fn every_call_is_the_python_tools() {
    let mut compared = 0;
    for case in cases("payloads") {
        let run = rerun(&case, |call, _| answer(call));
        let recorded = case.rows("requests");
        assert_eq!(run.calls.len(), recorded.len(), "{}", case.name());
        for (want, call) in recorded.iter().zip(&run.calls) {
            assert_eq!(call.body.as_ref(), want.get("body"), "{}", case.name());
            assert_eq!(call.path, want["path"], "{}", case.name());
            let mut headers: BTreeMap<String, String> =
                serde_json::from_value(want["headers"].clone()).expect("headers");
            let kind = headers.get("content-type").cloned();
            assert_eq!(call.headers.get("content-type"), kind.as_ref(), "{}", case.name());
            headers.retain(|name, _| !TRANSPORT.contains(&name.as_str()));
            let mut sent = call.headers.clone();
            sent.retain(|name, _| !TRANSPORT.contains(&name.as_str()));
            assert_eq!(sent, headers, "{}", case.name());
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn requests_are_due_when_the_python_tool_sends_them() {
    let cases = cases("arrivals");
    for case in &cases {
        let number = |key: &str| match &case.0[key] {
            Value::String(text) if text == "inf" => f64::INFINITY,
            value => value.as_f64().expect("a number"),
        };
        let want: Vec<f64> = case.rows("offsets").iter().filter_map(Value::as_f64).collect();
        let burstiness = Burstiness::new(number("burstiness")).expect("a shape");
        let mut draws = NumpyLegacy::new(number("seed") as u32);
        let got: Vec<Stamp> = match case.0["strategy"].as_str() {
            None => {
                let rate = Rate::per_second(number("rate")).expect("a rate");
                stretched(want.len(), rate, burstiness, &mut draws)
            }
            Some(strategy) => {
                let shape = match strategy {
                    "linear" => RampShape::Linear,
                    _ => RampShape::Exponential,
                };
                let ramp = Ramp::new(shape, number("start"), number("end")).expect("a ramp");
                let rates = case.rows("rates").iter().filter_map(Value::as_f64);
                for (index, want) in rates.enumerate() {
                    let got = ramp.rate_at(index, 20).get();
                    assert!((got - want).abs() < 1e-9, "{}: {got} is not {want}", case.name());
                }
                ramp.schedule(want.len(), burstiness, &mut draws)
            }
        };
        assert_eq!(got.len(), 20, "{}", case.name());
        for (got, want) in got.iter().zip(want) {
            let off = (got.as_secs_f64() - want).abs();
            assert!(off < 2e-9, "{}: {got:?} is not {want}", case.name());
        }
    }
    assert_eq!(cases.len(), 22);
}

/// Keys whose values do not depend on the clock, on servers that count or do not.
const STEADY: [&str; 16] = [
    "endpoint_type",
    "backend",
    "label",
    "num_prompts",
    "request_rate",
    "burstiness",
    "max_concurrency",
    "ramp_up_strategy",
    "ramp_up_start_rps",
    "ramp_up_end_rps",
    "completed",
    "failed",
    "total_input_tokens",
    "total_output_tokens",
    "input_lens",
    "output_lens",
];

#[test]
fn tables_and_results_are_the_python_tools() {
    let cases = cases("results");
    for case in &cases {
        let exchanges = case.rows("exchanges").to_vec();
        let run = rerun(case, move |call, _| {
            let body = call.body.as_ref();
            match exchanges.iter().find(|exchange| Some(&exchange["body"]) == body) {
                Some(exchange) if is_generation(call) => recorded(&exchange["reply"]),
                _ => Answer::text(404, "no such route\n"),
            }
        });
        let mut keys: Vec<&str> = run.result.keys().map(String::as_str).collect();
        assert_eq!(keys.pop(), Some("servebench"), "{}", case.name());
        let recorded_keys: Vec<&str> = case.rows("keys").iter().filter_map(Value::as_str).collect();
        assert_eq!(keys, recorded_keys, "{}", case.name());
        let want = &case.0["result"];
        for key in STEADY {
            if let Some(want) = want.get(key) {
                assert_eq!(&run.result[key], want, "{}: {key}", case.name());
            }
        }
        let rates = |result: &Value| -> Vec<Value> {
            let events = result["rps_change_events"].as_array().into_iter().flatten();
            events.map(|event| event["rps"].clone()).collect()
        };
        assert_eq!(rates(&Value::Object(run.result.clone())), rates(want), "{}", case.name());
        compare_details(case, &run.result);
        compare_tables(case, &run.printed);
    }
    assert_eq!(cases.len(), 24);
}

/// The recorded reply, piece by piece.
pub(crate) fn recorded(reply: &Value) -> Answer {
    Answer {
        status: reply["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(0),
        kind: reply["type"].as_str().unwrap_or_default().to_owned(),
        writes: serde_json::from_value(reply["writes"].clone()).unwrap_or_default(),
    }
}

/// Per request: as many samples as chunks, and the same text.
fn compare_details(case: &Case, result: &Map<String, Value>) {
    let want = &case.0["result"];
    let Some(gaps) = want["itls"].as_array() else { return };
    assert_eq!(result["generated_texts"], want["generated_texts"], "{}", case.name());
    for (request, gaps) in gaps.iter().enumerate() {
        let gaps = gaps.as_array().map_or(0, Vec::len);
        // The recorded release counts the opening chunk of a chat, which only names the role.
        let want = if case.is_chat() { gaps.saturating_sub(1) } else { gaps };
        let got = result["itls"][request].as_array().map_or(0, Vec::len);
        assert_eq!(got, want, "{}: request {request}", case.name());
        let failed = !want_error(case, request).is_empty();
        assert_eq!(result["ttfts"][request].is_null(), failed, "{}", case.name());
        let error = result["errors"][request].as_str().unwrap_or_default();
        assert_eq!(!error.is_empty(), failed, "{}: {error}", case.name());
    }
}

fn want_error(case: &Case, request: usize) -> &str {
    case.0["result"]["errors"][request].as_str().unwrap_or_default()
}

/// Line for line: labels, widths and titles; and the value where it is a count.
pub(crate) fn compare_tables(case: &Case, printed: &str) {
    let mut ours: Vec<&str> = printed.lines().collect();
    let own = ours.iter().position(|line| *line == format!("{:-^50}", "Client"));
    let own = own.unwrap_or_else(|| panic!("{}: no section of ours", case.name()));
    ours.drain(own..ours.len() - 1);
    // What the recorded run wrote of failures stands beside its table.
    let theirs: Vec<&str> = case.rows("table").iter().filter_map(Value::as_str).collect();
    assert_eq!(ours.len(), theirs.len(), "{}:\n{printed}", case.name());
    for (ours, theirs) in ours.iter().zip(theirs) {
        let count = theirs.len() > 41 && !theirs.contains('.');
        let cut = if count { theirs.len() } else { theirs.len().min(41) };
        let same = ours.get(..cut.min(ours.len())) == theirs.get(..cut);
        assert!(same && ours.len() >= 50, "{}:\n{ours}|\n{theirs}|", case.name());
    }
}

#[test]
fn what_cannot_be_run_is_found_before_any_work() {
    let run = |words: &[&str]| {
        let words = std::iter::once("serve").chain(words.iter().copied()).map(Into::into).collect();
        let (io, _) = Io::captured();
        let failure = bench_vllm::run(words, &Environment::default(), &io).expect_err("a failure");
        (failure.code, failure.to_string())
    };
    for (words, said) in [
        (&["--backend", "openai-chat", "--endpoint", "/v1/completions"][..], "--endpoint"),
        (&["--max-concurrency", "0"], "--max-concurrency"),
        (&["--burstiness", "0"], "--burstiness"),
        (&["--ramp-up-strategy", "linear"], "--ramp-up-start-rps"),
        (&["--dataset-path", "x"], "--dataset-path"),
        (&["--goodput", "ttft"], "--goodput"),
        (&["--percentile-metrics", "ttft,nonsense"], "nonsense"),
        (&["--header", "nothing"], "--header"),
        (&["--s", "1"], "ambiguous"),
        (&["--plot-timeline", "--timeline-itl-thresholds", "50"], "--timeline-itl-thresholds"),
    ] {
        let (code, text) = run(words);
        assert_eq!(code, Code::Usage, "{words:?}: {text}");
        assert!(text.contains(said), "{words:?}: {text}");
    }
}

#[test]
fn a_simulated_run_is_reported_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("all.json");
    let words = [
        "serve",
        "--simulate",
        "--num-prompts",
        "12",
        "--output-len",
        "4",
        "--request-rate",
        "400",
        "--max-concurrency",
        "4",
        "--probe-request-rate",
        "200",
        "--num-warmups",
        "1",
        "--ready-check-timeout-sec",
        "5",
        "--percentile-metrics",
        "ttft,e2el_including_client_queue",
        "--steady-state-concurrency-ratio",
        "0.5",
        "--append-result",
        "--disable-tqdm",
        "--result-filename",
    ];
    let path_word = path.to_str().expect("a path in UTF-8");
    let (io, captured) = Io::captured();
    let environment =
        Environment::from_pairs([("SAVE_TO_PYTORCH_BENCHMARK_FORMAT", "1"), ("API_KEY", "x")]);
    for _ in 0..2 {
        let words = words.iter().copied().chain([path_word]).map(Into::into).collect();
        let ended = bench_vllm::run(words, &environment, &io);
        assert!(matches!(ended, Ok(Code::Done)), "{ended:?}\n{}", captured.err());
    }
    let text = std::fs::read_to_string(&path).expect("a result");
    let results: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("strict JSON")).collect();
    assert_eq!(results.len(), 2);
    let result = &results[0];
    assert_eq!((&result["completed"], &result["failed"]), (&json!(12), &json!(0)));
    assert_eq!(result["total_output_tokens"], 48);
    assert!(result["probe_completed"].as_u64().is_some_and(|probes| probes > 0), "{result}");
    assert!(result["mean_e2el_including_client_queue_ms"].as_f64().is_some());
    assert!(result.get("mean_tpot_ms").is_none() && result.get("itls").is_none());
    let own = &result["servebench"];
    assert_eq!((&own["simulated"], &own["plan"]["num_prompts"]), (&json!(true), &json!(12)));
    assert!(own["verdict"].is_string() && own["upstream_max_concurrent_requests"].is_u64());
    let steady = &own["steady_state"];
    assert!(steady["output_throughput"].as_f64().is_some_and(|rate| rate > 0.0), "{own}");
    let records = std::fs::read_to_string(folder.path().join("all.pytorch.json")).expect("records");
    let records: Vec<Value> = serde_json::from_str(&records).expect("JSON");
    let names: Vec<&str> =
        records.iter().filter_map(|record| record["metric"]["name"].as_str()).collect();
    assert_eq!(names, ["mean_ttft_ms", "median_ttft_ms", "std_ttft_ms", "p99_ttft_ms"]);
    let printed = captured.out();
    for label in
        ["Probe Requests", "Queue-inclusive End-to-end Latency", "Verdict:", "Steady-State Result"]
    {
        assert!(printed.contains(label), "{label}:\n{printed}");
    }
}

#[test]
fn counters_of_a_diffusion_model_are_reported() {
    let scraped = AtomicU64::new(0);
    let server = Capture::start(move |call, _| {
        if call.path != "/metrics" {
            return answer(call);
        }
        // Each scrape finds 40 steps of 32 positions and 256 tokens more, which are 8 canvases.
        let times = scraped.fetch_add(1, Ordering::Relaxed);
        let counter =
            |name: &str, each: u64| format!("vllm:diffusion_num_{name}_total {}\n", times * each);
        let counters =
            [("denoising_steps", 40), ("canvas_positions", 1280), ("committed_tokens", 256)];
        Answer::text(200, &counters.map(|(name, each)| counter(name, each)).concat())
    });
    let server = server.expect("a server on loopback");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = format!("http://{}", server.address);
    let words = ["serve", "--base-url", &url, "--model", "m", "--num-prompts", "2"];
    let tokenizer = root().join("tests/fixtures/tokenizers/tiny-llama");
    let more = [
        "--tokenizer",
        tokenizer.to_str().expect("a path in UTF-8"),
        "--disable-tqdm",
        "--save-result",
    ];
    let to = [
        "--result-dir",
        folder.path().to_str().expect("a path in UTF-8"),
        "--result-filename",
        "r.json",
    ];
    let (io, captured) = Io::captured();
    let ended = bench_vllm::run(
        words.into_iter().chain(more).chain(to).map(Into::into).collect(),
        &Environment::default(),
        &io,
    );
    assert!(matches!(ended, Ok(Code::Done)), "{ended:?}\n{}", captured.err());
    let text = std::fs::read_to_string(folder.path().join("r.json")).expect("a result");
    let result: Value = serde_json::from_str(&text).expect("strict JSON");
    assert_eq!(result["diffusion_steps_per_canvas"], 4.0);
    assert_eq!(result["diffusion_committed_per_step"], 8.0);
    assert_eq!(result["diffusion_committed_tokens"], 256);
    assert_eq!(result["diffusion_denoising_steps"], 32);
    assert_eq!(result["diffusion_canvas_positions"], 1280);
    let duration = result["duration"].as_f64().expect("seconds");
    let throughput = result["diffusion_committed_throughput"].as_f64().expect("a rate");
    assert!((throughput * duration - 256.0).abs() < 1e-6, "{result}");
    for line in [
        "----------------Diffusion Decoding----------------",
        "Denoising steps per canvas:              4.00      ",
        "Canvas positions evaluated:              1280      ",
    ] {
        assert!(captured.out().contains(line), "{}", captured.out());
    }
}

//! `bench-vllm structured-output` beside what vLLM's `benchmark_serving_structured_output.py` did, from
//! `tests/golden/vllm_structured.json` (whose `PROVENANCE_VLLM.md` tells how it was recorded), and against the
//! simulated server.

use crate::parity::capture::{Answer, Call, Capture, is_generation};
use crate::support::root;
use crate::vllm::{Case, Rerun, cases, compare_tables, recorded, rerun_as};
use serde_json::{Map, Value, json};
use servebench_arrival::{Burstiness, Gamma, Rate};
use servebench_cli::{Code, Environment, Failure, Io};
use servebench_core::random::NumpyLegacy;
use std::path::Path;

const COMMAND: &str = "structured-output";
const FOOTER: &str = "==================================================";

fn runs() -> Vec<Case> {
    let mut runs = cases("structured");
    runs.retain(|case| !case.name().starts_with("arrivals/"));
    runs
}

/// Makes a recorded run again: call after call gets the reply that the recorded one got.
fn again(case: &Case) -> Rerun {
    let exchanges = case.rows("exchanges").to_vec();
    let file = case.0["file"].as_str().expect("a name");
    let mut again = Case(case.0.clone());
    if case.name().contains("xgrammar") {
        // The recorder put the copy into the library that the script asks.
        let copy = [json!("--dataset-path"), json!("{FIXTURES}/vllm_json_mode.jsonl")];
        again.0["argv"].as_array_mut().expect("words").extend(copy);
    }
    let run = rerun_as(COMMAND, file, &again, move |call, number| match exchanges.get(number) {
        Some(exchange) if is_generation(call) => recorded(&exchange["reply"]),
        _ => Answer::text(404, "no such route\n"),
    });
    assert_eq!(run.ended, Code::Done, "{}: {}", case.name(), run.printed);
    run
}

/// A body with what is of our own wording left out, as the recorder left out the script's.
fn without_prose(body: &Value, keep: bool) -> Value {
    let mut body = body.clone();
    if !keep {
        for place in ["/prompt", "/messages/0/content/0/text"] {
            if let Some(text) = body.pointer_mut(place) {
                assert!(text.as_str().is_some_and(|text| !text.is_empty()), "{place}");
                *text = json!("");
            }
        }
    }
    let Some(constraint) = body.get_mut("structured_outputs") else { return body };
    if let Some(Value::String(grammar)) = constraint.get("grammar") {
        constraint["grammar"] =
            grammar.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    }
    if let Some(Value::Object(properties)) = constraint.pointer_mut("/json/properties") {
        let named = std::mem::take(properties).into_iter().map(|(name, mut field)| {
            let Some(uuid) = name.strip_prefix("__optional_field_") else { return (name, field) };
            assert_eq!(uuid.len(), 36, "{uuid}");
            assert!(field.as_object_mut().and_then(|field| field.remove("description")).is_some());
            ("__optional_field_{UUID}".to_owned(), field)
        });
        *properties = named.collect();
    }
    body
}

/// The random beginning of a prompt, compared; then it is taken off.
fn compare_prefix(case: &Case, body: &mut Value, want: &mut Value) {
    let (got, prefix) =
        (body["prompt"].as_str().expect("a prompt"), want["prompt"].as_str().expect("one"));
    assert!(
        !prefix.is_empty() && got.starts_with(prefix),
        "{}: {got:?} and {prefix:?}",
        case.name()
    );
    body["prompt"] = Value::Null;
    want["prompt"] = Value::Null;
}

fn compare_calls(case: &Case, calls: &[Call]) {
    let name = case.name();
    let recorded = case.rows("exchanges");
    let calls: Vec<&Call> = calls.iter().filter(|call| is_generation(call)).collect();
    assert_eq!(calls.len(), recorded.len(), "{name}");
    for (call, want) in calls.into_iter().zip(recorded) {
        let mut want = want.clone();
        assert_eq!(call.path, want["path"], "{name}");
        let mut body = call.body.clone().expect("a body");
        if name == "chat/xgrammar_bench" {
            // The script joins the messages, and the server does it again; here only the server does.
            let [ours, theirs] = [&mut body, &mut want["body"]].map(|body| body["messages"].take());
            let said = ours[1]["content"].as_str().expect("a question");
            assert!(
                theirs[0]["content"][0]["text"].as_str().is_some_and(|text| text.contains(said)),
                "{name}"
            );
        }
        if name.starts_with("prefix/") {
            compare_prefix(case, &mut body, &mut want["body"]);
        }
        let body = without_prose(&body, name.contains("xgrammar") || name.starts_with("prefix/"));
        assert_eq!(body, want["body"], "{name}");
    }
}

/// Keys whose values do not depend on the clock nor on the prompts' words.
const STEADY: [&str; 11] = [
    "outputs",
    "backend",
    "model_id",
    "num_prompts",
    "request_rate",
    "burstiness",
    "max_concurrency",
    "correct_rate(%)",
    "completed",
    "total_output_tokens",
    "output_lens",
];

fn compare_results(case: &Case, result: &Map<String, Value>) {
    let (name, want) = (case.name(), &case.0["result"]);
    let mut keys: Vec<&str> = result.keys().map(String::as_str).collect();
    assert_eq!(keys.pop(), Some("servebench"), "{name}");
    if !name.contains("xgrammar") {
        keys.retain(|key| *key != "input_lens");
    }
    assert_eq!(
        keys,
        case.rows("keys").iter().filter_map(Value::as_str).collect::<Vec<_>>(),
        "{name}"
    );
    // Where the server counts, its count goes; the script tokenizes the reply, whatever the server says.
    let counts = ["total_output_tokens", "output_lens"];
    for key in STEADY.into_iter().filter(|key| name != "counted" || !counts.contains(key)) {
        assert_eq!(result[key], want[key], "{name}: {key}");
    }
    if name == "xgrammar_bench" {
        assert_eq!(result["input_lens"], want["input_lens"]);
    }
    let described = |value: &Value| -> Vec<String> {
        value.as_object().expect("a description").keys().cloned().collect()
    };
    for key in ["ttft_description", "tpot_description"] {
        assert_eq!(described(&result[key]), described(&want[key]), "{name}");
    }
    let failed = |result: &Value| -> Vec<bool> {
        let errors = result["errors"].as_array().expect("errors");
        errors.iter().map(|error| error != "").collect()
    };
    assert_eq!(failed(&Value::Object(result.clone())), failed(want), "{name}");
    let length = |value: &Value| value.as_array().map(Vec::len);
    for key in ["input_lens", "ttfts", "itls"] {
        assert_eq!(length(&result[key]), length(&result["outputs"]), "{name}: {key}");
    }
}

fn compare_printed(case: &Case, printed: &str) {
    let end = printed.find(&format!("\n{FOOTER}")).expect("the last line") + 1 + FOOTER.len();
    let (table, after) = printed.split_at(end);
    // Prompts differ in their words, and servers may count replies: those lines are as good as the script's.
    let counts = |line: &str| {
        let label = line.split_once(':').map(|(label, _)| label)?;
        let other = label == "Total input tokens"
            || case.name() == "counted" && label == "Total generated tokens";
        other.then(|| label.to_owned())
    };
    let theirs = case.rows("table").iter().filter_map(Value::as_str);
    let theirs: Vec<(String, &str)> =
        theirs.filter_map(|line| Some((counts(line)?, line))).collect();
    let ours: Vec<&str> = table
        .lines()
        .map(|line| match counts(line) {
            Some(label) => {
                theirs.iter().find(|(other, _)| *other == label).map_or(line, |(_, line)| line)
            }
            None => line,
        })
        .collect();
    compare_tables(case, &ours.join("\n"));
    let rate = case.rows("after")[0].as_str().expect("a line").trim_end();
    assert_eq!(after.lines().nth(1), Some(rate), "{}", case.name());
}

#[test]
fn every_run_is_the_python_scripts() {
    let mut constrained = (0, 0);
    for case in runs() {
        let run = again(&case);
        compare_calls(&case, &run.calls);
        compare_results(&case, &run.result);
        compare_printed(&case, &run.printed);
        for call in run.calls.iter().filter(|call| is_generation(call)).skip(1) {
            let has =
                call.body.as_ref().is_some_and(|body| body.get("structured_outputs").is_some());
            constrained = (constrained.0 + usize::from(has), constrained.1 + 1);
        }
        let own = &run.result["servebench"]["replies"];
        let sorts = [&own["constrained"]["replies"], &own["free"]["replies"]]
            .map(|n| n.as_u64().expect("a count"));
        assert_eq!(sorts.iter().sum::<u64>(), run.result["completed"].as_u64().expect("a count"));
    }
    let (with, all) = constrained;
    assert!(with > 250 && all - with > 200, "{with} of {all} with a constraint");
}

#[test]
fn requests_are_due_when_the_script_would_send_them() {
    let mut arrivals = cases("structured");
    arrivals.retain(|case| case.name().starts_with("arrivals/"));
    assert_eq!(arrivals.len(), 9);
    for case in arrivals {
        let number = |key: &str| case.0[key].as_f64().expect("a number");
        let (rate, shape) =
            (Rate::per_second(number("rate")), Burstiness::new(number("burstiness")));
        let mut draws = NumpyLegacy::new(number("seed") as u32);
        let offsets =
            Gamma::new(rate.expect("a rate"), shape.expect("a shape"), &mut draws).take(20);
        for (got, want) in offsets.zip(case.rows("offsets")) {
            let want = want.as_f64().expect("an offset");
            assert!(
                (got.as_secs_f64() - want).abs() < 2e-9,
                "{}: {got:?} is not {want}",
                case.name()
            );
        }
    }
}

/// How a command ended, what it printed and what it said.
fn run(words: &[&str]) -> (Result<Code, Failure>, String, String) {
    let (io, captured) = Io::captured();
    let environment = Environment::from_pairs([("HF_HUB_OFFLINE", "1")]);
    let words = std::iter::once(&COMMAND).chain(words).map(Into::into).collect();
    let ended = bench_vllm::run(words, &environment, &io);
    (ended, captured.out(), captured.err())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// The command lines that vLLM's documents and its wrapper script have for this benchmark, made quick.
#[test]
fn known_command_lines_run() {
    let fixtures = root().join("tests/fixtures");
    let (copy, tokenizer) =
        (fixtures.join("vllm_json_mode.jsonl"), fixtures.join("tokenizers/tiny-llama"));
    let folder = tempfile::tempdir().expect("a folder");
    let quick = ["--simulate", "--num-prompts", "8", "--request-rate", "500", "--disable-tqdm"];
    let bench = [
        "--dataset",
        "xgrammar_bench",
        "--tokenizer",
        text(&tokenizer),
        "--dataset-path",
        text(&copy),
    ];
    let model = ["--backend", "vllm", "--model", "NousResearch/Hermes-3-Llama-3.1-8B"];
    let wrapper = [
        "--structured-output-ratio",
        "1",
        "--save-results",
        "--result-dir",
        text(folder.path()),
        "--output-len",
        "30",
        "--tokenizer-mode",
        "auto",
        "--result-filename",
        "vllm_25qps_Hermes_xgrammar_bench_1a2b3c_main.json",
    ];
    for line in [
        &["--dataset", "json", "--structured-output-ratio", "1.0"][..],
        &["--dataset", "grammar", "--structure-type", "grammar"],
        &["--dataset", "regex"],
        &["--dataset", "choice"],
        &bench,
        &[&bench[..], &wrapper].concat(),
    ] {
        let (ended, out, err) = run(&[&model[..], line, &quick].concat());
        assert!(matches!(ended, Ok(Code::Done)), "{line:?}: {ended:?}\n{out}{err}");
        assert!(out.contains("Successful requests:                     8"), "{out}");
        assert!(
            out.contains("\ncorrect_rate(%) ") && out.contains("8 replies with a constraint"),
            "{out}"
        );
    }
    let path = folder.path().join("vllm_25qps_Hermes_xgrammar_bench_1a2b3c_main.json");
    let result = std::fs::read_to_string(path).expect("a result");
    assert!(result.starts_with("{\n    \"outputs\": [\n        {\n"), "{result}");
    let result: Value = serde_json::from_str(&result).expect("strict JSON");
    assert_eq!((&result["num_prompts"], &result["request_rate"]), (&json!(8), &json!(500.0)));
    let plan = &result["servebench"]["plan"];
    assert_eq!(
        (&plan["dataset"]["dataset"]["kind"], &plan["load"]["stretched"]),
        (&json!("xgrammar_bench"), &json!(false))
    );
}

#[test]
fn what_the_simulated_server_heeds_is_right() {
    let words = ["--simulate", "--num-prompts", "10", "--output-len", "30", "--disable-tqdm"];
    let half = ["--structured-output-ratio", "0.5"];
    for backend in ["vllm", "openai-chat"] {
        for (dataset, rate) in [("json", "50.0"), ("json-unique", "50.0"), ("choice", "0.0")] {
            let named = ["--backend", backend, "--dataset", dataset];
            let (ended, out, err) = run(&[&words[..], &half, &named].concat());
            assert!(matches!(ended, Ok(Code::Done)), "{ended:?}\n{out}{err}");
            assert!(out.contains(&format!("\ncorrect_rate(%) {rate}\n")), "{dataset}:\n{out}");
            let whole = if rate == "0.0" { 0 } else { 5 };
            let line = format!("{whole} of 5 replies with a constraint, 0 of 5 replies without");
            assert!(out.contains(&line), "{dataset}:\n{out}");
            assert_eq!(
                err.contains("heeds constraints of JSON alone"),
                dataset == "choice",
                "{err}"
            );
        }
    }
}

#[test]
fn what_cannot_be_run_is_found_before_any_work() {
    for (words, said) in [
        (&["--backend", "tgi", "--endpoint", "/generate_stream"][..], "no constraint"),
        (&["--backend", "openai-audio"], "recordings"),
        (&["--dataset", "regex", "--structure-type", "grammar"], "--structure-type"),
        (&["--dataset", "regex", "--json-schema-path", "x"], "--json-schema-path"),
        (&["--dataset-path", "x"], "--dataset-path"),
        (&["--structured-output-ratio", "1.5"], "--structured-output-ratio"),
        (&["--num-prompts", "0"], "--num-prompts"),
        (&["--backend", "openai-chat", "--endpoint", "/v1/completions"], "--endpoint"),
        (&["--goodput", "itl:3"], "--goodput"),
        (&["--dataset", "yaml"], "xgrammar_bench"),
    ] {
        let failure = run(words).0.expect_err("a failure");
        let text = failure.to_string();
        assert_eq!(failure.code, Code::Usage, "{words:?}: {text}");
        assert!(text.contains(said), "{words:?}: {text}");
    }
    for (words, said) in [
        (&["--simulate", "--json-schema-path", "/no/such/file"][..], "/no/such/file"),
        (&["--simulate", "--dataset", "xgrammar_bench"], "json-mode-eval"),
    ] {
        let failure = run(words).0.expect_err("a failure");
        assert_eq!(failure.code, Code::Data, "{words:?}: {failure}");
        assert!(failure.to_string().contains(said), "{words:?}: {failure}");
    }
}

#[test]
fn no_run_is_made_when_the_first_request_fails() {
    let server = Capture::start(|_, _| Answer::text(400, "no grammar here\n"));
    let server = server.expect("a server on loopback");
    let url = format!("http://{}", server.address);
    let tokenizer = root().join("tests/fixtures/tokenizers/tiny-llama");
    let words =
        ["--base-url", &url, "--model", "m", "--tokenizer", text(&tokenizer), "--disable-tqdm"];
    let failure = run(&words).0.expect_err("a failure");
    assert_eq!(failure.code, Code::Server, "{failure}");
    let text = failure.to_string();
    assert!(text.contains("no grammar here") && !text.contains("--num-warmups"), "{text}");
    assert_eq!(server.calls().iter().filter(|call| is_generation(call)).count(), 1);
}

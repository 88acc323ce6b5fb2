//! `bench-vllm prefix-caching` and `prioritization` beside vLLM's scripts, from
//! `tests/golden/vllm_offline.json` (whose `PROVENANCE_VLLM.md` tells how it was recorded), and
//! `bench-vllm startup` with servers that start and that do not.

use crate::parity::capture::{Call, is_generation};
use crate::support::root;
use crate::vllm::{Case, answer, cases, rerun_as};
use serde_json::{Value, json};
use servebench_cli::{Code, Environment, Failure, Io};
use std::collections::BTreeMap;
use std::path::Path;

/// The recorded case, sent to the test's server.
fn to_server(mut case: Case) -> Case {
    let words = "--base-url {URL} --model tiny --tokenizer {TOKENIZER} --disable-tqdm";
    let words = words.split(' ').map(Value::from);
    case.0["argv"].as_array_mut().expect("words").extend(words);
    case
}

/// The bodies in plan order.
fn bodies(mut calls: Vec<Call>) -> Vec<Value> {
    let number = |call: &Call| -> usize {
        let id = call.headers.get("x-request-id").expect("an id");
        id.rsplit('-').next().and_then(|number| number.parse().ok()).expect("a number")
    };
    calls.sort_by_key(number);
    calls.into_iter().map(|call| call.body.expect("a body")).collect()
}

#[test]
fn every_request_is_the_python_scripts() {
    let mut compared: BTreeMap<String, usize> = BTreeMap::new();
    for case in cases("offline").into_iter().map(to_server) {
        let (name, command) = (case.name(), case.0["command"].as_str().expect("a command"));
        let mut run = rerun_as(command, "result.json", &case, |call, _| answer(call));
        assert_eq!(run.ended, Code::Done, "{name}: {}", run.printed);
        run.calls.retain(is_generation);
        let (bodies, sampling) = (bodies(run.calls), &case.0["sampling"]);
        let prompts: Vec<&Value> = bodies.iter().map(|body| &body["prompt"]).collect();
        let recorded: Vec<&Value> = case.rows("prompts").iter().collect();
        assert_eq!(prompts, recorded, "{name}");
        for (place, body) in bodies.iter().enumerate() {
            assert_eq!(body["temperature"], sampling["temperature"].as_f64().expect("a number"));
            match case.rows("output_lens").get(place) {
                None => {
                    assert_eq!(body["max_tokens"], sampling["max_tokens"], "{name}");
                    assert_eq!((body.get("ignore_eos"), body.get("priority")), (None, None));
                }
                Some(length) => {
                    assert_eq!(&body["max_tokens"], length, "{name}");
                    assert_eq!(body["priority"], case.rows("priorities")[place], "{name}");
                    assert_eq!(body["ignore_eos"], true, "{name}");
                    assert_eq!(body["top_p"], sampling["top_p"], "{name}");
                    assert_eq!(body.get("n").unwrap_or(&json!(1)), &sampling["n"], "{name}");
                }
            }
        }
        let lines: Vec<&str> = run.printed.lines().collect();
        let recorded: Vec<String> = case
            .rows("printed")
            .iter()
            .map(|line| line.as_str().expect("a line").replace("{FIXTURES}", &fixtures()))
            .collect();
        assert_eq!(lines[..recorded.len()], recorded, "{name}");
        *compared.entry(command.to_owned()).or_default() += prompts.len();
    }
    assert_eq!(compared.len(), 2);
    assert!(compared.values().all(|requests| *requests > 150), "{compared:?}");
}

fn fixtures() -> String {
    root().join("tests/fixtures").to_str().expect("a path in UTF-8").to_owned()
}

fn run(words: &[&str]) -> (Result<Code, Failure>, String, String) {
    let (io, captured) = Io::captured();
    let environment = Environment::from_pairs([
        ("HF_HUB_OFFLINE", "1"),
        ("SAVE_TO_PYTORCH_BENCHMARK_FORMAT", "1"),
    ]);
    let ended = bench_vllm::run(words.iter().map(Into::into).collect(), &environment, &io);
    (ended, captured.out(), captured.err())
}

/// What a command printed, and its result.
fn done(words: &[&str], folder: &Path) -> (String, Value) {
    let path = folder.join("result.json");
    let to = ["--output-json", path.to_str().expect("a path in UTF-8")];
    let (ended, out, err) = run(&[words, &to].concat());
    assert!(matches!(ended, Ok(Code::Done)), "{words:?}: {ended:?}\n{out}{err}");
    let text = std::fs::read_to_string(path).expect("a result");
    (out, serde_json::from_str(&text).expect("strict JSON"))
}

#[test]
fn prompts_that_come_again_are_told_from_first_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["prefix-caching", "--simulate", "--num-prompts", "6", "--repeat-count", "3"];
    let more = ["--input-length-range", "40:60", "--prefix-len", "32", "--disable-tqdm", "--sort"];
    let (out, result) = done(&[&words[..], &more].concat(), folder.path());
    let time = result["elapsed_time"].as_f64().expect("seconds");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[..2], ["Start to sample 6 prompts from random", "Sampled 6 requests."]);
    assert_eq!(lines[6..8], ["Testing filtered requests", "------start generating------"]);
    assert_eq!(lines[8], format!("cost time {time}"));
    assert!(lines[10].starts_with("sent first                   6 "), "{out}");
    assert!(lines[11].starts_with("sent again                  12 "), "{out}");
    assert!(lines[12].starts_with("Prompt tokens found in the cache: "), "{out}");
    assert!(lines[13].starts_with("Measured over HTTP"), "{out}");
    let count = |kind: &str| result[kind]["completed"].as_u64();
    assert_eq!((count("first"), count("again")), (Some(6), Some(12)));
    let own = &result["servebench"];
    assert_eq!((&own["over_http"], &own["plan"]["ignore_eos"]), (&json!(true), &json!(false)));
}

#[test]
fn each_priority_has_its_latencies() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["prioritization", "--simulate", "--num-prompts", "20", "--disable-tqdm"];
    let more = ["--input-len", "12", "--output-len", "5", "--seed", "3"];
    let (out, result) = done(&[&words[..], &more].concat(), folder.path());
    let keys: Vec<&str> = result.as_object().expect("an object").keys().map(|key| &**key).collect();
    let wanted = ["elapsed_time", "num_requests", "total_num_tokens", "requests_per_second"];
    assert_eq!(keys, [&wanted[..], &["tokens_per_second", "servebench"]].concat());
    let own = &result["servebench"];
    let count =
        |priority: &str| own["priorities"][priority]["completed"].as_u64().expect("a count");
    assert_eq!(count("0") + count("1"), 20);
    assert!(count("0") > 0 && count("1") > 0, "{own}");
    assert_eq!(own["total_output_tokens"], 100);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("Throughput: ") && lines[0].ends_with(" tokens/s"), "{out}");
    assert!(lines[2].starts_with("priority 0 ") && lines[3].starts_with("priority 1 "), "{out}");
}

#[test]
fn throughput_and_latency_write_for_the_benchmark_database() {
    let folder = tempfile::tempdir().expect("a folder");
    let records = |words: &str| -> (Value, Vec<Value>) {
        let words: Vec<&str> = words.split_whitespace().collect();
        let (_, result) = done(&words, folder.path());
        let text = std::fs::read_to_string(folder.path().join("result.pytorch.json"));
        (result, serde_json::from_str(&text.expect("records")).expect("JSON"))
    };
    let small = "--simulate --input-len 8 --output-len 4 --disable-tqdm";
    let (result, rates) = records(&format!("throughput --num-prompts 6 {small}"));
    let names: Vec<&Value> = rates.iter().map(|record| &record["metric"]["name"]).collect();
    assert_eq!(names, ["requests_per_second", "tokens_per_second"]);
    for record in &rates {
        let metric = &record["metric"];
        let name = metric["name"].as_str().expect("a name");
        assert_eq!(metric["benchmark_values"], json!([result[name]]));
        let keys = ["elapsed_time", "num_requests", "total_num_tokens"];
        let further: Vec<Value> = keys.iter().map(|key| result[*key].clone()).collect();
        let told: Vec<Value> = keys.iter().map(|key| metric["extra_info"][*key].clone()).collect();
        assert_eq!(told, further);
        assert_eq!(record["model"]["name"], result["model_id"]);
        assert_eq!(record["benchmark"]["extra_info"]["args"], result["servebench"]["plan"]);
    }
    let words = format!("latency --batch-size 2 --num-iters 3 --num-iters-warmup 1 {small}");
    let (result, latency) = records(&words);
    let metric = &latency[0]["metric"];
    assert_eq!((latency.len(), &metric["name"]), (1, &json!("latency")));
    assert_eq!(metric["benchmark_values"], result["latencies"]);
    let wanted =
        json!({"avg_latency": result["avg_latency"], "percentiles": result["percentiles"]});
    assert_eq!(metric["extra_info"], wanted);
}

/// What is left of a value when its numbers and texts are taken out.
fn shape(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), shape(value))).collect()
        }
        _ => Value::Null,
    }
}

#[test]
fn records_for_the_benchmark_database_are_the_python_tools() {
    for case in cases("records") {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("of.this.json");
        let more = match case.name() {
            "latency" => "--num-iters 2 --num-iters-warmup 1 --batch-size 2",
            _ => "--num-prompts 6",
        };
        let words = "--simulate --input-len 8 --output-len 4 --disable-tqdm --output-json";
        let words = [case.name(), more, words].join(" ");
        let mut words: Vec<&str> = words.split(' ').collect();
        words.push(path.to_str().expect("UTF-8"));
        let environment = Environment::from_pairs([("SAVE_TO_PYTORCH_BENCHMARK_FORMAT", "1")]);
        let words = words.into_iter().map(Into::into).collect();
        let ended = bench_vllm::run(words, &environment, &Io::captured().0);
        assert!(matches!(ended, Ok(Code::Done)), "{}: {ended:?}", case.name());
        let file = folder.path().join(case.0["file"].as_str().expect("a name"));
        let mut ours: Value =
            serde_json::from_str(&std::fs::read_to_string(file).expect("records")).expect("JSON");
        assert_eq!(ours.as_array().map(Vec::len), Some(case.rows("records").len()));
        for (ours, theirs) in
            ours.as_array_mut().expect("records").iter_mut().zip(case.rows("records"))
        {
            assert_eq!(ours["benchmark"]["name"], theirs["benchmark"]["name"]);
            assert_eq!(ours["metric"]["name"], theirs["metric"]["name"]);
            ours["benchmark"]["extra_info"]["args"] = json!({});
            assert_eq!(shape(ours), shape(theirs), "{}", case.name());
        }
    }
}

/// The usage error of a command line.
fn refused(words: &[&str]) -> String {
    let failure = run(words).0.expect_err("a failure");
    assert_eq!(failure.code, Code::Usage, "{words:?}: {failure}");
    failure.to_string()
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let lengths = ["--input-length-range", "8:16"];
    let prefix = |more: &[&str]| refused(&[&["prefix-caching"][..], &lengths, more].concat());
    assert!(prefix(&[]).contains("--num-prompts"));
    assert!(prefix(&["--num-prompts", "1", "--prefix-len", "17"]).contains("--prefix-len 17"));
    let many = ["--num-prompts", "1000000", "--repeat-count", "100"];
    assert!(prefix(&many).contains("too many"));
    let with_file = ["--num-prompts", "1", "--prefix-len", "4", "--dataset-path", "x"];
    assert!(prefix(&with_file).contains("cannot be used with"));
    let cache = ["--num-prompts", "1", "--enable-prefix-caching"];
    assert!(prefix(&cache).contains("vllm serve MODEL --enable-prefix-caching"));
    assert!(prefix(&["--num-prompts", "1", "--disable-detokenize"]).contains("sends text"));
    assert!(
        prefix(&["--num-prompts", "1", "--skip-tokenizer-init", "--simulate"])
            .contains("--skip-tokenizer-init")
    );
    for (words, said) in [
        (&["--output-len", "4"][..], "--input-len"),
        (&["--input-len", "4"], "--output-len"),
        (&["--input-len", "4", "--dataset", "x"], "cannot be used with"),
        (&["--backend", "mii"], "start a server"),
        (&["--scheduling-policy", "priority"], "--scheduling-policy priority"),
        (&["--tensor-parallel-size", "2"], "vllm serve"),
    ] {
        let said_of = refused(&[&["prioritization"][..], words].concat());
        assert!(said_of.contains(said), "{words:?}: {said_of}");
    }
    assert!(refused(&["mm-processor", "--model", "m"]).contains("random-mm"));
    assert!(refused(&["startup"]).contains("--serve-cmd"));
    assert!(
        refused(&["startup", "--serve-cmd", "x", "--seed", "1"]).contains("--seed is not ours")
    );
    let nothing = ["startup", "--model", "m", "--num-iters-cold", "0", "--num-iters-warm", "0"];
    assert!(refused(&nothing).contains("nothing is left"));
}

#[test]
fn a_server_that_does_not_start_shows_its_last_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("result.json");
    let to = ["--output-json", path.to_str().expect("a path in UTF-8")];
    // Nothing listens at that port, and this command does not either.
    let words = ["startup", "--serve-cmd", "sh -c 'echo no such model; exit 3' --port 9"];
    let (ended, out, err) = run(&[&words[..], &to].concat());
    let failure = ended.expect_err("a failure");
    assert_eq!(failure.code, Code::Server, "{failure}");
    assert!(failure.to_string().contains("exit status: 3"), "{failure}");
    assert!(err.contains("no such model\n") && out.is_empty(), "{out}{err}");
    assert!(!path.exists());
}

#[test]
fn a_dry_run_of_startup_prints_the_command() {
    let words = ["startup", "--model", "m", "-tp", "2", "--num-iters-cold", "1", "--dry-run"];
    let (ended, out, err) = run(&[&words[..], &["--compilation-config.mode", "3"]].concat());
    assert!(matches!(ended, Ok(Code::Done)), "{ended:?}\n{out}{err}");
    let wanted = "vllm serve m -tp 2 --compilation-config '{\"mode\":3}' --host 127.0.0.1 --port ";
    assert!(out.starts_with(wanted), "{out}");
}

//! Raw logs and recordings of `bench-vllm serve`: the report once more.

use crate::raw_log::{logged, wait_for_records};
use crate::support::{Folder, busy_machine, root};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use servebench::journal::records::RecordLog;
use servebench::sim::{Sim, SimConfig, SimHandle, Timing};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::Duration;

const SMALL: &str = "serve --simulate --num-prompts 12 --random-input-len 16 --random-output-len 8 --disable-tqdm \
                     --no-calibrate --save-result --result-filename run.json --raw-log run.log --record run.rec";

/// Runs bench-vllm in `folder`, which must end with `code`, and gives both its streams.
#[track_caller]
fn run(folder: &Folder, arguments: &str, code: i32) -> (String, String) {
    let _busy = busy_machine();
    let output = Command::new(env!("CARGO_BIN_EXE_bench-vllm-under-test"))
        .args(arguments.split_whitespace())
        .current_dir(folder.path("."))
        .env_clear()
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments}: {out}{said}");
    (out, said)
}

fn result(folder: &Folder, name: &str) -> Value {
    let text = fs::read_to_string(folder.path(name)).expect("a result");
    serde_json::from_str(&text).expect("JSON")
}

/// Panics unless both results are the same but for when they were made and what only the run has.
#[track_caller]
fn assert_same(run: &Value, again: &Value, what: &str) {
    let without = |value: &Value| {
        let mut value = value.as_object().cloned().expect("an object");
        value.remove("date");
        let own = value.get_mut("servebench").and_then(Value::as_object_mut).expect("own keys");
        own.remove("raw_log");
        value
    };
    let (run, again) = (without(run), without(again));
    let keys: BTreeSet<&String> = run.keys().chain(again.keys()).collect();
    assert!(keys.len() > 20, "{what}: {keys:?}");
    for key in keys {
        assert_eq!(run.get(key), again.get(key), "{what}: {key}");
    }
}

#[test]
fn the_report_of_a_log_and_of_a_recording_is_that_of_the_run() {
    for case in [
        "--goodput ttft:500 e2el:60000 --percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 50,99.9",
        "--backend openai-chat --save-detailed --request-rate 200 --max-concurrency 4",
        "--backend openai-embeddings --save-detailed",
        "--ramp-up-strategy linear --ramp-up-start-rps 50 --ramp-up-end-rps 200 --metadata a=b --seed 7",
        "--dataset-name random-rerank --backend vllm-rerank --random-batch-size 3",
        "--probe-request-rate 100 --steady-state-concurrency-ratio 0.5 --label x",
    ] {
        let folder = Folder::new();
        let (printed, _) = run(&folder, &format!("{SMALL} {case}"), 0);
        let own = result(&folder, "run.json");
        assert_eq!(own["servebench"]["raw_log"]["complete"], true, "{case}");
        for again in ["analyze run.log", "replay run.rec"] {
            let save = "--save-result --result-filename again.json";
            let (table, _) = run(&folder, &format!("{again} {save}"), 0);
            assert_eq!(printed, table, "{case}: {again}");
            assert_same(&own, &result(&folder, "again.json"), &format!("{case}: {again}"));
        }
    }
}

#[test]
fn a_log_is_looked_at_in_other_ways() {
    let folder = Folder::new();
    run(&folder, &format!("{SMALL} --num-prompts 30 --request-rate 20"), 0);
    let analyze = |more: &str| {
        let save = "--save-result --result-filename again.json";
        let (table, _) = run(&folder, &format!("analyze run.log {save} {more}"), 0);
        (result(&folder, "again.json"), table)
    };
    let completed = |result: &Value| result["completed"].as_u64().expect("a count");
    let (strict, _) =
        analyze("--goodput ttft:0.001 --percentile-metrics e2el --metric-percentiles 10");
    assert_eq!(strict["request_goodput"], json!(0.0));
    assert!(strict.get("p10_e2el_ms").is_some() && strict.get("p99_ttft_ms").is_none(), "{strict}");
    let (start, _) = analyze("--to 0.5");
    let (rest, _) = analyze("--from 0.5");
    assert_eq!(completed(&start) + completed(&rest), 30);
    assert!(completed(&start) > 0 && completed(&rest) > 0);
    assert_eq!(start["duration"], json!(0.5));
    assert_eq!(start["servebench"]["window"], json!({"from_s": 0.0, "to_s": 0.5}));
    // Nothing is written unless that is asked for, and never the run's own result.
    fs::remove_file(folder.path("run.json")).expect("a result");
    run(&folder, "analyze run.log", 0);
    assert!(!folder.path("run.json").exists());

    run(&folder, "analyze run.log --from 2 --to 1", 2);
    run(&folder, "analyze nothing.log", 3);
    run(&folder, "analyze run.rec", 3);
    run(&folder, "replay run.log", 3);
    let (_, said) = run(&folder, "serve --simulate --raw-log run.log", 7);
    assert!(said.contains("run.log is there already"), "{said}");
    // Of the other program's commands none takes them for its own.
    let said = folder.run(&["analyze", "run.log"]).expect_code(3).said();
    assert!(
        said.contains("of a run of bench-vllm") && said.contains("bench-vllm analyze"),
        "{said}"
    );
    let said = folder.run(&["--resume", "run.log"]).expect_code(3).said();
    assert!(said.contains("of a run of bench-vllm"), "{said}");
    folder.run(&["--simulate", "--num-prompts", "5", "--raw-log", "other.log"]).expect_code(0);
    let (_, said) = run(&folder, "analyze other.log", 3);
    assert!(said.contains("bench-serving analyze"), "{said}");
    let said = folder.run(&["replay", "run.rec"]).expect_code(3).said();
    assert!(said.contains("bench-vllm replay"), "{said}");
    let (shown, _) = run(&folder, "replay run.rec --only 3", 0);
    assert!(shown.contains("began "), "{shown}");
}

#[test]
fn what_may_be_secret_is_in_neither_file_and_a_config_file_is_not_needed_again() {
    let folder = Folder::new();
    fs::write(folder.path("c.yaml"), "num-prompts: 5\n").expect("a file");
    let secret = "--header X-Key=sk-secret --config c.yaml --extra-body.user me";
    let small = SMALL.replace("--num-prompts 12 ", "");
    let (printed, _) = run(&folder, &format!("{small} {secret}"), 0);
    fs::remove_file(folder.path("c.yaml")).expect("a file");
    for (file, again) in [("run.log", "analyze"), ("run.rec", "replay")] {
        let bytes = fs::read(folder.path(file)).expect("a file");
        assert!(!bytes.windows(9).any(|window| window == b"sk-secret"), "{file}");
        assert_eq!(printed, run(&folder, &format!("{again} {file}"), 0).0);
    }
    run(&folder, "replay run.rec --redact copy.rec", 0);
    assert_eq!(printed, run(&folder, "replay copy.rec", 0).0);
}

/// What a run leaves that is ended by `signal` on its way, and its server.
fn cut(signal: Signal) -> (Folder, Option<i32>, SimHandle) {
    let folder = Folder::new();
    let config = SimConfig {
        timing: Timing::canned(Duration::from_millis(5), Duration::from_millis(1)),
        truth_limit: 10_000,
        ..SimConfig::default()
    };
    let server = Sim::new(config).spawn_in_thread().expect("a server");
    let rows: String = (4..2004)
        .map(|length| json!({"prompt": "x".repeat(length), "output_tokens": 8}).to_string() + "\n")
        .collect();
    fs::write(folder.path("rows.jsonl"), rows).expect("rows");
    let bytes = root().join("tests/fixtures/tokenizers/bytes");
    let mut run = Command::new(env!("CARGO_BIN_EXE_bench-vllm-under-test"))
        .args(
            "serve --model sim --dataset-name custom --dataset-path rows.jsonl --num-prompts 2000"
                .split(' '),
        )
        .args("--request-rate 100 --disable-tqdm --no-calibrate --raw-log run.log".split(' '))
        .args(
            "--skip-chat-template --disable-shuffle --ready-check-timeout-sec 0 --tokenizer"
                .split(' '),
        )
        .arg(bytes)
        .args(["--base-url", &server.url()])
        .current_dir(folder.path("."))
        .env_clear()
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    wait_for_records(&mut run, &folder);
    kill_process(Pid::from_child(&run), signal).expect("it is running");
    let code = run.wait().expect("its end").code();
    (folder, code, server)
}

/// Whether `server` has answered all of these prompts to their end. It notes that a moment after its last
/// byte, when a client may have noted it already.
fn has_served(server: &SimHandle, prompts: &BTreeSet<u64>) -> bool {
    (0..10_000).any(|_| {
        std::thread::yield_now();
        let truth = server.sim.truth().into_iter().filter(|it| !it.aborted);
        prompts.is_subset(&truth.map(|it| it.prompt_tokens).collect())
    })
}

#[test]
fn a_run_that_was_cut_can_be_reported() {
    let _busy = busy_machine();
    for (signal, ends) in [(Signal::KILL, None), (Signal::INT, Some(130))] {
        let (folder, code, server) = cut(signal);
        assert_eq!(code, ends, "{signal:?}");
        let log = File::open(folder.path("run.log")).expect("a log");
        let logged = logged(&RecordLog::read(log).expect("a log"));
        assert!(!logged.is_empty() && has_served(&server, &logged), "{signal:?}: {logged:?}");
        let (table, _) = run(&folder, "analyze run.log", 0);
        let successes = format!("{:<40} {:<10}", "Successful requests:", logged.len());
        assert!(table.contains(&successes), "{signal:?}: {table}");
    }
}

//! Raw logs: the report once more, runs that were killed, runs that are gone on with.

use crate::support::{Folder, busy_machine, root};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use servebench::core::FailureKind;
use servebench::journal::Ending;
use servebench::journal::records::RecordLog;
use servebench::sim::{Sim, SimConfig, SimHandle, Timing};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;

const SMALL: &str = "--num-prompts 12 --random-input-len 16 --random-output-len 8 --random-range-ratio 1.0 \
                     --disable-tqdm --no-calibrate --output-file out.jsonl --raw-log run.log";

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Panics unless both lines are the same but for what one of them cannot know.
#[track_caller]
fn assert_same(run: &Value, again: &Value) {
    let (Value::Object(run), Value::Object(again)) = (run, again) else { panic!("no objects") };
    let own = ["raw_log", "plan"];
    let keys: BTreeSet<&String> =
        run.keys().chain(again.keys()).filter(|key| !own.contains(&key.as_str())).collect();
    for key in keys {
        assert_eq!(run.get(key), again.get(key), "{key}");
    }
}

#[test]
fn the_report_of_a_log_is_that_of_the_run() {
    let cases = [
        "--simulate --output-details --goodput ttft:500 e2el:60000",
        "--simulate --backend vllm-chat --request-rate 200 --steady-state-concurrency-ratio 0.5",
        "--simulate --backend sglang-oai --output-details --max-concurrency 4 --flush-cache",
        "--simulate --backend sglang-embedding",
        // Conversations, and replies that no server counts.
        "--simulate --backend sglang-oai-chat --dataset-name generated-shared-prefix --gsp-num-groups 2 \
         --gsp-prompts-per-group 2 --gsp-num-turns 2 --gsp-system-prompt-len 8 --gsp-question-len 8 \
         --gsp-output-len 4 --output-details --disable-include-usage --max-concurrency 3",
    ];
    for case in cases {
        let folder = Folder::new();
        let run = folder.run(&[words(SMALL), words(case)].concat()).expect_code(0);
        let again = folder.run(&words("analyze run.log --output-file again.jsonl")).expect_code(0);
        assert_eq!(run.stdout, again.stdout, "{case}");
        let line = folder.results("out.jsonl").remove(0);
        assert_eq!(line["raw_log"]["complete"], true, "{case}");
        assert_same(&line, &folder.results("again.jsonl").remove(0));
    }
}

#[test]
fn a_log_is_looked_at_in_other_ways() {
    let folder = Folder::new();
    let pace = "--simulate --request-rate 20 --num-prompts 30 --seed 3";
    folder.run(&[words(SMALL), words(pace)].concat()).expect_code(0);
    let analyze = |more: &str, code: i32| {
        let more = format!("analyze run.log --output-file again.jsonl {more}");
        let said = folder.run(&words(&more)).expect_code(code).said();
        (folder.results("again.jsonl").pop().expect("a line"), said)
    };
    let (whole, _) = analyze("", 0);
    let (strict, _) = analyze("--goodput ttft:0.001 --tag strict", 0);
    assert_eq!((&strict["request_goodput"], &strict["tag"]), (&json!(0.0), &json!("strict")));
    assert!(whole.get("request_goodput").is_none(), "{whole}");

    let (middle, _) = analyze("--from 0.4 --to 0.9 --output-details", 0);
    let (start, _) = analyze("--to 0.4", 0);
    let (rest, _) = analyze("--from 0.9", 0);
    let completed = |line: &Value| line["completed"].as_u64().expect("a count");
    assert_eq!(completed(&start) + completed(&middle) + completed(&rest), 30);
    assert!(completed(&middle) > 0 && completed(&middle) < 30);
    let duration = middle["duration"].as_f64().expect("a number");
    assert!((duration - 0.5).abs() < 1e-9, "{duration}");
    let throughput = middle["request_throughput"].as_f64().expect("a number");
    assert!((throughput - completed(&middle) as f64 / 0.5).abs() < 1e-6, "{throughput}");
    assert_eq!(middle["window"], json!({"from_s": 0.4, "to_s": 0.9}));
    assert_eq!(middle["ttfts"].as_array().map(Vec::len), Some(completed(&middle) as usize));

    let (line, said) = analyze("--percentiles 99,12.5", 0);
    assert_eq!(line["percentiles"]["ttft_ms"]["p99"], whole["p99_ttft_ms"]);
    assert_eq!(line["percentiles"]["e2e_latency_ms"]["p99"], whole["p99_e2e_latency_ms"]);
    assert!(said.contains("P12.5 TTFT (ms):"), "{said}");

    folder.run(&words("analyze run.log --from 2 --to 1")).expect_code(2);
    let said = folder.run(&words("analyze run.log --from 1000")).expect_code(2).said();
    assert!(said.contains("--from: no request was over in that time"), "{said}");
    assert!(said.contains("the run's 30 requests were over from 0."), "{said}");
    folder.run(&words("analyze out.jsonl")).expect_code(3);
    folder.run(&words("analyze nothing.log")).expect_code(3);
    // Only as the first word.
    folder.run(&words("--simulate analyze run.log")).expect_code(2);
}

#[test]
fn what_cannot_be_a_log_is_found_before_the_run() {
    let folder = Folder::new();
    let run = |more: &str, code: i32| {
        folder.run(&[words(SMALL), words(more)].concat()).expect_code(code).said()
    };
    run("--simulate --raw-log no/such/folder/x", 7);
    fs::write(folder.path("run.log"), "precious").expect("a file");
    let said = run("--simulate", 7);
    assert!(said.contains("run.log is there already"), "{said}");
    assert!(!said.contains("sending"), "{said}");
    assert_eq!(fs::read(folder.path("run.log")).expect("a file"), b"precious");
    folder.run(&words("--resume nothing.log")).expect_code(3);
    folder.run(&words("--resume run.log")).expect_code(3);
    folder.run(&words("--resume run.log --raw-log x --simulate")).expect_code(3);
}

/// A server whose replies take a while, and how to ask it for prompts that all have a length of their own.
struct Bench {
    folder: Folder,
    server: SimHandle,
    arguments: Vec<String>,
}

impl Bench {
    fn new(requests: usize, more: &str) -> Self {
        let folder = Folder::new();
        let config = SimConfig {
            timing: Timing::canned(Duration::from_millis(20), Duration::from_millis(2)),
            truth_limit: 10_000_000,
            ..SimConfig::default()
        };
        let server = Sim::new(config).spawn_in_thread().expect("a server");
        let mut rows = File::create(folder.path("rows.jsonl")).expect("a file");
        for length in 4..requests + 4 {
            let prompt = "x".repeat(length);
            let turns =
                [json!({"role": "user", "content": prompt}), json!({"content": "y".repeat(16)})];
            writeln!(rows, "{}", json!({"conversations": turns})).expect("a line");
        }
        let bytes = root().join("tests/fixtures/tokenizers/bytes");
        let mut arguments: Vec<String> = words(
            "--backend sglang --model sim --dataset-name custom --dataset-path rows.jsonl --disable-tqdm \
             --no-calibrate --output-file out.jsonl --warmup-requests 0 --ready-check-timeout-sec 0",
        )
        .into_iter()
        .map(str::to_owned)
        .collect();
        arguments.extend(words(more).into_iter().map(str::to_owned));
        let count = requests.to_string();
        let url = server.url();
        for (flag, value) in [
            ("--num-prompts", count.as_str()),
            ("--base-url", url.as_str()),
            ("--tokenizer", bytes.to_str().expect("a path in UTF-8")),
        ] {
            arguments.extend([flag.to_owned(), value.to_owned()]);
        }
        Self { folder, server, arguments }
    }

    /// The command that keeps a log.
    fn start(&self) -> Child {
        let mut command = self.folder.command(&["--raw-log", "run.log"]);
        command.args(&self.arguments).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("the program starts")
    }

    fn log(&self) -> RecordLog {
        RecordLog::read(File::open(self.folder.path("run.log")).expect("a log")).expect("a log")
    }

    /// Requests that the server answered to their end: when, by the length of their prompt.
    fn served(&self) -> BTreeMap<u64, u64> {
        let truth = self.server.sim.truth().into_iter();
        truth.filter(|it| !it.aborted).map(|it| (it.prompt_tokens, it.ended_ns)).collect()
    }
}

/// Waits for the first whole records of the log of a run. The size of the file does not tell: the system lets
/// it grow page by page, and ends the writing of one who is killed between two of them.
pub(crate) fn wait_for_records(run: &mut Child, folder: &Folder) {
    let has_records = || {
        let log = RecordLog::read(File::open(folder.path("run.log")).ok()?).ok()?;
        log.parts.iter().any(|part| !part.records.is_empty()).then_some(())
    };
    while has_records().is_none() {
        assert_eq!(run.try_wait().expect("its state"), None, "over before anything was logged");
        std::thread::yield_now();
    }
}

/// The prompt lengths of the successes in a log, which must be there once.
pub(crate) fn logged(log: &RecordLog) -> BTreeSet<u64> {
    let records = log.parts.iter().flat_map(|part| &part.records).map(|kept| &kept.record);
    let successes: Vec<u64> = records
        .filter(|record| record.is_success())
        .filter_map(|record| record.reply.prompt_tokens.map(u64::from))
        .collect();
    let set: BTreeSet<u64> = successes.iter().copied().collect();
    assert_eq!(set.len(), successes.len(), "a record is there twice");
    set
}

/// How often a run is killed: more often by hand, with `SERVEBENCH_KILLS`.
fn kills() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the way to ask a test for more")]
    let asked = std::env::var("SERVEBENCH_KILLS").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(5)
}

#[test]
fn a_killed_run_leaves_all_that_was_over_a_second_before() {
    let busy = busy_machine();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let (mut most_late, mut records) = (0, 0);
    for round in 0..kills() {
        let bench = Bench::new(900, "--request-rate 300");
        let mut run = bench.start();
        // When there is something to lose, then at any moment of the next two seconds.
        while bench.server.sim.stats().requests == 0 {
            std::thread::yield_now();
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let pause = Duration::from_micros((random >> 33) % 2_000_000);
        wait(pause);
        let killed = bench.server.sim.epoch().elapsed().as_nanos() as u64;
        kill_process(Pid::from_child(&run), Signal::KILL).expect("it is running");
        run.wait().expect("its end");

        let log = bench.log();
        assert!(!matches!(log.ending, Ending::Damaged(_)), "{:?}", log.ending);
        assert!(log.parts.iter().all(|part| part.end_facts.is_none()));
        let (logged, served) = (logged(&log), bench.served());
        // Nothing is in the log that did not happen.
        assert!(logged.iter().all(|prompt| served.contains_key(prompt)), "round {round}");
        // What is not in it was over just before.
        let lost = served.iter().filter(|(prompt, _)| !logged.contains(prompt));
        let late = lost.map(|(_, ended)| killed.saturating_sub(*ended)).max().unwrap_or(0);
        assert!(late <= 1_000_000_000, "round {round}: lost what was over {late} ns before");
        most_late = most_late.max(late);
        records += logged.len();
        if !logged.is_empty() {
            let said = bench.folder.run(&words("analyze run.log")).expect_code(0).stdout;
            assert!(said.contains("Interrupted:") && said.contains("Partial:"), "{said}");
        }
    }
    drop(busy);
    println!("{} kills, {records} records, at most {most_late} ns lost", kills());
}

#[expect(clippy::disallowed_methods, reason = "a moment by chance is what is wanted")]
fn wait(pause: Duration) {
    std::thread::sleep(pause);
}

#[test]
fn a_killed_run_is_gone_on_with() {
    let _busy = busy_machine();
    let secret = "--header X-Key=sk-secret";
    let bench = Bench::new(200, &format!("--request-rate 100 {secret}"));
    let mut run = bench.start();
    wait_for_records(&mut run, &bench.folder);
    kill_process(Pid::from_child(&run), Signal::KILL).expect("it is running");
    run.wait().expect("its end");
    let before = logged(&bench.log());
    assert!(!before.is_empty() && before.len() < 200, "{}", before.len());
    let bytes = fs::read(bench.folder.path("run.log")).expect("a log");
    assert!(!bytes.windows(9).any(|window| window == b"sk-secret"));

    // Another run is not this one.
    let resume = |more: &str, code: i32| {
        let more = format!("--resume run.log {more}");
        bench.folder.run(&words(&more)).expect_code(code)
    };
    let said = resume("", 3).said();
    assert!(said.contains(r#"header_names: ["X-Key"] then, [] now"#), "{said}");
    let said = resume(&format!("{secret} --request-rate 50 --seed 2"), 3).said();
    assert!(said.contains("load.request_rate: 100.0 then, 50.0 now"), "{said}");
    assert!(said.contains("seed: 42 then, 2 now"), "{said}");
    let rows = fs::read_to_string(bench.folder.path("rows.jsonl")).expect("rows");
    fs::write(bench.folder.path("rows.jsonl"), rows.replacen('x', "z", 1)).expect("rows");
    let said = resume(secret, 3).said();
    assert!(said.contains("the dataset's or the tokenizer's files have changed"), "{said}");
    fs::write(bench.folder.path("rows.jsonl"), &rows).expect("rows");

    let out = resume(&format!("{secret} --output-details"), 0).stdout;
    let line = bench.folder.results("out.jsonl").remove(0);
    assert_eq!((&line["completed"], &line["unsent"]), (&json!(200), &json!(0)));
    assert_eq!((&line["resumed"], &line["parts"]), (&json!(true), &json!(2)));
    assert_eq!((&line["interrupted"], &line["partial"]), (&json!(false), &json!(false)));

    // The run's time is that of its parts.
    let log = bench.log();
    let last = log.parts[0].records.iter().map(|kept| kept.end.0).max().expect("records");
    let end = log.parts[1].end_facts.as_ref().and_then(|facts| facts["end_ns"].as_u64());
    let duration = line["duration"].as_f64().expect("a number");
    let parts = (last + end.expect("an end")) as f64 / 1e9;
    assert!((duration - parts).abs() < 1e-6, "{duration} is not {parts}");
    let throughput = line["request_throughput"].as_f64().expect("a number");
    assert!((throughput - 200.0 / duration).abs() < 1e-6, "{throughput}");

    // What was over before was not sent again.
    assert_eq!(logged(&log).len(), 200);
    let truth = bench.server.sim.truth();
    for prompt in before {
        let times = truth.iter().filter(|it| it.prompt_tokens == prompt).count();
        assert_eq!(times, 1, "prompt of {prompt}");
    }
    let again = bench
        .folder
        .run(&words("analyze run.log --output-details --output-file again.jsonl"))
        .expect_code(0);
    assert_eq!(out, again.stdout);
    assert_same(&line, &bench.folder.results("again.jsonl").remove(0));
    let said = resume(secret, 3).said();
    assert!(said.contains("all 200 requests are over"), "{said}");
}

#[test]
fn an_interrupted_run_is_gone_on_with_and_failures_stay() {
    let _busy = busy_machine();
    let bench = Bench::new(60, "--max-concurrency 2 --output-details");
    bench
        .server
        .sim
        .configure(br#"{"faults": [{"when": {"every": 7}, "action": {"status": {"code": 500}}}]}"#)
        .expect("faults");
    let mut run = bench.start();
    while bench.server.sim.stats().requests < 20 {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&run), Signal::INT).expect("it is running");
    assert_eq!(run.wait().expect("its end").code(), Some(130));
    let first = bench.folder.results("out.jsonl").remove(0);
    assert_eq!(first["interrupted"], true);
    let log = bench.log();
    assert!(log.parts[0].end_facts.is_some());
    let again = bench.folder.run(&words("analyze run.log --output-file again.jsonl"));
    again.expect_code(0);
    assert_same(&first, &bench.folder.results("again.jsonl").remove(0));
    let failed = log.parts[0].records.iter().filter(|kept| {
        let failure = kept.record.reply.failure.as_ref();
        failure.is_some_and(|failure| failure.kind != FailureKind::Cancelled)
    });
    let failed = failed.count() as u64;
    assert!(failed > 0);

    bench.server.sim.configure(br#"{"faults": []}"#).expect("no faults");
    bench.folder.run(&words("--resume run.log")).expect_code(0);
    let line = bench.folder.results("out.jsonl").remove(1);
    assert_eq!((&line["failed"], &line["completed"]), (&json!(failed), &json!(60 - failed)));
    assert_eq!((&line["interrupted"], &line["unsent"]), (&json!(false), &json!(0)));
}

//! Options beyond the load itself: split profiles, plots, the steady state, released places.

use crate::support::{Folder, root};
use serde_json::{Value, json};
use servebench::sim::{Sim, SimConfig, SimHandle};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

fn server() -> SimHandle {
    Sim::new(SimConfig::default()).spawn_in_thread().expect("a server")
}

/// What a simulated server counts, as its own endpoint tells it.
fn stats(server: &SimHandle) -> Value {
    let mut stream = TcpStream::connect(server.addr).expect("a connection");
    let request = "GET /sim/stats HTTP/1.1\r\nHost: sim\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let body = answer.find('{').and_then(|at| answer.get(at..)).expect("a body");
    serde_json::from_str(body).expect("JSON")
}

const SMALL: &[&str] = &[
    "--dataset-name",
    "random-ids",
    "--num-prompts",
    "6",
    "--random-input-len",
    "8",
    "--random-output-len",
    "4",
    "--random-range-ratio",
    "1",
    "--disable-tqdm",
    "--no-calibrate",
    "--output-file",
    "out.jsonl",
];

fn bytes_tokenizer() -> String {
    root().join("tests/fixtures/tokenizers/bytes").display().to_string()
}

#[test]
fn the_workers_of_a_split_server_are_profiled_and_the_router_is_not() {
    let (folder, router, worker) = (Folder::new(), server(), server());
    let gone = server();
    let dead = gone.url();
    drop(gone);
    let (base, url, tokenizer) = (router.url(), worker.url(), bytes_tokenizer());
    let target = ["--base-url", &base, "--model", "sim", "--tokenizer", &tokenizer];
    let split = ["--profile", "--pd-separated", "--profile-output-dir", "traces"];
    let workers = ["--profile-decode-url", &dead, &url];
    let outcome = folder.run(&[SMALL, &target, &split, &workers].concat()).expect_code(0);
    let said = outcome.said();
    for words in [
        &format!("no profile of Decode-0 at {dead}: "),
        &format!("profiler started for Decode-1 at {url}; traces go to "),
        &format!("profiler stopped for Decode-1 at {url}"),
    ] {
        assert!(said.contains(words.as_str()), "no `{words}` in\n{said}");
    }
    let (profiled, routed) = (stats(&worker), stats(&router));
    assert_eq!((&profiled["profiles_started"], &profiled["profiling"]), (&1.into(), &false.into()));
    assert_eq!(routed["profiles_started"], 0);
    let line = folder.results("out.jsonl").remove(0);
    assert_eq!(line["completed"], 6);
    let [first, second] = [0, 1].map(|place| &line["profile_workers"][place]);
    assert_eq!((&first["label"], &first["url"]), (&"Decode-0".into(), &dead.into()));
    assert!(first["error"].is_string(), "{first}");
    assert_eq!(second, &json!({"label": "Decode-1", "url": url, "error": null}));
    assert_eq!(line["plan"]["profile"]["workers"][1]["label"], "Decode-1");
}

#[test]
fn prefill_workers_end_a_number_of_steps_by_themselves() {
    let (folder, router, worker) = (Folder::new(), server(), server());
    let (base, url, tokenizer) = (router.url(), worker.url(), bytes_tokenizer());
    let target = ["--base-url", &base, "--model", "sim", "--tokenizer", &tokenizer];
    let split = ["--profile", "--pd-separated", "--profile-num-steps", "3", "--profile-by-stage"];
    let arguments = [SMALL, &target, &split, &["--profile-prefill-url", &url]].concat();
    let said = folder.run(&arguments).expect_code(0).said();
    assert!(said.contains(&format!("profiler started for Prefill-0 at {url}")), "{said}");
    assert!(!said.contains("profiler stopped"), "{said}");
    assert_eq!(stats(&worker)["profiles_started"], 1);
}

#[test]
fn the_steady_state_is_printed_kept_and_appended() {
    let folder = Folder::new();
    let arguments = [
        "--simulate",
        "--num-prompts",
        "40",
        "--max-concurrency",
        "8",
        "--disable-tqdm",
        "--no-calibrate",
        "--output-file",
        "out.jsonl",
        "--steady-state-concurrency-ratio",
        "0.75",
        "--steady-state-output-file",
        "steady.jsonl",
    ];
    for runs in 1..=2 {
        let outcome = folder.run(&arguments).expect_code(0);
        assert!(outcome.stdout.contains(&format!("{:=^50}\n", " Steady-State Result ")));
        let (results, steady) = (folder.results("out.jsonl"), folder.results("steady.jsonl"));
        assert_eq!((results.len(), steady.len()), (runs, runs));
        let state = &steady[runs - 1];
        assert_eq!(&results[runs - 1]["steady_state"], state);
        assert_eq!(
            (&state["peak_concurrency"], &state["concurrency_threshold"]),
            (&8.into(), &6.into())
        );
        let (from, to) = (&state["window_start"], &state["window_end"]);
        assert!(
            from.as_f64() < to.as_f64() && to.as_f64() <= results[runs - 1]["duration"].as_f64()
        );
        let row = format!("{:<40} {:<10}", "Minimum concurrency:", 6);
        assert!(outcome.stdout.lines().any(|line| line == row), "{}", outcome.stdout);
    }
}

#[test]
fn without_a_success_the_result_stands_without_a_steady_state_or_a_picture() {
    let (folder, server) = (Folder::new(), server());
    let faults = json!({"faults": [{"action": {"status": {"code": 500}}}]});
    server.sim.configure(faults.to_string().as_bytes()).expect("a fault");
    let (base, tokenizer) = (server.url(), bytes_tokenizer());
    let target = ["--base-url", &base, "--model", "sim", "--tokenizer", &tokenizer];
    let more = [
        "--warmup-requests",
        "0",
        "--steady-state-concurrency-ratio",
        "0.5",
        "--steady-state-output-file",
        "steady.jsonl",
        "--plot-throughput",
    ];
    let said = folder.run(&[SMALL, &target, &more].concat()).expect_code(5).said();
    assert!(said.contains("no steady state: no request succeeded"), "{said}");
    assert!(said.contains("no plot: no request succeeded"), "{said}");
    let line = folder.results("out.jsonl").remove(0);
    assert_eq!((&line["failed"], line.get("steady_state")), (&6.into(), Some(&Value::Null)));
    assert!(std::fs::read_to_string(folder.path("steady.jsonl")).unwrap_or_default().is_empty());
}

#[test]
fn a_picture_needs_no_terminal() {
    let folder = Folder::new();
    let arguments = [
        "--simulate",
        "--num-prompts",
        "20",
        "--disable-tqdm",
        "--no-calibrate",
        "--plot-throughput",
    ];
    let outcome = folder.run(&arguments).expect_code(0);
    let (_, drawn) = outcome.stdout.split_once("\nOutput tokens per second").expect("a picture");
    assert!(drawn.contains("\nConcurrent requests (most at once in each "), "{drawn}");
    assert_eq!(drawn.matches("seconds since the first request").count(), 2);
    assert!(
        !drawn.contains('\u{1b}') && drawn.lines().all(|line| line.chars().count() <= 80),
        "{drawn}"
    );
    let embed = ["--backend", "sglang-embedding"];
    let outcome = folder.run(&[&arguments[..], &embed].concat()).expect_code(0);
    assert!(!outcome.stdout.contains("Output tokens per second (mean"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("\nConcurrent requests ("), "{}", outcome.stdout);
}

#[test]
fn released_places_are_waited_for_turn_by_turn() {
    let folder = Folder::new();
    let data = root().join("tests/fixtures/agentic_small.json").display().to_string();
    let base = [
        "--simulate",
        "--backend",
        "sglang-oai-chat",
        "--dataset-name",
        "agentic-trace",
        "--dataset-path",
        &data,
        "--sharegpt-output-len",
        "4",
        "--max-concurrency",
        "1",
        "--think-time",
        "0.02",
        "--disable-tqdm",
        "--no-calibrate",
        "--output-details",
        "--output-file",
        "out.jsonl",
    ];
    folder.run(&base).expect_code(0);
    folder.run(&[&base[..], &["--release-slot-between-turns"]].concat()).expect_code(0);
    let [kept, released] = <[Value; 2]>::try_from(folder.results("out.jsonl")).expect("two lines");
    assert_eq!(kept["plan"]["load"]["release_slot_between_turns"], false);
    assert_eq!(released["plan"]["load"]["release_slot_between_turns"], true);
    assert_eq!((&kept["failed"], &released["failed"]), (&0.into(), &0.into()));
    assert_eq!(kept["turn_numbers"], released["turn_numbers"]);
    let starts = |line: &Value| -> Vec<f64> {
        let times = line["start_times"].as_array().expect("times").iter();
        times.filter_map(Value::as_f64).collect()
    };
    // A kept place serves one conversation after the other.
    assert!(starts(&kept).is_sorted());
    // A released one serves the first turns of all of them, which were due before any second one.
    let numbers = released["turn_numbers"].as_array().expect("numbers");
    let of = |turn: u64| -> Vec<f64> {
        let all = numbers.iter().zip(starts(&released));
        all.filter(|(number, _)| **number == turn).map(|(_, start)| start).collect()
    };
    let (first, second) = (of(1), of(2));
    assert!(first.len() > 2 && !second.is_empty());
    assert!(second.iter().all(|second| first.iter().all(|first| first < second)));
    let waits = &released["conversations"]["turns"][0]["queue_ms"]["max"];
    assert!(waits.as_f64() > Some(0.0), "{waits}");
    assert_eq!(released["max_concurrent_requests"], 1);
}

#[test]
fn flags_of_the_other_client_are_taken_and_said() {
    let folder = Folder::new();
    let threads = ["--simulate", "--rust-client", "--rust-worker-threads", "2"];
    let outcome = folder.run(&[&threads[..], &["--dry-run"]].concat()).expect_code(0);
    let plan: Value = serde_json::from_str(&outcome.stdout).expect("a plan");
    assert_eq!(plan["load"]["workers"], 2);
    let run =
        ["--num-prompts", "4", "--disable-tqdm", "--no-calibrate", "--output-file", "out.jsonl"];
    let outcome = folder.run(&[&threads[..], &run].concat()).expect_code(0);
    let notes = outcome.stderr.lines().filter(|line| line.starts_with("note: --rust-client: "));
    assert_eq!(notes.count(), 1, "{}", outcome.stderr);
    assert_eq!(folder.results("out.jsonl")[0]["workers"], 2);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let folder = Folder::new();
    let url = "http://127.0.0.1:9";
    for (arguments, words) in [
        (&["--profile", "--pd-separated"][..], "--profile-prefill-url or --profile-decode-url"),
        (&["--profile", "--profile-decode-url", url], "--profile-decode-url needs --pd-separated"),
        (
            &[
                "--profile",
                "--pd-separated",
                "--profile-prefill-url",
                url,
                "--profile-decode-url",
                url,
            ],
            "cannot be used with",
        ),
        (&["--profile", "--pd-separated", "--profile-decode-url", "ftp://h"], "scheme `ftp`"),
        (&["--profile", "--profile-by-stage", "--profile-num-steps", "0"], "--profile-num-steps"),
        (&["--profile", "--profile-stages", "decode"], "--profile-by-stage"),
        (&["--profile", "--profile-by-stage", "--profile-stages", "both"], "both"),
        (&["--steady-state-concurrency-ratio", "0"], "above 0 and at most 1"),
        (&["--steady-state-concurrency-ratio", "nan"], "above 0 and at most 1"),
        (&["--steady-state-output-file", "f"], "--steady-state-concurrency-ratio"),
        (&["--release-slot-between-turns"], "needs --max-concurrency"),
        (&["--release-slot-between-turns", "--max-concurrency", "2"], "several turns"),
        (&["--rust-worker-threads", "2"], "--rust-client"),
        (&["--rust-client", "--rust-worker-threads", "2", "--workers", "2"], "cannot be used with"),
        (&["--rust-client", "--rust-worker-threads", "0"], "--rust-worker-threads"),
        (&["--base-url", "htp:/x"], "--base-url: `htp:/x` is not a URL: expected http://HOST:PORT"),
    ] {
        let outcome = folder.run(arguments).expect_code(2);
        assert!(outcome.said().contains(words), "{arguments:?}: {}", outcome.said());
    }
}

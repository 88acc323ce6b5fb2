//! Servers other than one at a port: several, Unix sockets, other protocols.

use crate::support::Folder;
use serde_json::Value;
use servebench::sim::{Sim, SimConfig, SimHandle, Timing};
use std::time::Duration;

fn server() -> SimHandle {
    Sim::new(SimConfig::default()).spawn_in_thread().expect("a server")
}

const SMALL: &[&str] = &[
    "--model",
    "sim",
    "--tokenizer",
    "bytes",
    "--dataset-name",
    "random-ids",
    "--num-prompts",
    "9",
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

/// A run with a tokenizer of one token for each byte. Its result line, and what it printed.
fn measure(folder: &Folder, more: &[&str]) -> (Value, String) {
    let fixture = crate::support::root().join("tests/fixtures/tokenizers/bytes");
    let fixture = fixture.to_str().expect("a path in UTF-8");
    let arguments: Vec<&str> =
        SMALL.iter().map(|word| if *word == "bytes" { fixture } else { word }).collect();
    let outcome = folder.run(&[&arguments, more].concat()).expect_code(0);
    (folder.results("out.jsonl").remove(0), outcome.said())
}

#[test]
fn several_servers_take_turns() {
    for (reader, warm) in [("lean", "0"), ("hyper", "2")] {
        let (folder, servers) = (Folder::new(), [server(), server()]);
        let urls = format!("{},{}", servers[0].url(), servers[1].url());
        let more = ["--base-urls", &urls, "--http-reader", reader, "--warmup-requests", warm];
        let (line, said) = measure(&folder, &more);
        assert_eq!((&line["completed"], &line["failed"]), (&9.into(), &0.into()), "{said}");
        let targets = line["targets"].as_array().expect("a list");
        let of = |key| targets.iter().map(|it| it[key].clone()).collect::<Vec<Value>>();
        assert_eq!(of("base_url"), [servers[0].url(), servers[1].url()].map(Value::from));
        assert_eq!(of("requests"), [5, 4]);
        assert_eq!(of("completed"), [5, 4]);
        assert_eq!(of("failed"), [0, 0]);
        let warm: u64 = warm.parse().expect("a number");
        let served = servers.each_ref().map(|it| it.sim.stats().requests);
        assert_eq!(served, [5 + warm, 4 + warm]);
    }
}

#[test]
fn an_idle_server_is_preferred() {
    let timing = Timing::canned(Duration::from_millis(300), Duration::ZERO);
    let slow = Sim::new(SimConfig { timing, ..SimConfig::default() }).spawn_in_thread();
    let (folder, slow, quick) = (Folder::new(), slow.expect("a server"), server());
    let urls = format!("{},{}", slow.url(), quick.url());
    let more = [
        "--base-urls",
        &urls,
        "--balance",
        "least-in-flight",
        "--max-concurrency",
        "2",
        "--warmup-requests",
        "0",
    ];
    let (line, _) = measure(&folder, &more);
    assert_eq!(line["plan"]["balance"], "least_in_flight");
    let requests = [0, 1].map(|place| line["targets"][place]["requests"].as_u64());
    // While the first request is under way at the slow server, the quick one takes all others.
    assert_eq!(requests, [Some(1), Some(8)]);
}

#[test]
fn one_server_has_no_list_of_targets() {
    let (folder, server) = (Folder::new(), server());
    let url = server.url();
    let (line, _) = measure(&folder, &["--base-urls", &url]);
    assert!(line.get("targets").is_none());
    assert_eq!((&line["completed"], &line["plan"]["base_url"]), (&9.into(), &url.into()));
}

#[test]
fn every_backend_measures_its_server() {
    for backend in servebench::backends::names() {
        let (folder, server) = (Folder::new(), server());
        let url = server.url();
        let (line, said) = measure(&folder, &["--backend", backend, "--base-url", &url]);
        assert_eq!((&line["completed"], &line["backend"]), (&9.into(), &backend.into()), "{said}");
        assert_eq!(line["total_input_tokens"], 72, "{backend}");
        let embeds = backend.ends_with("-embedding");
        assert_eq!(line["total_output_tokens"], if embeds { 0 } else { 36 }, "{backend}");
        for key in ["mean_ttft_ms", "mean_tpot_ms", "mean_itl_ms"] {
            assert_eq!(line[key].is_null(), embeds, "{backend} {key}");
        }
        assert!(line["mean_e2e_latency_ms"].is_f64(), "{backend}");
        assert_eq!(said.contains("Time to First Token"), !embeds, "{said}");
        assert_eq!(said.contains("Total generated tokens:"), !embeds, "{said}");
    }
}

#[cfg(unix)]
#[test]
fn a_server_behind_a_unix_socket_is_measured() {
    let folder = Folder::new();
    let path = folder.path("server.sock");
    let (bound, ready) = std::sync::mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let at = path.clone();
    let serve = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = tokio::net::UnixListener::bind(at).expect("a socket");
            let sim = Sim::new(SimConfig::default());
            bound.send(()).expect("the test waits");
            tokio::select! {
                () = sim.serve_unix(listener) => {}
                _ = stopped => {}
            }
        });
    };
    let thread = std::thread::spawn(serve);
    ready.recv().expect("a server");
    for reader in ["lean", "hyper"] {
        let url = format!("unix:{}", path.display());
        let (line, _) = measure(&folder, &["--base-url", &url, "--http-reader", reader]);
        assert_eq!((&line["completed"], &line["stamps"]), (&9.into(), &"user".into()));
        assert_eq!(line["plan"]["base_url"], url);
        std::fs::remove_file(folder.path("out.jsonl")).expect("a result");
    }
    drop(stop);
    thread.join().expect("no panic");
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_reason() {
    let folder = Folder::new();
    for (arguments, words) in [
        (&["--backend", "gserver"][..], "not implemented"),
        (&["--backend", "trt"], "--backend trt needs --model"),
        (&["--backend", "truss"], "--backend truss needs --model"),
        (&["--backend", "trt", "--model", "m", "--lora-name", "a"], "no adapters"),
        (&["--backend", "vllm-embedding", "--dataset-name", "mooncake"], "cannot be embedded"),
        (&["--backend", "vllm-embedding", "--calibrate"], "--calibrate compares"),
        (&["--balance", "round-robin"], "--base-urls"),
        (&["--base-urls", "h:1,h:2", "--base-url", "h:3"], "--base-url"),
        (&["--base-urls", "h:1,ftp://h", "--model", "m"], "scheme `ftp`"),
        (&["--base-urls", "h:1,h:2", "--profile"], "--profile works with one server"),
        (&["--base-urls", "h:1,h:2", "--simulate"], "drop --base-urls"),
    ] {
        let outcome = folder.run(arguments).expect_code(2);
        assert!(outcome.said().contains(words), "{}", outcome.said());
    }
}

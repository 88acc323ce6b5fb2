//! `bench-vllm sweep` from outside: printed commands, a server that ends, pictures.

use crate::support::busy_machine;
use serde_json::{Value, json};
use servebench_cli::{Code, Environment, Failure, Io};
use std::fs;
use std::net::TcpListener;
use std::path::Path;

fn run(words: &[&str]) -> (Result<Code, Failure>, String, String) {
    let (io, captured) = Io::captured();
    let ended = bench_vllm::run(
        words.iter().map(Into::into).collect(),
        &Environment::from_pairs([("HF_HUB_OFFLINE", "1")]),
        &io,
    );
    (ended, captured.out(), captured.err())
}

fn done(words: &[&str]) -> String {
    let (ended, out, err) = run(words);
    assert!(matches!(ended, Ok(Code::Done)), "{words:?}: {ended:?}\n{out}{err}");
    out
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

#[test]
fn a_dry_run_prints_the_commands_and_writes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (params, out) = (folder.path().join("p.json"), folder.path().join("out"));
    fs::write(&params, json!([{"max_concurrency": 1}, {"max_concurrency": 2}]).to_string())
        .expect("a file");
    let printed = done(&[
        "sweep",
        "serve",
        "--dry-run",
        "--serve-cmd",
        "vllm serve m",
        "--bench-cmd",
        "client",
        "--bench-params",
        text(&params),
        "-o",
        text(&out),
        "-e",
        "x",
        "--num-runs",
        "2",
    ]);
    assert!(printed.contains("Server command: ['vllm', 'serve', 'm']"), "{printed}");
    assert!(printed.contains("['client', '--max-concurrency', '2', '--percentile-metrics'"));
    assert_eq!(printed.matches("[BEGIN BENCHMARK]").count(), 4, "{printed}");
    assert!(!out.exists());
}

#[test]
fn a_server_that_ends_is_told_and_written_down() {
    let _busy = busy_machine();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let server = format!("false --port {}", free_port());
    let words = [
        "sweep",
        "serve",
        "--serve-cmd",
        &server,
        "--bench-cmd",
        "true",
        "--after-bench-cmd",
        "true",
        "-o",
        text(&out),
        "-e",
        "x",
    ];
    let failure = run(&words).0.expect_err("a failure");
    assert_eq!(failure.code, Code::Server, "{failure}");
    let again = [&words[..], &["--resume", "--continue-on-error"]].concat();
    let printed = done(&again);
    assert!(printed.contains("[FAILED SERVER COMBINATION] default"), "{printed}");
    let written = fs::read(out.join("x/SERVE-default-failure.json")).expect("a file");
    let written: Value = serde_json::from_slice(&written).expect("JSON");
    assert_eq!(written["serve_overrides"], json!({}));
}

#[test]
fn summaries_are_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    for users in [1, 2] {
        let place = folder.path().join(format!("BENCH--max_concurrency={users}"));
        fs::create_dir(&place).expect("a folder");
        let run = json!({"max_concurrency": users, "output_throughput": 10 * users,
            "total_token_throughput": 20 * users, "median_ttft_ms": 5});
        fs::write(place.join("summary.json"), json!([run, run]).to_string()).expect("a file");
    }
    let printed = done(&["sweep", "plot", text(folder.path())]);
    assert!(printed.contains("Grid: 1 rows x 1 cols"), "{printed}");
    let figure = fs::read_to_string(folder.path().join("FIGURE.svg")).expect("a picture");
    assert!(figure.contains("<svg"), "{figure}");
    assert_eq!(figure.matches("5.0 ± 0.0 (runs: 2)</title>").count(), 2, "{figure}");
    let dry = done(&["sweep", "plot_pareto", "--dry-run", text(folder.path())]);
    assert!(dry.contains("Plotted 4 points"), "{dry}");
    assert!(!folder.path().join("pareto").exists());
    done(&["sweep", "plot_pareto", text(folder.path())]);
    assert!(folder.path().join("pareto/PARETO.svg").exists());
}

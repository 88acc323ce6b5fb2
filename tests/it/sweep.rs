//! `bench-vllm sweep` from outside: printed commands, a server that ends, pictures.

use crate::support::{Folder, busy_machine, root};
use crate::sweep_golden::{bench_vllm, free_port};
use serde_json::{Value, json};
use servebench_cli::{Code, Environment, Failure, Io};
use std::fs;
use std::os::unix::fs::symlink;
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
    assert!(printed.contains("[FAILED SERVER COMBINATION] (default)"), "{printed}");
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

/// The simulated server as a process, under the name by which its caches are known to be emptied, and a
/// client with six small requests.
fn simulated(folder: &Folder) -> [String; 2] {
    symlink(env!("CARGO_BIN_EXE_sim-server-under-test"), folder.path("sim-server"))
        .expect("a link");
    let (port, tokenizer) = (free_port(), root().join("tests/fixtures/tokenizers/bytes"));
    let client = format!(
        "bench-vllm serve --port {port} --model sim --tokenizer {} --input-len 8 --output-len 4 \
         --num-prompts 6 --disable-tqdm",
        text(&tokenizer)
    );
    [format!("./sim-server --ttft-ms 10 --itl-ms=1 --port {port}"), client]
}

#[test]
fn a_server_is_started_measured_and_stopped_for_each_of_its_settings() {
    let folder = Folder::new();
    let [server, client] = simulated(&folder);
    fs::write(folder.path("serve.json"), r#"{"slow": {"itl_ms": 3}, "fast": {}}"#).expect("a file");
    fs::write(folder.path("bench.json"), r#"[{"max_concurrency": 1}, {"max_concurrency": 3}]"#)
        .expect("a file");
    let words = ["sweep", "serve", "--serve-cmd", &server, "--bench-cmd", &client, "-e", "x"];
    let sets = ["--serve-params", "serve.json", "--bench-params", "bench.json", "--num-runs", "2"];
    let outcome = bench_vllm(&folder, &[&words[..], &sets].concat()).expect_code(0);
    assert_eq!(outcome.stdout.matches("[BEGIN SERVER]").count(), 2, "{}", outcome.said());
    assert_eq!(outcome.stdout.matches("[END BENCHMARK]").count(), 8, "{}", outcome.said());
    for place in ["SERVE--slow-BENCH--max_concurrency=1", "SERVE--fast-BENCH--max_concurrency=3"] {
        let summary = folder.path(&format!("results/x/{place}/summary.json"));
        let runs: Vec<Value> =
            serde_json::from_slice(&fs::read(summary).expect("a summary")).expect("JSON");
        assert_eq!(runs.len(), 2);
        assert!(runs.iter().all(|run| run["completed"] == 6), "{runs:?}");
        assert!(runs.iter().all(|run| run["mean_e2el_ms"].is_f64()), "{runs:?}");
    }
    let table = fs::read_to_string(folder.path("results/x/summary.csv")).expect("a table");
    assert_eq!(table.lines().count(), 9, "{table}");

    let resumed = bench_vllm(&folder, &[&words[..], &sets, &["--resume"]].concat()).expect_code(0);
    assert!(!resumed.stdout.contains("[BEGIN SERVER]"), "{}", resumed.said());
    let plotted =
        bench_vllm(&folder, &["sweep", "plot", "results/x", "--curve-by", "_benchmark_name"]);
    plotted.expect_code(0);
    assert!(folder.path("results/x/FIGURE.svg").exists());
}

#[test]
fn a_ladder_of_loads_goes_on_where_it_ended() {
    let folder = Folder::new();
    let [server, client] = simulated(&folder);
    let words =
        ["sweep", "serve_workload", "--serve-cmd", &server, "--bench-cmd", &client, "-e", "x"];
    let more = ["--workload-var", "max_concurrency", "--workload-iters", "4", "--num-runs", "1"];
    let begun = bench_vllm(&folder, &[&words[..], &more].concat()).expect_code(0);
    assert_eq!(begun.stdout.matches("[BEGIN SERVER]").count(), 1, "{}", begun.said());
    let made = begun.stdout.matches("[END BENCHMARK]").count();
    assert!((2..=4).contains(&made), "{}", begun.said());

    let again = [&words[..], &more, &["--resume"]].concat();
    let resumed = bench_vllm(&folder, &again).expect_code(0);
    assert!(!resumed.stdout.contains("[BEGIN SERVER]"), "{}", resumed.said());
    assert!(!resumed.stderr.contains("is ready"), "{}", resumed.said());
    assert_eq!(resumed.stdout.matches("[SKIPPED BENCHMARK]").count(), made, "{}", resumed.said());

    let lost = folder.path("results/x/BENCH--max_concurrency=1-WL--max_concurrency=1/run=0.json");
    fs::remove_file(&lost).expect("a result");
    let resumed = bench_vllm(&folder, &again).expect_code(0);
    assert_eq!(resumed.stdout.matches("[BEGIN SERVER]").count(), 1, "{}", resumed.said());
    assert!(lost.exists());
}

#[test]
fn a_folder_that_cannot_be_made_is_found_before_the_server_is_started() {
    let folder = Folder::new();
    fs::write(folder.path("results"), "a file").expect("a file");
    let words =
        ["sweep", "serve", "--serve-cmd", "touch started", "--bench-cmd", "true", "-e", "x"];
    let outcome = bench_vllm(&folder, &[&words[..], &["--after-bench-cmd", "true"]].concat());
    assert!(outcome.expect_code(7).stderr.contains("results"));
    assert!(!folder.path("started").exists());
}

//! Whose limit a run shows: a client that is held back, a server that is.
#![cfg(target_os = "linux")]

use crate::support::{Folder, quiet_machine, root};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use servebench::sim::{Sim, SimConfig, SimHandle, Timing, parse_faults};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn server(ttft: u64, itl: u64, faults: &str) -> SimHandle {
    let faults = parse_faults(faults).expect("faults");
    let timing = Timing::canned(ms(ttft), ms(itl));
    let sim = Sim::new(SimConfig { timing, faults, ..SimConfig::default() });
    sim.spawn_in_thread().expect("a server")
}

/// A run of the program against a server.
struct Run {
    folder: Folder,
    child: Child,
}

impl Run {
    /// Starts it; `more` are further arguments.
    fn start(server: &SimHandle, more: &str) -> Self {
        let folder = Folder::new();
        let tokenizer = root().join("tests/cases/tokenizers/bytes");
        let (tokenizer, url) = (tokenizer.to_str().expect("a path in UTF-8"), server.url());
        let flags = "--backend vllm --model sim --dataset-name random-ids --random-input-len 8 \
            --random-range-ratio 1.0 --disable-tqdm --no-calibrate --output-file out.jsonl";
        let mut arguments: Vec<&str> = flags.split_ascii_whitespace().collect();
        arguments.extend(["--tokenizer", tokenizer, "--base-url", &url]);
        arguments.extend(more.split_ascii_whitespace());
        let mut command = folder.command(&arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Self { folder, child: child.expect("the program starts") }
    }

    /// Waits for its end with exit code `code`, and gives the result line.
    fn line(self, code: i32) -> Value {
        let output = self.child.wait_with_output().expect("the program ends");
        let said = String::from_utf8_lossy(&output.stderr);
        let table = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{table}{said}");
        let line = self.folder.results("out.jsonl").remove(0);
        let verdict = line["verdict"].as_str().expect("a verdict");
        assert!(table.contains(&format!("\nVerdict: {verdict} (")), "{table}");
        line
    }
}

/// Threads that leave little of one core to anybody else.
fn with_a_crowded_core<T: Send>(core: usize, work: impl FnOnce() -> T + Send) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..7 {
            scope.spawn(|| {
                pin(core);
                while !over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // What this thread starts is pinned as it is.
        let result = scope.spawn(|| {
            pin(core);
            work()
        });
        let result = result.join();
        over.store(true, Relaxed);
        result.expect("the work is done")
    })
}

fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).expect("one of our cores");
}

fn last_core() -> usize {
    let allowed = sched_getaffinity(None).expect("our cores");
    (0..CpuSet::MAX_CPU).rev().find(|core| allowed.is_set(*core)).expect("a core")
}

#[test]
fn a_client_with_a_fraction_of_a_core_is_found_out() {
    let _quiet = quiet_machine();
    let server = server(10, 2, "[]");
    let line = with_a_crowded_core(last_core(), || {
        let load = "--num-prompts 160 --random-output-len 32 --max-concurrency 32";
        Run::start(&server, &format!("{load} --fail-if-client-bound")).line(6)
    });
    assert_eq!(line["verdict"], "client-bound", "{line:#}");
    assert_eq!((&line["completed"], &line["failed"]), (&160.into(), &0.into()));
    let evidence = line["verdict_evidence"].as_array().expect("sentences");
    assert!(evidence[0].as_str().is_some_and(|words| words.contains("(limit ")), "{evidence:#?}");
    assert!(line["loop_stalls"].as_u64() > Some(0), "{line:#}");
}

/// Any machine is disturbed now and then, and then says so. One undisturbed run shows what is meant.
const TRIES: usize = 5;

#[test]
fn a_server_that_stalls_stays_the_limit() {
    let _quiet = quiet_machine();
    let stall = r#"[{"when": {"every": 4}, "action": {"stall": {"at_token": 5, "ms": 400}}}]"#;
    let server = server(100, 20, stall);
    let load = "--num-prompts 40 --random-output-len 10 --request-rate 40";
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let line = Run::start(&server, load).line(0);
        assert!(line["max_itl_ms"].as_f64() >= Some(400.0), "{line:#}");
        if line["verdict"] == "server-bound" {
            return;
        }
        seen.push(line["verdict_evidence"].clone());
    }
    panic!("never server-bound: {seen:#?}");
}

/// Lets `time` pass.
fn pass(time: Duration) {
    let (_open, nothing) = mpsc::channel::<()>();
    assert!(nothing.recv_timeout(time).is_err());
}

#[test]
fn a_client_that_was_stopped_reports_bounds_and_turns_the_verdict() {
    let _quiet = quiet_machine();
    let server = server(20, 10, "[]");
    let load = "--num-prompts 60 --random-output-len 40 --request-rate 50 --fail-if-client-bound";
    let run = Run::start(&server, load);
    // Some twenty streams are under way by then.
    while server.sim.stats().requests < 30 {
        pass(ms(1));
    }
    let pid = Pid::from_child(&run.child);
    kill_process(pid, Signal::STOP).expect("it runs");
    pass(ms(200));
    kill_process(pid, Signal::CONT).expect("it stands still");

    let line = run.line(6);
    assert_eq!(line["verdict"], "client-bound", "{line:#}");
    assert!(line["loop_stall_max_ms"].as_f64() >= Some(150.0), "{line:#}");
    // Without the kernel's stamps nobody could tell what came when.
    if line["stamps"] == "kernel" {
        assert!(line["bounded_chunks"].as_u64() > Some(100), "{line:#}");
        assert!(line["exact_share_itl"].as_f64() < Some(0.95), "{line:#}");
        // The stop is not passed off as the server's: what may have been usual gaps may be.
        assert!(line["max_itl_ms"].as_f64() >= Some(150.0), "{line:#}");
        assert!(line["p99_itl_low_ms"].as_f64() < Some(100.0), "{line:#}");
        assert!(line["p99_itl_high_ms"].as_f64() > Some(100.0), "{line:#}");
    }
}

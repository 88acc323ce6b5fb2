//! Signals during a run.

use super::bench::Bench;
use super::peer::{DEADLINE, Peer, Then, one_token, pause, usual};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

/// A server that answers its first request at once and holds the others until told otherwise.
fn holding() -> Peer {
    Peer::start(|seen, wire| {
        if seen.generates() && wire.log.generations().len() > 1 {
            wire.log.wait_for_mark("go on");
        }
        usual(seen, wire)
    })
}

fn under_way(peer: &Peer) -> Bench {
    Bench::of(peer).and("--num-prompts 10 --max-concurrency 1")
}

/// What is under way may finish; nothing more is sent; the result is whole and marked.
fn the_first_signal_ends_the_run_with_a_result(signal: Signal, code: i32) {
    let peer = holding();
    let bench = under_way(&peer);
    let running = bench.start();
    peer.wait_for_generations(2);
    running.signal(signal);
    running.wait_until_it_says("interrupted");
    peer.mark("go on");
    let ended = running.wait().code(code);
    let line = ended.line();
    assert_eq!((&line["interrupted"], &line["partial"]), (&json!(true), &json!(true)));
    assert_eq!((&line["completed"], &line["failed"]), (&json!(2), &json!(0)));
    assert_eq!(line["unsent"], 8);
    for key in ["ttfts", "itls", "errors", "generated_texts"] {
        assert_eq!(line[key].as_array().map(Vec::len), Some(2), "{key}");
    }
    assert_eq!(peer.generations().len(), 2);
    assert!(ended.out.contains("Serving Benchmark Result"), "{}", ended.out);
    assert!(ended.out.contains("Interrupted:"), "{}", ended.out);
}

#[test]
fn ctrl_c_ends_the_run_with_a_result() {
    the_first_signal_ends_the_run_with_a_result(Signal::INT, 130);
}

#[test]
fn sigterm_ends_the_run_with_a_result() {
    the_first_signal_ends_the_run_with_a_result(Signal::TERM, 143);
}

/// Requests that do not finish within the grace are cut off, and what they got is kept.
#[test]
fn what_does_not_finish_is_cut_off() {
    let peer = Peer::start(|seen, wire| {
        if !seen.generates() || wire.log.generations().len() == 1 {
            return usual(seen, wire);
        }
        wire.begin();
        wire.chunk(&one_token()[0]);
        Then::Hang
    });
    let bench = under_way(&peer);
    let running = bench.start();
    peer.wait_for_generations(2);
    running.signal(Signal::INT);
    let ended = running.wait().code(130);
    let line = ended.line();
    assert_eq!(line["failures"], json!({"cancelled": 1}));
    assert_eq!(line["success"], json!([true, false]));
    assert_eq!(line["generated_texts"][1], "a");
    assert_eq!(line["completed"], 1);
}

#[test]
fn the_second_signal_leaves_at_once() {
    let peer = holding();
    let bench = under_way(&peer);
    let running = bench.start();
    peer.wait_for_generations(2);
    running.signal(Signal::INT);
    running.wait_until_it_says("interrupted");
    running.signal(Signal::TERM);
    let ended = running.wait().code(143);
    assert!(ended.lines.is_empty() && ended.out.is_empty(), "{}", ended.out);
    peer.mark("go on");
}

/// Before anything is measured there is nothing to save.
#[test]
fn a_signal_before_the_run_leaves_at_once() {
    let peer = Peer::start(|seen, wire| {
        if seen.generates() {
            wire.log.wait_for_mark("go on");
        }
        usual(seen, wire)
    });
    let bench = under_way(&peer).and("--warmup-requests 1");
    let running = bench.start();
    peer.wait_for_generations(1);
    running.signal(Signal::INT);
    let ended = running.wait().code(130);
    assert!(ended.lines.is_empty() && ended.out.is_empty(), "{}", ended.out);
    assert!(!ended.err.contains("sending 10 requests"), "{}", ended.err);
    peer.mark("go on");
}

/// While a dataset is read (here from a pipe that nobody writes to) there is nothing to save either.
#[test]
fn a_signal_during_the_preparation_leaves_at_once() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let peer = Peer::start(usual);
        let bench = Bench::of(&peer).and("--dataset-name sharegpt --dataset-path rows.json");
        let running = bench.start_below("mkfifo rows.json;");
        running.wait_until_it_says("preparing");
        running.signal(signal);
        let ended = running.wait().code(code);
        assert!(ended.lines.is_empty() && ended.out.is_empty(), "{}", ended.out);
        assert!(peer.generations().is_empty());
    }
}

/// Waits until a process has ended, whoever is left to take note of that.
fn wait_until_gone(process: u32) {
    let state = || {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    };
    let step = Duration::from_millis(5);
    let mut waited = Duration::ZERO;
    while state().is_some_and(|state| state != 'Z') {
        assert!(waited < DEADLINE, "process {process} is still there");
        pause(step);
        waited += step;
    }
}

/// The client's own measurement runs in a process of its own, which ends with it.
#[test]
fn a_signal_during_the_calibration_leaves_no_process_behind() {
    let peer = Peer::start(usual);
    let bench = under_way(&peer).and("--warmup-requests 1 --calibrate --num-prompts 100000");
    let running = bench.start();
    running.wait_until_it_says("calibrating");
    let children = running.children();
    running.signal(Signal::INT);
    let ended = running.wait().code(130);
    assert!(ended.lines.is_empty() && ended.out.is_empty(), "{}", ended.out);
    assert!(!children.is_empty());
    for child in children {
        wait_until_gone(child);
    }
    assert_eq!(peer.generations().len(), 1, "the warm-up alone");
}

/// Twice, while what is under way has its grace.
#[test]
fn the_second_signal_of_the_same_kind_leaves_at_once_too() {
    let peer = holding();
    let bench = under_way(&peer);
    let running = bench.start();
    peer.wait_for_generations(2);
    running.signal(Signal::INT);
    running.wait_until_it_says("interrupted");
    running.signal(Signal::INT);
    let ended = running.wait().code(130);
    assert!(ended.lines.is_empty(), "{:?}", ended.lines);
    peer.mark("go on");
}

/// A run that nobody interrupts says so.
#[test]
fn a_whole_run_is_not_marked() {
    let peer = Peer::start(usual);
    let ended = Bench::of(&peer).run().code(0);
    assert_eq!(ended.line()["interrupted"], json!(false));
    assert_eq!(ended.line()["partial"], json!(false));
    assert_ne!(ended.line()["completed"], Value::Null);
}

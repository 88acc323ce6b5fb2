//! Signals during a run.

use super::bench::Bench;
use super::peer::{Peer, Then, one_token, usual};
use rustix::process::Signal;
use serde_json::{Value, json};

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

/// A run that nobody interrupts says so.
#[test]
fn a_whole_run_is_not_marked() {
    let peer = Peer::start(usual);
    let ended = Bench::of(&peer).run().code(0);
    assert_eq!(ended.line()["interrupted"], json!(false));
    assert_eq!(ended.line()["partial"], json!(false));
    assert_ne!(ended.line()["completed"], Value::Null);
}

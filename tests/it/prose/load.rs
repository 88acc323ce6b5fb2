//! How load is made: rates, caps, descriptors, seeds and warm-ups.

use super::bench::{Bench, Ended, count, number, numbers, tiny_llama};
use super::peer::{Event, Peer, pause, usual};
use serde_json::json;
use std::collections::HashSet;
use std::time::Duration;

/// LOAD-01: rates that make no sense, and one that is as good as infinite.
#[test]
fn rates() {
    let peer = Peer::start(usual);
    for rate in ["0", "-1", "nan", "fast"] {
        let ended = Bench::of(&peer).with("--request-rate", rate).run().code(2);
        ended.says(&["--request-rate", rate]);
    }
    assert!(peer.requests().is_empty());
    let ended = Bench::of(&peer).and("--num-prompts 20 --request-rate 1e9").run().code(0);
    let starts = numbers(&ended.line()["start_times"]);
    assert_eq!(starts.len(), 20);
    assert_eq!(ended.line()["request_rate"], 1e9);
    let ended = Bench::of(&peer).and("--request-rate inf").run().code(0);
    assert_eq!(ended.line()["request_rate"], "inf");
}

/// Connects are part of a request only when that is asked for.
#[test]
fn connections_are_warm_unless_cold_ones_are_asked_for() {
    let peer = Peer::start(usual);
    let bench = Bench::of(&peer).and("--num-prompts 6 --max-concurrency 2");
    assert_eq!(bench.run().code(0).line()["connects"], 0);
    let cold = Bench::of(&peer).and("--num-prompts 6 --max-concurrency 2 --cold-connections");
    let ended = cold.run().code(0);
    let line = ended.line();
    assert_eq!((&line["connects"], &line["completed"]), (&json!(6), &json!(6)));
    assert!(number(&line["connect_mean_ms"]) > 0.0, "{line}");
}

/// LOAD-02: what a full client adds is told apart from what the server takes.
#[test]
fn the_wait_for_a_slot_is_reported() {
    let peer = Peer::start(|seen, wire| {
        if seen.generates() {
            pause(Duration::from_millis(30));
        }
        usual(seen, wire)
    });
    let bench = Bench::of(&peer).and("--num-prompts 8 --max-concurrency 1 --request-rate 1000");
    let ended = bench.run().code(0);
    let line = ended.line();
    let value = |key: &str| number(&line[key]);
    assert!(value("queue_wait_mean_ms") >= 60.0, "seven requests waited for 30 ms each: {line}");
    let sum = value("mean_e2e_latency_ms") + value("queue_wait_mean_ms");
    assert!((value("mean_e2e_intended_ms") - sum).abs() < 1e-6, "{line}");
    assert!(value("achieved_request_rate") < 40.0, "{line}");
    assert!(value("concurrency") <= 1.0 + 1e-9, "the wait is no work of the server's: {line}");
    assert!(ended.out.contains("Mean queue wait (ms):"), "{}", ended.out);
    assert!(ended.out.contains("Requests sent per second:"), "{}", ended.out);
}

/// ERR-05: the pool does not limit how much is under way.
#[test]
fn three_hundred_are_under_way_at_once() {
    let peer = Peer::start(|seen, wire| {
        if seen.generates() {
            wire.log.wait_for_generations(300);
        }
        usual(seen, wire)
    });
    let ended = Bench::of(&peer).and("--num-prompts 400 --max-concurrency 300").run().code(0);
    assert_eq!(ended.line()["completed"], 400);
    assert_eq!(ended.line()["max_concurrent_requests"], 300);
    assert_eq!(peer.generations().len(), 400);
}

/// LOAD-04.
#[test]
fn a_low_soft_limit_of_descriptors_is_raised() {
    rlimit::increase_nofile_limit(4096).expect("descriptors for the server's side");
    let peer = Peer::start(|seen, wire| {
        if seen.generates() {
            wire.log.wait_for_generations(400);
        }
        usual(seen, wire)
    });
    let bench = Bench::of(&peer).and("--num-prompts 400");
    let ended = bench.start_below("ulimit -Sn 256;").wait().code(0);
    assert_eq!(ended.line()["completed"], 400, "{}", ended.err);
}

#[test]
fn a_low_hard_limit_of_descriptors_is_told() {
    let peer = Peer::start(|seen, wire| {
        if seen.generates() {
            wire.log.wait_for_generations(150);
        }
        usual(seen, wire)
    });
    let bench = Bench::of(&peer).and("--num-prompts 400");
    let ended = bench.start_below("ulimit -n 200;").wait().code(0);
    ended.says(&["warning", "file descriptors", "the limit is 200"]);
    let line = ended.line();
    assert_eq!(count(&line["completed"]) + count(&line["failed"]), 400);
    // On a slow machine answers free connections before all requests have asked for one.
    if count(&line["failed"]) > 0 {
        assert_eq!(line["failures"], json!({"connect": line["failed"]}));
        ended.says(&["Too many open files"]);
    }
}

/// The bodies the server got in order of arrival.
fn bodies(flags: &str) -> (Vec<Vec<u8>>, Ended) {
    let peer = Peer::start(usual);
    let bench = Bench::of(&peer).and("--backend sglang-oai --num-prompts 12");
    let bench = bench.with("--tokenizer", &tiny_llama()).and(flags);
    let ended = bench.run().code(0);
    (peer.generations().iter().map(|seen| seen.body.clone()).collect(), ended)
}

/// LOAD-06 (b), (c).
#[test]
fn a_seed_is_a_workload() {
    let (first, one) = bodies("--max-concurrency 1");
    let (second, _) = bodies("--max-concurrency 1");
    assert_eq!(first, second, "byte for byte, in the same order");

    let (mut wide, many) = bodies("--max-concurrency 4");
    let mut sorted = first.clone();
    wide.sort();
    sorted.sort();
    assert_eq!(sorted, wide);
    let hash = |ended: &Ended| ended.line()["plan_sha256"].clone();
    assert_eq!(hash(&one), hash(&many), "the plan's order does not depend on the cap");

    let (other, changed) = bodies("--max-concurrency 1 --seed 2");
    let known: HashSet<_> = first.iter().collect();
    assert!(other.iter().all(|body| !known.contains(body)));
    assert_ne!(hash(&one), hash(&changed));
}

/// LOAD-06 (a): row 0 is asked for beforehand only if the cache is emptied in between.
#[test]
fn a_flush_comes_between_the_warm_up_and_the_run() {
    let peer = Peer::start(|seen, wire| {
        if seen.generates() {
            pause(Duration::from_millis(5));
        }
        usual(seen, wire)
    });
    let bench = Bench::of(&peer).and("--num-prompts 4 --warmup-requests 3 --max-concurrency 2");
    let ended = bench.and("--flush-cache").run().code(0);
    let events: Vec<String> = peer
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::Request(seen) if seen.path.contains("/flush_cache") => Some("flush".into()),
            Event::Request(seen) if seen.generates() => Some("asked".to_owned()),
            Event::Answered(seen) if seen.generates() => Some("answered".to_owned()),
            _ => None,
        })
        .collect();
    let flush = events.iter().position(|event| event == "flush").expect("a flush");
    let before = |event: &str| events[..flush].iter().filter(|one| *one == event).count();
    assert_eq!((before("asked"), before("answered")), (3, 3), "{events:?}");
    assert_eq!(events.iter().filter(|event| *event == "flush").count(), 1);
    assert_eq!(ended.line()["cache_flushed"], true);
    assert_eq!(ended.line()["warmup_prompts"], "row_0");
}

#[test]
fn without_a_flush_the_warm_up_has_prompts_of_its_own() {
    let peer = Peer::start(usual);
    let long = "--random-input-len 64 --num-prompts 4 --warmup-requests 3 --max-concurrency 1";
    let ended = Bench::of(&peer).and(long).run().code(0);
    let prompts: Vec<String> = peer.generations().iter().map(|seen| seen.prompt()).collect();
    let (warm, measured) = prompts.split_at(3);
    assert_eq!(measured.len(), 4);
    let start = |prompt: &String| prompt.chars().take(8).collect::<String>();
    for prompt in measured {
        assert!(warm.iter().all(|other| start(other) != start(prompt)), "{prompts:?}");
    }
    assert_eq!(ended.line()["cache_flushed"], false);
    assert_eq!(ended.line()["warmup_prompts"], "separate");
}

//! Calls around a run: cache flush, profiler, the server's own report.

use super::bench::{Bench, number};
use super::peer::{Event, Peer, Seen, Then, Wire, pause, usual};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// A server that answers calls of `route` in its own way.
fn with(
    route: &'static str,
    answer: impl Fn(&Seen, &mut Wire) -> Then + Send + Sync + 'static,
) -> Peer {
    Peer::start(move |seen, wire| {
        let path = seen.path.split('?').next().unwrap_or_default();
        if path.ends_with(route) { answer(seen, wire) } else { usual(seen, wire) }
    })
}

fn flushing(peer: &Peer) -> Bench {
    Bench::of(peer).and("--flush-cache --warmup-requests 1")
}

/// SGL-01: the server is given time.
#[test]
fn a_flush_is_a_post_that_lets_the_server_become_idle() {
    let peer = Peer::start(usual);
    let ended = flushing(&peer).run().code(0);
    let [flush] = &peer.calls("/flush_cache")[..] else { panic!("one flush") };
    assert_eq!((flush.method.as_str(), flush.path.as_str()), ("POST", "/flush_cache?timeout=60.0"));
    assert_eq!(ended.line()["cache_flushed"], true);
    assert_eq!(Bench::of(&peer).run().code(0).line()["cache_flushed"], false);

    let peer = Peer::start(usual);
    flushing(&peer).and("--flush-cache-timeout 2.5").run().code(0);
    assert_eq!(peer.calls("/flush_cache")[0].path, "/flush_cache?timeout=2.5");
}

#[test]
fn a_busy_server_is_asked_to_flush_again() {
    let count = AtomicUsize::new(0);
    let peer = with("/flush_cache", move |seen, wire| {
        if count.fetch_add(1, SeqCst) == 0 {
            return wire.json(400, &json!({"message": "not idle"}));
        }
        usual(seen, wire)
    });
    let ended = flushing(&peer).run().code(0);
    assert_eq!(peer.calls("/flush_cache").len(), 2);
    assert_eq!((ended.line()["completed"].clone(), peer.generations().len()), (json!(1), 2));
}

#[test]
fn a_flush_that_stays_refused_ends_the_run() {
    let peer =
        with("/flush_cache", |_, wire| wire.json(400, &json!({"message": "another is pending"})));
    let ended = flushing(&peer).run().code(4);
    ended.says(&["flush", "400", "another is pending"]);
    assert_eq!(peer.calls("/flush_cache").len(), 3);
    assert_eq!(peer.generations().len(), 1, "the warm-up, and nothing after it");
    assert!(ended.lines.is_empty());
}

#[test]
fn a_server_that_cannot_flush_is_told_about() {
    let peer = with("/flush_cache", |_, wire| wire.reply(404, "text/plain", b"no such route"));
    let ended = flushing(&peer).run().code(4);
    ended.says(&["/flush_cache", "404", "--flush-cache"]);
    assert_eq!((peer.calls("/flush_cache").len(), peer.generations().len()), (1, 1));
}

#[test]
fn vllm_has_a_route_of_its_own() {
    let peer = Peer::start(usual);
    flushing(&peer).and("--backend vllm-chat").run().code(0);
    let [reset] = &peer.calls("/reset_prefix_cache")[..] else { panic!("one call") };
    assert_eq!((reset.method.as_str(), reset.path.as_str()), ("POST", "/reset_prefix_cache"));
    assert!(peer.calls("/flush_cache").is_empty());

    let peer = with("/reset_prefix_cache", |_, wire| wire.json(404, &json!({})));
    let ended = flushing(&peer).and("--backend vllm-chat").run().code(4);
    ended.says(&["/reset_prefix_cache", "404", "VLLM_SERVER_DEV_MODE"]);
}

/// SGL-05 (a), (i).
#[test]
fn a_profiler_that_does_not_start_ends_the_run_with_the_servers_words() {
    for status in [500, 404, 401, 400] {
        let peer = with("/start_profile", move |_, wire| {
            wire.json(status, &json!({"message": "Profiling is already in progress"}))
        });
        let ended = Bench::of(&peer).and("--profile --warmup-requests 1").run().code(4);
        let status = status.to_string();
        ended.says(&["/start_profile", &status, "already in progress", "--profile"]);
        assert_eq!(peer.generations().len(), 1, "the warm-up, and nothing after it");
        assert!(ended.lines.is_empty());
    }
}

/// SGL-05 (b), (c): where the profiler starts and stops, and what that costs the result.
#[test]
fn the_profiler_runs_around_the_measured_requests_only() {
    let slow = Duration::from_secs(1);
    let peer = with("/stop_profile", move |seen, wire| {
        pause(slow);
        usual(seen, wire)
    });
    let bench = Bench::of(&peer).and("--profile --warmup-requests 2 --num-prompts 3");
    let ended = bench.run().code(0);
    let event = |event: &Event| match event {
        Event::Request(seen) if seen.path == "/start_profile" => Some("start"),
        Event::Request(seen) if seen.path == "/stop_profile" => Some("stop"),
        Event::Request(seen) if seen.generates() => Some("asked"),
        Event::Answered(seen) if seen.generates() => Some("answered"),
        _ => None,
    };
    let events: Vec<&str> = peer.events().iter().filter_map(event).collect();
    let count = |events: &[&str], wanted| events.iter().filter(|one| **one == wanted).count();
    let at = |wanted| events.iter().position(|one| *one == wanted).expect("it happened");
    let (before, during) = (&events[..at("start")], &events[at("start")..at("stop")]);
    assert_eq!((count(before, "asked"), count(before, "answered")), (2, 2), "{events:?}");
    assert_eq!((count(during, "asked"), count(during, "answered")), (3, 3), "{events:?}");
    assert_eq!(events.last(), Some(&"stop"));
    let line = ended.line();
    assert!(number(&line["duration"]) < slow.as_secs_f64(), "{line}");
    assert!(number(&line["upstream_duration"]) >= slow.as_secs_f64(), "{line}");
}

/// SGL-05 (c): otherwise the server would profile until its memory is full.
#[test]
fn the_profiler_is_stopped_after_an_interrupt_and_after_failures() {
    let peer = Peer::start(|seen, wire| {
        if seen.generates() {
            wire.log.wait_for_mark("interrupted");
        }
        usual(seen, wire)
    });
    let bench = Bench::of(&peer).and("--profile --num-prompts 5 --max-concurrency 1");
    let running = bench.start();
    peer.wait_for_generations(1);
    running.signal(Signal::INT);
    running.wait_until_it_says("interrupted");
    peer.mark("interrupted");
    let ended = running.wait().code(130);
    assert_eq!(peer.calls("/stop_profile").len(), 1);
    assert_eq!(ended.line()["interrupted"], true);

    let peer = Peer::start(|seen, wire| {
        if seen.generates() { wire.reply(500, "text/plain", b"broken") } else { usual(seen, wire) }
    });
    Bench::of(&peer).and("--profile").run().code(5);
    assert_eq!(peer.calls("/stop_profile").len(), 1);
}

/// SGL-05 (d), (e), (f).
#[test]
fn what_is_asked_of_the_profiler() {
    let peer = Peer::start(usual);
    let bench = Bench::of(&peer).and("--profile --profile-num-steps 5 --profile-prefix p");
    bench.and("--profile-output-dir /proc/not/here --profile-activities CPU GPU").run().code(0);
    assert!(peer.calls("/stop_profile").is_empty(), "the server stops by itself");
    let body = peer.calls("/start_profile")[0].json();
    assert_eq!(body["activities"], json!(["CPU", "GPU"]));
    assert_eq!(body["num_steps"], json!(5));
    assert_eq!(body["profile_by_stage"], json!(false));
    assert_eq!(body["profile_prefix"], "p");
    let folder = body["output_dir"].as_str().expect("a folder");
    assert!(folder.starts_with("/proc/not/here/"), "{folder}");

    let peer = Peer::start(usual);
    Bench::of(&peer).and("--profile").run().code(0);
    let body = peer.calls("/start_profile")[0].json();
    for key in ["num_steps", "profile_stages", "profile_prefix", "start_step"] {
        assert_eq!(body.get(key).unwrap_or(&Value::Null), &Value::Null, "{key}");
    }
    assert!(!body.to_string().contains("None"), "{body}");
    assert_eq!(peer.calls("/stop_profile").len(), 1);
}

/// SGL-05 (h).
#[test]
fn a_long_profile_without_an_end_is_warned_of() {
    let peer = Peer::start(usual);
    let bench = || Bench::of(&peer).and("--profile --num-prompts 101");
    bench().run().code(0).says(&["warning", "--profile-num-steps"]);
    let ended = bench().and("--profile-num-steps 5").run().code(0);
    assert!(!ended.err.contains("--profile-num-steps"), "{}", ended.err);
}

/// SGL-05: the result comes first.
#[test]
fn a_profiler_that_does_not_stop_costs_no_result() {
    let peer = with("/stop_profile", |_, wire| wire.reply(500, "text/plain", b"disk full"));
    let ended = Bench::of(&peer).and("--profile").run().code(4);
    ended.says(&["/stop_profile", "500", "disk full", "the result was written"]);
    assert_eq!(ended.line()["completed"], 1);
    assert!(ended.out.contains("Serving Benchmark Result"), "{}", ended.out);
}

/// Q37 of the specification: what the server tells afterwards never costs the result.
#[test]
fn a_server_that_tells_nothing_about_itself_costs_no_result() {
    type Answer = fn(&Seen, &mut Wire) -> Then;
    let answers: [Answer; 4] = [
        |_, wire| wire.reply(500, "text/plain", b"broken"),
        |_, wire| wire.reply(200, "text/html", b"<html>"),
        |_, _| Then::Reset,
        |_, wire| {
            wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"half\":");
            Then::Close
        },
    ];
    for answer in answers {
        let peer = with("/server_info", answer);
        let ended = Bench::of(&peer).run().code(0);
        assert_eq!(ended.line()["server_info"], Value::Null);
        assert_eq!(ended.line()["completed"], 1);
        assert!(!peer.calls("/server_info").is_empty());
    }
    let peer = Peer::start(usual);
    let ended = Bench::of(&peer).run().code(0);
    assert_eq!(ended.line()["server_info"], json!({"route": "/server_info"}));
}

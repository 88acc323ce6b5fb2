//! Requests that fail: what is said, what is counted, what is never repeated.

use super::bench::{Bench, Ended, number};
use super::peer::{Peer, Then, one_token, pause, usual};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// A server that answers generation requests with this.
fn refusing(status: u16, kind: &'static str, body: impl Into<Vec<u8>>) -> Peer {
    let body = body.into();
    Peer::start(
        move |seen, wire| {
            if seen.generates() { wire.reply(status, kind, &body) } else { usual(seen, wire) }
        },
    )
}

fn error(ended: &Ended) -> String {
    ended.line()["errors"][0].as_str().expect("an error").to_owned()
}

/// ERR-03: status and body, whatever the body is.
#[test]
fn an_error_has_status_and_body() {
    let peer = refusing(503, "text/plain", "");
    let ended = Bench::of(&peer).run().code(5);
    assert!(error(&ended).contains("503"), "{}", error(&ended));
    ended.says(&["1 of 1 requests failed", "503"]);

    let body = format!("out of memory {}", "x".repeat(5 << 20));
    let ended = Bench::of(&refusing(500, "text/plain", body)).run().code(5);
    let text = error(&ended);
    assert!(text.contains("500") && text.contains("out of memory"), "{text}");
    assert!(text.len() < 3 << 10, "the stored text is cut, not {} bytes long", text.len());

    let ended = Bench::of(&refusing(400, "text/plain", b"bad \xff\xfe byte".as_slice())).run();
    let text = error(&ended.code(5));
    assert!(text.contains("400") && text.contains("bad \u{fffd}"), "{text}");

    let peer = refusing(404, "application/json", r#"{"detail":"no such route"}"#);
    let ended = Bench::of(&peer).and("--num-prompts 7").run().code(5);
    ended.says(&["7 x status", "404", "no such route"]);
    assert_eq!(ended.err.matches("no such route").count(), 1, "once is enough: {}", ended.err);
    assert_eq!(ended.line()["failures"], json!({"status": 7}));
}

/// ERR-03: `Retry-After` is not obeyed.
#[test]
fn too_many_requests_is_not_retried() {
    let peer = Peer::start(|seen, wire| {
        if !seen.generates() {
            return usual(seen, wire);
        }
        wire.send(
            b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 4\r\n\r\nbusy",
        );
        Then::KeepAlive
    });
    let ended = Bench::of(&peer).run().code(5);
    assert!(error(&ended).contains("429"), "{}", error(&ended));
    assert_eq!(peer.generations().len(), 1);
}

/// ERR-05: connections that die while they are idle cost no request.
fn all_succeed_though_connections_then(then: Then) {
    let peer = Peer::start(move |seen, wire| {
        if !seen.generates() {
            return usual(seen, wire);
        }
        wire.stream(&one_token());
        then
    });
    for rate in ["inf", "100"] {
        let before = peer.generations().len();
        let bench = Bench::of(&peer).and("--num-prompts 50 --max-concurrency 1");
        let ended = bench.with("--request-rate", rate).run().code(0);
        let line = ended.line();
        assert_eq!(line["completed"], 50, "{then:?} at {rate}: {}", ended.err);
        assert_eq!(peer.generations().len() - before, 50, "{then:?} at {rate}");
        if matches!(then, Then::CloseOnNextByte) {
            assert!(number(&line["reconnects"]) >= 1.0, "what was replaced is counted: {line}");
        }
    }
}

#[test]
fn connections_closed_while_idle_are_replaced() {
    all_succeed_though_connections_then(Then::CloseIdle(5 * MS));
}

#[test]
fn connections_reset_while_idle_are_replaced() {
    all_succeed_though_connections_then(Then::ResetIdle(5 * MS));
}

#[test]
fn connections_closed_on_the_next_byte_are_replaced() {
    all_succeed_though_connections_then(Then::CloseOnNextByte);
}

/// The first request finds a connection that was opened beforehand and has carried nothing, the second
/// has a new one: neither is known to have been good, so neither request is sent again.
#[test]
fn a_request_is_never_replayed_on_a_connection_that_has_not_carried_one() {
    for then in [Then::Close, Then::Reset] {
        let peer =
            Peer::start(move |seen, wire| if seen.generates() { then } else { usual(seen, wire) });
        let bench = Bench::of(&peer).and("--num-prompts 2 --max-concurrency 1");
        let ended = bench.run().code(5);
        let bodies: Vec<_> = peer.generations().iter().map(|seen| seen.body.clone()).collect();
        assert_eq!(bodies.len(), 2, "{then:?}");
        assert!(bodies[0] != bodies[1], "{then:?}");
        let line = ended.line();
        assert_eq!((&line["failed"], &line["reconnects"]), (&json!(2), &json!(0)), "{then:?}");
    }
}

/// ERR-06, with the decision on the exit code.
fn is_a_result_without_successes(ended: &Ended) {
    let line = ended.line();
    assert_eq!((&line["completed"], &line["failed"]), (&json!(0), &json!(3)));
    for (key, value) in line.as_object().expect("an object") {
        let statistic = key.ends_with("_ms")
            && ["mean", "p9", "std", "max"].iter().any(|name| key.starts_with(name));
        // Every request did wait in the client, and that it failed changes nothing about it.
        if statistic && !["lateness", "queue_wait"].iter().any(|own| key.contains(own)) {
            assert_eq!(*value, Value::Null, "{key}");
        }
    }
    assert_eq!(line["total_output_tokens"], 0);
    assert_eq!(line["request_throughput"], Value::Null);
    ended.says(&["3 of 3 requests failed"]);
    assert!(ended.out.contains("Failed requests:"), "{}", ended.out);
    assert!(!ended.out.contains("NaN") && !ended.out.contains("inf\n"), "{}", ended.out);
}

#[test]
fn if_every_request_fails_there_is_a_result_all_the_same() {
    let peer = refusing(500, "text/plain", "the engine is gone");
    let bench = Bench::of(&peer).and("--num-prompts 3 --goodput ttft:100");
    let ended = bench.run().code(5);
    is_a_result_without_successes(&ended);
    ended.says(&["the engine is gone"]);
    assert_eq!(ended.line()["slo_attainment"], Value::Null);

    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let ended = Bench::at(&format!("http://127.0.0.1:{port}")).and("--num-prompts 3").run().code(5);
    is_a_result_without_successes(&ended);
    assert_eq!(ended.line()["failures"], json!({"connect": 3}));
    ended.says(&["refused"]);
}

/// ERR-06: the warm-up is the first to notice.
#[test]
fn a_failed_warm_up_ends_the_run() {
    let peer = refusing(500, "text/plain", "the engine is gone");
    let ended = Bench::of(&peer).and("--num-prompts 3 --warmup-requests 1").run().code(4);
    ended.says(&["warm-up failed", "500", "the engine is gone"]);
    assert!(ended.lines.is_empty());
    assert_eq!(peer.generations().len(), 1);
}

/// ERR-07.
#[test]
fn failures_are_seen_and_nothing_is_retried() {
    let count = AtomicUsize::new(0);
    let peer = Peer::start(move |seen, wire| {
        if !seen.generates() {
            return usual(seen, wire);
        }
        if count.fetch_add(1, SeqCst) % 2 == 1 {
            return wire.reply(503, "text/plain", b"overloaded");
        }
        pause(40 * MS);
        wire.stream(&one_token())
    });
    let bench = Bench::of(&peer).and("--num-prompts 10 --max-concurrency 1");
    let ended = bench.run().code(0);
    let line = ended.line();
    assert_eq!((&line["completed"], &line["failed"]), (&json!(5), &json!(5)));
    assert_eq!(peer.generations().len(), 10);
    assert!(ended.out.contains("Failed requests:"), "{}", ended.out);
    ended.says(&["5 of 10 requests failed", "overloaded"]);

    let latencies = line["latencies"].as_array().expect("latencies");
    let good: Vec<f64> = latencies.iter().step_by(2).map(number).collect();
    let mean = good.iter().sum::<f64>() / 5.0 * 1e3;
    assert!(mean >= 38.0 && (number(&line["mean_e2e_latency_ms"]) - mean).abs() < 1e-6, "{line}");
    let rate = 5.0 / number(&line["duration"]);
    assert!((number(&line["request_throughput"]) - rate).abs() < 1e-6, "{line}");
    for index in 0..10 {
        let failed = index % 2 == 1;
        assert_eq!(line["success"][index], !failed);
        assert_eq!(line["errors"][index] == "", !failed);
        assert_eq!(line["output_lens"][index], u32::from(!failed));
    }
}

/// `--min-success-rate` decides what is too few.
#[test]
fn too_few_successes_are_code_5() {
    let count = AtomicUsize::new(0);
    let peer = Peer::start(move |seen, wire| {
        if seen.generates() && count.fetch_add(1, SeqCst) % 2 == 1 {
            return wire.reply(503, "text/plain", b"overloaded");
        }
        usual(seen, wire)
    });
    let bench = || Bench::of(&peer).and("--num-prompts 4 --max-concurrency 1");
    bench().and("--min-success-rate 0.5").run().code(0);
    let ended = bench().and("--min-success-rate 0.6").run().code(5);
    assert_eq!(ended.line()["completed"], 2);
}

/// A connection that broke is not used again.
#[test]
fn a_broken_connection_serves_nobody_else() {
    let count = AtomicUsize::new(0);
    let peer = Peer::start(move |seen, wire| {
        if !seen.generates() {
            return usual(seen, wire);
        }
        if count.fetch_add(1, SeqCst) == 0 {
            wire.begin();
            wire.chunk(&one_token()[0]);
            return Then::Reset;
        }
        wire.stream(&one_token())
    });
    let bench = Bench::of(&peer).and("--num-prompts 3 --max-concurrency 1");
    let ended = bench.run().code(0);
    assert_eq!(ended.line()["success"], json!([false, true, true]));
    assert_eq!(ended.line()["failures"], json!({"reset": 1}));
    let connections: Vec<usize> = peer.generations().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections.len(), 3);
    assert_ne!(connections[0], connections[1]);
    assert_eq!(connections[1], connections[2], "a sound connection is kept");
}

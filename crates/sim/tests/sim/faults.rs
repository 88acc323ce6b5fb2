//! Each fault as the client sees it.

use crate::client::{Client, Reply, ms, post};
use serde_json::json;
use servebench_sim::{Sim, SimConfig, Timing, parse_faults};
use std::time::Duration;

/// First token at 50 ms, then one every 10 ms.
fn sim(rules: &str) -> Sim {
    Sim::new(SimConfig {
        timing: Timing::canned(ms(50), ms(10)),
        faults: parse_faults(rules).expect("a script"),
        ..SimConfig::default()
    })
}

const STREAM: &str =
    r#"{"model": "sim", "prompt": "a", "max_tokens": 4, "stream": true, "ignore_eos": true}"#;

async fn streamed(action: &str) -> (Sim, Reply) {
    let sim = sim(&format!(r#"[{{"action": {action}}}]"#));
    let reply = Client::new(&sim).await.post("/v1/completions", STREAM).await;
    (sim, reply)
}

#[tokio::test(start_paused = true)]
async fn delay_comes_before_the_head() {
    let (_, reply) = streamed(r#"{"delay": {"ms": 100}}"#).await;
    // The engine's clock runs on: the request was received before the delay.
    assert_eq!((reply.head_at, reply.complete), (ms(100), true));
}

#[tokio::test(start_paused = true)]
async fn status_replaces_the_answer() {
    let (sim, reply) = streamed(
        r#"{"status": {"code": 429, "body": "slow down", "content_type": "text/plain",
            "headers": {"Retry-After": "1"}}}"#,
    )
    .await;
    assert_eq!((reply.status, reply.text().as_str()), (429, "slow down"));
    assert_eq!(reply.headers["retry-after"], "1");
    assert_eq!(reply.headers["content-type"], "text/plain");
    let stats = sim.stats();
    assert_eq!((stats.refused, stats.requests, stats.faults), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn cut_after_tokens_loses_nothing_before_it() {
    let (sim, reply) = streamed(r#"{"cut": {"after_tokens": 2}}"#).await;
    assert_eq!((reply.status, reply.complete), (200, false));
    assert_eq!(reply.times(), [ms(50), ms(60)]);
    assert_eq!(reply.ended_at, ms(60));
    assert!(sim.truth()[0].aborted);
    assert_eq!(sim.truth()[0].token_times(0).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn cut_at_once_leaves_the_head() {
    let (_, reply) = streamed(r#"{"reset": {}}"#).await;
    assert_eq!((reply.status, reply.complete, reply.pieces.len()), (200, false, 0));
}

#[tokio::test(start_paused = true)]
async fn cut_after_bytes_is_exact() {
    let (_, whole) = streamed(r#"{"delay": {"ms": 0}}"#).await;
    let text = whole.text();
    for bytes in [1, 10, text.len() / 2, text.len() - 1, text.len()] {
        let (sim, reply) = streamed(&format!(r#"{{"cut": {{"after_bytes": {bytes}}}}}"#)).await;
        assert_eq!((reply.text().as_str(), reply.complete), (&text[..bytes], false));
        assert!(sim.truth()[0].aborted);
    }
    let (_, reply) =
        streamed(&format!(r#"{{"cut": {{"after_bytes": {}}}}}"#, text.len() + 1)).await;
    assert!(reply.complete);
}

#[tokio::test(start_paused = true)]
async fn whole_bodies_are_cut_too() {
    let sim = sim(r#"[{"action": {"cut": {"after_bytes": 20}}}]"#);
    let body = STREAM.replace("\"stream\": true", "\"stream\": false");
    let reply = Client::new(&sim).await.post("/v1/completions", &body).await;
    assert_eq!((reply.status, reply.complete, reply.text().len()), (200, false, 20));
    assert!(reply.headers["content-length"].to_str().is_ok_and(|length| length.len() == 3));
    assert!(sim.truth()[0].aborted);
}

#[tokio::test(start_paused = true)]
async fn malformed_events_stand_before_their_token() {
    let (_, reply) = streamed(r#"{"malformed": {"at_token": 1, "text": "data: {\n\n"}}"#).await;
    assert!(reply.complete);
    let second = String::from_utf8(reply.pieces[1].1.to_vec()).expect("UTF-8");
    assert!(second.starts_with("data: {\n\ndata: {\"id\""), "{second}");
    assert_eq!(reply.times()[..2], [ms(50), ms(60)]);
}

#[tokio::test(start_paused = true)]
async fn stalls_end_or_do_not() {
    let (_, reply) = streamed(r#"{"stall": {"at_token": 2, "ms": 500}}"#).await;
    // What was due in the meantime comes at once.
    assert_eq!(reply.times(), [ms(50), ms(60), ms(560)]);
    assert_eq!(reply.values().len(), 5);
    let forever = sim(r#"[{"action": {"stall": {"at_token": 2}}}]"#);
    let mut client = Client::new(&forever).await;
    let hour = Duration::from_hours(1);
    assert!(tokio::time::timeout(hour, client.post("/v1/completions", STREAM)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn errors_end_the_stream() {
    let (sim, reply) =
        streamed(r#"{"error": {"at_token": 2, "message": "worker lost", "code": 503}}"#).await;
    let events = reply.values();
    assert_eq!(events.len(), 4);
    assert_eq!(events[2]["error"]["message"], "worker lost");
    assert_eq!((&events[2]["error"]["code"], &events[3]), (&json!(503), &json!("[DONE]")));
    assert!(reply.complete && sim.truth()[0].aborted);
    let (_, reply) = streamed(r#"{"error": {"at_token": 0, "done": false}}"#).await;
    assert_eq!(reply.values().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn done_can_be_missing_or_not_the_end() {
    let (_, reply) = streamed(r#"{"no_done": {}}"#).await;
    assert_eq!((reply.values().len(), reply.complete), (4, true));
    let (_, reply) = streamed(r#"{"hold_open": {"ms": 300}}"#).await;
    assert_eq!((reply.times().last(), reply.ended_at), (Some(&ms(80)), ms(380)));
}

#[tokio::test(start_paused = true)]
async fn events_can_come_twice_with_comments_between() {
    let (_, reply) = streamed(r#"{"duplicate": {"at_token": 1}}"#).await;
    let events = reply.values();
    assert_eq!((events.len(), &events[1]), (6, &events[2]));
    let (_, reply) = streamed(r#"{"ping": {"every": 2}}"#).await;
    let text = reply.text();
    assert_eq!(text.matches(": ping\n\n").count(), 2);
    assert!(text.starts_with(": ping\n\ndata: "));
}

#[tokio::test(start_paused = true)]
async fn rules_act_together() {
    let sim = sim(r#"[{"action": {"delay": {"ms": 200}}}, {"action": {"no_done": {}}},
            {"when": {"path": "/health"}, "action": {"status": {"code": 500}}}]"#);
    let mut client = Client::new(&sim).await;
    let reply = client.post("/v1/completions", STREAM).await;
    assert_eq!((reply.head_at, reply.values().len()), (ms(200), 4));
    assert_eq!(client.get("/health").await.status, 500);
    assert_eq!(client.get("/metrics").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_closes_after_the_reply() {
    let sim = sim(r#"[{"when": {"index": [0]}, "action": {"close": {"after_ms": 5}}}]"#);
    for stream in [STREAM.to_owned(), STREAM.replace("\"stream\": true", "\"stream\": false")] {
        sim.configure(br#"{"faults": []}"#).expect("fine");
        sim.configure(br#"{"faults": [{"action": {"close": {"after_ms": 5}}}]}"#).expect("fine");
        let mut client = Client::new(&sim).await;
        let reply = client.post("/v1/completions", &stream).await;
        assert_eq!((reply.status, reply.complete), (200, true));
        assert!(!client.closed(ms(4)).await);
        assert!(client.closed(ms(2)).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_can_end_on_the_next_request() {
    let sim = sim(r#"[{"when": {"index": [0]}, "action": {"close": {"on_next_byte": true}}}]"#);
    let mut client = Client::new(&sim).await;
    let reply = client.post("/v1/completions", STREAM).await;
    assert!(reply.complete);
    assert!(!client.closed(ms(60_000)).await);
    assert!(client.try_request(post("/v1/completions", STREAM)).await.is_err());
    assert_eq!(sim.stats().requests, 1);
}

#[tokio::test(start_paused = true)]
async fn packed_replies_are_cut_as_well() {
    let sim = sim(r#"[{"action": {"cut": {"after_tokens": 3}}}]"#);
    sim.configure(br#"{"timing": {"canned": {"ttft_ms": 0, "itl_ms": 0}}}"#).expect("fine");
    let reply = Client::new(&sim).await.post("/v1/completions", STREAM).await;
    assert_eq!((reply.values().len(), reply.complete), (3, false));
}

#[tokio::test(start_paused = true)]
async fn a_hung_up_request_has_no_head_and_a_silent_one_none_ever() {
    let sim = sim(r#"[{"when": {"index": [0]}, "action": {"hang_up": {}}},
            {"when": {"index": [1]}, "action": {"silence": {}}}]"#);
    let request = || post("/v1/completions", STREAM);
    assert!(Client::new(&sim).await.try_request(request()).await.is_err());
    let mut client = Client::new(&sim).await;
    let silent = tokio::time::timeout(Duration::from_hours(1), client.try_request(request()));
    assert!(silent.await.is_err(), "no answer within an hour");
    assert_eq!((sim.stats().refused, sim.stats().open_connections), (2, 1));
    assert!(Client::new(&sim).await.try_request(request()).await.expect("an answer").complete);
}

#[tokio::test(start_paused = true)]
async fn the_wire_is_cut_inside_heads_and_chunks() {
    for bytes in [1, 17] {
        let sim = sim(&format!(r#"[{{"action": {{"cut": {{"after_wire_bytes": {bytes}}}}}}}]"#));
        let request = post("/v1/completions", STREAM);
        assert!(Client::new(&sim).await.try_request(request).await.is_err(), "{bytes}");
    }
    // A byte more each time: nothing but the end is ever lost.
    let (_, whole) = streamed(r#"{"delay": {"ms": 0}}"#).await;
    let whole = whole.text();
    let mut longest = 0;
    for bytes in (150..2000).step_by(7) {
        let sim = sim(&format!(r#"[{{"action": {{"reset": {{"after_wire_bytes": {bytes}}}}}}}]"#));
        let Ok(reply) = Client::new(&sim).await.try_request(post("/v1/completions", STREAM)).await
        else {
            continue;
        };
        assert!(whole.starts_with(&reply.text()), "{bytes}");
        assert!(reply.text().len() >= longest, "{bytes}");
        longest = reply.text().len();
        if reply.complete {
            break;
        }
    }
    assert_eq!(longest, whole.len());
}

#[tokio::test(start_paused = true)]
async fn a_response_drips() {
    let (_, reply) = streamed(r#"{"drip": {"bytes": 10, "ms": 20}}"#).await;
    assert!(reply.complete);
    // All of it, head and chunk sizes included, 10 bytes every 20 ms.
    assert!(reply.head_at > ms(200) && reply.ended_at > ms(1000), "{reply:?}");
    let bytes = reply.text().len() as u32;
    assert!(reply.ended_at >= ms(20) * (bytes / 10), "{reply:?}");
}

#[tokio::test(start_paused = true)]
async fn headers_are_set_and_the_next_response_is_sound() {
    let sim = sim(
        r#"[{"when": {"index": [0]}, "action": {"headers": {"headers": {"content-type": "text/html"}}}},
            {"when": {"index": [0]}, "action": {"drip": {"bytes": 100, "ms": 1}}}]"#,
    );
    let mut client = Client::new(&sim).await;
    let reply = client.post("/v1/completions", STREAM).await;
    assert_eq!(reply.headers["content-type"], "text/html");
    assert!(reply.ended_at > ms(80));
    let reply = client.post("/v1/completions", STREAM).await;
    assert_eq!(reply.headers["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!((reply.ended_at, reply.complete), (ms(80), true));
}

#[tokio::test(start_paused = true)]
async fn a_line_may_be_long() {
    let (_, reply) =
        streamed(r#"{"malformed": {"at_token": 1, "text": "x", "repeat": 300000}}"#).await;
    assert!(reply.complete);
    assert!(reply.text().contains(&"x".repeat(300_000)));
}

#[test]
fn what_frames_a_body_cannot_be_set() {
    let refused = |rule: &str| parse_faults(rule).expect_err("refused").to_string();
    let framing = r#"[{"action": {"headers": {"headers": {"Content-Length": "3"}}}}]"#;
    assert!(refused(framing).contains("frames the body"));
    let long =
        r#"[{"action": {"malformed": {"at_token": 0, "text": "xxxx", "repeat": 4000000000}}}]"#;
    assert!(refused(long).contains("more than"));
    let both = r#"[{"action": {"cut": {"after_bytes": 0, "after_wire_bytes": 0}}}]"#;
    assert!(refused(both).contains("exclude"));
    assert!(refused(r#"[{"action": {"drip": {"bytes": 0, "ms": 1}}}]"#).contains("bytes"));
}

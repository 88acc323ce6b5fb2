//! How a stream is read: its end, its tokens, and replies that are no streams.

use super::bench::{Bench, number, numbers};
use super::peer::{
    Peer, Then, content, delta, done, event, finish, one_token, pause, usage, usual,
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// A chat server that sends the same events to everyone.
fn chat(events: impl IntoIterator<Item = String>) -> Peer {
    let events: Vec<String> = events.into_iter().collect();
    Peer::start(
        move |seen, wire| {
            if seen.generates() { wire.stream(&events) } else { usual(seen, wire) }
        },
    )
}

/// SSE-09 (d).
#[test]
fn done_frees_the_slot_though_the_socket_stays_open() {
    let peer = Peer::start(|seen, wire| {
        if !seen.generates() {
            return usual(seen, wire);
        }
        wire.begin();
        wire.chunk(&one_token().concat());
        Then::Hang
    });
    let bench = Bench::of(&peer).and("--num-prompts 2 --max-concurrency 1 --idle-timeout 30");
    let ended = bench.run().code(0);
    let line = ended.line();
    assert_eq!(line["completed"], 2, "{}", ended.err);
    assert_eq!(line["finish_reasons"], json!(["length", "length"]));
    assert!(number(&line["duration"]) < 30.0, "it did not wait for the end of the body");
}

/// SSE-09 (e).
#[test]
fn what_follows_done_is_ignored() {
    let late = [done(), content("late"), "data: {garbage\n\n".into(), "and more\n".into()];
    let peer = chat([content("a"), finish("length")].into_iter().chain(late));
    let ended = Bench::of(&peer).and("--num-prompts 2 --max-concurrency 1").run().code(0);
    assert_eq!(ended.line()["completed"], 2);
    assert_eq!(ended.line()["generated_texts"], json!(["a", "a"]));
}

/// TOK-02 (c): cut off while thinking.
#[test]
fn thinking_alone_is_output() {
    let peer = Peer::start(|seen, wire| {
        if !seen.generates() {
            return usual(seen, wire);
        }
        wire.begin();
        wire.chunk(&delta(&json!({"reasoning_content": "th"})));
        pause(500 * MS);
        wire.chunk(&delta(&json!({"reasoning_content": "ink"})));
        wire.chunk(&[finish("length"), usage(8, 4), done()].concat());
        wire.end()
    });
    let ended = Bench::of(&peer).run().code(0);
    let line = ended.line();
    assert_eq!(line["output_lens"], json!([4]));
    assert_eq!(line["generated_texts"], json!(["think"]));
    let (ttft, latency) = (number(&line["ttfts"][0]), number(&line["latencies"][0]));
    assert!(latency - ttft >= 0.1, "TTFT is not the first thought's: {line}");
}

/// TOK-10 and its decision.
#[test]
fn a_reply_without_a_token_is_empty() {
    let peer = chat([finish("stop"), usage(8, 0), done()]);
    let ended = Bench::of(&peer).run().code(5);
    assert_eq!(ended.line()["failures"], json!({"empty": 1}));

    let ended = Bench::of(&peer).and("--disable-ignore-eos").run().code(0);
    let line = ended.line();
    assert_eq!((&line["completed"], &line["failed"]), (&json!(1), &json!(0)));
    for key in ["mean_ttft_ms", "mean_tpot_ms", "mean_itl_ms", "p99_itl_ms", "max_itl_ms"] {
        assert_eq!(line[key], Value::Null, "{key}");
    }
    assert_eq!(line["ttfts"], json!([null]));
    assert_eq!(line["output_lens"], json!([0]));
}

#[test]
fn tool_calls_are_tokens() {
    let call = |arguments: &str| {
        let function = json!({"name": "look_up", "arguments": arguments});
        delta(&json!({"tool_calls": [{"index": 0, "id": "c", "function": function}]}))
    };
    let last = [finish("tool_calls"), usage(8, 2), done()];
    let peer = chat([call("{"), call("}")].into_iter().chain(last));
    let ended = Bench::of(&peer).run().code(0);
    let line = ended.line();
    assert!(number(&line["ttfts"][0]) > 0.0, "{line}");
    assert!(number(&line["mean_ttft_ms"]) > 0.0, "{line}");
    assert_eq!(line["output_lens"], json!([2]));
}

/// TOK-12 (a), (b).
#[test]
fn a_single_token_stays_out_of_tpot() {
    let count = AtomicUsize::new(0);
    let peer = Peer::start(move |seen, wire| {
        if !seen.generates() {
            return usual(seen, wire);
        }
        if count.fetch_add(1, SeqCst) == 0 {
            return wire.stream(&one_token());
        }
        wire.begin();
        for text in ["a", "b", "c", "d"] {
            pause(20 * MS);
            wire.chunk(&content(text));
        }
        wire.chunk(&[finish("length"), usage(8, 4), done()].concat());
        wire.end()
    });
    let bench = Bench::of(&peer).and("--num-prompts 2 --max-concurrency 1");
    let ended = bench.run().code(0);
    let line = ended.line();
    assert_eq!(line["output_lens"], json!([1, 4]));
    let time = |key: &str| numbers(&line[key])[1];
    let tpot = (time("latencies") - time("ttfts")) / 3.0 * 1e3;
    assert!(tpot > 0.0, "{line}");
    for key in ["mean_tpot_ms", "median_tpot_ms", "p99_tpot_ms"] {
        assert!((number(&line[key]) - tpot).abs() < 1e-6, "{key}: {} and {tpot}", line[key]);
    }

    // With nothing but single tokens there is no TPOT at all.
    let alone = Bench::of(&chat(one_token())).run().code(0);
    for key in ["mean_tpot_ms", "mean_itl_ms", "median_itl_ms", "p99_itl_ms", "max_itl_ms"] {
        assert_eq!(alone.line()[key], Value::Null, "{key}");
    }
}

/// TOK-12 (c), for every route.
#[test]
fn a_reply_that_is_no_stream_is_read_whole() {
    let choice = |key: &str, value: Value| {
        let choice = json!({"index": 0, key: value, "finish_reason": "length"});
        json!({"choices": [choice], "usage": {"prompt_tokens": 8, "completion_tokens": 4}})
    };
    let finish = json!({"type": "length"});
    let meta = json!({"prompt_tokens": 8, "completion_tokens": 4, "finish_reason": finish});
    for (backend, body) in [
        ("sglang", json!({"text": "abcd", "meta_info": meta})),
        ("sglang-oai", choice("text", json!("abcd"))),
        ("sglang-oai-chat", choice("message", json!({"role": "assistant", "content": "abcd"}))),
    ] {
        let pretty = serde_json::to_string_pretty(&body).expect("JSON");
        assert!(pretty.lines().count() > 5);
        let peer = Peer::start(move |seen, wire| {
            if !seen.generates() {
                return usual(seen, wire);
            }
            pause(60 * MS);
            wire.reply(200, "application/json", pretty.as_bytes())
        });
        let bench = Bench::of(&peer).with("--backend", backend).and("--disable-stream");
        let ended = bench.run().code(0);
        let line = ended.line();
        assert_eq!(line["generated_texts"], json!(["abcd"]), "{backend}");
        assert_eq!(line["output_lens"], json!([4]), "{backend}");
        assert_eq!(line["itls"], json!([[]]), "{backend}");
        assert!(number(&line["latencies"][0]) >= 0.055, "{backend}: {line}");
        assert_eq!(line["ttfts"], line["latencies"], "{backend}: the first token comes with all");
        assert_eq!(line["mean_itl_ms"], Value::Null, "{backend}");

        let [asked] = &peer.generations()[..] else { panic!("{backend}: one request") };
        assert_eq!(asked.json()["stream"], false, "{backend}");
        assert_eq!(asked.json().get("stream_options"), None, "{backend}");
    }
}

/// TOK-12 (d).
#[test]
fn a_single_token_meets_a_tpot_objective() {
    let ended = Bench::of(&chat(one_token())).and("--goodput tpot:0.001").run().code(0);
    assert_eq!(ended.line()["slo_attainment_by_metric"], json!({"tpot": 1.0}));
    assert!(number(&ended.line()["request_goodput"]) > 0.0);
}

/// ERR-01 (g).
#[test]
fn an_error_that_is_no_event_fails_the_request_and_keeps_its_text() {
    let error = json!({"error": {"message": "worker lost", "code": 500}});
    let peer = chat([content("a"), content("b"), format!("{error}\n")]);
    let ended = Bench::of(&peer).run().code(5);
    let line = ended.line();
    assert_eq!(line["generated_texts"], json!(["ab"]));
    assert!(line["errors"][0].as_str().is_some_and(|text| text.contains("worker lost")), "{line}");
    assert_eq!(line["total_output_tokens"], 0);
    assert_eq!(line["mean_ttft_ms"], Value::Null, "a failed request is in no statistic");
}

/// SSE-11 on the native route: what is no number is absent, and the file stays strict JSON.
#[test]
fn odd_numbers_of_the_native_route_are_absent() {
    let peer = Peer::start(|seen, wire| {
        if !seen.generates() {
            return usual(seen, wire);
        }
        let odd = r#"{"text": "a\ud83d", "index": 0, "meta_info": {"completion_tokens": 1,
            "e2e_latency": NaN, "spec_accept_length": Infinity, "finish_reason": {"type": "length"}}}"#;
        wire.stream(&[format!("data: {}\n\n", odd.replace('\n', " ")), done()])
    });
    let ended = Bench::of(&peer).with("--backend", "sglang").run().code(0);
    assert_eq!(ended.line()["output_lens"], json!([1]));
    assert_eq!(ended.line()["accept_length"], Value::Null);
}

/// TOK-04, with counts that are not there yet.
#[test]
fn a_usage_event_alone_is_no_token() {
    let silent = event(&json!({"choices": [], "usage": null}));
    let peer = chat([silent, content("a"), finish("length"), usage(8, 1), done()]);
    let ended = Bench::of(&peer).run().code(0);
    assert_eq!(ended.line()["itls"], json!([[]]));
}

/// A line without an end is a failed request, however it is sent; a long one is read.
#[test]
fn a_line_may_be_long_but_not_endless() {
    for (mebibytes, chunked) in [(2, true), (2, false), (65, true), (65, false)] {
        let peer = Peer::start(move |seen, wire| {
            if !seen.generates() {
                return usual(seen, wire);
            }
            let text = "x".repeat(mebibytes << 20);
            let events = [content(&text), finish("length"), done()].concat();
            if chunked {
                return wire.stream(&[events]);
            }
            wire.reply(200, "text/event-stream", events.as_bytes())
        });
        let ended = Bench::of(&peer).run();
        if mebibytes < 64 {
            let line = ended.code(0);
            let texts = &line.line()["generated_texts"];
            assert_eq!(texts[0].as_str().map(str::len), Some(mebibytes << 20));
        } else {
            let ended = ended.code(5);
            ended.says(&["protocol", "67108864 bytes"]);
            assert_eq!(ended.line()["failures"], json!({"protocol": 1}));
        }
    }
}

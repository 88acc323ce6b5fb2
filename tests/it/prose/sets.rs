//! Data sets whose rows have more than a prompt: times, fields of their own, turns.

use super::bench::{Bench, number};
use super::peer::{Peer, usual};
use crate::support::root;
use serde_json::{Value, json};

fn fixture(name: &str) -> String {
    root().join("tests/fixtures").join(name).to_string_lossy().into_owned()
}

/// A call with this data set alone.
fn bench(peer: &Peer, dataset: &str) -> Bench {
    Bench::of(peer).and(&format!("--dataset-name {dataset}"))
}

/// Q34: the requests of a trace leave at its times, and never before.
#[test]
fn a_trace_is_replayed_at_its_times() {
    let peer = Peer::start(usual);
    for (flags, gaps) in [
        ("--mooncake-slowdown-factor 5", [0.0, 0.075, 0.2, 0.2, 0.25, 0.275]),
        ("--mooncake-slowdown-factor 0 --use-trace-timestamps true", [0.0; 6]),
        ("--mooncake-slowdown-factor 1000000 --use-trace-timestamps false", [0.0; 6]),
    ] {
        let bench =
            bench(&peer, "mooncake").with("--dataset-path", &fixture("mooncake_small.jsonl"));
        let ended = bench.and("--num-prompts 6").and(flags).run().code(0);
        let line = ended.line();
        let starts = line["start_times"].as_array().expect("start times");
        assert_eq!(starts.len(), 6);
        for (start, due) in starts.iter().zip(gaps) {
            let late = number(start) - due;
            assert!((0.0..1.0).contains(&late), "{flags}: {starts:?}");
        }
        let paced = flags.contains("false");
        assert_eq!(line["request_rate"], if paced { "inf" } else { "trace" }, "{flags}");
    }
}

#[test]
fn a_rate_beside_a_trace_is_said_to_do_nothing() {
    let peer = Peer::start(usual);
    let bench = || {
        let bench =
            bench(&peer, "mooncake").with("--dataset-path", &fixture("mooncake_small.jsonl"));
        bench.and("--num-prompts 2 --request-rate 1000")
    };
    let ended = bench().run().code(0);
    assert!(ended.err.contains("--request-rate does nothing here"), "{}", ended.err);
    let ended = bench().and("--use-trace-timestamps false").run().code(0);
    assert!(!ended.err.contains("does nothing"), "{}", ended.err);
    assert_eq!(ended.line()["request_rate"], 1000.0);
    let ended = Bench::of(&peer).and("--use-trace-timestamps").run().code(2);
    assert!(ended.err.contains("--dataset-name mooncake, whose rows have times"), "{}", ended.err);
}

#[test]
fn a_broken_row_of_a_trace_is_named() {
    let peer = Peer::start(usual);
    let bench = bench(&peer, "mooncake");
    let path = bench.file("trace", "{\"timestamp\": 0, \"hash_ids\": [1]}\n\n{\"timestamp\": 1}\n");
    let ended = bench.with("--dataset-path", &path).and("--num-prompts 5").run().code(3);
    assert!(ended.err.contains("line 3: missing field `hash_ids`"), "{}", ended.err);
    assert!(peer.generations().is_empty());
}

/// Q40: fields of a row are sent as they are, and the reply is read as what it is.
#[test]
fn a_row_may_ask_for_a_whole_reply() {
    let peer = Peer::start(|seen, wire| {
        if !seen.generates() || seen.json()["stream"] != false {
            return usual(seen, wire);
        }
        let message = json!({"role": "assistant", "content": "four words in all"});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        let usage = json!({"prompt_tokens": 9, "completion_tokens": 4});
        wire.json(200, &json!({"choices": [choice], "usage": usage}))
    });
    let bench = bench(&peer, "openai");
    let rows = [
        json!({"messages": [{"role": "user", "content": "a"}], "stream": false, "max_tokens": null}),
        json!({"messages": [{"role": "user", "content": "b"}], "max_tokens": 3, "temperature": 0.5}),
    ];
    let path = bench.file("rows", &rows.map(|row| row.to_string()).join("\n"));
    let bench = bench.with("--dataset-path", &path).and("--num-prompts 2 --max-concurrency 1");
    let ended = bench.with("--extra-request-body", r#"{"temperature":0.9,"seed":1}"#).run().code(0);
    let line = ended.line();
    assert_eq!(line["generated_texts"][0], "four words in all");
    assert_eq!((&line["output_lens"][0], &line["input_lens"][0]), (&json!(4), &json!(9)));
    let sent: Vec<Value> = peer.generations().iter().map(|seen| seen.json()).collect();
    assert_eq!((&sent[0]["temperature"], &sent[0]["seed"]), (&json!(0.9), &json!(1)));
    assert_eq!((&sent[1]["temperature"], &sent[1]["seed"]), (&json!(0.5), &json!(1)));
    assert_eq!(sent[0]["max_completion_tokens"], 256);
}

#[test]
fn what_a_backend_cannot_send_is_refused() {
    let peer = Peer::start(usual);
    for (dataset, flags, said) in [
        ("openai", "", "--dataset-name openai holds chat requests"),
        ("agentic-trace", "", "--dataset-name agentic-trace makes conversations"),
        (
            "generated-shared-prefix",
            "--gsp-num-turns 2",
            "--gsp-num-turns above 1 makes conversations",
        ),
    ] {
        let bench = bench(&peer, dataset).and("--backend sglang --dataset-path rows").and(flags);
        let ended = bench.run().code(2);
        assert!(ended.err.contains(said), "{}", ended.err);
    }
    let bench = bench(&peer, "agentic-trace").with("--dataset-path", "rows");
    let ended = bench.with("--extra-request-body", r#"{"messages":[]}"#).run().code(2);
    assert!(ended.err.contains("take the place of the conversation's"), "{}", ended.err);
}

#[test]
fn the_number_of_shared_prefixes_is_groups_times_prompts() {
    let peer = Peer::start(usual);
    let shape = "--gsp-num-groups 2 --gsp-prompts-per-group 3 --gsp-system-prompt-len 20 --gsp-question-len 4";
    let ended = bench(&peer, "generated-shared-prefix").and(shape).run().code(0);
    assert!(ended.err.contains("--num-prompts 1 does nothing here"), "{}", ended.err);
    assert_eq!((&ended.line()["num_prompts"], peer.generations().len()), (&json!(6), 6));
    for (flags, said) in [
        ("--gsp-group-distribution zipf", "needs --gsp-zipf-alpha"),
        ("--gsp-zipf-alpha 1", "needs --gsp-group-distribution zipf"),
        ("--gsp-num-groups 0", "--gsp-num-groups must be at least 1"),
        ("--gsp-range-ratio 1.5", "from 0 to 1"),
    ] {
        let ended = bench(&peer, "generated-shared-prefix").and(shape).and(flags).run().code(2);
        assert!(ended.err.contains(said), "{}", ended.err);
    }
}

/// Turns wait for the user to think, and the pause is no latency.
#[test]
fn turns_are_a_think_time_apart() {
    let peer = Peer::start(usual);
    let bench =
        bench(&peer, "agentic-trace").with("--dataset-path", &fixture("agentic_small.json"));
    let bench = bench.and("--num-prompts 3 --sharegpt-output-len 2 --think-time 0.05");
    let line = bench.run().code(0).line().clone();
    let turns = line["turn_numbers"].as_array().expect("turns").clone();
    assert_eq!(turns, [1, 2, 3, 1, 1, 2, 3].map(Value::from));
    assert_eq!(line["conversation_indices"], json!([0, 0, 0, 1, 2, 2, 2]));
    let of = |key: &str, at: usize| number(&line[key][at]);
    for at in (1..7).filter(|&at| turns[at] != 1) {
        let before = of("start_times", at - 1) + of("latencies", at - 1);
        let pause = of("start_times", at) - before;
        assert!((0.05..1.0).contains(&pause), "turn {at}: {pause}");
    }
    let took = number(&line["conversations"]["duration_ms"]["max"]);
    assert!(took >= 100.0, "two pauses: {took}");
    assert_eq!(line["conversations"]["completed"], 3);
}

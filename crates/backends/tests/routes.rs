//! The bodies and replies of the routes that only one kind of server has: Triton, Truss, embeddings.

use serde_json::{Value, json};
use servebench_backends::{BackendKind, GenerateOptions};
use servebench_core::{End, Failure, FailureKind, Progress, Reply, Request, Sample, Stamp};

fn options() -> GenerateOptions {
    GenerateOptions { model: "m".into(), ..GenerateOptions::default() }
}

fn encode(
    kind: BackendKind,
    options: GenerateOptions,
    row: &Value,
    adapter: Option<&str>,
) -> Value {
    let extra_body = row.as_object().expect("an object").clone();
    let sample = Sample { prompt: "hi".into(), output_len: 4, extra_body, ..Sample::default() };
    serde_json::from_slice(&kind.protocol(options).encode(&sample, adapter)).expect("JSON")
}

/// Decodes pieces that come 10 ms apart.
fn decode(kind: BackendKind, pieces: &[&str], end: End) -> Reply {
    let protocol = kind.protocol(options());
    let mut decoder = protocol.decoder(&Request { output_len: 4, ..Request::default() });
    let mut reply = Reply { keep_pieces: true, ..Reply::default() };
    let mut at = 0;
    for piece in pieces {
        at += 10;
        if decoder.feed(Stamp::from_millis(at), piece.as_bytes(), &mut reply) == Progress::Done {
            break;
        }
    }
    decoder.end(Stamp::from_millis(at), end, &mut reply);
    reply
}

fn failure(reply: &Reply) -> Option<FailureKind> {
    reply.failure.as_ref().map(|failure| failure.kind)
}

fn reset() -> End {
    End::Broken(Failure::new(FailureKind::Reset, "reset"))
}

#[test]
fn triton_is_asked_as_the_python_tool_asks() {
    let body = encode(BackendKind::Trt, options(), &json!({}), Some("ignored"));
    let want = json!({"accumulate_tokens": true, "text_input": "hi", "temperature": 1e-6,
        "top_p": 1.0, "max_tokens": 4, "stream": true, "min_length": 4, "end_id": 1_048_576});
    assert_eq!(body, want);

    let stops = GenerateOptions { ignore_eos: false, temperature: 0.5, ..options() };
    let body = encode(BackendKind::Trt, stops, &json!({"top_p": 0.9}), None);
    let want = json!({"accumulate_tokens": true, "text_input": "hi", "temperature": 0.5,
        "top_p": 0.9, "max_tokens": 4, "stream": true});
    assert_eq!(body, want);
}

#[test]
fn a_truss_is_asked_as_completions_are_without_adapters() {
    let quiet = GenerateOptions { include_usage: false, return_logprob: true, ..options() };
    let body = encode(BackendKind::Truss, quiet, &json!({"temperature": 1}), Some("ignored"));
    let want = json!({"model": "m", "prompt": "hi", "temperature": 1, "best_of": 1,
        "max_tokens": 4, "stream": true, "ignore_eos": true});
    assert_eq!(body, want);
    let asked = encode(BackendKind::Truss, options(), &json!({}), None);
    assert_eq!(asked["stream_options"], json!({"include_usage": true}));
}

#[test]
fn embeddings_are_asked_for_with_input_and_model() {
    for kind in [BackendKind::SglangEmbedding, BackendKind::VllmEmbedding] {
        let plain = encode(kind, options(), &json!({}), None);
        assert_eq!(plain, json!({"input": "hi", "model": "m"}));
        let adapted = encode(kind, options(), &json!({"dimensions": 8}), Some("a"));
        assert_eq!(
            adapted,
            json!({"input": "hi", "model": "a", "lora_path": "a", "dimensions": 8})
        );
        let row = encode(kind, options(), &json!({"model": "mine"}), Some("a"));
        assert_eq!(row["model"], "mine", "the extra body wins over the adapter here");
    }
}

#[test]
fn accumulated_text_is_not_joined() {
    let reply = decode(
        BackendKind::Trt,
        &[
            "data: {\"model_name\":\"ensemble\",\"text_output\":\"a\"}\n\n",
            "data:{\"text_output\":\"ab\"}\n\n",
            "data: {\"text_output\":\"abc\"}\n\ndata: {\"text_output\":\"abc\"}\n\n",
        ],
        End::Complete,
    );
    assert_eq!((reply.failure, reply.text.as_str()), (None, "abc"));
    let stamps: Vec<u64> = reply.chunks.iter().map(|chunk| chunk.at.0 / 1_000_000).collect();
    assert_eq!((stamps, reply.completion_tokens), (vec![10, 20, 30], None));
    assert_eq!(reply.pieces, [1, 2, 3]);
}

#[test]
fn pieces_of_triton_are_joined() {
    let frame = |text: &str| format!("data: {{\"text_output\":\"{text}\"}}\n\n");
    let frames = ["a", "ab", "c", "c"].map(frame);
    let reply = decode(BackendKind::Trt, &frames.each_ref().map(String::as_str), End::Complete);
    assert_eq!((reply.failure, reply.text.as_str()), (None, "aabcc"));
    assert_eq!(reply.chunks.len(), 4);
    assert!(reply.pieces.iter().all(|&end| end <= 5));
}

#[test]
fn triton_fails_when_it_says_so_and_when_it_breaks_off() {
    let frame = "data: {\"text_output\":\"a\"}\n\n";
    let fails = |pieces: &[&str], end| failure(&decode(BackendKind::Trt, pieces, end));
    assert_eq!(
        fails(&[frame, "data: {\"error\":\"no room\"}\n\n"], End::Complete),
        Some(FailureKind::Server)
    );
    assert_eq!(fails(&[frame], reset()), Some(FailureKind::Reset));
    assert_eq!(fails(&[frame, "data: {\"text_out"], End::Complete), Some(FailureKind::Truncated));
    assert_eq!(
        fails(&["data: {\"text_output\":\"\"}\n\n"], End::Complete),
        Some(FailureKind::Empty)
    );
    assert_eq!(fails(&[], End::Complete), Some(FailureKind::Empty));
    let kept = decode(BackendKind::Trt, &[frame], reset());
    assert_eq!(kept.text, "a", "what came before is kept");
}

#[test]
fn a_truss_is_read_as_completions_are() {
    let reply = decode(
        BackendKind::Truss,
        &[
            "data: {\"choices\":[{\"text\":\"a\"}]}\n\n",
            "data: {\"choices\":[{\"text\":\"b\",\"finish_reason\":\"length\"}]}\n\n",
            "data: {\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
        ],
        End::Complete,
    );
    assert_eq!(
        (reply.failure, reply.text.as_str(), reply.completion_tokens),
        (None, "ab", Some(2))
    );
}

#[test]
fn an_embedding_has_a_latency_and_no_tokens() {
    let pieces =
        ["{\"data\":[{\"index\":0,\"embedding\":[0.1,", "NaN]}],\"usage\":{\"prompt_tokens\":3}}"];
    for kind in [BackendKind::SglangEmbedding, BackendKind::VllmEmbedding] {
        let reply = decode(kind, &pieces, End::Complete);
        assert_eq!((&reply.failure, reply.text.as_str(), reply.chunks.len()), (&None, "", 0));
        assert_eq!((reply.completion_tokens, reply.prompt_tokens), (Some(0), Some(3)));
        assert_eq!((reply.first_token(), reply.last_line), (None, Some(Stamp::from_millis(20))));
    }
    let encoded = "{\"data\":[{\"embedding\":\"AACAPw==\"}]}";
    assert_eq!(failure(&decode(BackendKind::VllmEmbedding, &[encoded], End::Complete)), None);
}

#[test]
fn an_answer_without_an_embedding_is_a_failure() {
    let cases = [
        ("", FailureKind::Empty),
        ("{}", FailureKind::Empty),
        ("{\"data\":[]}", FailureKind::Empty),
        ("{\"data\":[{\"embedding\":null}]}", FailureKind::Empty),
        ("{\"data\":[{\"embedding\":[1]},{}]}", FailureKind::Empty),
        ("{\"error\":{\"message\":\"no\"}}", FailureKind::Server),
        ("{\"object\":\"error\",\"message\":\"no\",\"code\":400}", FailureKind::Server),
        ("<html>", FailureKind::Protocol),
        ("{\"data\":[{\"embedding\":[1]}]", FailureKind::Protocol),
    ];
    for (body, want) in cases {
        let reply = decode(BackendKind::SglangEmbedding, &[body], End::Complete);
        assert_eq!((failure(&reply), reply.completion_tokens), (Some(want), None), "{body}");
    }
    let broken = decode(BackendKind::SglangEmbedding, &["{\"data\":"], reset());
    assert_eq!(failure(&broken), Some(FailureKind::Reset));
}

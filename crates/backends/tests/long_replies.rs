//! Replies with much beside the text: log probabilities, routed experts.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use servebench_backends::{BackendKind, GenerateOptions};
use servebench_core::{Decode, End, Progress, Reply, Request, Stamp};
use std::fmt::Write;

const TOKENS: u32 = 400;

fn decoder(backend: BackendKind) -> Box<dyn Decode> {
    let options = GenerateOptions {
        return_logprob: true,
        top_logprobs_num: 20,
        return_routed_experts: true,
        ..GenerateOptions::default()
    };
    let request = Request { output_len: TOKENS, ..Request::default() };
    backend.protocol(options).decoder(&request)
}

/// Reads `body` in pieces as a socket hands them over; the stamp is the number of the piece.
fn read(backend: BackendKind, body: &str, piece: usize) -> Reply {
    let (mut decoder, mut reply) = (decoder(backend), Reply::default());
    let mut at = 0;
    for bytes in body.as_bytes().chunks(piece) {
        at += 64;
        if decoder.feed(Stamp(at), bytes, &mut reply) == Progress::Done {
            break;
        }
    }
    decoder.end(Stamp(at), End::Complete, &mut reply);
    reply
}

/// A list of alternatives as SGLang writes them, with text that looks like the fields around it.
fn logprobs(tokens: u32, alternatives: u32) -> String {
    let mut list = String::new();
    for token in 0..tokens {
        let rows = (0..alternatives)
            .map(|it| format!("[-{it}.25,{token},\"}}],\\\"text\\\":\\\"no\\\"\"]"));
        let rows: Vec<String> = rows.collect();
        let comma = if token > 0 { "," } else { "" };
        write!(list, "{comma}[{}]", rows.join(",")).unwrap();
    }
    list
}

#[test]
fn frames_that_repeat_all_log_probabilities_are_read_to_the_end() {
    let mut body = String::new();
    for tokens in 1..=TOKENS {
        let finish = if tokens == TOKENS { r#"{"type":"length"}"# } else { "null" };
        let (text, logprobs) = ("a".repeat(tokens as usize), logprobs(tokens, 5));
        write!(
            body,
            "data: {{\"text\":\"{text}\",\"meta_info\":{{\"output_token_logprobs\":[{logprobs}],\
             \"output_top_logprobs\":[{logprobs}],\"finish_reason\":{finish},\
             \"completion_tokens\":{tokens},\"prompt_tokens\":3}}}}\n\n"
        )
        .unwrap();
    }
    body.push_str("data: [DONE]\n\n");
    assert!(body.len() > 20 << 20, "{}", body.len());
    for piece in [16 << 10, 1 << 20] {
        let reply = read(BackendKind::Sglang, &body, piece);
        assert_eq!(reply.failure, None);
        assert_eq!((reply.chunks.len() as u32, reply.completion_tokens), (TOKENS, Some(TOKENS)));
        assert_eq!(reply.text, "a".repeat(TOKENS as usize));
    }
}

/// The Python tool gives up on a line of more than 20 MiB.
#[test]
fn one_line_may_be_as_long_as_it_is() {
    let logprobs = logprobs(40_000, 20);
    let native = format!(
        "data: {{\"text\":\"ab\",\"meta_info\":{{\"input_token_logprobs\":[{logprobs}],\
         \"finish_reason\":{{\"type\":\"length\"}},\"completion_tokens\":400}}}}\n\ndata: [DONE]\n\n"
    );
    let completions = format!(
        "data: {{\"choices\":[{{\"index\":0,\"logprobs\":{{\"top_logprobs\":[{logprobs}]}},\
         \"text\":\"ab\",\"finish_reason\":\"length\"}}],\
         \"usage\":{{\"completion_tokens\":400}}}}\n\ndata: [DONE]\n\n"
    );
    for (backend, body) in [(BackendKind::Sglang, native), (BackendKind::SglangOai, completions)] {
        assert!(body.len() > 20 << 20, "{}", body.len());
        let reply = read(backend, &body, 64 << 10);
        assert_eq!((reply.failure, reply.text.as_str()), (None, "ab"));
        assert_eq!((reply.completion_tokens, reply.chunks.len()), (Some(400), 1));
    }
}

#[test]
fn routed_experts_are_kept_as_they_were_written() {
    let frame = |experts: &str, finish: &str| {
        format!(
            "data: {{\"text\":\"a\",\"meta_info\":{{\"completion_tokens\":400,{experts}\
             \"finish_reason\":{finish}}}}}\n\n"
        )
    };
    let done = "data: [DONE]\n\n";
    let last = frame("\"routed_experts\":\"AQAAAAIAAAA=\",", r#"{"type":"length"}"#);
    let reply = read(BackendKind::Sglang, &format!("{}{last}{done}", frame("", "null")), 7);
    assert_eq!(reply.rare().routed_experts.as_deref(), Some("AQAAAAIAAAA="));
    for none in ["", "\"routed_experts\":null,", "\"routed_experts\":[[1,2]],"] {
        let body = format!("{}{done}", frame(none, r#"{"type":"length"}"#));
        let reply = read(BackendKind::SglangNative, &body, 4096);
        assert_eq!((reply.failure.as_ref(), reply.rare().routed_experts.as_ref()), (None, None));
    }
}

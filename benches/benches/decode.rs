//! Decoding one stream of 128 tokens: the cost per token is a 128th. Budget: 400 ns per frame.

use divan::{Bencher, counter::ItemsCount};
use servebench_backends::{BackendKind, GenerateOptions};
use servebench_benches as _;
use servebench_core::{End, Progress, Reply, Request, Stamp};
use std::fmt::Write;

const TOKENS: u32 = 128;

fn main() {
    divan::main();
}

fn stream(kind: BackendKind) -> String {
    let mut out = String::new();
    let mut text = String::new();
    for n in 1..=TOKENS {
        text.push_str(" word");
        let finish = if n == TOKENS { "\"length\"" } else { "null" };
        let frame = match kind {
            BackendKind::Sglang => {
                let finish = if n == TOKENS { "{\"type\":\"length\"}" } else { "null" };
                format!(
                    "{{\"text\":\"{text}\",\"output_ids\":[{n}],\"meta_info\":{{\"id\":\"9f0c1e5a7d5b4f1f\",\
                     \"finish_reason\":{finish},\"prompt_tokens\":16,\"weight_version\":\"default\",\
                     \"completion_tokens\":{n},\"cached_tokens\":0,\"e2e_latency\":null}}}}"
                )
            }
            BackendKind::SglangOai => format!(
                "{{\"id\":\"cmpl-84421\",\"object\":\"text_completion\",\"created\":1796052266,\"model\":\"tiny\",\
                 \"choices\":[{{\"index\":0,\"text\":\" word\",\"logprobs\":null,\
                 \"finish_reason\":{finish},\"stop_reason\":null}}]}}"
            ),
            _ => format!(
                "{{\"id\":\"chatcmpl-927d7\",\"object\":\"chat.completion.chunk\",\"created\":1796052266,\
                 \"model\":\"tiny\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" word\"}},\
                 \"logprobs\":null,\"finish_reason\":{finish}}}]}}"
            ),
        };
        write!(out, "data: {frame}\n\n").expect("a string takes everything");
    }
    out + "data: [DONE]\n\n"
}

/// `read` bytes at a time: 1 << 20 is a stream that comes packed, 240 about one event per read.
#[divan::bench(args = [(BackendKind::Sglang, 1 << 20), (BackendKind::SglangOai, 1 << 20),
    (BackendKind::SglangOaiChat, 1 << 20), (BackendKind::SglangOaiChat, 240)])]
fn stream_of_128_tokens(bencher: Bencher<'_, '_>, (kind, read): (BackendKind, usize)) {
    let protocol = kind.protocol(GenerateOptions { model: "m".into(), ..Default::default() });
    let bytes = stream(kind);
    let request = Request { output_len: TOKENS, ..Request::default() };
    bencher.counter(ItemsCount::new(TOKENS)).bench(|| {
        let mut reply = Reply::default();
        let mut decoder = protocol.decoder(&request);
        for (at, piece) in bytes.as_bytes().chunks(read).enumerate() {
            if decoder.feed(Stamp(at as u64), piece, &mut reply) == Progress::Done {
                break;
            }
        }
        decoder.end(Stamp(u64::from(TOKENS)), End::Complete, &mut reply);
        assert_eq!(reply.chunks.len(), TOKENS as usize);
        reply
    });
}

//! Benches of the hot paths, one file for each.
//!
//! Run them with `cargo bench -p servebench-benches`. They share the allocator of the binaries. Where
//! wall time is too noisy, `cargo xtask bench count` counts instructions.

use servebench_backends::BackendKind;
use servebench_core::{End, Progress, Protocol, Reply, Request, Stamp};
use std::fmt::Write;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Tokens of a reply.
pub const TOKENS: u32 = 128;

/// A reply of [`TOKENS`] tokens as `kind` streams it, one event each.
pub fn stream(kind: BackendKind) -> String {
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

/// Decodes a reply, `read` bytes at a time.
pub fn decode(protocol: &dyn Protocol, request: &Request, bytes: &[u8], read: usize) -> Reply {
    let mut reply = Reply::default();
    let mut decoder = protocol.decoder(request);
    for (at, piece) in bytes.chunks(read).enumerate() {
        if decoder.feed(Stamp(at as u64), piece, &mut reply) == Progress::Done {
            break;
        }
    }
    decoder.end(Stamp(u64::from(TOKENS)), End::Complete, &mut reply);
    reply
}

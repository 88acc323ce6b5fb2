//! Decoding one stream of 128 tokens: the cost per token is a 128th. Budget: 400 ns per frame.

use divan::{Bencher, counter::ItemsCount};
use servebench_backends::{BackendKind, GenerateOptions};
use servebench_benches::{TOKENS, decode, stream};
use servebench_core::Request;

fn main() {
    divan::main();
}

/// `read` bytes at a time: 1 << 20 is a stream that comes packed, 240 about one event per read.
#[divan::bench(args = [(BackendKind::Sglang, 1 << 20), (BackendKind::SglangOai, 1 << 20),
    (BackendKind::SglangOaiChat, 1 << 20), (BackendKind::SglangOaiChat, 240)])]
fn stream_of_128_tokens(bencher: Bencher<'_, '_>, (kind, read): (BackendKind, usize)) {
    let protocol = kind.protocol(GenerateOptions { model: "m".into(), ..Default::default() });
    let bytes = stream(kind);
    let request = Request { output_len: TOKENS, ..Request::default() };
    bencher.counter(ItemsCount::new(TOKENS)).bench(|| {
        let reply = decode(protocol.as_ref(), &request, bytes.as_bytes(), read);
        assert_eq!(reply.chunks.len(), TOKENS as usize);
        reply
    });
}

//! What must hold for all bytes, as functions that a fuzzer and the property tests share.

use crate::sse::Events;
use crate::vllm::{VllmBackend, VllmOptions};
use crate::{BackendKind, GenerateOptions};
use servebench_core::{
    Decode, End, Failure, FailureKind, Progress, Protocol, Reply, Request, Stamp,
};

/// Events do not depend on how the bytes were cut. The first byte chooses the cuts.
pub fn sse(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else { return };
    let read = |cuts: &mut dyn Iterator<Item = &[u8]>, proper: bool| {
        let mut events = Events::with_limit(1 << 16);
        let mut seen = Vec::new();
        let mut sink = |event: crate::sse::Event<'_>| {
            seen.push((event.name.to_vec(), event.data.to_vec(), event.bare, event.unterminated));
            Progress::More
        };
        let mut failed = false;
        for piece in cuts {
            if events.feed(Stamp(0), piece, &mut sink).is_err() {
                failed = true;
                break;
            }
        }
        if !failed {
            events.finish(proper, &mut sink);
        }
        (seen, failed)
    };
    for proper in [true, false] {
        let whole = read(&mut std::iter::once(data), proper);
        let cut = read(&mut pieces(seed, data), proper);
        assert_eq!(whole, cut, "the cuts changed the events");
    }
}

/// No stream of a batch panics, and cuts change nothing. The first byte chooses route, rows and the cut.
pub fn batch_frames(data: &[u8]) {
    crate::batch::fuzz(data);
}

/// No native stream panics, and cuts change stamps only.
pub fn native_frames(data: &[u8]) {
    frames(BackendKind::Sglang, data);
}

/// No completions stream panics, and cuts change stamps only.
pub fn completions_frames(data: &[u8]) {
    frames(BackendKind::SglangOai, data);
}

/// No chat stream panics, and cuts change stamps only.
pub fn chat_frames(data: &[u8]) {
    frames(BackendKind::SglangOaiChat, data);
}

/// No stream of Triton panics, and cuts change stamps only.
pub fn triton_frames(data: &[u8]) {
    frames(BackendKind::Trt, data);
}

/// No answer with embeddings panics, and cuts change stamps only.
pub fn embeddings_answer(data: &[u8]) {
    frames(BackendKind::SglangEmbedding, data);
}

/// No stream of a response panics, and cuts change stamps only.
pub fn responses_frames(data: &[u8]) {
    frames_of(&*vllm(VllmBackend::OpenaiResponses), data);
}

/// No stream of a transcription panics, and cuts change stamps only.
pub fn transcription_frames(data: &[u8]) {
    frames_of(&*vllm(VllmBackend::OpenaiAudio), data);
}

/// No answer with pooled data, a ranking or bytes panics, nor does a header with their counts, and cuts
/// change stamps only. The second byte chooses.
pub fn pooling_answer(data: &[u8]) {
    let [seed, choice, rest @ ..] = data else { return };
    let mut options = VllmOptions::default();
    let backend = match choice % 3 {
        0 => VllmBackend::VllmPooling,
        1 => VllmBackend::VllmRerank,
        _ => {
            options.extra_body.insert("encoding_format".to_owned(), "bytes".into());
            VllmBackend::OpenaiEmbeddings
        }
    };
    let protocol = backend.protocol(backend.info().endpoint, options);
    frames_of(&*protocol, &[&[*seed], rest].concat());
    let mut reply = Reply::default();
    let header = String::from_utf8_lossy(rest);
    protocol.decoder(&Request::default()).metadata(&header, &mut reply);
    assert!(reply.failure.is_none() && reply.prompt_tokens != Some(0), "a header only counts");
}

fn vllm(backend: VllmBackend) -> std::sync::Arc<dyn Protocol> {
    backend.protocol(backend.info().endpoint, VllmOptions::default())
}

fn frames(kind: BackendKind, data: &[u8]) {
    frames_of(&*kind.protocol(GenerateOptions::default()), data);
}

fn frames_of(protocol: &dyn Protocol, data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else { return };
    let request = Request { output_len: 4, ..Request::default() };
    let broken = || End::Broken(Failure::new(FailureKind::Reset, "reset"));
    for end in [End::Complete, broken()] {
        let whole = decode(protocol.decoder(&request), std::iter::once(data), end.clone());
        let cut = decode(protocol.decoder(&request), pieces(seed, data), end);
        assert_eq!(timeless(whole), timeless(cut), "the cuts changed the reply");
    }
}

/// Decodes a body whose pieces come 1 ms apart, and checks that nothing follows the end.
fn decode<'a>(
    mut decoder: Box<dyn Decode>,
    pieces: impl Iterator<Item = &'a [u8]>,
    end: End,
) -> Reply {
    let mut reply = Reply { keep_pieces: true, ..Reply::default() };
    let mut at = 0;
    let mut done = false;
    for piece in pieces {
        at += 1;
        let before = done.then(|| reply.clone());
        done |= decoder.feed(Stamp::from_millis(at), piece, &mut reply) == Progress::Done;
        assert!(before.is_none_or(|before| before == reply), "something changed after the end");
    }
    let end = if done { End::Complete } else { end };
    decoder.end(Stamp::from_millis(at), end, &mut reply);
    assert_eq!(reply.pieces.len(), reply.chunks.len(), "one piece for each chunk");
    assert!(reply.pieces.is_sorted(), "pieces end in order");
    assert!(reply.pieces.iter().all(|&end| end as usize <= reply.text.len()), "within the text");
    reply
}

/// A reply without its stamps.
fn timeless(mut reply: Reply) -> (Reply, Vec<(Option<u32>, u32)>) {
    reply.last_line = reply.last_line.map(|_| Stamp(0));
    let chunks = std::mem::take(&mut reply.chunks);
    (reply, chunks.iter().map(|chunk| (chunk.tokens, chunk.choice)).collect())
}

/// Cuts `data` into pieces of pseudo-random lengths from 0 to 15 bytes.
fn pieces(seed: u8, data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut state = u32::from(seed).wrapping_mul(2_654_435_761) | 1;
    let mut rest = data;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        // A linear congruential generator: the cuts need variety, not quality.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (piece, tail) = rest.split_at((state as usize >> 20 & 15).min(rest.len()));
        rest = tail;
        Some(piece)
    })
}

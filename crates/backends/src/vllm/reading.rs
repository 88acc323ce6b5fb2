//! Which chunks stand for tokens, as `vllm bench serve` counts them.
//!
//! vLLM sends a chunk for every step, even when a token has no text of its own: a piece of a character, or
//! a special token. On the completions route every chunk with a choice stands for tokens. On the chat
//! route, by the rule of release 0.33, it is every chunk with content (be it empty), reasoning or a tool
//! call, except the opening one that only names the role.

use crate::decoder::{Problem, Reading};
use crate::openai::OpenAiReading;
use serde_json::Value;
use servebench_core::{Reply, Stamp};

/// Reads frames of `/v1/completions`.
#[derive(Debug, Default)]
pub(super) struct CompletionsReading(OpenAiReading);

/// Reads frames of `/v1/chat/completions`.
#[derive(Debug, Default)]
pub(super) struct ChatReading(OpenAiReading);

impl Reading for CompletionsReading {
    fn frame(&mut self, at: Stamp, data: &[u8], reply: &mut Reply) -> Result<(), Problem> {
        read(&mut self.0, at, data, reply, |_| true)
    }

    fn finished(&self) -> Option<usize> {
        self.0.finished()
    }
}

impl Reading for ChatReading {
    fn frame(&mut self, at: Stamp, data: &[u8], reply: &mut Reply) -> Result<(), Problem> {
        read(&mut self.0, at, data, reply, |choice| {
            let delta = choice.get("delta");
            let field = |key| delta.and_then(|delta| delta.get(key));
            field("content").is_some_and(|content| content == "") && field("role").is_none()
        })
    }

    fn finished(&self) -> Option<usize> {
        self.0.finished()
    }
}

/// Reads a frame; where it brought no text, asks whether its first choice stands for a token all the
/// same. That needs a second look at few frames only.
fn read(
    reading: &mut OpenAiReading,
    at: Stamp,
    data: &[u8],
    reply: &mut Reply,
    is_token: fn(&Value) -> bool,
) -> Result<(), Problem> {
    let chunks = reply.chunks.len();
    reading.frame(at, data, reply)?;
    if reply.chunks.len() > chunks {
        return Ok(());
    }
    // A frame that was read strictly may still be refused here; then it stands for nothing.
    let frame: Value = serde_json::from_slice(data).unwrap_or_default();
    if let Some(choice) = frame.pointer("/choices/0").filter(|choice| is_token(choice)) {
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
        reply.push_chunk(at, None, u32::try_from(index).unwrap_or(0), "");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::vllm::{VllmBackend, VllmOptions};
    use serde_json::{Value, json};
    use servebench_core::{End, FailureKind, Reply, Request, Stamp};

    /// The reply to frames that come a millisecond apart.
    fn reply(backend: VllmBackend, frames: &[Value]) -> Reply {
        let protocol = backend.protocol(backend.info().endpoint, VllmOptions::default());
        let mut decoder = protocol.decoder(&Request::default());
        let mut reply = Reply::default();
        for (ms, frame) in (1..).zip(frames) {
            decoder.feed(
                Stamp::from_millis(ms),
                format!("data: {frame}\n\n").as_bytes(),
                &mut reply,
            );
        }
        decoder.feed(Stamp::from_millis(99), b"data: [DONE]\n\n", &mut reply);
        decoder.end(Stamp::from_millis(99), End::Complete, &mut reply);
        reply
    }

    fn stamps(reply: &Reply) -> Vec<u64> {
        reply.chunks.iter().map(|chunk| chunk.at.0 / 1_000_000).collect()
    }

    #[test]
    fn completions_count_chunks_without_text() {
        let text = |text: &str| json!({"choices": [{"index": 0, "text": text}]});
        let end = json!({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]});
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}});
        let reply = reply(VllmBackend::Vllm, &[text(""), text("a"), text("b"), end, usage]);
        assert_eq!(stamps(&reply), [1, 2, 3, 4]);
        assert_eq!((reply.completion_tokens, reply.prompt_tokens), (Some(4), Some(3)));
        assert_eq!((&*reply.text, reply.failure), ("ab", None));
    }

    #[test]
    fn chat_counts_neither_the_role_nor_a_bare_end() {
        let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
        let frames = [
            delta(json!({"role": "assistant", "content": ""})),
            delta(json!({"reasoning": "so"})),
            delta(json!({"content": ""})),
            delta(json!({"content": "a"})),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        ];
        let reply = reply(VllmBackend::OpenaiChat, &frames);
        assert_eq!(stamps(&reply), [2, 3, 4]);
        assert_eq!((&*reply.text, reply.failure), ("soa", None));
    }

    #[test]
    fn usage_alone_is_no_success() {
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}});
        let reply = reply(VllmBackend::Vllm, &[usage]);
        assert_eq!(reply.failure.map(|failure| failure.kind), Some(FailureKind::Empty));
    }
}

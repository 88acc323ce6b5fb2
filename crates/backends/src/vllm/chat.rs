//! `/v1/chat/completions`, as `vllm bench serve` asks for it.

use super::VllmOptions;
use super::content::{Media, messages};
use super::reading::ChatReading;
use crate::body::Body;
use crate::decoder::Decoder;
use bytes::Bytes;
use serde_json::json;
use servebench_core::{Decode, Protocol, Request, Sample};

/// Messages in; reasoning, content and tool calls out.
#[derive(Debug)]
pub(super) struct Chat {
    pub(super) path: String,
    pub(super) options: VllmOptions,
}

impl Protocol for Chat {
    fn path(&self) -> &str {
        &self.path
    }

    fn encode(&self, sample: &Sample, adapter: Option<&str>) -> Bytes {
        let mut body = Body::default();
        body.set("model", self.options.model(adapter));
        body.set("messages", messages(sample, Media::AfterText));
        body.set("max_completion_tokens", sample.output_len);
        body.set("stream", true);
        body.set("stream_options", json!({"include_usage": true}));
        self.options.complete(body, sample)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        Box::new(Decoder::<ChatReading>::new(request))
    }
}

//! `/v1/completions`, as `vllm bench serve` asks for it.

use super::VllmOptions;
use super::content::text;
use super::reading::CompletionsReading;
use crate::body::Body;
use crate::decoder::Decoder;
use bytes::Bytes;
use serde_json::{Value, json};
use servebench_core::{Decode, Protocol, Request, Sample};

/// A prompt in, text out.
#[derive(Debug)]
pub(super) struct Completions {
    pub(super) path: String,
    pub(super) options: VllmOptions,
}

impl Protocol for Completions {
    fn path(&self) -> &str {
        &self.path
    }

    fn encode(&self, sample: &Sample, adapter: Option<&str>) -> Bytes {
        let mut body = Body::default();
        body.set("model", self.options.model(adapter));
        body.set("prompt", text(&sample.prompt));
        body.set("repetition_penalty", 1.0);
        body.set("max_tokens", sample.output_len);
        body.set("logprobs", self.options.logprobs.map_or(Value::Null, Value::from));
        body.set("stream", true);
        body.set("stream_options", json!({"include_usage": true}));
        self.options.complete(body, sample)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        Box::new(Decoder::<CompletionsReading>::new(request))
    }
}

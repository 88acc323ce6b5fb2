//! `/v1/chat/completions`.

use super::OpenAiReading;
use crate::body::{Body, complete_openai, prompt_value};
use crate::decoder::Decoder;
use crate::options::GenerateOptions;
use bytes::Bytes;
use serde_json::json;
use servebench_core::{Decode, Prompt, Protocol, Request, Sample};
use std::sync::Arc;

/// The chat protocol: messages in; reasoning, content and tool calls out.
#[derive(Debug)]
struct Chat {
    path: &'static str,
    options: GenerateOptions,
}

/// The protocol at `path` with these options.
pub(crate) fn protocol(path: &'static str, options: GenerateOptions) -> Arc<dyn Protocol> {
    Arc::new(Chat { path, options })
}

impl Protocol for Chat {
    fn path(&self) -> &str {
        self.path
    }

    fn encode(&self, sample: &Sample, adapter: Option<&str>) -> Bytes {
        let mut body = Body::default();
        body.set("model", self.options.model.as_str());
        let messages = match &sample.prompt {
            Prompt::Text(text) => json!([{"role": "user", "content": text}]),
            list => prompt_value(list),
        };
        body.set("messages", messages);
        body.set("max_completion_tokens", sample.output_len);
        complete_openai(body, &self.options, sample, adapter)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        Box::new(Decoder::<OpenAiReading>::new(request))
    }
}

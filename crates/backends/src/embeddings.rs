//! `/v1/embeddings`: one JSON answer, which holds no tokens.

use crate::answer::{AnswerDecoder, Wanted};
use crate::body::{Body, prompt_value};
use crate::options::GenerateOptions;
use bytes::Bytes;
use servebench_core::{Decode, Protocol, Request, Sample};
use std::sync::Arc;

/// The embeddings protocol: a prompt in, a vector out.
#[derive(Debug)]
struct Embeddings {
    path: &'static str,
    options: GenerateOptions,
}

/// The protocol at `path` with these options.
pub(crate) fn protocol(path: &'static str, options: GenerateOptions) -> Arc<dyn Protocol> {
    Arc::new(Embeddings { path, options })
}

impl Protocol for Embeddings {
    fn path(&self) -> &str {
        self.path
    }

    fn encode(&self, sample: &Sample, adapter: Option<&str>) -> Bytes {
        let mut body = Body::default();
        body.set("input", prompt_value(&sample.prompt));
        body.set("model", adapter.unwrap_or(&self.options.model));
        if let Some(adapter) = adapter {
            body.set("lora_path", adapter);
        }
        body.merge(&self.options.extra_body);
        body.merge(&sample.extra_body);
        body.into_bytes()
    }

    fn decoder(&self, _request: &Request) -> Box<dyn Decode> {
        Box::new(AnswerDecoder::new(Wanted::Embeddings))
    }
}

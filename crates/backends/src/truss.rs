//! Truss' `/v1/models/model:predict`, whose model speaks as `/v1/completions` does.

use crate::body::{Body, complete_openai, prompt_value};
use crate::decoder::Decoder;
use crate::openai::OpenAiReading;
use crate::options::GenerateOptions;
use bytes::Bytes;
use servebench_core::{Decode, Protocol, Request, Sample};
use std::sync::Arc;

/// The protocol of a Truss. It knows no adapters.
#[derive(Debug)]
struct Truss {
    path: &'static str,
    options: GenerateOptions,
}

/// The protocol at `path` with these options.
pub(crate) fn protocol(path: &'static str, options: GenerateOptions) -> Arc<dyn Protocol> {
    Arc::new(Truss { path, options })
}

impl Protocol for Truss {
    fn path(&self) -> &str {
        self.path
    }

    fn encode(&self, sample: &Sample, _adapter: Option<&str>) -> Bytes {
        let mut body = Body::default();
        body.set("model", self.options.model.as_str());
        body.set("prompt", prompt_value(&sample.prompt));
        body.set("best_of", 1);
        body.set("max_tokens", sample.output_len);
        complete_openai(body, &self.options, sample, None)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        Box::new(Decoder::<OpenAiReading>::new(request))
    }
}

//! `/v1/completions`.

use super::OpenAiReading;
use crate::body::{Body, complete_openai, prompt_value};
use crate::decoder::Decoder;
use crate::options::GenerateOptions;
use bytes::Bytes;
use servebench_core::{Decode, Protocol, Request, Sample};
use std::sync::Arc;

/// The completions protocol: a prompt in, text out.
#[derive(Debug)]
struct Completions {
    path: &'static str,
    options: GenerateOptions,
}

/// The protocol at `path` with these options.
pub(crate) fn protocol(path: &'static str, options: GenerateOptions) -> Arc<dyn Protocol> {
    Arc::new(Completions { path, options })
}

impl Protocol for Completions {
    fn path(&self) -> &str {
        self.path
    }

    fn encode(&self, sample: &Sample, adapter: Option<&str>) -> Bytes {
        let options = &self.options;
        let mut body = Body::default();
        body.set("model", options.model.as_str());
        body.set("prompt", prompt_value(&sample.prompt));
        body.set("best_of", 1);
        body.set("max_tokens", sample.output_len);
        if options.return_logprob && options.top_logprobs_num > 0 {
            body.set("logprobs", options.top_logprobs_num);
        }
        complete_openai(body, options, sample, adapter)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        Box::new(Decoder::<OpenAiReading>::new(request))
    }
}

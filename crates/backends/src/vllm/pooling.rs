//! Endpoints whose answers hold vectors or scores: embeddings, pooled data, rankings.

use super::content::{Media, media, messages, text};
use super::{Form, VllmBackend, VllmOptions};
use crate::answer::{AnswerDecoder, Wanted};
use crate::body::{Body, prompt_value};
use bytes::Bytes;
use serde_json::{Value, json};
use servebench_core::{Decode, Prompt, Protocol, Request, Sample};

/// Longer prompts are cut to what the model takes, so that no request is refused.
const CUT: (&str, i64) = ("truncate_prompt_tokens", -1);

/// A prompt in, one answer out.
#[derive(Debug)]
pub(super) struct Pooling {
    backend: VllmBackend,
    path: String,
    options: VllmOptions,
    wanted: Wanted,
}

impl Pooling {
    pub(super) fn new(backend: VllmBackend, path: String, options: VllmOptions) -> Self {
        let format = options.extra_body.get("encoding_format").and_then(Value::as_str);
        let wanted = match (format, backend.info().form) {
            (Some("bytes" | "bytes_only"), _) => Wanted::Bytes,
            (_, Form::Pooling) => Wanted::Pooled,
            (_, Form::Rerank) => Wanted::Ranking,
            _ => Wanted::Embeddings,
        };
        Self { backend, path, options, wanted }
    }

    /// The form's own fields.
    fn fill(&self, body: &mut Body, sample: &Sample) {
        match self.backend.info().form {
            Form::EmbeddingsChat => {
                let place = match self.backend {
                    VllmBackend::OpenaiEmbeddingsVlm2Vec => Media::BeforeText,
                    _ => Media::AfterText,
                };
                body.set("messages", messages(sample, place));
            }
            Form::Infinity => return infinity(body, sample),
            Form::Rerank => rerank(body, &sample.prompt),
            _ => body.set("input", text(&sample.prompt)),
        }
        body.set(CUT.0, CUT.1);
    }
}

/// Infinity takes a text, or one medium where there is none.
fn infinity(body: &mut Body, sample: &Sample) {
    let text = text(&sample.prompt);
    let medium = media(sample).into_iter().next().filter(|_| text == "");
    let Some(medium) = medium else { return body.set("input", text) };
    let kind = medium.get("type").and_then(Value::as_str).unwrap_or_default();
    body.set("input", medium.pointer(&format!("/{kind}/url")).cloned().unwrap_or_default());
    body.set("modality", kind.split('_').next().unwrap_or_default());
}

/// The first text is the query, the others are ranked.
fn rerank(body: &mut Body, prompt: &Prompt) {
    let (query, documents) = match prompt {
        Prompt::Texts(texts) => match texts.split_first() {
            Some((query, documents)) => (json!(query), json!(documents)),
            None => (json!(""), json!([])),
        },
        other => (prompt_value(other), json!([])),
    };
    body.set("query", query);
    body.set("documents", documents);
}

impl Protocol for Pooling {
    fn path(&self) -> &str {
        &self.path
    }

    fn encode(&self, sample: &Sample, adapter: Option<&str>) -> Bytes {
        let mut body = Body::default();
        body.set("model", self.options.model(adapter));
        self.fill(&mut body, sample);
        self.options.complete(body, sample)
    }

    fn decoder(&self, _request: &Request) -> Box<dyn Decode> {
        Box::new(AnswerDecoder::new(self.wanted))
    }
}

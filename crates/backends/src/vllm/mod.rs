//! The endpoints of `vllm bench serve`, with the bodies that it sends.
//!
//! One row of [`VllmBackend`]'s table per name of `--backend`; one file per form of body.

mod audio;
mod chat;
mod completions;
mod content;
mod pooling;
mod reading;
mod recording;
mod responses;

use serde_json::{Map, Value};
use servebench_core::{Prompt, Protocol, Sample};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::body::Body;

/// A backend of `vllm bench serve` by its name on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VllmBackend {
    /// `/v1/completions`.
    Vllm,
    /// `/v1/completions`, by its other name.
    #[default]
    Openai,
    /// `/v1/chat/completions`.
    OpenaiChat,
    /// `/v1/responses`.
    OpenaiResponses,
    /// `/v1/audio/transcriptions` and `/v1/audio/translations`.
    OpenaiAudio,
    /// `/v1/embeddings`.
    OpenaiEmbeddings,
    /// `/v1/embeddings` of messages.
    OpenaiEmbeddingsChat,
    /// The same for CLIP models, which take a text or an image.
    OpenaiEmbeddingsClip,
    /// The same for VLM2Vec models, which take an image with an instruction.
    OpenaiEmbeddingsVlm2Vec,
    /// `/embeddings` of an Infinity server.
    InfinityEmbeddings,
    /// The same for CLIP models.
    InfinityEmbeddingsClip,
    /// `/pooling`.
    VllmPooling,
    /// `/v1/rerank`.
    VllmRerank,
}

/// The form of a backend's bodies and replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// A prompt in, a stream of text out.
    Completions,
    /// Messages in, a stream of message pieces out.
    Chat,
    /// A prompt in, a stream of typed events out.
    Responses,
    /// A recording in, a stream of text out.
    Audio,
    /// A prompt or several in, a vector for each out.
    Embeddings,
    /// Messages in, a vector out.
    EmbeddingsChat,
    /// A text or a medium in, a vector out.
    Infinity,
    /// A prompt or several in, what the model makes of each out.
    Pooling,
    /// A query and documents in, a score for each document out.
    Rerank,
}

/// All there is to know about a backend beside its code.
#[derive(Debug)]
pub struct VllmBackendInfo {
    /// Which one it is.
    pub kind: VllmBackend,
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// The endpoint it calls unless told otherwise.
    pub endpoint: &'static str,
    /// What its endpoint's path must end with: one of these.
    pub suffixes: &'static [&'static str],
    /// The form of its bodies.
    pub form: Form,
    /// Whether sampling flags, `ignore_eos` for random data and self-timed traces work with it.
    pub openai_compatible: bool,
    /// Whether its replies hold vectors or scores in place of tokens.
    pub pooling: bool,
}

#[rustfmt::skip] // a table
static BACKENDS: [VllmBackendInfo; 13] = {
    use {Form as F, VllmBackend as Kind};
    const COMPLETIONS: (&str, &[&str]) = ("/v1/completions", &["completions"]);
    const CHAT: (&str, &[&str]) = ("/v1/chat/completions", &["chat/completions"]);
    const RESPONSES: (&str, &[&str]) = ("/v1/responses", &["responses"]);
    const AUDIO: (&str, &[&str]) = ("/v1/audio/transcriptions", &["transcriptions", "translations"]);
    const EMBEDDINGS: (&str, &[&str]) = ("/v1/embeddings", &["embeddings"]);
    const INFINITY: (&str, &[&str]) = ("/embeddings", &["embeddings"]);
    const POOLING: (&str, &[&str]) = ("/pooling", &["pooling"]);
    const RERANK: (&str, &[&str]) = ("/v1/rerank", &["rerank"]);
    [
        row(Kind::Vllm,            "vllm",             COMPLETIONS, F::Completions, true,  false),
        row(Kind::Openai,          "openai",           COMPLETIONS, F::Completions, true,  false),
        row(Kind::OpenaiChat,      "openai-chat",      CHAT,        F::Chat,        true,  false),
        row(Kind::OpenaiResponses, "openai-responses", RESPONSES,   F::Responses,   true,  false),
        row(Kind::OpenaiAudio,     "openai-audio",     AUDIO,       F::Audio,       false, false),
        row(Kind::OpenaiEmbeddings,        "openai-embeddings",         EMBEDDINGS, F::Embeddings,     false, true),
        row(Kind::OpenaiEmbeddingsChat,    "openai-embeddings-chat",    EMBEDDINGS, F::EmbeddingsChat, false, true),
        row(Kind::OpenaiEmbeddingsClip,    "openai-embeddings-clip",    EMBEDDINGS, F::EmbeddingsChat, false, true),
        row(Kind::OpenaiEmbeddingsVlm2Vec, "openai-embeddings-vlm2vec", EMBEDDINGS, F::EmbeddingsChat, false, true),
        row(Kind::InfinityEmbeddings,      "infinity-embeddings",       INFINITY,   F::Infinity,       false, true),
        row(Kind::InfinityEmbeddingsClip,  "infinity-embeddings-clip",  INFINITY,   F::Infinity,       false, true),
        row(Kind::VllmPooling,             "vllm-pooling",              POOLING,    F::Pooling,        false, true),
        row(Kind::VllmRerank,              "vllm-rerank",               RERANK,     F::Rerank,         false, true),
    ]
};

const fn row(
    kind: VllmBackend,
    name: &'static str,
    (endpoint, suffixes): (&'static str, &'static [&'static str]),
    form: Form,
    openai_compatible: bool,
    pooling: bool,
) -> VllmBackendInfo {
    VllmBackendInfo { kind, name, endpoint, suffixes, form, openai_compatible, pooling }
}

/// What the bodies of a run hold besides their prompts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VllmOptions {
    /// Model name.
    pub model: String,
    /// Ask the server to go on past the end-of-text token.
    pub ignore_eos: bool,
    /// Log probabilities per token (completions only).
    pub logprobs: Option<i64>,
    /// Sampling flags, and over them the fields of `--extra-body`. A row's own fields win over these.
    pub extra_body: Map<String, Value>,
}

impl VllmBackend {
    /// All backends, in the order of their table.
    pub fn all() -> impl Iterator<Item = Self> {
        BACKENDS.iter().map(|row| row.kind)
    }

    /// The row of this backend.
    pub fn info(self) -> &'static VllmBackendInfo {
        // The rows stand in the order of the variants; a test checks it.
        &BACKENDS[self as usize]
    }

    /// The name of this backend.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Whether this backend can be used at `endpoint`.
    pub fn accepts(self, endpoint: &str) -> bool {
        self.info().suffixes.iter().any(|suffix| endpoint.ends_with(suffix))
    }

    /// The protocol of this backend at the path `endpoint`.
    pub fn protocol(self, endpoint: &str, options: VllmOptions) -> Arc<dyn Protocol> {
        let path = endpoint.to_owned();
        match self.info().form {
            Form::Completions => Arc::new(completions::Completions { path, options }),
            Form::Chat => Arc::new(chat::Chat { path, options }),
            Form::Responses => Arc::new(responses::Responses { path, options }),
            Form::Audio => Arc::new(audio::Transcription { path, options }),
            _ => Arc::new(pooling::Pooling::new(self, path, options)),
        }
    }

    /// Whether its server applies the chat template, so that nobody else should.
    pub fn is_templated_by_server(self) -> bool {
        matches!(self.info().form, Form::Chat | Form::Responses | Form::EmbeddingsChat)
    }

    /// Puts a sample with media into the form that this backend's models want: words for CLIP and VLM2Vec,
    /// a file for transcriptions. `number` is the one at the end of the request's id, if it has an id. To be
    /// done once, before encoding.
    pub fn adapt(self, sample: &mut Sample, number: Option<u64>) {
        content::adapt(self, sample, number);
    }

    /// Why a sample cannot be sent to this backend, if it cannot.
    pub fn refuses(self, sample: &Sample) -> Option<&'static str> {
        match (self.info().form, &sample.prompt) {
            (Form::Audio, _) if sample.audio.is_none() => Some("a row holds no recording"),
            (Form::Rerank, Prompt::Texts(texts)) if texts.len() > 1 => None,
            (Form::Rerank, _) => Some("a row holds no query with documents"),
            (Form::Infinity, prompt) => {
                let is_medium = content::text(prompt) == "" && content::media(sample).len() != 1;
                is_medium.then_some("a row holds neither a text nor exactly one image")
            }
            _ => None,
        }
    }

    /// How many inputs a sample is, by which the throughput of pooling backends is told: its texts, of a
    /// ranking its documents.
    pub fn input_sequences(self, sample: &Sample) -> u64 {
        let Prompt::Texts(texts) = &sample.prompt else { return 1 };
        let texts = texts.len() as u64;
        match self.info().form {
            Form::Rerank => texts.saturating_sub(1),
            Form::EmbeddingsChat => 1,
            _ => texts.max(1),
        }
    }
}

impl fmt::Display for VllmBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A backend name that `vllm bench serve` does not have, or whose protocol is not built yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown backend `{name}`")]
pub struct UnknownVllmBackend {
    /// The name that was given.
    pub name: String,
}

impl FromStr for VllmBackend {
    type Err = UnknownVllmBackend;

    fn from_str(name: &str) -> Result<Self, UnknownVllmBackend> {
        Self::all()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownVllmBackend { name: name.to_owned() })
    }
}

impl VllmOptions {
    /// The model name to send: the adapter's where there is one.
    fn model<'a>(&'a self, adapter: Option<&'a str>) -> &'a str {
        adapter.unwrap_or(&self.model)
    }

    /// Merges what was asked for into a body that holds its form's own fields: `ignore_eos`, the
    /// options' fields, the row's fields, each over those before.
    fn complete(&self, body: Body, sample: &Sample) -> bytes::Bytes {
        self.filled(body, sample).into_bytes()
    }

    /// The same, before it is written out.
    fn filled(&self, mut body: Body, sample: &Sample) -> Body {
        if self.ignore_eos {
            body.set("ignore_eos", true);
        }
        body.merge(&self.extra_body);
        body.merge(&sample.extra_body);
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn options() -> VllmOptions {
        VllmOptions { model: "m".to_owned(), ..VllmOptions::default() }
    }

    fn body(backend: VllmBackend, options: VllmOptions, sample: &Sample) -> Value {
        let protocol = backend.protocol(backend.info().endpoint, options);
        serde_json::from_slice(&protocol.encode(sample, None)).expect("JSON")
    }

    #[test]
    fn each_row_stands_at_its_own_place() {
        for (place, kind) in VllmBackend::all().enumerate() {
            assert_eq!(kind as usize, place);
            assert_eq!(kind.info().kind, kind);
            assert_eq!(kind.name().parse(), Ok(kind));
            assert!(kind.accepts(kind.info().endpoint));
            assert_eq!(kind.protocol("/x", options()).path(), "/x");
        }
        assert!("tgi".parse::<VllmBackend>().is_err());
    }

    #[test]
    fn a_chat_endpoint_ends_as_completions_do() {
        assert!(VllmBackend::Vllm.accepts("/v1/chat/completions"));
        assert!(!VllmBackend::OpenaiChat.accepts("/v1/completions"));
        assert!(!VllmBackend::Vllm.accepts("/v1/embeddings"));
    }

    #[test]
    fn bodies_are_those_of_the_python_tool() {
        let sample = Sample { prompt: "hi".into(), output_len: 7, ..Sample::default() };
        let want = json!({"model": "m", "prompt": "hi", "repetition_penalty": 1.0, "max_tokens": 7,
            "logprobs": null, "stream": true, "stream_options": {"include_usage": true}});
        assert_eq!(body(VllmBackend::Vllm, options(), &sample), want);
        let content = json!([{"type": "text", "text": "hi"}]);
        let want = json!({"model": "m", "messages": [{"role": "user", "content": content}],
            "max_completion_tokens": 7, "stream": true, "stream_options": {"include_usage": true}});
        assert_eq!(body(VllmBackend::OpenaiChat, options(), &sample), want);
    }

    #[test]
    fn later_fields_win() {
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        let options = VllmOptions {
            ignore_eos: true,
            logprobs: Some(2),
            extra_body: object(json!({"ignore_eos": false, "model": "x", "seed": 1})),
            ..options()
        };
        let sample = Sample { extra_body: object(json!({"seed": 2})), ..Sample::default() };
        let got = body(VllmBackend::Openai, options, &sample);
        let fields = ["ignore_eos", "model", "seed", "logprobs"].map(|key| got[key].clone());
        assert_eq!(fields, [json!(false), json!("x"), json!(2), json!(2)]);
    }

    #[test]
    fn an_adapter_takes_the_place_of_the_model() {
        let protocol = VllmBackend::OpenaiChat.protocol("/v1/chat/completions", options());
        let body = protocol.encode(&Sample::default(), Some("adapter"));
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!((&body["model"], body.get("lora_path")), (&json!("adapter"), None));
    }
}

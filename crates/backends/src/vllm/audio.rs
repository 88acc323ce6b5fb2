//! `/v1/audio/transcriptions` and `/v1/audio/translations`, as `vllm bench serve` asks for them.

use super::VllmOptions;
use super::reading::ChatReading;
use crate::body::Body;
use crate::decoder::{Decoder, Problem, Reading};
use bytes::Bytes;
use serde_json::{Map, Value};
use servebench_core::{Audio, Decode, Protocol, Reply, Request, Sample, Stamp};

/// A recording in, a stream of text out.
#[derive(Debug)]
pub(super) struct Transcription {
    pub(super) path: String,
    pub(super) options: VllmOptions,
}

/// What stands between the fields of a body. Fixed, so that the same plan has the same bytes; no recording
/// contains it but by intent.
const BOUNDARY: &str = "servebench-7d1f3a5c90b2e4688642e2b09c5a3f1d7-field";
const CONTENT_TYPE: &str =
    "multipart/form-data; boundary=servebench-7d1f3a5c90b2e4688642e2b09c5a3f1d7-field";

impl Protocol for Transcription {
    fn path(&self) -> &str {
        &self.path
    }

    fn content_type(&self) -> &'static str {
        CONTENT_TYPE
    }

    fn encode(&self, sample: &Sample, adapter: Option<&str>) -> Bytes {
        let mut body = Body::default();
        body.set("model", self.options.model(adapter));
        body.set("max_completion_tokens", sample.output_len);
        body.set("stream", true);
        body.set("language", "en");
        // What is an object elsewhere is flat in a form.
        body.set("stream_include_usage", true);
        body.set("stream_continuous_usage_stats", true);
        match self.options.filled(body, sample).into_value() {
            Value::Object(fields) => form(sample.audio.as_deref(), &fields).into(),
            _ => Bytes::new(),
        }
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        Box::new(Decoder::<TranscriptionReading>::new(request))
    }
}

/// The body of a form (RFC 7578): a file, then a field for each value that there is.
fn form(audio: Option<&Audio>, fields: &Map<String, Value>) -> Vec<u8> {
    let mut form = Vec::with_capacity(audio.map_or(0, |audio| audio.bytes.len()) + 2048);
    if let Some(audio) = audio {
        let mut head = format!("; filename=\"{}\"", escaped(&audio.name));
        if let Some(kind) = &audio.kind {
            head.push_str("\r\nContent-Type: ");
            head.extend(kind.chars().filter(|c| !c.is_control()));
        }
        field(&mut form, "file", &head, &audio.bytes);
    }
    for (name, value) in fields {
        match value {
            Value::Null => {}
            Value::String(text) => field(&mut form, name, "", text.as_bytes()),
            other => field(&mut form, name, "", other.to_string().as_bytes()),
        }
    }
    form.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    form
}

fn field(form: &mut Vec<u8>, name: &str, more: &str, value: &[u8]) {
    let name = escaped(name);
    let head =
        format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n");
    form.extend_from_slice(head.as_bytes());
    form.extend_from_slice(value);
    form.extend_from_slice(b"\r\n");
}

/// A name as it stands between quotes in a form.
fn escaped(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

/// Reads frames, which are those of a chat. What the server counts of the prompt is its own affair: the
/// text that stands for it was not sent.
#[derive(Debug, Default)]
struct TranscriptionReading(ChatReading);

impl Reading for TranscriptionReading {
    fn frame(&mut self, at: Stamp, data: &[u8], reply: &mut Reply) -> Result<(), Problem> {
        let read = self.0.frame(at, data, reply);
        reply.prompt_tokens = None;
        read
    }

    fn finished(&self) -> Option<usize> {
        self.0.finished()
    }
}

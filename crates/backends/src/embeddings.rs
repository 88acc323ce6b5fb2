//! `/v1/embeddings`: one JSON answer, which holds no tokens.
//!
//! A reply has no chunks, so there is no TTFT and nothing between tokens; its latency ends with the
//! answer's last byte, and its output is 0 tokens.

use crate::body::{Body, prompt_value};
use crate::json::field::{self, Count, Field, List, Present, record};
use crate::options::GenerateOptions;
use crate::server_error;
use crate::sse::EVENT_LIMIT;
use bytes::Bytes;
use servebench_core::{
    Decode, End, Failure, FailureKind, Progress, Protocol, Reply, Request, Sample, Stamp,
};
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
        Box::new(EmbeddingsDecoder::default())
    }
}

record! {
    /// A whole answer.
    Answer {
        "data" => rows: List<Row>,
        "usage" => usage: Usage,
        "error" => error: Present,
    }
}

record! {
    /// The vector of one input: numbers, or their base64.
    Row {
        "embedding" => embedding: Present,
    }
}

record! {
    /// The server's counts.
    Usage {
        "prompt_tokens" => prompt: Count,
    }
}

/// Gathers an answer, which is read once it is whole.
#[derive(Debug, Default)]
struct EmbeddingsDecoder {
    body: Vec<u8>,
    too_large: bool,
}

impl Decode for EmbeddingsDecoder {
    fn feed(&mut self, at: Stamp, bytes: &[u8], reply: &mut Reply) -> Progress {
        if self.too_large {
            return Progress::Done;
        }
        if !bytes.is_empty() {
            reply.last_line = Some(at);
        }
        if self.body.len() + bytes.len() > EVENT_LIMIT {
            let detail = format!("the answer is larger than {EVENT_LIMIT} bytes");
            reply.fail(Failure::new(FailureKind::Protocol, detail));
            self.too_large = true;
            return Progress::Done;
        }
        self.body.extend_from_slice(bytes);
        Progress::More
    }

    fn end(&mut self, _at: Stamp, end: End, reply: &mut Reply) {
        if reply.failure.is_some() {
            return;
        }
        let failure = match end {
            End::Broken(failure) => Some(failure),
            End::Complete => read(&self.body, reply).err(),
        };
        if let Some(failure) = failure {
            reply.fail(failure);
        }
    }
}

/// Reads a whole answer.
fn read(body: &[u8], reply: &mut Reply) -> Result<(), Failure> {
    let strict: Option<Answer> = field::strict(body);
    if let Some(answer) = strict.filter(|answer| !answer.error.0 && !answer.rows.is_empty()) {
        return note(&answer, reply);
    }
    if body.trim_ascii().is_empty() {
        return Err(Failure::new(FailureKind::Empty, "the answer is empty"));
    }
    let value = crate::json::value(body).map_err(|error| {
        Failure::new(FailureKind::Protocol, format!("the answer is not JSON: {error}"))
    })?;
    if let Some(failure) = server_error::in_frame(&value) {
        return Err(failure);
    }
    note(&Answer::loose(&value), reply)
}

fn note(answer: &Answer, reply: &mut Reply) -> Result<(), Failure> {
    reply.prompt_tokens = answer.usage.prompt.0.filter(|&n| n > 0);
    let rows = &answer.rows;
    if rows.is_empty() || rows.iter().any(|row| !row.embedding.0) {
        return Err(Failure::new(FailureKind::Empty, "the answer holds no embedding"));
    }
    reply.completion_tokens = Some(0);
    Ok(())
}

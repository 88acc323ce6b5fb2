//! Answers that come whole and hold no tokens: vectors, scores.
//!
//! A reply has no chunks, so there is no TTFT and nothing between tokens; its latency ends with the
//! answer's last byte, and its output is 0 tokens.

use crate::json::field::{self, Count, Field, List, Present, record};
use crate::server_error;
use crate::sse::EVENT_LIMIT;
use servebench_core::{Decode, End, Failure, FailureKind, Progress, Reply, Stamp};

/// What an answer is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// JSON with `data`, whose rows have an `embedding`.
    Embeddings,
    /// JSON with `data`, whose rows have `data` of their own.
    Pooled,
    /// JSON with `results`, whose rows have a `relevance_score`.
    Ranking,
    /// Bytes of any kind; what there is to know stands in the header `metadata`, if anywhere.
    Bytes,
}

record! {
    /// A whole answer.
    Answer {
        "data" => data: List<Row>,
        "results" => results: List<Row>,
        "usage" => usage: Usage,
        "error" => error: Present,
    }
}

record! {
    /// What one input came to: numbers, or their base64.
    Row {
        "embedding" => embedding: Present,
        "data" => data: Present,
        "relevance_score" => score: Present,
    }
}

record! {
    /// The server's counts.
    Usage {
        "prompt_tokens" => prompt: Count,
    }
}

record! {
    /// What stands in the header `metadata`.
    Metadata {
        "usage" => usage: Usage,
    }
}

impl Answer {
    /// The rows of the kind that is wanted.
    fn rows(&self, wanted: Wanted) -> &List<Row> {
        if wanted == Wanted::Ranking { &self.results } else { &self.data }
    }
}

/// Gathers an answer, which is read once it is whole.
#[derive(Debug)]
pub(crate) struct AnswerDecoder {
    wanted: Wanted,
    body: Vec<u8>,
    is_over: bool,
}

impl AnswerDecoder {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self { wanted, body: Vec::new(), is_over: false }
    }
}

impl Decode for AnswerDecoder {
    fn metadata(&mut self, value: &str, reply: &mut Reply) {
        if self.wanted == Wanted::Bytes
            && let Ok(value) = crate::json::value(value.as_bytes())
        {
            reply.prompt_tokens = Metadata::loose(&value).usage.prompt.0.filter(|&n| n > 0);
        }
    }

    fn feed(&mut self, at: Stamp, bytes: &[u8], reply: &mut Reply) -> Progress {
        if self.is_over {
            return Progress::Done;
        }
        if bytes.is_empty() {
            return Progress::More;
        }
        reply.last_line = Some(at);
        if self.wanted == Wanted::Bytes {
            return Progress::More;
        }
        if self.body.len() + bytes.len() > EVENT_LIMIT {
            let detail = format!("the answer is larger than {EVENT_LIMIT} bytes");
            reply.fail(Failure::new(FailureKind::Protocol, detail));
            self.is_over = true;
            return Progress::Done;
        }
        self.body.extend_from_slice(bytes);
        Progress::More
    }

    fn end(&mut self, _at: Stamp, end: End, reply: &mut Reply) {
        if reply.failure.is_some() {
            return;
        }
        let read = match end {
            End::Broken(failure) => Err(failure),
            End::Complete if self.wanted != Wanted::Bytes => read(&self.body, self.wanted, reply),
            End::Complete if reply.last_line.is_none() => Err(empty()),
            End::Complete => Ok(()),
        };
        match read {
            Ok(()) => reply.completion_tokens = Some(0),
            Err(failure) => reply.fail(failure),
        }
    }
}

fn empty() -> Failure {
    Failure::new(FailureKind::Empty, "the answer is empty")
}

/// Reads a whole answer.
fn read(body: &[u8], wanted: Wanted, reply: &mut Reply) -> Result<(), Failure> {
    let strict: Option<Answer> = field::strict(body);
    if let Some(answer) = strict.filter(|it| !it.error.0 && !it.rows(wanted).is_empty()) {
        return note(&answer, wanted, reply);
    }
    if body.trim_ascii().is_empty() {
        return Err(empty());
    }
    let value = crate::json::value(body).map_err(|error| {
        Failure::new(FailureKind::Protocol, format!("the answer is not JSON: {error}"))
    })?;
    if let Some(failure) = server_error::in_frame(&value) {
        return Err(failure);
    }
    note(&Answer::loose(&value), wanted, reply)
}

fn note(answer: &Answer, wanted: Wanted, reply: &mut Reply) -> Result<(), Failure> {
    reply.prompt_tokens = answer.usage.prompt.0.filter(|&n| n > 0);
    let is_filled = |row: &Row| match wanted {
        Wanted::Embeddings => row.embedding.0,
        Wanted::Pooled => row.data.0,
        Wanted::Ranking => row.score.0,
        Wanted::Bytes => true,
    };
    let rows = answer.rows(wanted);
    if !rows.is_empty() && rows.iter().all(is_filled) {
        return Ok(());
    }
    let missing = match wanted {
        Wanted::Embeddings => "the answer holds no embedding",
        Wanted::Pooled => "the answer holds no pooled data",
        Wanted::Ranking | Wanted::Bytes => "the answer holds no score",
    };
    Err(Failure::new(FailureKind::Empty, missing))
}

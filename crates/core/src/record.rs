//! What is kept of one request.

use crate::{Chunks, Failure, Stamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Where an output count comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CountSource {
    /// The server's own count (`usage` or `meta_info`).
    Server,
    /// The client's tokenizer, on the text received.
    Tokenizer,
    /// Neither; the number of token-bearing chunks.
    Chunks,
}

/// Where cached prompt tokens were found, as SGLang details it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedDetails {
    /// Tokens found in device memory.
    pub device: u64,
    /// Tokens found in host memory.
    pub host: u64,
    /// Tokens found in external storage, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<u64>,
    /// Name of that storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_backend: Option<String>,
}

/// The reply to one request, filled while it is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// When the first byte of the request was handed to the socket.
    pub sent: Option<Stamp>,
    /// When the response head was complete.
    pub headers: Option<Stamp>,
    /// HTTP status.
    pub status: Option<u16>,
    /// The token-bearing chunks.
    pub chunks: Chunks,
    /// When the last `data:` line (or the last byte of a plain body) was received. The Python
    /// tools' latency ends here.
    pub last_line: Option<Stamp>,
    /// The text received: reasoning and content in order of arrival.
    pub text: String,
    /// Where in `text` each chunk's piece ends, in bytes. Kept only when
    /// [`keep_pieces`](Self::keep_pieces) is set.
    pub pieces: Vec<u32>,
    /// Whether the length of each chunk's text is kept.
    pub keep_pieces: bool,
    /// Why the server stopped, in its own words (`stop`, `length`, `abort`, …).
    pub finish_reason: Option<Box<str>>,
    /// Prompt tokens by the server's count.
    pub prompt_tokens: Option<u32>,
    /// Output tokens by the server's count.
    pub completion_tokens: Option<u32>,
    /// Cached prompt tokens by the server's count.
    pub cached_tokens: Option<u64>,
    /// Where they were found.
    pub cached_details: Option<CachedDetails>,
    /// Tokens per verification step of speculative decoding, by the server's count.
    pub accept_length: Option<f64>,
    /// Why the request failed, if it did.
    pub failure: Option<Failure>,
    /// Time spent connecting inside this request; `None` when a warm connection was used.
    pub connect: Option<Duration>,
    /// The part of [`connect`](Self::connect) that the TLS handshake took.
    pub tls: Option<Duration>,
    /// Dead kept-alive connections that were replaced (0 or 1).
    pub reconnects: u32,
    /// How long its bytes waited for the client; `None` where the system does not tell.
    pub read_lag: Option<ReadLag>,
}

/// How long received bytes waited until the client read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadLag {
    /// Reads.
    pub reads: u32,
    /// The longest wait.
    pub longest: Duration,
    /// All waits together.
    pub total: Duration,
}

impl ReadLag {
    /// Counts one read in.
    pub fn add(&mut self, lag: Duration) {
        self.reads = self.reads.saturating_add(1);
        self.longest = self.longest.max(lag);
        self.total = self.total.saturating_add(lag);
    }

    /// The mean wait; zero without a read.
    pub fn mean(&self) -> Duration {
        self.total.checked_div(self.reads).unwrap_or_default()
    }
}

impl Reply {
    /// Notes a token-bearing chunk and appends its text.
    pub fn push_chunk(&mut self, at: Stamp, tokens: Option<u32>, choice: u32, text: &str) {
        self.text.push_str(text);
        self.push_stamp(at, tokens, choice);
    }

    /// Notes a token-bearing chunk whose text is already in [`text`](Self::text).
    pub fn push_stamp(&mut self, at: Stamp, tokens: Option<u32>, choice: u32) {
        self.chunks.push(at, tokens, choice);
        if self.keep_pieces {
            self.pieces.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
        }
    }

    /// When the first token was received.
    pub fn first_token(&self) -> Option<Stamp> {
        self.chunks.first()
    }

    /// When the last token was received.
    pub fn last_token(&self) -> Option<Stamp> {
        self.chunks.last()
    }

    /// Notes a failure, unless there is one already: the first cause is the one to report.
    pub fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }
}

/// All that is kept of one request.
///
/// `dispatched − intended` is how late the request left the client, by its own fault or because
/// no slot was free.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Place in the plan, from 0.
    pub id: u64,
    /// When the schedule wanted it sent.
    pub intended: Stamp,
    /// When a slot was free and its time had come, before any connect. Latency starts here.
    pub dispatched: Stamp,
    /// How much later than due the engine's own timer was, when a slot was free in time.
    pub lateness: Option<Duration>,
    /// From the last byte of the reply before it in the same slot to its own first byte written,
    /// where the slot went straight from one to the other: what a closed loop loses to the client.
    pub turnaround: Option<Duration>,
    /// Prompt tokens as the dataset counted them.
    pub prompt_len: u32,
    /// Output tokens asked for.
    pub output_len: u32,
    /// What came back.
    pub reply: Reply,
}

impl Record {
    /// True when the request counts as completed.
    pub fn is_success(&self) -> bool {
        self.reply.failure.is_none()
    }
}

//! What is kept of one request.

use crate::{Chunks, Failure, Stamp};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
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
    /// How long the request took by the server's own clock, in seconds: of several choices, the first's.
    /// To seven digits, so that a record is small.
    pub server_latency: Option<f32>,
    /// Why the request failed, if it did.
    pub failure: Option<Failure>,
    /// How long its bytes waited for the client; `None` where the system does not tell.
    pub read_lag: Option<ReadLag>,
    /// What most replies do not have, kept apart so that a record is small: see
    /// [`rare`](Self::rare()) and [`rare_mut`](Self::rare_mut).
    pub rare: Option<Box<Rare>>,
}

/// What few replies have.
#[derive(Clone, Debug, PartialEq)]
pub struct Rare {
    /// Time spent connecting inside this request; `None` when a warm connection was used.
    pub connect: Option<Duration>,
    /// The part of [`connect`](Self::connect) that the TLS handshake took.
    pub tls: Option<Duration>,
    /// Dead kept-alive connections that were replaced (0 or 1).
    pub reconnects: u32,
    /// Times the request was sent again, where that was asked for, since a try had ended before one byte
    /// of an answer.
    pub retries: u32,
    /// Tokens per verification step of speculative decoding, by the server's count.
    pub accept_length: Option<f64>,
    /// Where cached prompt tokens were found.
    pub cached_details: Option<CachedDetails>,
    /// Which of several servers the request went to, by its place in their list; `None` with one server.
    pub target: Option<u32>,
    /// The experts that tokens were routed to, as the server wrote them (SGLang: base64).
    pub routed_experts: Option<Box<str>>,
}

impl Rare {
    const NONE: Self = Self {
        connect: None,
        tls: None,
        reconnects: 0,
        retries: 0,
        accept_length: None,
        cached_details: None,
        target: None,
        routed_experts: None,
    };
}

/// How long received bytes waited until the client read them.
///
/// Small, since every record has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLag {
    /// Reads and one more, so that `None` takes no room.
    reads: NonZeroU32,
    /// All in nanoseconds.
    clock_error: u32,
    longest: u64,
    total: u64,
}

impl Default for ReadLag {
    fn default() -> Self {
        Self { reads: NonZeroU32::MIN, clock_error: 0, longest: 0, total: 0 }
    }
}

impl ReadLag {
    /// Counts one read in, whose bytes had waited for `lag`, give or take `clock_error`.
    pub fn add(&mut self, lag: Duration, clock_error: Duration) {
        let lag = u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX);
        let error = u32::try_from(clock_error.as_nanos()).unwrap_or(u32::MAX);
        self.reads = self.reads.saturating_add(1);
        self.longest = self.longest.max(lag);
        self.total = self.total.saturating_add(lag);
        self.clock_error = self.clock_error.max(error);
    }

    /// What was counted so, with `total` for the waits of all reads together; `None` for counts that
    /// do not exist.
    pub fn from_parts(
        reads: u32,
        longest: Duration,
        total: Duration,
        clock_error: Duration,
    ) -> Option<Self> {
        Some(Self {
            reads: NonZeroU32::MIN.checked_add(reads)?,
            clock_error: u32::try_from(clock_error.as_nanos()).ok()?,
            longest: u64::try_from(longest.as_nanos()).ok()?,
            total: u64::try_from(total.as_nanos()).ok()?,
        })
    }

    /// Number of reads.
    pub fn reads(&self) -> u32 {
        self.reads.get() - 1
    }

    /// The longest wait.
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest)
    }

    /// The mean wait; zero without a read.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.total.checked_div(self.reads().into()).unwrap_or(0))
    }

    /// The waits of all reads together.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.total)
    }

    /// The most by which a receive time may be off, since two clocks had to be compared for it; four
    /// seconds and more are taken for four.
    pub fn clock_error(&self) -> Duration {
        Duration::from_nanos(self.clock_error.into())
    }
}

impl Reply {
    /// What few replies have.
    pub fn rare(&self) -> &Rare {
        self.rare.as_deref().unwrap_or(&Rare::NONE)
    }

    /// The same, to be set.
    pub fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_with(|| Box::new(Rare::NONE))
    }

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

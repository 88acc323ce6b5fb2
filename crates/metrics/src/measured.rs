//! The times and counts of one request.

use crate::gaps::{Gap, ItlRule, MAX_CHUNK_TOKENS, Weights, gaps, steps};
use crate::reception::is_exact;
use servebench_core::{Chunk, CountSource, Record, Stamp};
use std::time::Duration;

/// A record, and what the client's tokenizer says about its text. All times are in seconds.
///
/// The methods describe any record. Only successes become samples of a run; a failed request's
/// partial times are kept for the details of a result.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// What was recorded.
    pub record: &'a Record,
    /// Tokens of the prompt by the client's tokenizer, for prompts whose length is only nominal.
    pub prompt: Option<u32>,
    /// Tokens of the reply's text by the client's tokenizer, special tokens not added.
    pub retokenized: Option<u32>,
    /// Tokens of each chunk's text by the client's tokenizer, in order.
    ///
    /// Given only where the Python tool spreads a chunk's gap over them (OpenAI routes of SGLang,
    /// with a known accept length).
    pub piece_tokens: Option<&'a [u32]>,
}

/// A number of output tokens, and who counted them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputCount {
    /// Tokens.
    pub tokens: u64,
    /// Who counted.
    pub source: CountSource,
}

impl<'a> From<&'a Record> for Measured<'a> {
    fn from(record: &'a Record) -> Self {
        Self { record, prompt: None, retokenized: None, piece_tokens: None }
    }
}

impl<'a> Measured<'a> {
    /// Output tokens: the server's count, else the tokenizer's, else the number of chunks.
    pub fn output_count(&self) -> OutputCount {
        let reply = &self.record.reply;
        match (reply.completion_tokens, self.retokenized) {
            (Some(tokens), _) => {
                OutputCount { tokens: u64::from(tokens), source: CountSource::Server }
            }
            (None, Some(tokens)) => {
                OutputCount { tokens: u64::from(tokens), source: CountSource::Tokenizer }
            }
            (None, None) => {
                OutputCount { tokens: reply.chunks.len() as u64, source: CountSource::Chunks }
            }
        }
    }

    /// The Python tool's output tokens: the server's count, else as many as were asked for.
    pub fn upstream_output_tokens(&self) -> u64 {
        u64::from(self.record.reply.completion_tokens.unwrap_or(self.record.output_len))
    }

    /// Prompt tokens: the server's count, else the tokenizer's, else the dataset's.
    pub fn prompt_tokens(&self) -> u64 {
        let server = self.record.reply.prompt_tokens;
        u64::from(server.or(self.prompt).unwrap_or(self.record.prompt_len))
    }

    /// TTFT: `first token − dispatched`. `None` without a token.
    pub fn ttft(&self) -> Option<f64> {
        Some(self.record.reply.first_token()?.secs_since(self.record.dispatched))
    }

    /// TTFT as a user on schedule sees it: `first token − intended`. `None` without a token.
    pub fn ttft_from_intended(&self) -> Option<f64> {
        Some(self.record.reply.first_token()?.secs_since(self.record.intended))
    }

    /// When the answer was there: the last token, or the end of a success that has no tokens
    /// (embeddings, a stop before the first token).
    pub fn end(&self) -> Option<Stamp> {
        let reply = &self.record.reply;
        let end_of_success = || reply.last_line.filter(|_| self.record.is_success());
        reply.last_token().or_else(end_of_success)
    }

    /// E2E latency: [`end`](Self::end)` − dispatched`.
    pub fn latency(&self) -> Option<f64> {
        Some(self.end()?.secs_since(self.record.dispatched))
    }

    /// E2E latency as a user on schedule sees it: [`end`](Self::end)` − intended`.
    pub fn latency_from_intended(&self) -> Option<f64> {
        Some(self.end()?.secs_since(self.record.intended))
    }

    /// The Python tool's latency: `last data line − dispatched`; trailing usage and `[DONE]` count.
    pub fn stream_latency(&self) -> Option<f64> {
        Some(self.stream_end()?.secs_since(self.record.dispatched))
    }

    /// The last `data:` line, or the last token where no line was noted.
    pub(crate) fn stream_end(&self) -> Option<Stamp> {
        self.record.reply.last_line.or_else(|| self.record.reply.last_token())
    }

    /// How long the request waited in the client: `dispatched − intended`.
    pub fn queue_wait(&self) -> f64 {
        self.record.dispatched.secs_since(self.record.intended)
    }

    /// TPOT: `(latency − ttft) / (output tokens − 1)`.
    ///
    /// `None` for one token or none, and for a reply that came in one piece: the time after its
    /// first token was not seen.
    pub fn tpot(&self) -> Option<f64> {
        if self.record.reply.chunks.len() < 2 {
            return None;
        }
        time_per_token(self.ttft()?, self.latency()?, self.output_count().tokens)
    }

    /// The Python tool's TPOT: with its latency and its token count, replies in one piece too.
    pub fn upstream_tpot(&self) -> Option<f64> {
        time_per_token(self.ttft()?, self.stream_latency()?, self.upstream_output_tokens())
    }

    /// Verification steps of speculative decoding: `tokens / accept length`, where the reply told it.
    pub(crate) fn verify_steps(&self) -> Option<f64> {
        let length = self.record.reply.rare().accept_length.filter(|length| *length > 0.0)?;
        Some(self.output_count().tokens as f64 / length)
    }

    /// Inter-token gaps by the route's rule; `Σ = latency − ttft` for a reply of one choice.
    pub fn itls(&self, rule: ItlRule) -> impl Iterator<Item = Gap> + use<'a> {
        gaps(&self.record.reply.chunks, rule.weights())
    }

    /// The weights of the gaps that enter the run's ITL family: those of [`itls`](Self::itls), but
    /// [`piece_tokens`](Self::piece_tokens) where these are given.
    pub(crate) fn itl_weights(&self, rule: ItlRule) -> Weights<'a> {
        match (self.piece_tokens, rule) {
            (Some(pieces), ItlRule::PerChunk) => Weights::Pieces(pieces),
            (_, rule) => rule.weights(),
        }
    }

    /// Gaps per token, where the counts allow it; `Σ = latency − ttft` for a reply of one choice.
    ///
    /// Each chunk's gap divided by its tokens, when the server counted every chunk; one gap per
    /// chunk, when it counted none and the reply has as many tokens as chunks. `None` otherwise.
    /// The first chunk's further tokens have no gap.
    pub fn token_itls(&self) -> Option<impl Iterator<Item = Gap> + use<'a>> {
        let chunks = &self.record.reply.chunks;
        Some(gaps(chunks, self.token_weights(chunks.iter())?))
    }

    /// The weights of [`token_itls`](Self::token_itls). `chunks` are the reply's.
    pub(crate) fn token_weights(&self, chunks: impl Iterator<Item = Chunk>) -> Option<Weights<'a>> {
        let total = self.record.reply.chunks.len();
        let counted = chunks.filter(|chunk| chunk.tokens.is_some()).count();
        if counted == total {
            return Some(Weights::Counted);
        }
        // Trivially as many where nobody counted; then the chunks are not known to be tokens.
        let OutputCount { tokens, source } = self.output_count();
        let one_each = counted == 0 && tokens == total as u64 && source != CountSource::Chunks;
        one_each.then_some(Weights::One)
    }

    /// When each token was received: every chunk's stamp with its tokens. `chunks` are the reply's.
    ///
    /// Tokens that no chunk's count explains are dealt evenly to the chunks without one.
    pub(crate) fn token_stamps(&self, chunks: &[Chunk]) -> impl Iterator<Item = (Stamp, u32)> {
        let (mut known, mut uncounted) = (0, 0);
        for chunk in chunks {
            known += chunk.tokens.map_or(0, u64::from);
            uncounted += u64::from(chunk.tokens.is_none());
        }
        let unexplained = self.output_count().tokens.saturating_sub(known);
        let dealt = move |chunks: u64| unexplained * chunks / uncounted.max(1);
        let mut seen = 0;
        chunks.iter().map(move |chunk| {
            let tokens = chunk.tokens.unwrap_or_else(|| {
                seen += 1;
                u32::try_from(dealt(seen) - dealt(seen - 1)).unwrap_or(u32::MAX)
            });
            (chunk.at, tokens.min(MAX_CHUNK_TOKENS))
        })
    }

    /// The least and the most that [`ttft`](Self::ttft) may truly be.
    ///
    /// `None` without a token, and where receive times are those of the reads: then the true time may
    /// be any earlier one.
    pub fn ttft_bounds(&self) -> Option<(f64, f64)> {
        let first = self.record.reply.chunks.iter().next()?;
        self.bounds(first.after, first.at)
    }

    /// The least and the most that [`latency`](Self::latency) may truly be, where the last token may
    /// have come `slack` nanoseconds earlier; `None` as for [`ttft_bounds`](Self::ttft_bounds).
    pub(crate) fn latency_bounds(&self, slack: u64) -> Option<(f64, f64)> {
        let end = self.end()?;
        self.bounds(Stamp(end.0.saturating_sub(slack)), end)
    }

    /// From dispatch to something received from `after` to `at`. The two are of different clocks.
    ///
    /// The server had the request no earlier than the client handed it over: a client that lost the
    /// processor between dispatch and write has that in the latency, but not in the least of it.
    fn bounds(&self, after: Stamp, at: Stamp) -> Option<(f64, f64)> {
        let error = self.record.reply.read_lag?.clock_error().as_secs_f64();
        let dispatched = self.record.dispatched;
        let handed_over = Stamp::from(dispatched.offset() + self.own_delay());
        let least = after.secs_since(handed_over) - error;
        Some((least.max(0.0), at.secs_since(dispatched) + error))
    }

    /// What the client took from dispatch to the first byte written, but for connecting.
    fn own_delay(&self) -> Duration {
        let reply = &self.record.reply;
        let written = reply.sent.map_or(Duration::ZERO, |sent| sent.since(self.record.dispatched));
        written.saturating_sub(reply.rare().connect.unwrap_or_default())
    }

    /// Whether TTFT is known to within [`EXACT_WITHIN`](crate::EXACT_WITHIN); `None` as for
    /// [`ttft_bounds`](Self::ttft_bounds).
    pub fn ttft_is_exact(&self) -> Option<bool> {
        let (low, high) = self.ttft_bounds()?;
        Some(is_exact(high - low))
    }

    /// The share of the inter-token samples that are known to within [`EXACT_WITHIN`](crate::EXACT_WITHIN); `None`
    /// without samples, and where receive times are those of the reads.
    pub fn exact_itl_share(&self, rule: ItlRule) -> Option<f64> {
        self.record.reply.read_lag?;
        let (mut exact, mut all) = (0, 0);
        let chunks: Vec<Chunk> = self.record.reply.chunks.iter().collect();
        for step in steps(&chunks, self.itl_weights(rule)) {
            all += u64::from(step.tokens);
            exact += if step.is_exact() { u64::from(step.tokens) } else { 0 };
        }
        (all > 0).then(|| exact as f64 / all as f64)
    }
}

fn time_per_token(ttft: f64, latency: f64, tokens: u64) -> Option<f64> {
    (tokens > 1).then(|| (latency - ttft) / (tokens - 1) as f64)
}

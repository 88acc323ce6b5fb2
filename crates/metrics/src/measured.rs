//! The times and counts of one request.

use crate::gaps::{Gap, ItlRule, MAX_CHUNK_TOKENS, Weights, gaps};
use servebench_core::{CountSource, Record, Stamp};

/// A record, and what the client's tokenizer says about its text. All times are in seconds.
///
/// The methods describe any record. Only successes become samples of a run; a failed request's
/// partial times are kept for the details of a result.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// What was recorded.
    pub record: &'a Record,
    /// Tokens of the prompt by the client's tokenizer, for prompts whose length is only nominal.
    pub prompt: Option<u64>,
    /// Tokens of the reply's text by the client's tokenizer, special tokens not added.
    pub retokenized: Option<u64>,
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
            (None, Some(tokens)) => OutputCount { tokens, source: CountSource::Tokenizer },
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
        let server = self.record.reply.prompt_tokens.map(u64::from);
        server.or(self.prompt).unwrap_or(u64::from(self.record.prompt_len))
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

    /// Inter-token gaps by the route's rule; `Σ = latency − ttft` for a reply of one choice.
    pub fn itls(&self, rule: ItlRule) -> impl Iterator<Item = Gap> + use<'a> {
        let weights = match rule {
            ItlRule::PerChunk => Weights::One,
            ItlRule::SpreadOverTokens => Weights::Counted,
        };
        gaps(&self.record.reply.chunks, weights)
    }

    /// The gaps that enter the run's ITL family: as [`itls`](Self::itls), but spread over
    /// [`piece_tokens`](Self::piece_tokens) where these are given.
    pub(crate) fn itl_samples(&self, rule: ItlRule) -> impl Iterator<Item = Gap> + use<'a> {
        let weights = match (self.piece_tokens, rule) {
            (Some(pieces), ItlRule::PerChunk) => Weights::Pieces(pieces),
            (None, ItlRule::PerChunk) => Weights::One,
            (_, ItlRule::SpreadOverTokens) => Weights::Counted,
        };
        gaps(&self.record.reply.chunks, weights)
    }

    /// Gaps per token, where the counts allow it; `Σ = latency − ttft` for a reply of one choice.
    ///
    /// Each chunk's gap divided by its tokens, when the server counted every chunk; one gap per
    /// chunk, when it counted none and the reply has as many tokens as chunks. `None` otherwise.
    /// The first chunk's further tokens have no gap.
    pub fn token_itls(&self) -> Option<impl Iterator<Item = Gap> + use<'a>> {
        let chunks = &self.record.reply.chunks;
        let counted = chunks.iter().filter(|chunk| chunk.tokens.is_some()).count();
        let weights = if counted == chunks.len() {
            Weights::Counted
        } else if counted == 0 && self.output_count().tokens == chunks.len() as u64 {
            // Trivially so where nobody counted; then the chunks are not known to be tokens.
            (self.output_count().source != CountSource::Chunks).then_some(Weights::One)?
        } else {
            return None;
        };
        Some(gaps(chunks, weights))
    }

    /// When each token was received: every chunk's stamp with its tokens.
    ///
    /// Tokens that no chunk's count explains are dealt evenly to the chunks without one.
    pub(crate) fn token_stamps(&self) -> impl Iterator<Item = (Stamp, u32)> + use<'a> {
        let chunks = &self.record.reply.chunks;
        let (mut known, mut uncounted) = (0, 0);
        for chunk in chunks.iter() {
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
}

fn time_per_token(ttft: f64, latency: f64, tokens: u64) -> Option<f64> {
    (tokens > 1).then(|| (latency - ttft) / (tokens - 1) as f64)
}

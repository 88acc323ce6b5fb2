//! What a simulated server is like.

use crate::clock::millis;
use crate::faults::{self, FaultRule};
use crate::{CostModel, SimError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// Everything that can be set on a [`Sim`](crate::Sim). Each field can also be changed while the
/// server runs, by `POST /sim/config` with a JSON object of the fields to change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimConfig {
    /// Name under which the model is served.
    pub model: String,
    /// When tokens come.
    pub timing: Timing,
    /// Tokens per stream event, at least 1. A request's `sampling_params.stream_interval` may ask
    /// for more.
    pub coalesce: u32,
    /// Writes every event on its own, even where several are due at once.
    pub yield_each: bool,
    /// The key that requests must carry as `Authorization: Bearer KEY`; none is asked for by
    /// default. `/health`, `/metrics` and `/sim/*` are always open.
    pub api_key: Option<String>,
    /// Prompt and output together may not be longer than this many tokens (status 400).
    pub context_tokens: u32,
    /// How prompt tokens are counted.
    pub prompt_count: PromptCount,
    /// What output text is made of.
    pub text: TextStyle,
    /// Share of requests without `ignore_eos` that stop before their limit, at a place drawn
    /// evenly, with finish reason `stop`.
    pub early_stop: f64,
    /// Seeds every random choice.
    pub seed: u64,
    /// Reasoning tokens at the start of each chat reply. A chat request can ask for reasoning
    /// (half of its tokens, when this is 0) or decline it by `chat_template_kwargs`
    /// `enable_thinking` or `thinking`.
    pub reasoning_tokens: u32,
    /// Name of the field that carries reasoning.
    pub reasoning_field: ReasoningField,
    /// `/generate` streams deltas instead of the whole text so far.
    pub incremental_output: bool,
    /// `/generate` sends token ids alone, as a server without a tokenizer does.
    pub omit_text: bool,
    /// `usage.prompt_tokens_details` tells the cached tokens.
    pub cache_report: bool,
    /// A request for another model is refused with status 404.
    pub strict_model: bool,
    /// Numbers in an embedding.
    pub embedding_dim: u32,
    /// Entries kept in the truth log, one for each write of a request and one for its end; later
    /// requests are left out and counted.
    pub truth_limit: usize,
    /// A profile that ends writes a trace of the engine's steps into the folder it was given, as a
    /// real server does. Off by default, and not to be changed over the network: then nothing is
    /// ever written to a disk.
    #[serde(skip)]
    pub profile_traces: bool,
    /// Longest request body, in bytes (status 413).
    pub max_body_bytes: usize,
    /// The `created` time of OpenAI objects, in seconds since 1970.
    pub created: u64,
    /// Faults to inject.
    #[serde(deserialize_with = "faults::deserialize_rules")]
    pub faults: Vec<FaultRule>,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            model: "sim".to_owned(),
            timing: Timing::default(),
            coalesce: 1,
            yield_each: false,
            api_key: None,
            context_tokens: 1 << 20,
            prompt_count: PromptCount::Bytes,
            text: TextStyle::Bytes,
            early_stop: 0.0,
            seed: 0,
            reasoning_tokens: 0,
            reasoning_field: ReasoningField::ReasoningContent,
            incremental_output: false,
            omit_text: false,
            cache_report: false,
            strict_model: false,
            embedding_dim: 8,
            truth_limit: 4_000_000,
            profile_traces: false,
            max_body_bytes: 256 << 20,
            created: 1_750_000_000,
            faults: Vec::new(),
        }
    }
}

impl SimConfig {
    /// Checks what the types do not say.
    pub fn check(&self) -> Result<(), SimError> {
        let fail = |message: &str| Err(SimError::Config { message: message.to_owned() });
        if self.coalesce == 0 {
            return fail("`coalesce` must be at least 1");
        }
        if !(0.0..=1.0).contains(&self.early_stop) {
            return fail("`early_stop` must lie between 0 and 1");
        }
        if self.context_tokens == 0 {
            return fail("`context_tokens` must be at least 1");
        }
        if self.embedding_dim > 1 << 16 {
            return fail("`embedding_dim` must be at most 65536");
        }
        if let Timing::Engine(cost) = &self.timing {
            cost.check()?;
        }
        faults::check_rules(&self.faults)
    }

    /// This configuration with the fields of a JSON object put in their place, checked.
    pub fn patched(&self, json: &[u8]) -> Result<Self, SimError> {
        let error = |error: serde_json::Error| SimError::Config { message: error.to_string() };
        let changes: Map<String, Value> = serde_json::from_slice(json).map_err(error)?;
        let mut whole = serde_json::to_value(self).map_err(error)?;
        if let Value::Object(fields) = &mut whole {
            fields.extend(changes);
        }
        let config: Self = serde_json::from_value(whole).map_err(error)?;
        config.check()?;
        Ok(Self { profile_traces: self.profile_traces, ..config })
    }
}

/// When tokens come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Timing {
    /// Token `i` of every request is due at arrival + `ttft` + `i` · `itl`, whatever the load.
    Canned {
        /// From the whole request read to its first token.
        #[serde(rename = "ttft_ms", with = "millis")]
        ttft: Duration,
        /// Between two tokens.
        #[serde(rename = "itl_ms", with = "millis")]
        itl: Duration,
    },
    /// An engine model decides; load makes it slower.
    Engine(CostModel),
}

impl Timing {
    /// Fixed times.
    pub const fn canned(ttft: Duration, itl: Duration) -> Self {
        Self::Canned { ttft, itl }
    }
}

impl Default for Timing {
    /// No delay at all: as fast as the simulator can.
    fn default() -> Self {
        Self::canned(Duration::ZERO, Duration::ZERO)
    }
}

/// How prompt tokens are counted. Prompts given as ids always count one token per id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptCount {
    /// One token per UTF-8 byte of the prompt (of a chat: of the text of all messages), as a
    /// byte-level tokenizer counts.
    #[default]
    Bytes,
    /// One token per four bytes begun, near what trained tokenizers make of English.
    QuarterBytes,
}

impl PromptCount {
    /// Bytes per token.
    pub(crate) const fn bytes_per_token(self) -> usize {
        match self {
            Self::Bytes => 1,
            Self::QuarterBytes => 4,
        }
    }
}

/// What output text is made of. Both kinds are plain ASCII that JSON does not escape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextStyle {
    /// One byte per token, so that a byte-level tokenizer finds exactly as many tokens as the
    /// server counts. Token ids are the byte values.
    #[default]
    Bytes,
    /// One short word with its leading space per token.
    Words,
}

/// Name of the chat field that carries reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningField {
    /// `reasoning_content`.
    #[default]
    ReasoningContent,
    /// `reasoning`.
    Reasoning,
}

impl ReasoningField {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ReasoningContent => "reasoning_content",
            Self::Reasoning => "reasoning",
        }
    }
}

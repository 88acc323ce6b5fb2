//! What a step costs, and how large the engine is.

use crate::SimError;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The size of an engine and the time its steps take:
///
/// `step = step_us + prefill_token_us · prefill tokens + decode_token_us · decoded tokens
/// + context_token_us · context tokens`
///
/// in microseconds, where decoded tokens are the positions computed for running requests (with
/// speculative decoding: the draft and one more) and context tokens are what those requests attend
/// to. The named models are round numbers estimated from weight and cache sizes and memory and
/// arithmetic rates; none is a measurement of a product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CostModel {
    /// Cost of any step, in microseconds: reading the weights, launching kernels.
    pub step_us: f64,
    /// Cost of one prompt token, in microseconds.
    pub prefill_token_us: f64,
    /// Cost of one decoded token, in microseconds.
    pub decode_token_us: f64,
    /// Cost of one token attended to while decoding, in microseconds.
    pub context_token_us: f64,
    /// Prompt tokens per step at most; a longer prompt is prefilled over several steps.
    pub chunk_tokens: u32,
    /// Requests running at once at most.
    pub max_running: u32,
    /// Tokens that the KV memory holds, cached prefixes included.
    pub kv_tokens: u64,
    /// Tokens per block of the prefix cache; 0 turns it off.
    pub block_tokens: u32,
    /// Speculative decoding, off by default.
    pub speculative: Option<Speculative>,
    /// Seeds the acceptance of drafts.
    pub seed: u64,
}

/// Speculative decoding: every step proposes a draft per request and keeps its accepted head.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speculative {
    /// Tokens in a draft.
    pub draft_tokens: u32,
    /// Probability that a draft token is accepted, given that all before it were.
    pub acceptance: f64,
}

impl Default for CostModel {
    /// [`CostModel::small`].
    fn default() -> Self {
        Self::small()
    }
}

impl CostModel {
    /// Names for [`CostModel::named`].
    pub const NAMES: &'static [&'static str] = &["tiny", "small", "large"];

    /// A toy that is fast enough for tests: 1 ms steps.
    pub const fn tiny() -> Self {
        Self {
            step_us: 1_000.0,
            prefill_token_us: 2.0,
            decode_token_us: 2.0,
            context_token_us: 0.001,
            chunk_tokens: 2_048,
            max_running: 256,
            kv_tokens: 100_000,
            block_tokens: 16,
            speculative: None,
            seed: 0,
        }
    }

    /// About an 8-billion-parameter model on one data-centre GPU: 16 GB of weights read per step,
    /// 16 GFLOP per prompt token, 128 KiB of cache per token.
    pub const fn small() -> Self {
        Self {
            step_us: 6_000.0,
            prefill_token_us: 32.0,
            decode_token_us: 20.0,
            context_token_us: 0.05,
            chunk_tokens: 8_192,
            max_running: 512,
            kv_tokens: 400_000,
            block_tokens: 16,
            speculative: None,
            seed: 0,
        }
    }

    /// About a 70-billion-parameter model on eight such GPUs.
    pub const fn large() -> Self {
        Self {
            step_us: 15_000.0,
            prefill_token_us: 50.0,
            decode_token_us: 30.0,
            context_token_us: 0.016,
            chunk_tokens: 8_192,
            max_running: 1_024,
            kv_tokens: 1_000_000,
            block_tokens: 16,
            speculative: None,
            seed: 0,
        }
    }

    /// A model by name.
    pub fn named(name: &str) -> Result<Self, SimError> {
        match name {
            "tiny" => Ok(Self::tiny()),
            "small" => Ok(Self::small()),
            "large" => Ok(Self::large()),
            _ => {
                Err(SimError::UnknownModel { name: name.to_owned(), known: Self::NAMES.join(", ") })
            }
        }
    }

    /// Checks that the engine can make progress.
    pub fn check(&self) -> Result<(), SimError> {
        let fail = |message: String| Err(SimError::Config { message });
        let costs = [
            ("step_us", self.step_us),
            ("prefill_token_us", self.prefill_token_us),
            ("decode_token_us", self.decode_token_us),
            ("context_token_us", self.context_token_us),
        ];
        for (name, value) in costs {
            if !(0.0..=1e9).contains(&value) {
                return fail(format!("engine `{name}` must lie between 0 and 1e9"));
            }
        }
        if self.chunk_tokens == 0 || self.max_running == 0 || self.kv_tokens == 0 {
            return fail(
                "engine `chunk_tokens`, `max_running`, `kv_tokens` must be at least 1".to_owned(),
            );
        }
        match self.speculative {
            Some(Speculative { draft_tokens, .. }) if !(1..=64).contains(&draft_tokens) => {
                fail("engine `draft_tokens` must lie between 1 and 64".to_owned())
            }
            Some(Speculative { acceptance, .. }) if !(0.0..=1.0).contains(&acceptance) => {
                fail("engine `acceptance` must lie between 0 and 1".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// How long a step takes, to the nanosecond.
    pub fn step_time(&self, prefill: u64, decoded: u64, context: u64) -> Duration {
        let micros = self.step_us
            + self.prefill_token_us * prefill as f64
            + self.decode_token_us * decoded as f64
            + self.context_token_us * context as f64;
        // `as` saturates and maps NaN to zero: no cost model can stop the clock or panic.
        Duration::from_nanos((micros * 1e3).round() as u64)
    }
}

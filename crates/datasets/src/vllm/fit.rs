//! Token ids whose text has the length asked for, as far as that can be had.

use servebench_core::random::{NumpyGenerator, NumpyLegacy};
use servebench_tokens::{Tokenizer, TokensError};
use std::ops::RangeInclusive;

/// Where ids to fill up with come from.
pub(super) trait Integers {
    /// `n` integers uniform on `range`, both ends included.
    fn draw(&mut self, range: RangeInclusive<u32>, n: usize) -> Vec<u32>;
}

impl Integers for NumpyGenerator {
    fn draw(&mut self, range: RangeInclusive<u32>, n: usize) -> Vec<u32> {
        self.integers(range, n)
    }
}

impl Integers for NumpyLegacy {
    fn draw(&mut self, range: RangeInclusive<u32>, n: usize) -> Vec<u32> {
        self.randint(range, n)
    }
}

/// How often ids are changed before the length is taken as it is.
const ROUNDS: u32 = 10;

/// Ids on their way to a text of `target` tokens: decode, encode again, cut or fill up, and so on.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    /// The text decoded last.
    pub(super) text: String,
    /// Its tokens.
    pub(super) ids: Vec<u32>,
    target: usize,
    rounds: u32,
    done: bool,
}

impl Fit {
    /// Starts from `ids`.
    pub(super) fn new(ids: Vec<u32>, target: usize) -> Self {
        Self { text: String::new(), ids, target, rounds: ROUNDS, done: false }
    }

    /// Goes on until it is done, or needs ids to fill up with: the part that draws nothing, and can go on
    /// for many prompts at once.
    pub(super) fn advance(mut self, tokenizer: &Tokenizer) -> Result<Self, TokensError> {
        while !self.done {
            self.text = tokenizer.decode(&self.ids, false)?;
            self.ids = tokenizer.encode(&self.text, false)?;
            self.done = self.rounds == 0 || self.ids.len() == self.target;
            if self.done || self.ids.len() < self.target {
                break;
            }
            self.ids.truncate(self.target);
            self.rounds -= 1;
        }
        Ok(self)
    }

    /// Goes on to the end, with ids from `random` wherever some are missing.
    pub(super) fn finish(
        mut self,
        tokenizer: &Tokenizer,
        random: &mut impl Integers,
    ) -> Result<Self, TokensError> {
        let last = tokenizer.vocab_size().saturating_sub(1);
        loop {
            self = self.advance(tokenizer)?;
            if self.done {
                return Ok(self);
            }
            let missing = self.target - self.ids.len();
            self.ids.extend(random.draw(0..=last, missing));
            self.rounds -= 1;
        }
    }

    /// By how many tokens the length is missed.
    pub(super) fn mismatch(&self) -> u64 {
        self.ids.len().abs_diff(self.target) as u64
    }
}

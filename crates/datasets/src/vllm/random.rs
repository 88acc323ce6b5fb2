//! `random`: prompts of drawn lengths, each a run of consecutive ids.

use super::fit::Fit;
use super::lengths::{Lengths, RangeRatio, interval};
use super::shared::{need, too_few};
use super::{VllmDatasetOptions, VllmLoaded};
use crate::DatasetError;
use rayon::prelude::*;
use serde::Serialize;
use servebench_core::random::NumpyGenerator;
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::{Tokenizer, TokensError};

/// What random prompts look like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RandomOptions {
    /// Prompt length, with the special tokens that a server adds.
    pub input_len: u32,
    /// Output length.
    pub output_len: u32,
    /// How far lengths may be from those.
    pub range_ratio: RangeRatio,
    /// Ids that all prompts begin with, on top of their own.
    pub prefix_len: u32,
    /// Prompts in one request.
    pub batch_size: usize,
}

impl Default for RandomOptions {
    fn default() -> Self {
        Self {
            input_len: 1024,
            output_len: 128,
            range_ratio: RangeRatio::default(),
            prefix_len: 0,
            batch_size: 1,
        }
    }
}

pub(super) fn load(
    random: &RandomOptions,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
) -> Result<VllmLoaded, DatasetError> {
    let tokenizer = need(tokenizer, "random")?;
    let n = options.num_prompts.filter(|n| *n > 0).ok_or_else(|| too_few("random"))?;
    let own = random.input_len.saturating_sub(tokenizer.num_special_tokens_to_add());
    let shortest = *interval(own, random.range_ratio.input, 0).start();
    if random.prefix_len + shortest == 0 {
        return Err(DatasetError::Option {
            flag: "--random-input-len",
            problem: "leaves prompts without a token: raise it, or --random-prefix-len".to_owned(),
        });
    }
    let mut draws = NumpyGenerator::new(options.seed);
    let lengths = (own, random.output_len);
    let vocabulary = tokenizer.vocab_size();
    let lengths = Lengths::draw(n, lengths, random.range_ratio, vocabulary, &mut draws)?;
    let ids = Ids { allowed: allowed(tokenizer)? };
    let prefix = ids.prefix(random.prefix_len, tokenizer, &mut draws)?;

    // What draws nothing goes on for all at once; what draws goes on in the tool's order.
    let fits: Vec<Result<Fit, TokensError>> = (0..n)
        .into_par_iter()
        .map(|row| {
            let own = ids.run(lengths.offsets[row] as usize + row, lengths.inputs[row] as usize);
            let ids: Vec<u32> = prefix.iter().copied().chain(own).collect();
            // A prefix that could not be fitted makes the prompt no longer.
            let target = random.prefix_len as usize + lengths.inputs[row] as usize;
            Fit::new(ids, target).advance(tokenizer)
        })
        .collect();
    let mut loaded = VllmLoaded { request_ids: true, ..VllmLoaded::default() };
    let mut off = 0;
    for (fit, &output_len) in fits.into_iter().zip(&lengths.outputs) {
        let fit = fit?.finish(tokenizer, &mut draws)?;
        loaded.mismatch += fit.mismatch();
        off += usize::from(fit.mismatch() > 0);
        loaded.samples.push(Sample {
            prompt_len: fit.ids.len() as u32,
            prompt: Prompt::Text(fit.text),
            counted: Counted::Tokenizer,
            output_len,
            ..Sample::default()
        });
    }
    if off > 0 {
        loaded.warnings.push(format!(
            "{off} of {n} random prompts miss their lengths, by {} tokens in all: the tokenizer \
             merges what was drawn; prompt lengths are the real ones",
            loaded.mismatch
        ));
    }
    if random.batch_size > 1 {
        loaded.samples = batches(loaded.samples, random.batch_size);
    }
    Ok(loaded)
}

/// The ids that prompts are made of, in ascending order: none that the tokenizer's settings call special.
pub(super) fn allowed(tokenizer: &Tokenizer) -> Result<Vec<u32>, DatasetError> {
    let special = tokenizer.named_special_ids();
    let allowed: Vec<u32> =
        (0..tokenizer.vocab_size()).filter(|id| special.binary_search(id).is_err()).collect();
    if allowed.is_empty() {
        return Err(DatasetError::NoUsableRows {
            dataset: format!("the vocabulary of `{}`", tokenizer.name()),
            skipped: "all of it is special".to_owned(),
        });
    }
    Ok(allowed)
}

pub(super) struct Ids {
    pub(super) allowed: Vec<u32>,
}

impl Ids {
    /// `count` ids one after the other, the first at place `start`, from the beginning again at the end.
    pub(super) fn run(&self, start: usize, count: usize) -> impl Iterator<Item = u32> {
        self.allowed.iter().copied().cycle().skip(start % self.allowed.len()).take(count)
    }

    /// Ids that all prompts begin with.
    pub(super) fn prefix(
        &self,
        len: u32,
        tokenizer: &Tokenizer,
        draws: &mut NumpyGenerator,
    ) -> Result<Vec<u32>, DatasetError> {
        if len == 0 {
            return Ok(Vec::new());
        }
        let last = self.allowed.len() as u32 - 1;
        let places = draws.integers(0..=last, len as usize);
        let ids = places.into_iter().map(|place| self.allowed[place as usize]).collect();
        Ok(Fit::new(ids, len as usize).finish(tokenizer, draws)?.ids)
    }
}

/// Groups of prompts, each one request without an output.
fn batches(samples: Vec<Sample>, size: usize) -> Vec<Sample> {
    let mut samples = samples.into_iter().peekable();
    let mut batches = Vec::new();
    while samples.peek().is_some() {
        let mut batch = Sample { counted: Counted::Tokenizer, ..Sample::default() };
        let mut texts = Vec::with_capacity(size);
        for sample in samples.by_ref().take(size) {
            batch.prompt_len += sample.prompt_len;
            if let Prompt::Text(text) = sample.prompt {
                texts.push(text);
            }
        }
        batch.prompt = Prompt::Texts(texts);
        batches.push(batch);
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vllm::{VllmDataset, load as load_any};
    use servebench_core::random::Draws;

    fn options(random: RandomOptions, n: usize) -> VllmDatasetOptions {
        VllmDatasetOptions {
            num_prompts: Some(n),
            ..VllmDatasetOptions::new(VllmDataset::Random(random))
        }
    }

    #[test]
    fn batches_hold_several_prompts_and_no_output() {
        let random = RandomOptions { input_len: 4, batch_size: 3, ..RandomOptions::default() };
        let tokenizer = Tokenizer::byte_level();
        let loaded = load_any(&options(random, 7), Some(&tokenizer), &mut Draws::new(0)).unwrap();
        let sizes: Vec<usize> = loaded
            .samples
            .iter()
            .map(|sample| match &sample.prompt {
                Prompt::Texts(texts) => texts.len(),
                _ => 0,
            })
            .collect();
        assert_eq!(sizes, [3, 3, 1]);
        assert!(loaded.samples.iter().all(|sample| sample.output_len == 0));
    }

    #[test]
    fn a_prefix_is_shared() {
        let random = RandomOptions { input_len: 8, prefix_len: 40, ..RandomOptions::default() };
        let tokenizer = Tokenizer::byte_level();
        let loaded = load_any(&options(random, 3), Some(&tokenizer), &mut Draws::new(0)).unwrap();
        let texts: Vec<&str> = loaded
            .samples
            .iter()
            .filter_map(|sample| match &sample.prompt {
                Prompt::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let start: String = texts[0].chars().take(10).collect();
        assert!(texts.iter().all(|text| text.starts_with(&start)), "{texts:?}");
    }

    #[test]
    fn nothing_to_send_is_an_error() {
        let tokenizer = Tokenizer::byte_level();
        let empty = RandomOptions { input_len: 0, ..RandomOptions::default() };
        let error = load_any(&options(empty, 3), Some(&tokenizer), &mut Draws::new(0)).unwrap_err();
        assert!(error.to_string().starts_with("--random-input-len"), "{error}");
        let error =
            load_any(&options(RandomOptions::default(), 0), Some(&tokenizer), &mut Draws::new(0));
        assert!(error.unwrap_err().to_string().starts_with("--num-prompts"));
        let error = load_any(&options(RandomOptions::default(), 1), None, &mut Draws::new(0));
        assert!(error.unwrap_err().to_string().contains("--skip-tokenizer-init"));
    }
}

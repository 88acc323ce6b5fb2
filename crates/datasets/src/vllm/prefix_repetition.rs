//! `prefix_repetition`: prompts of random ids that share a few prefixes.

use super::fit::Fit;
use super::shared::{need, too_few};
use super::{VllmDatasetOptions, VllmLoaded};
use crate::DatasetError;
use rayon::prelude::*;
use serde::Serialize;
use servebench_core::random::{Draws, NumpyLegacy};
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::{Tokenizer, TokensError};

/// How many prefixes there are, and how long everything is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PrefixRepetitionOptions {
    /// Tokens that the prompts of a group begin with.
    pub prefix_len: u32,
    /// Tokens of a prompt after those.
    pub suffix_len: u32,
    /// Groups of prompts.
    pub num_prefixes: usize,
    /// Output length.
    pub output_len: u32,
}

impl Default for PrefixRepetitionOptions {
    fn default() -> Self {
        Self { prefix_len: 256, suffix_len: 256, num_prefixes: 10, output_len: 128 }
    }
}

pub(super) fn load(
    own: &PrefixRepetitionOptions,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
    draws: &mut Draws,
) -> Result<VllmLoaded, DatasetError> {
    const NAME: &str = "prefix_repetition";
    let tokenizer = need(tokenizer, NAME)?;
    let n = options.num_prompts.filter(|n| *n > 0).ok_or_else(|| too_few(NAME))?;
    let Some(each) = n.checked_div(own.num_prefixes).filter(|each| *each > 0) else {
        return Err(DatasetError::Option {
            flag: "--prefix-repetition-num-prefixes",
            problem: format!("must be from 1 to the {n} prompts of --num-prompts"),
        });
    };
    *draws = Draws::new(options.seed);
    let fitted = |len: u32, numpy: &mut NumpyLegacy| -> Result<Fit, TokensError> {
        let last = tokenizer.vocab_size().saturating_sub(1);
        let ids = numpy.randint(0..=last, len as usize);
        Fit::new(ids, len as usize).finish(tokenizer, numpy)
    };
    let mut loaded = VllmLoaded::default();
    let mut prompts: Vec<Vec<u32>> = Vec::with_capacity(each * own.num_prefixes);
    for _ in 0..own.num_prefixes {
        let prefix = fitted(own.prefix_len, &mut draws.numpy)?;
        loaded.mismatch += prefix.mismatch();
        for _ in 0..each {
            let suffix = fitted(own.suffix_len, &mut draws.numpy)?;
            loaded.mismatch += suffix.mismatch();
            prompts.push(prefix.ids.iter().chain(&suffix.ids).copied().collect());
        }
    }
    if !options.disable_shuffle {
        draws.python.shuffle(&mut prompts);
    }
    let sample = |ids: Vec<u32>| -> Result<Sample, TokensError> {
        Ok(Sample {
            prompt: Prompt::Text(tokenizer.decode(&ids, false)?),
            prompt_len: ids.len() as u32,
            counted: Counted::Nominal,
            output_len: own.output_len,
            ..Sample::default()
        })
    };
    loaded.samples = prompts.into_par_iter().map(sample).collect::<Result<_, _>>()?;
    if loaded.samples.len() < n {
        loaded.warnings.push(format!(
            "{} requests, not {n}: {each} for each of {} prefixes",
            loaded.samples.len(),
            own.num_prefixes
        ));
    }
    if loaded.mismatch > 0 {
        loaded.warnings.push(format!(
            "prefixes and suffixes miss their lengths by {} tokens in all: the tokenizer merges what \
             was drawn",
            loaded.mismatch
        ));
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vllm::VllmDataset;

    fn load_of(own: &PrefixRepetitionOptions, n: usize) -> Result<VllmLoaded, DatasetError> {
        let options = VllmDatasetOptions {
            num_prompts: Some(n),
            ..VllmDatasetOptions::new(VllmDataset::PrefixRepetition(own.clone()))
        };
        load(own, &options, Some(&Tokenizer::byte_level()), &mut Draws::new(0))
    }

    #[test]
    fn every_group_has_as_many() {
        let own = PrefixRepetitionOptions {
            prefix_len: 40,
            suffix_len: 8,
            num_prefixes: 3,
            ..PrefixRepetitionOptions::default()
        };
        let loaded = load_of(&own, 11).unwrap();
        assert_eq!(loaded.samples.len(), 9);
        assert!(loaded.warnings[0].starts_with("9 requests, not 11"), "{:?}", loaded.warnings);
        assert!(!loaded.request_ids);
        let mut starts = std::collections::BTreeMap::new();
        for sample in &loaded.samples {
            let Prompt::Text(text) = &sample.prompt else { panic!("no text") };
            *starts.entry(text.chars().take(10).collect::<String>()).or_insert(0) += 1;
        }
        assert_eq!(starts.into_values().collect::<Vec<_>>(), [3, 3, 3]);
    }

    #[test]
    fn no_group_is_an_error() {
        for (num_prefixes, n) in [(0, 5), (6, 5), (1, 0)] {
            let own = PrefixRepetitionOptions { num_prefixes, ..Default::default() };
            assert!(matches!(load_of(&own, n), Err(DatasetError::Option { .. })));
        }
    }
}

//! `random-words`: prompts of words that are one token each.
//!
//! Such a prompt has its exact length by construction: no text is encoded but a sample, which is
//! checked. The words of row `r` come from a stream of its own, so that the number of threads does
//! not matter; no two rows begin alike but by chance.

mod lexicon;
mod stream;

use crate::random::Lengths;
use crate::{DatasetError, DatasetOptions, Loaded};
use lexicon::Lexicon;
use rayon::prelude::*;
use servebench_core::random::Draws;
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::Tokenizer;
use std::borrow::Cow;
use stream::Stream;

/// Pairs of words that are checked.
const PAIRS: usize = 200;
/// Prompts that are checked, as long as they are not longer than [`CHECKED_BYTES`] together.
const PROMPTS: usize = 32;
/// Most text of prompts that is checked: some hundredths of a second. One prompt always is.
const CHECKED_BYTES: usize = 128 * 1024;

/// Draws lengths as `random` does, then words.
pub(crate) fn load(
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
    draws: &mut Draws,
) -> Result<Loaded, DatasetError> {
    let lexicon = Lexicon::of(tokenizer)?;
    let lengths = Lengths::draw(options, tokenizer, &mut draws.numpy);
    let key = u64::from(draws.numpy.next_u32()) << 32 | u64::from(draws.numpy.next_u32());
    let special = tokenizer.num_special_tokens_to_add();
    let rows = lengths.input.par_iter().zip(&lengths.output).enumerate();
    let samples: Vec<Sample> = rows
        .map(|(row, (&length, &output_len))| {
            let picks = picks(&lexicon, key, row as u64, length);
            let (prompt, counted, prompt_len) = if options.tokenize_prompt {
                (Prompt::Ids(lexicon.ids(picks)), Counted::Exact, length)
            } else {
                (Prompt::Text(lexicon.text(picks)), Counted::Tokenizer, length + special)
            };
            Sample { prompt, prompt_len, counted, output_len, ..Sample::default() }
        })
        .collect();
    check(&samples, &lexicon, key, tokenizer)?;
    Ok(Loaded { samples, warnings: Vec::new() })
}

/// The words of a row.
fn picks(lexicon: &Lexicon, key: u64, row: u64, length: u32) -> impl Iterator<Item = usize> {
    let (mut stream, words) = (Stream::of_row(key, row), lexicon.len());
    (0..length).map(move |_| stream.below(words))
}

/// Encodes some prompts and pairs of words, to see that they are as long as they should be.
fn check(
    samples: &[Sample],
    lexicon: &Lexicon,
    key: u64,
    tokenizer: &Tokenizer,
) -> Result<(), DatasetError> {
    let special = tokenizer.num_special_tokens_to_add();
    let pair = |at: usize| lexicon.text(picks(lexicon, key, u64::MAX - at as u64, 2));
    let pairs = (0..PAIRS).map(|at| (pair(at).into(), 2 + special));
    let texts: Vec<(&str, u32)> = samples
        .iter()
        .filter_map(|sample| match &sample.prompt {
            Prompt::Text(text) => Some((text.as_str(), sample.prompt_len)),
            _ => None,
        })
        .collect();
    let bytes: usize = texts.iter().map(|(text, _)| text.len()).sum();
    let step = texts.len().div_ceil(PROMPTS).max(bytes.div_ceil(CHECKED_BYTES)).max(1);
    let prompts = texts.iter().step_by(step).map(|&(text, length)| (text.into(), length));
    let checked: Vec<(Cow<'_, str>, u32)> = prompts.chain(pairs).collect();
    let counts = checked.par_iter().map(|(text, length)| {
        let is_right = tokenizer.count(text, true)? == *length;
        Ok::<_, DatasetError>(usize::from(!is_right))
    });
    match counts.try_reduce(|| 0, |a, b| Ok(a + b))? {
        0 => Ok(()),
        wrong => {
            let (tokenizer, checked) = (tokenizer.name().to_owned(), checked.len());
            Err(DatasetError::WordsMerge { tokenizer, wrong, checked })
        }
    }
}

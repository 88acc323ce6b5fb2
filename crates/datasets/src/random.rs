//! `random` and `random-ids`: prompts of drawn lengths.

use crate::corpus::{Conversation, TextKey};
use crate::exact::Exact;
use crate::skips::{Skip, Skips};
use crate::{DatasetError, DatasetOptions};
use rayon::prelude::*;
use servebench_core::random::{Draws, NumpyLegacy};
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::{Tokenizer, TokensError};

/// The lengths of all prompts and outputs, drawn before anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub(crate) input: Vec<u32>,
    pub(crate) output: Vec<u32>,
}

impl Lengths {
    /// Draws input lengths, then output lengths. Prompts that are sent as text leave room for the
    /// special tokens that the server adds.
    pub(crate) fn draw(
        options: &DatasetOptions,
        tokenizer: &Tokenizer,
        numpy: &mut NumpyLegacy,
    ) -> Self {
        let (ratio, n) = (options.random_range_ratio, options.num_prompts);
        let mut input = draw_lengths(options.random_input_len, ratio, n, numpy);
        let output = draw_lengths(options.random_output_len, ratio, n, numpy);
        if !options.tokenize_prompt {
            let special = tokenizer.num_special_tokens_to_add();
            for len in &mut input {
                *len = len.saturating_sub(special).max(1);
            }
        }
        Self { input, output }
    }
}

/// `n` lengths uniform on `max(⌊full · ratio⌋, 1) ..= full`; none are drawn if `full` is 0.
pub(crate) fn draw_lengths(full: u32, ratio: f64, n: usize, numpy: &mut NumpyLegacy) -> Vec<u32> {
    if full == 0 {
        return vec![0; n];
    }
    let shortest = ((f64::from(full) * ratio) as u32).max(1);
    numpy.randint(shortest..=full, n)
}

/// Prompts of a corpus, repeated or cut to the drawn lengths.
pub(crate) fn from_corpus(
    mut conversations: Vec<Conversation<'_>>,
    lengths: &Lengths,
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
    draws: &mut Draws,
    skips: &mut Skips,
) -> Result<Vec<Sample>, DatasetError> {
    draws.python.shuffle(&mut conversations);
    let wanted = lengths.input.len();
    // Prompts of exact length get their special tokens from the server alone.
    let special = !options.exact_lengths;
    let mut rows: Vec<Vec<u32>> = Vec::with_capacity(wanted.min(conversations.len()));
    let mut rest = conversations.as_slice();
    while rows.len() < wanted && !rest.is_empty() {
        let (batch, later) = rest.split_at((wanted - rows.len()).min(rest.len()));
        rest = later;
        let encoded: Vec<_> = batch
            .par_iter()
            .map(|conversation| conversation.text(0, TextKey::Value))
            .map(|text| text.map(|text| tokenizer.encode(&text, special)).transpose())
            .collect();
        for (ids, conversation) in encoded.into_iter().zip(batch) {
            match ids? {
                Some(ids) if !ids.is_empty() => rows.push(ids),
                Some(_) => skips.note(Skip::TooShort, conversation.at),
                None => skips.note(Skip::NoText, conversation.at),
            }
        }
    }
    let rows = rows.into_par_iter().enumerate();
    let samples = rows.map(|(row, ids)| {
        let source = ids.iter().copied().cycle();
        finish(row, source, lengths, options, tokenizer)
    });
    Ok(samples.collect::<Result<_, _>>()?)
}

/// Runs of consecutive ids: id `j` of row `i` is `(offset_i + i + j) mod vocabulary`.
pub(crate) fn from_ids(
    lengths: &Lengths,
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
    draws: &mut Draws,
) -> Result<Vec<Sample>, DatasetError> {
    let Some(last) = tokenizer.vocab_size().checked_sub(1) else {
        let dataset = format!("the vocabulary of `{}`", tokenizer.name());
        return Err(DatasetError::NoUsableRows { dataset, skipped: "it is empty".to_owned() });
    };
    let offsets = draws.numpy.randint(0..=last, lengths.input.len());
    // Without --exact-lengths the ids are all the numbers of the base vocabulary, as in Python.
    let ids = if options.exact_lengths {
        crate::exact::usable_ids(tokenizer, !options.tokenize_prompt)
    } else {
        (0..=last).collect()
    };
    let rows = offsets.into_par_iter().enumerate();
    let samples = rows.map(|(row, offset)| {
        let start = (offset as usize + row) % ids.len();
        let source = ids.iter().copied().cycle().skip(start);
        finish(row, source, lengths, options, tokenizer)
    });
    Ok(samples.collect::<Result<_, _>>()?)
}

/// A sample of the row's lengths whose ids come from `source`, which never ends.
fn finish(
    row: usize,
    mut source: impl Iterator<Item = u32>,
    lengths: &Lengths,
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
) -> Result<Sample, TokensError> {
    let (prompt_len, output_len) = (lengths.input[row], lengths.output[row]);
    let sample = Sample { prompt_len, output_len, ..Sample::default() };
    let ids: Vec<u32> = source.by_ref().take(prompt_len as usize).collect();
    if options.tokenize_prompt {
        return Ok(Sample { prompt: Prompt::Ids(ids), counted: Counted::Exact, ..sample });
    }
    if options.exact_lengths {
        let exact = Exact::make(ids, source, tokenizer)?;
        let prompt_len = tokenizer.count(&exact.text, true)?;
        let (prompt, counted) = (Prompt::Text(exact.text), Counted::Tokenizer);
        return Ok(Sample { prompt, prompt_len, counted, ..sample });
    }
    let prompt = Prompt::Text(tokenizer.decode(&ids, false)?);
    Ok(Sample { prompt, counted: Counted::Nominal, ..sample })
}

/// How far the samples are from the lengths drawn for them: `(rows that are off, largest error)`.
pub(crate) fn inexact(samples: &[Sample], lengths: &Lengths, special: u32) -> (usize, u32) {
    let errors = samples.iter().zip(&lengths.input).map(|(sample, &len)| match sample.counted {
        Counted::Tokenizer => sample.prompt_len.abs_diff(len + special),
        _ => 0,
    });
    errors
        .filter(|&error| error > 0)
        .fold((0, 0), |(rows, worst), error| (rows + 1, worst.max(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranges of lengths at the edges of 64-bit arithmetic, all of whose ends are reached.
    #[test]
    fn the_range_ratio_is_the_lower_bound() {
        let range = |full, ratio| {
            let lengths = draw_lengths(full, ratio, 2000, &mut NumpyLegacy::new(1));
            (*lengths.iter().min().unwrap(), *lengths.iter().max().unwrap())
        };
        assert_eq!(range(100, 0.0), (1, 100));
        assert_eq!(range(100, 0.5), (50, 100));
        assert_eq!(range(100, 1.0), (100, 100));
        assert_eq!(range(100, 0.29), (28, 100), "100 · 0.29 is 28.999… in 64 bits");
        assert_eq!(range(100, 0.1), (10, 100));
        assert_eq!(range(1000, 0.9), (900, 1000));
        assert_eq!(range(7, 0.3), (2, 7));
        assert_eq!(range(10, 0.9), (9, 10));
        assert_eq!(range(1, 0.9), (1, 1));
    }

    #[test]
    fn no_output_draws_nothing() {
        let mut numpy = NumpyLegacy::new(1);
        assert_eq!(draw_lengths(0, 0.0, 3, &mut numpy), [0; 3]);
        assert_eq!(numpy, NumpyLegacy::new(1));
    }
}

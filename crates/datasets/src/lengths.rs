//! The lengths that prompts really have.

use rayon::prelude::*;
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::{Tokenizer, TokensError};
use std::fmt;

/// Counts the tokens of every prompt, on all cores; `special` adds the special tokens that a
/// server puts around text. Messages and prompts with pictures keep the length that they came with.
pub fn count_true_lengths(
    samples: &[Sample],
    tokenizer: &Tokenizer,
    special: bool,
) -> Result<Vec<u32>, TokensError> {
    samples.par_iter().map(|sample| count(sample, tokenizer, special)).collect()
}

fn count(sample: &Sample, tokenizer: &Tokenizer, special: bool) -> Result<u32, TokensError> {
    match &sample.prompt {
        // The text is not all that there is.
        Prompt::Text(_) if sample.pictures.is_some() => Ok(sample.prompt_len),
        Prompt::Text(text) => tokenizer.count(text, special),
        Prompt::Ids(ids) => Ok(u32::try_from(ids.len()).unwrap_or(u32::MAX)),
        _ => Ok(sample.prompt_len),
    }
}

/// How far nominal prompt lengths are from the real ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drift {
    /// Prompts that were counted.
    pub checked: usize,
    /// Prompts whose length is nominal.
    pub nominal: usize,
    /// Counted prompts whose length is not the one asked for.
    pub off: usize,
    /// Mean length asked for, over the counted prompts.
    pub asked_mean: f64,
    /// Mean length found.
    pub real_mean: f64,
    /// Largest difference of one prompt, in tokens.
    pub worst: u32,
}

impl Drift {
    /// True when no counted prompt was off.
    pub fn is_none(&self) -> bool {
        self.off == 0
    }
}

impl fmt::Display for Drift {
    /// As in `prompts drift when encoded again: asked 4000.0 tokens, real 3990.2 in the mean, …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return write!(f, "prompts have the lengths asked for ({} checked)", self.checked);
        }
        write!(
            f,
            "prompt lengths drift when the text is encoded again: asked {:.1}, real {:.1} tokens in \
             the mean, {} of {} prompts off, by up to {}",
            self.asked_mean, self.real_mean, self.off, self.checked, self.worst
        )?;
        if self.checked < self.nominal {
            write!(f, " ({} of {} checked)", self.checked, self.nominal)?;
        }
        f.write_str("; --exact-lengths makes them exact")
    }
}

/// Compares nominal lengths with real ones, special tokens aside, on all cores.
///
/// At most about `byte_limit` bytes of text are encoded: evenly spaced prompts stand for the rest
/// (at least one). A megabyte takes some tenths of a second on one core.
pub fn measure_drift(
    samples: &[Sample],
    tokenizer: &Tokenizer,
    byte_limit: usize,
) -> Result<Drift, TokensError> {
    let nominal: Vec<&Sample> = samples
        .iter()
        .filter(|sample| sample.counted == Counted::Nominal)
        .filter(|sample| matches!(sample.prompt, Prompt::Text(_)))
        .collect();
    let bytes: usize = nominal.iter().map(|sample| text_len(sample)).sum();
    let step = bytes.div_ceil(byte_limit.max(1)).max(1);
    let checked: Vec<&Sample> = nominal.iter().copied().step_by(step).collect();
    let real: Vec<u32> = checked
        .par_iter()
        .map(|sample| count(sample, tokenizer, false))
        .collect::<Result<_, _>>()?;
    let mean = |sum: u64| if checked.is_empty() { 0.0 } else { sum as f64 / checked.len() as f64 };
    let errors: Vec<u32> = checked
        .iter()
        .zip(&real)
        .map(|(sample, real)| sample.prompt_len.abs_diff(*real))
        .filter(|&error| error > 0)
        .collect();
    Ok(Drift {
        checked: checked.len(),
        nominal: nominal.len(),
        off: errors.len(),
        asked_mean: mean(checked.iter().map(|sample| u64::from(sample.prompt_len)).sum()),
        real_mean: mean(real.iter().copied().map(u64::from).sum()),
        worst: errors.into_iter().max().unwrap_or(0),
    })
}

fn text_len(sample: &Sample) -> usize {
    match &sample.prompt {
        Prompt::Text(text) => text.len(),
        _ => 0,
    }
}

//! What the datasets share.

use super::{VllmDatasetOptions, VllmLoaded};
use crate::DatasetError;
use servebench_core::Sample;
use servebench_core::random::{Draws, PythonRandom};
use servebench_tokens::Tokenizer;
use std::path::Path;

/// The tokenizer of a dataset that cannot do without one.
pub(super) fn need<'a>(
    tokenizer: Option<&'a Tokenizer>,
    dataset: &str,
) -> Result<&'a Tokenizer, DatasetError> {
    tokenizer.ok_or_else(|| DatasetError::Option {
        flag: "--skip-tokenizer-init",
        problem: format!("leaves --dataset-name {dataset} without the tokenizer that it needs"),
    })
}

/// The file of a dataset that is one.
pub(super) fn need_path<'a>(
    options: &'a VllmDatasetOptions,
    name: &'static str,
) -> Result<&'a Path, DatasetError> {
    options.path.as_deref().ok_or(DatasetError::NoPath { name })
}

/// Without a number of prompts, a dataset that is made has no end.
pub(super) fn too_few(dataset: &str) -> DatasetError {
    DatasetError::Option {
        flag: "--num-prompts",
        problem: format!("must be 1 or more with --dataset-name {dataset}, which has no end"),
    }
}

/// Shuffles rows with a freshly seeded generator, as every dataset made of a file does, and leaves that
/// generator in `draws`.
pub(super) fn shuffle<T>(rows: &mut [T], options: &VllmDatasetOptions, draws: &mut Draws) {
    draws.python = PythonRandom::new(options.seed);
    if !options.disable_shuffle {
        draws.python.shuffle(rows);
    }
}

/// True for lengths that ShareGPT-like data are filtered for. `fixed`: the output length was given.
pub(super) fn is_usual(prompt_len: u32, output_len: u32, fixed: bool) -> bool {
    let long_enough = prompt_len >= 4 && (fixed || output_len >= 4);
    long_enough && prompt_len <= 1024 && prompt_len.saturating_add(output_len) <= 2048
}

/// Rows as they are sent: where a file has fewer than asked for, some come again, chosen at random.
pub(super) fn finish(
    mut samples: Vec<Sample>,
    options: &VllmDatasetOptions,
    draws: &mut Draws,
    (path, skipped): (&Path, String),
) -> Result<VllmLoaded, DatasetError> {
    if samples.is_empty() {
        let dataset = path.display().to_string();
        return Err(DatasetError::NoUsableRows { dataset, skipped });
    }
    let mut warnings = Vec::new();
    let missing = options.num_prompts.map_or(0, |n| n.saturating_sub(samples.len()));
    let rows = samples.len();
    if missing > 0 && options.no_oversample {
        warnings.push(format!("{} has {rows} usable rows, fewer than asked for", path.display()));
    } else if missing > 0 {
        draws.python = PythonRandom::new(options.seed);
        for _ in 0..missing {
            let row = draws.python.choice_index(rows as u32);
            samples.push(samples[row as usize].clone());
        }
        warnings.push(format!(
            "{} has {rows} usable rows: {missing} requests repeat some of them, which a prefix cache \
             will know (--no-oversample sends {rows})",
            path.display()
        ));
    }
    Ok(VllmLoaded { samples, request_ids: true, mismatch: 0, warnings })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_filtered_as_in_python() {
        assert!(is_usual(4, 4, false) && is_usual(1024, 1024, false) && is_usual(4, 1, true));
        assert!(!is_usual(3, 4, false) && !is_usual(4, 3, false));
        assert!(!is_usual(1025, 4, false) && !is_usual(1024, 1025, true));
    }
}

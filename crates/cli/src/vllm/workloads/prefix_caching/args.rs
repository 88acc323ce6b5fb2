//! Flags of `prefix-caching`.

use crate::vllm::args::{ContentArgs, DatasetName, VllmDatasetArgs, VllmLoadArgs};
use crate::vllm::offline::{OfflineArgs, Workload};
use clap::Args;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Every flag of vLLM's `benchmark_prefix_caching.py` but those of its engine: what may be abbreviated.
pub const PREFIX_CACHING_FLAGS: &[&str] = &[
    "--dataset-path",
    "--disable-detokenize",
    "--help",
    "--input-length-range",
    "--num-prompts",
    "--output-len",
    "--prefix-len",
    "--repeat-count",
    "--sort",
];

/// Flags of `prefix-caching`.
#[derive(Args, Clone, Debug)]
pub struct PrefixCachingArgs {
    /// Take prompts from this ShareGPT file, in place of random ones
    #[arg(long, value_name = "FILE")]
    pub dataset_path: Option<PathBuf>,

    /// Most tokens of each reply
    #[arg(long, value_name = "TOKENS", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    pub output_len: u32,

    /// Different prompts
    #[arg(long, value_name = "N", required = true,
        value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub num_prompts: u32,

    /// How often each prompt is sent
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub repeat_count: u32,

    /// Send short prompts first, in place of a random order
    #[arg(long)]
    pub sort: bool,

    /// Tokens of each prompt, as in 128:256
    #[arg(long, value_name = "MIN:MAX", required = true, value_parser = lengths)]
    pub input_length_range: RangeInclusive<u32>,

    /// Tokens that all random prompts begin with; they are in the range
    #[arg(long, value_name = "TOKENS", default_value_t = 0, conflicts_with = "dataset_path")]
    pub prefix_len: u32,

    /// The server, and what is done around it.
    #[command(flatten)]
    pub offline: OfflineArgs,
}

/// `MIN:MAX`, of which neither is below zero nor the second below the first.
fn lengths(text: &str) -> Result<RangeInclusive<u32>, String> {
    let wrong = || "not two lengths, as in 128:256".to_owned();
    let (min, max) = text.split_once(':').ok_or_else(wrong)?;
    let [min, max] = [min, max].map(|length| length.trim().parse::<u32>());
    let (min, max) = (min.map_err(|_| wrong())?, max.map_err(|_| wrong())?);
    if max < min {
        return Err(format!("{max} is less than {min}"));
    }
    if max > 16_777_216 {
        return Err(format!("{max} is more than 16777216"));
    }
    Ok(min..=max)
}

impl PrefixCachingArgs {
    /// Greedy replies, which may end by themselves.
    pub(super) fn workload(&self) -> Workload {
        let name =
            if self.dataset_path.is_some() { DatasetName::ShareGpt } else { DatasetName::Random };
        Workload {
            load: VllmLoadArgs {
                num_prompts: Some(self.num_prompts.into()),
                ..VllmLoadArgs::default()
            },
            content: ContentArgs { temperature: Some(0.0), ..ContentArgs::default() },
            dataset: VllmDatasetArgs {
                dataset_name: Some(name),
                dataset_path: self.dataset_path.clone(),
                no_oversample: true,
                input_len: Some(*self.input_length_range.end()),
                output_len: Some(self.output_len.into()),
                random_prefix_len: (self.prefix_len > 0).then_some(self.prefix_len),
                sharegpt_output_len: Some(self.output_len),
                ..VllmDatasetArgs::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::lengths;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_two_lengths() {
        assert_eq!(lengths("128:256"), Ok(128..=256));
        assert_eq!(lengths("7 : 7"), Ok(7..=7));
        for wrong in ["128", "256:128", "a:b", "-1:4", "1:2:3", "1:99999999", ""] {
            assert!(lengths(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_range_panics(text in "[0-9:a -]{0,12}") {
            if let Ok(range) = lengths(&text) {
                prop_assert!(range.start() <= range.end());
            }
        }
    }
}

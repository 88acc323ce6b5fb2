//! Flags of `throughput`.

use super::super::args::{ContentArgs, DatasetName, VllmDatasetArgs, VllmLoadArgs};
use super::super::offline::{OfflineArgs, Workload, replies};
use clap::Args;

/// Every flag of `vllm bench throughput` but those of its engine: what may be abbreviated.
pub const THROUGHPUT_FLAGS: &[&str] = &[
    "--asr-max-audio-len-sec",
    "--asr-min-audio-len-sec",
    "--async-engine",
    "--backend",
    "--custom-output-len",
    "--dataset-name",
    "--dataset-path",
    "--disable-detokenize",
    "--enable-multimodal-chat",
    "--help",
    "--hf-enable-torch-compile",
    "--hf-max-batch-size",
    "--hf-name",
    "--hf-split",
    "--hf-subset",
    "--input-len",
    "--lora-assignment",
    "--lora-path",
    "--n",
    "--no-oversample",
    "--no-reranker",
    "--num-prompts",
    "--num-warmups",
    "--output-json",
    "--output-len",
    "--prefix-len",
    "--prefix-repetition-num-prefixes",
    "--prefix-repetition-output-len",
    "--prefix-repetition-prefix-len",
    "--prefix-repetition-suffix-len",
    "--prequeue-requests",
    "--profile",
    "--random-batch-size",
    "--random-input-len",
    "--random-mm-base-items-per-request",
    "--random-mm-bucket-config",
    "--random-mm-limit-mm-per-prompt",
    "--random-mm-num-mm-items-range-ratio",
    "--random-output-len",
    "--random-prefix-len",
    "--random-range-ratio",
];

/// Flags of `throughput`.
#[derive(Args, Clone, Debug, Default)]
pub struct ThroughputArgs {
    /// Requests to send [default: 1000]
    #[arg(long, value_name = "N")]
    pub num_prompts: Option<i64>,

    /// Requests before the measured ones [default: 0]
    #[arg(long, value_name = "N")]
    pub num_warmups: Option<usize>,

    /// Replies to each prompt
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub n: u32,

    /// Tokens that all random prompts begin with, as --random-prefix-len
    #[arg(long, value_name = "TOKENS", conflicts_with = "random_prefix_len")]
    pub prefix_len: Option<u32>,

    /// What is sent.
    #[command(flatten)]
    pub dataset: VllmDatasetArgs,
    /// The server, and what is done around it.
    #[command(flatten)]
    pub offline: OfflineArgs,
}

impl ThroughputArgs {
    /// All requests at once, sampled as the Python tool does.
    pub(super) fn workload(&self) -> Workload {
        let mut dataset = self.dataset.clone();
        if dataset.dataset_name.is_none() && dataset.dataset_path.is_some() {
            dataset.dataset_name = Some(DatasetName::ShareGpt);
        }
        if dataset.dataset_name == Some(DatasetName::TimedTrace) {
            dataset.trace.no_self_timed = true;
        }
        dataset.random_prefix_len = self.prefix_len.or(dataset.random_prefix_len);
        Workload {
            load: VllmLoadArgs {
                num_prompts: self.num_prompts,
                num_warmups: self.num_warmups,
                ..VllmLoadArgs::default()
            },
            content: ContentArgs {
                ignore_eos: true,
                temperature: Some(1.0),
                top_p: Some(1.0),
                extra_body: replies(self.n),
                ..ContentArgs::default()
            },
            dataset,
        }
    }
}

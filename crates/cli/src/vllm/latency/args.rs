//! Flags of `latency`.

use super::super::args::{ContentArgs, VllmDatasetArgs, VllmLoadArgs};
use super::super::offline::{OfflineArgs, Workload};
use clap::Args;
use serde_json::{Map, Value, json};

/// Every flag of `vllm bench latency` but those of its engine: what may be abbreviated.
pub const LATENCY_FLAGS: &[&str] = &[
    "--batch-size",
    "--disable-detokenize",
    "--enable-prefix-caching",
    "--help",
    "--input-len",
    "--n",
    "--no-enable-prefix-caching",
    "--num-iters",
    "--num-iters-warmup",
    "--output-json",
    "--output-len",
    "--profile",
    "--use-beam-search",
];

/// Flags of `latency`.
#[derive(Args, Clone, Debug)]
pub struct LatencyArgs {
    /// Tokens of each prompt
    #[arg(long, value_name = "TOKENS", default_value_t = 32,
        value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    pub input_len: u32,

    /// Tokens of each reply
    #[arg(long, value_name = "TOKENS", default_value_t = 128,
        value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    pub output_len: u32,

    /// Prompts in a batch
    #[arg(long, value_name = "N", default_value_t = 8,
        value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub batch_size: u32,

    /// Replies to each prompt
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub n: u32,

    /// Search in beams, as many as --n
    #[arg(long)]
    pub use_beam_search: bool,

    /// Batches before the measured ones
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub num_iters_warmup: u32,

    /// Batches that are measured
    #[arg(long, value_name = "N", default_value_t = 30,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub num_iters: u32,

    /// The server, and what is done around it.
    #[command(flatten)]
    pub offline: OfflineArgs,
}

impl LatencyArgs {
    /// One request at a time, each a whole batch.
    pub(super) fn workload(&self) -> Workload {
        let mut body: Map<String, Value> = Map::new();
        if self.n > 1 || self.use_beam_search {
            body.insert("n".to_owned(), json!(self.n));
        }
        if self.use_beam_search {
            body.insert("use_beam_search".to_owned(), json!(true));
        }
        Workload {
            load: VllmLoadArgs {
                num_prompts: Some(self.num_iters.into()),
                num_warmups: Some(self.num_iters_warmup as usize),
                max_concurrency: Some(1),
                ..VllmLoadArgs::default()
            },
            content: ContentArgs {
                ignore_eos: true,
                temperature: Some(1.0),
                top_p: Some(1.0),
                extra_body: (!body.is_empty()).then_some(body),
                ..ContentArgs::default()
            },
            dataset: VllmDatasetArgs {
                input_len: Some(self.input_len),
                output_len: Some(self.output_len.into()),
                ..VllmDatasetArgs::default()
            },
        }
    }
}

//! Flags of `latency`.

use super::super::VllmServeArgs;
use super::super::args::{
    ContentArgs, TransportArgs, VllmDatasetArgs, VllmLoadArgs, VllmReportArgs, VllmTargetArgs,
};
use super::super::offline::{NeedsEngine, OfflineArgs};
use crate::args::OwnArgs;
use clap::Args;
use serde_json::{Map, Value, json};

/// Every flag of `vllm bench latency` but those of its engine: what may be abbreviated.
pub const LATENCY_FLAGS: &[&str] = &[
    "--batch-size",
    "--disable-detokenize",
    "--help",
    "--input-len",
    "--n",
    "--num-iters",
    "--num-iters-warmup",
    "--output-json",
    "--output-len",
    "--profile",
    "--use-beam-search",
];

pub(super) const REFUSED: &[NeedsEngine] = &[NeedsEngine {
    names: &["--disable-detokenize"],
    why: "a server sends text",
    instead: "leave it out",
}];

/// Flags of `latency`.
#[derive(Args, Clone, Debug)]
pub struct LatencyArgs {
    /// The server and the model.
    #[command(flatten)]
    pub target: VllmTargetArgs,

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

    /// What is done around it.
    #[command(flatten)]
    pub offline: OfflineArgs,
    /// How requests are carried.
    #[command(flatten)]
    pub transport: TransportArgs,
    /// The simulated server and the client.
    #[command(flatten)]
    pub own: OwnArgs,
}

impl From<LatencyArgs> for VllmServeArgs {
    /// The same as a run with one request at a time, without a tokenizer: prompts are token ids.
    fn from(args: LatencyArgs) -> Self {
        let mut body: Map<String, Value> = Map::new();
        if args.n > 1 || args.use_beam_search {
            body.insert("n".to_owned(), json!(args.n));
        }
        if args.use_beam_search {
            body.insert("use_beam_search".to_owned(), json!(true));
        }
        Self {
            target: VllmTargetArgs { skip_tokenizer_init: true, ..args.target },
            load: VllmLoadArgs {
                num_prompts: Some(args.num_iters.into()),
                num_warmups: Some(args.num_iters_warmup as usize),
                max_concurrency: Some(1),
                seed: args.offline.seed,
                ready_check_timeout_sec: args.offline.ready_check_timeout_sec,
                disable_tqdm: args.offline.disable_tqdm,
                profile: args.offline.profile,
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
                input_len: Some(args.input_len),
                output_len: Some(args.output_len.into()),
                ..VllmDatasetArgs::default()
            },
            report: VllmReportArgs::default(),
            transport: args.transport,
            own: args.own,
        }
    }
}

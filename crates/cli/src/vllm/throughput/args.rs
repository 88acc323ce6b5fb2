//! Flags of `throughput`.

use super::super::VllmServeArgs;
use super::super::args::{
    ContentArgs, TransportArgs, VllmDatasetArgs, VllmLoadArgs, VllmReportArgs, VllmTargetArgs,
};
use super::super::offline::{NeedsEngine, OfflineArgs};
use crate::args::OwnArgs;
use clap::Args;
use serde_json::{Map, json};

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

pub(super) const REFUSED: &[NeedsEngine] = &[
    NeedsEngine {
        names: &[
            "--backend hf",
            "--backend mii",
            "--hf-max-batch-size",
            "--hf-enable-torch-compile",
        ],
        why: "it runs a model in the Python process",
        instead: "start a server with the model and measure that",
    },
    NeedsEngine {
        names: &["--async-engine", "--prequeue-requests"],
        why: "how the engine is fed is the server's own choice",
        instead: "leave it out: all requests are sent at once, and the server begins with the first",
    },
    NeedsEngine {
        names: &["--disable-detokenize"],
        why: "a server sends text",
        instead: "leave it out",
    },
    NeedsEngine {
        names: &["--lora-path"],
        why: "adapters are loaded by the server",
        instead: "start the server with --lora-modules NAME=PATH, and give --lora-modules NAME here",
    },
];

/// Flags of `throughput`.
#[derive(Args, Clone, Debug, Default)]
pub struct ThroughputArgs {
    /// The server and the model.
    #[command(flatten)]
    pub target: VllmTargetArgs,

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

impl From<ThroughputArgs> for VllmServeArgs {
    /// The same as a run in which all requests are sent at once, and sampled as the Python tool does.
    fn from(args: ThroughputArgs) -> Self {
        let mut dataset = args.dataset;
        if dataset.dataset_name.is_none() && dataset.dataset_path.is_some() {
            dataset.dataset_name = Some("sharegpt".to_owned());
        }
        if dataset.dataset_name.as_deref() == Some("timed_trace") {
            dataset.trace.no_self_timed = true;
        }
        dataset.random_prefix_len = args.prefix_len.or(dataset.random_prefix_len);
        let replies = (args.n > 1).then(|| Map::from_iter([("n".to_owned(), json!(args.n))]));
        Self {
            target: args.target,
            load: VllmLoadArgs {
                num_prompts: args.num_prompts,
                num_warmups: args.num_warmups,
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
                extra_body: replies,
                ..ContentArgs::default()
            },
            dataset,
            report: VllmReportArgs::default(),
            transport: args.transport,
            own: args.own,
        }
    }
}

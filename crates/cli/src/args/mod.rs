//! What a user can say: groups of flags that commands put together.
//!
//! A group only takes down what was typed. What was left out stays `None`, so that the plan can
//! tell a default from a choice; what belongs together is checked in the plan.

mod address;
mod agentic;
mod dataset;
mod endings;
mod image;
mod limits;
mod load;
mod log;
mod mooncake;
mod network;
mod own;
mod profile;
mod record;
mod report;
mod sampling;
mod shared_prefix;
mod speed_bench;
mod steps;
mod target;
pub(crate) mod values;

pub(crate) use address::Address;
pub use address::AddressArgs;
pub use agentic::AgenticArgs;
pub use dataset::DatasetArgs;
pub use endings::EndingArgs;
pub use image::{ImageArgs, ImageContentName, ImageFormatName};
pub use limits::LimitArgs;
pub use load::{HttpReaderName, LoadArgs, LoraDistribution, ReceiveStamps};
pub use log::{AnalyzeArgs, LogArgs, PastArgs};
pub use mooncake::{MooncakeArgs, MooncakeWorkload};
pub use network::NetworkArgs;
pub use own::OwnArgs;
pub use profile::ProfileArgs;
pub use record::{LookArgs, RecordArgs, ReplayArgs};
pub use report::ReportArgs;
pub use sampling::SamplingArgs;
pub use shared_prefix::{GroupDistribution, SharedPrefixArgs};
pub use speed_bench::{SpeedBenchArgs, SpeedBenchCategoryName};
pub use steps::StepsArgs;
pub use target::{BalanceName, TargetArgs};

/// Every flag of `sglang.bench_serving` 0.5.23: what may be abbreviated, whether built yet or not.
pub const SGLANG_FLAGS: &[&str] = &[
    "--agentic-max-turns",
    "--apply-chat-template",
    "--backend",
    "--base-url",
    "--cache-report",
    "--dataset-name",
    "--dataset-offset",
    "--dataset-path",
    "--disable-ignore-eos",
    "--disable-stream",
    "--disable-tqdm",
    "--extra-request-body",
    "--fake-prefill",
    "--flush-cache",
    "--flush-cache-timeout",
    "--goodput",
    "--gsp-fast-prepare",
    "--gsp-group-distribution",
    "--gsp-num-groups",
    "--gsp-num-turns",
    "--gsp-ordered",
    "--gsp-output-len",
    "--gsp-prompts-per-group",
    "--gsp-question-len",
    "--gsp-range-ratio",
    "--gsp-send-routing-key",
    "--gsp-system-prompt-len",
    "--gsp-zipf-alpha",
    "--header",
    "--help",
    "--host",
    "--image-content",
    "--image-count",
    "--image-format",
    "--image-resolution",
    "--logprob-start-len",
    "--lora-name",
    "--lora-request-distribution",
    "--lora-zipf-alpha",
    "--max-concurrency",
    "--model",
    "--mooncake-num-rounds",
    "--mooncake-slowdown-factor",
    "--mooncake-workload",
    "--num-prompts",
    "--output-details",
    "--output-file",
    "--pd-separated",
    "--plot-throughput",
    "--port",
    "--print-requests",
    "--profile",
    "--profile-activities",
    "--profile-by-stage",
    "--profile-decode-url",
    "--profile-num-steps",
    "--profile-output-dir",
    "--profile-prefill-url",
    "--profile-prefix",
    "--profile-stages",
    "--profile-start-step",
    "--profile-steps",
    "--prompt-suffix",
    "--random-image-count",
    "--random-input-len",
    "--random-output-len",
    "--random-range-ratio",
    "--ready-check-timeout-sec",
    "--request-rate",
    "--return-logprob",
    "--return-routed-experts",
    "--rust-client",
    "--rust-worker-threads",
    "--seed",
    "--served-model-name",
    "--sharegpt-context-len",
    "--sharegpt-output-len",
    "--speed-bench-category",
    "--speed-bench-output-len",
    "--tag",
    "--temperature",
    "--token-ids-logprob",
    "--tokenize-prompt",
    "--tokenizer",
    "--top-logprobs-num",
    "--top-p",
    "--use-trace-timestamps",
    "--warmup-requests",
];

//! Groups of flags of `bench-one-batch-server`.

use crate::args::{AddressArgs, ImageArgs, LoraDistribution, StepsArgs, values};
use clap::{Args, ValueEnum};
use serde::Serialize;
use servebench_datasets::DatasetName;
use std::path::PathBuf;

/// Every flag of `sglang.bench_one_batch_server` 0.5.23 that is not one of the server's own, and those
/// of the server's that it uses itself: what may be abbreviated.
pub const ONE_BATCH_FLAGS: &[&str] = &[
    "--apply-chat-template",
    "--backend",
    "--base-url",
    "--batch-size",
    "--cache-hit-rate",
    "--client-stream-interval",
    "--dataset-name",
    "--dataset-path",
    "--disable-ignore-eos",
    "--enable-multi-batch",
    "--fake-prefill",
    "--fixed-prompt-file",
    "--flush-hicache-storage",
    "--gsp-num-groups",
    "--gsp-output-len",
    "--gsp-question-len",
    "--gsp-system-prompt-len",
    "--help",
    "--host",
    "--input-len",
    "--input-len-list",
    "--input-len-step-percentage",
    "--local-tokenizer-path",
    "--lora-name",
    "--lora-request-distribution",
    "--lora-zipf-alpha",
    "--model-path",
    "--no-append-to-github-summary",
    "--output-len",
    "--parallel-batch",
    "--port",
    "--profile",
    "--profile-activities",
    "--profile-by-stage",
    "--profile-output-dir",
    "--profile-prefix",
    "--profile-start-step",
    "--profile-steps",
    "--pydantic-result-filename",
    "--result-filename",
    "--return-logprob",
    "--run-name",
    "--seed",
    "--server-args-for-metrics",
    "--show-report",
    "--skip-token-capacity-check",
    "--skip-warmup",
    "--temperature",
    "--tp-size",
];

/// Kinds of servers that take a batch in one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchBackend {
    /// SGLang's `/generate`.
    #[default]
    Sglang,
    /// vLLM's `/v1/completions`.
    Vllm,
}

/// Which server is measured.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Server")]
pub struct BatchServerArgs {
    /// Where it is.
    #[command(flatten)]
    pub address: AddressArgs,

    /// What the server is
    #[arg(long, value_name = "KIND", default_value = "sglang")]
    pub backend: BatchBackend,

    /// Start the server with this shell command, wait for it, and stop it and its children at the end
    ///
    /// The command says where the server listens, and --base-url, or --host and --port, say it here.
    #[arg(long, value_name = "CMD")]
    pub launch: Option<String>,

    /// Longest wait for a server started by --launch, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub launch_timeout: u32,

    /// Model name for the structured results; the server knows what it serves
    #[arg(long, alias = "model", value_name = "NAME")]
    pub model_path: Option<String>,

    /// Accelerators of the server, for the cost columns
    #[arg(long, alias = "tensor-parallel-size", value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub tp_size: u32,

    /// Dollars for an hour of one accelerator, for the cost columns [default: 2]
    ///
    /// Upstream takes 4 when the machine that it runs on has a Blackwell GPU.
    #[arg(long, value_name = "USD", value_parser = values::positive)]
    pub hourly_cost: Option<f64>,

    /// Tokenizer to make prompts with, a folder or a hub name [default: what the server names]
    #[arg(long, value_name = "PATH")]
    pub local_tokenizer_path: Option<String>,
}

/// The cases: every batch size with every input length and every output length.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Sweep")]
pub struct SweepArgs {
    /// Prompts in the one request; several make a sweep [default: 1]
    #[arg(long, num_args = 1.., value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub batch_size: Vec<u32>,

    /// Tokens of each prompt; several make a sweep [default: 1024]
    #[arg(long, num_args = 1.., value_name = "TOKENS",
        value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    pub input_len: Vec<u32>,

    /// Output tokens of each prompt; several make a sweep [default: 16]
    #[arg(long, num_args = 1.., value_name = "TOKENS",
        value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    pub output_len: Vec<u32>,

    /// Lengths of the prompts of one batch, as in 128,1024: prompt i has the (i mod n)th
    #[arg(long, value_name = "LIST")]
    pub input_len_list: Option<String>,

    /// Upstream takes this and does nothing with it; only 0 is accepted here
    #[arg(long, value_name = "X", hide = true)]
    pub input_len_step_percentage: Option<f64>,

    /// Allow batches larger than the server runs at once; it then queues the rest
    ///
    /// Only overall_throughput means something then.
    #[arg(long)]
    pub enable_multi_batch: bool,

    /// Run cases that need more tokens than the server's cache holds
    #[arg(long)]
    pub skip_token_capacity_check: bool,

    /// Send no warm-up (one case of 1024 tokens in, 16 out, for each batch size)
    #[arg(long)]
    pub skip_warmup: bool,

    /// Print the plan as JSON and stop
    #[arg(long)]
    pub dry_run: bool,
}

/// Where prompts come from.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Prompts")]
pub struct PromptSourceArgs {
    /// Where prompts come from [default: random, with --simulate random-ids]
    ///
    /// `random`: cut from the ShareGPT file. `random-ids`: running token ids, from no file.
    /// `random-words`: words that are one token each, from no file. `generated-shared-prefix`: groups
    /// that begin alike. `sharegpt`, `custom`: recorded prompts with their own lengths. `longbench_v2`:
    /// long documents, from a file or the hub, cut to --input-len. `image`: random text with pictures.
    /// `mmmu`: questions about pictures, from a file or the hub.
    #[arg(long, value_name = "NAME", value_parser = dataset)]
    pub dataset_name: Option<DatasetName>,

    /// File to read; `sharegpt`, `random` and `longbench_v2` fetch theirs once if it is left out
    #[arg(long, value_name = "FILE")]
    pub dataset_path: Option<PathBuf>,

    /// Send the text of this file as every prompt, in place of a dataset
    #[arg(long, value_name = "FILE")]
    pub fixed_prompt_file: Option<PathBuf>,

    /// Put prompts through the chat template (--fixed-prompt-file, sharegpt, custom)
    #[arg(long)]
    pub apply_chat_template: bool,

    /// Groups of generated-shared-prefix
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub gsp_num_groups: u32,

    /// Tokens that the prompts of a group share
    #[arg(long, value_name = "TOKENS", default_value_t = 2048)]
    pub gsp_system_prompt_len: u32,

    /// Tokens of each prompt of its own
    #[arg(long, value_name = "TOKENS", default_value_t = 128)]
    pub gsp_question_len: u32,

    /// Output tokens of generated-shared-prefix, in place of --output-len
    #[arg(long, value_name = "TOKENS", default_value_t = 256)]
    pub gsp_output_len: u32,

    /// Have the server's cache hold this share of each prompt before the clock starts, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub cache_hit_rate: f64,

    /// Seed of all draws
    #[arg(long, default_value_t = 42)]
    pub seed: u32,

    /// The pictures of `image`.
    #[command(flatten)]
    pub image: ImageArgs,
}

/// What is asked of the server.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Request")]
pub struct BatchRequestArgs {
    /// Sampling temperature
    #[arg(long, default_value_t = 0.0)]
    pub temperature: f64,

    /// Let prompts end at the end-of-text token; adds the figures of the time in which all decode
    #[arg(long)]
    pub disable_ignore_eos: bool,

    /// Ask for log probabilities
    #[arg(long)]
    pub return_logprob: bool,

    /// Tokens per event of the stream (sglang)
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub client_stream_interval: u32,

    /// Ask the server to work on the prompts of the batch in parallel (sglang)
    #[arg(long)]
    pub parallel_batch: bool,

    /// Measure a decode server alone: it makes up the prefill's KV cache (sglang)
    #[arg(long)]
    pub fake_prefill: bool,

    /// Also clear the storage tier of the hierarchical cache before each case (sglang)
    #[arg(long)]
    pub flush_hicache_storage: bool,

    /// LoRA adapters, by the names the server loaded them under (sglang)
    #[arg(long, num_args = 0.., value_name = "NAME")]
    pub lora_name: Vec<String>,

    /// How they are given to the prompts of a batch
    #[arg(long, value_name = "NAME", default_value = "uniform")]
    pub lora_request_distribution: LoraDistribution,

    /// Base of `skewed`, above 1: adapter i has weight ALPHA^-i
    #[arg(long, value_name = "ALPHA", default_value_t = 1.1)]
    pub lora_zipf_alpha: f64,
}

/// What is written and shown.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct BatchOutputArgs {
    /// Name of the run in the results
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub run_name: String,

    /// File that gets one JSON line for each case; `""` writes none
    #[arg(long, value_name = "FILE", default_value = "result.jsonl")]
    pub result_filename: String,

    /// File that gets all results as one JSON list, replacing what is in it
    #[arg(long, value_name = "FILE")]
    pub pydantic_result_filename: Option<PathBuf>,

    /// Words that the JSON list keeps as `server_args`
    #[arg(long, num_args = 0.., value_name = "WORD")]
    pub server_args_for_metrics: Vec<String>,

    /// Print a Markdown table of all cases at the end
    #[arg(long)]
    pub show_report: bool,

    /// Do not append that table to $GITHUB_STEP_SUMMARY when SGLANG_IS_IN_CI is on
    #[arg(long)]
    pub no_append_to_github_summary: bool,
}

/// A profile of each case, in a pass of its own.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Profiling")]
pub struct BatchProfileArgs {
    /// Run all cases once more with the server's profiler (sglang); these are not in the result file
    #[arg(long)]
    pub profile: bool,

    /// What is profiled
    #[arg(long, num_args = 1.., value_name = "NAME", ignore_case = true,
        value_parser = ["CPU", "GPU", "XPU"], default_values = ["CPU", "GPU"])]
    pub profile_activities: Vec<String>,

    /// The server's forward step at which to begin [default: now]
    #[arg(long, value_name = "N")]
    pub profile_start_step: Option<u64>,

    /// How many steps, and where to.
    #[command(flatten)]
    pub steps: StepsArgs,
}

/// All that `bench-one-batch-server` takes.
#[derive(Args, Clone, Debug, Default)]
pub struct OneBatchArgs {
    /// Which server is measured.
    #[command(flatten)]
    pub server: BatchServerArgs,
    /// The cases.
    #[command(flatten)]
    pub sweep: SweepArgs,
    /// Where prompts come from.
    #[command(flatten)]
    pub prompts: PromptSourceArgs,
    /// What is asked of the server.
    #[command(flatten)]
    pub request: BatchRequestArgs,
    /// What is written and shown.
    #[command(flatten)]
    pub output: BatchOutputArgs,
    /// A profile of each case.
    #[command(flatten)]
    pub profile: BatchProfileArgs,
}

/// The datasets that make a batch, and why others do not.
fn dataset(name: &str) -> Result<DatasetName, String> {
    const TAKEN: [DatasetName; 9] = [
        DatasetName::Random,
        DatasetName::RandomIds,
        DatasetName::RandomWords,
        DatasetName::SharedPrefix,
        DatasetName::ShareGpt,
        DatasetName::Custom,
        DatasetName::LongBench,
        DatasetName::Image,
        DatasetName::Mmmu,
    ];
    if let Some(found) = TAKEN.into_iter().find(|taken| taken.name() == name) {
        return Ok(found);
    }
    let known = TAKEN.map(DatasetName::name).join(", ");
    Err(format!("expected one of {known}"))
}
